package core

import "fmt"

// OutError says that this site has no place in the cluster any more: it has left, or was
// written off. The site must not serve.
type OutError struct {
	Site SiteID
	// By is the member that told so; empty if the site's own catalogue says so.
	By SiteID
	// Lost says that the site was written off, as far as the site knows.
	Lost bool
}

// Error implements error.
func (e *OutError) Error() string {
	by := ""
	if e.By != "" {
		by = fmt.Sprintf(", as site %q tells", e.By)
	}
	if e.Lost {
		return fmt.Sprintf("site %q was written off%s: its tokens are retired; do not start it again", e.Site, by)
	}
	return fmt.Sprintf("site %q is out of the cluster%s: it has left or was written off; do not start it again", e.Site, by)
}
