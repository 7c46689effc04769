package core

import "fmt"

// UsedNameError says that a site joins under a name that the cluster has used: its earlier
// data is missing, or another site has the name. The names of sites are never used twice.
type UsedNameError struct{ Site SiteID }

// Error implements error.
func (e *UsedNameError) Error() string {
	return fmt.Sprintf("the cluster knows a site %q that has served; a site that joins needs a name of its own", e.Site)
}
