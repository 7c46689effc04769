package core

import (
	"fmt"

	"github.com/samya-db/samya/site/core/message"
)

// StaleError says that a site was started on data that is not its latest.
type StaleError struct {
	// By is the member that remembers Known; Mine is the mark of the data.
	By          SiteID
	Mine, Known message.Mark
}

// Error describes the fault of the data.
func (e *StaleError) Error() string {
	if e.Mine.Incarnation != e.Known.Incarnation {
		return fmt.Sprintf("it is not the data that this site had: site %q remembers incarnation %016x at commit %d, this is %016x at commit %d",
			e.By, uint64(e.Known.Incarnation), e.Known.Commits, uint64(e.Mine.Incarnation), e.Mine.Commits)
	}
	return fmt.Sprintf("it is an older copy: site %q remembers commit %d of it, it stands at commit %d",
		e.By, e.Known.Commits, e.Mine.Commits)
}
