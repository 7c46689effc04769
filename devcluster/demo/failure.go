package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/samya-db/samya/devcluster/proc"
)

const (
	// haNodes is the number of nodes of a site, with [Options.HA].
	haNodes = 2
	// failing is the site that loses its active node.
	failing = "eu"
	// restartAfter is how long a killed node stays away.
	restartAfter = 5 * time.Second
)

// failure kills the active node of a site, and starts it again later.
type failure struct{ cluster *proc.Cluster }

// run kills the node after a while, and tells the events until ctx is done.
func (f *failure) run(ctx context.Context, after time.Duration, tell func(string)) {
	if !pause(ctx, after) {
		return
	}
	active, err := f.cluster.Active(ctx, failing)
	if err != nil {
		return
	}
	killed := time.Now()
	if err := active.Kill(); err != nil {
		tell("node " + active.Node + " of site " + failing + " cannot be killed: " + err.Error())
		return
	}
	tell(fmt.Sprintf("killed the active node of site %s: node %s, process %s", failing, active.Node, active.Name))
	next, err := f.cluster.Active(ctx, failing)
	if err != nil {
		return
	}
	tell(fmt.Sprintf("node %s goes on with site %s, %s s after the kill", next.Node, failing, decimal(time.Since(killed).Seconds())))
	if !pause(ctx, restartAfter) {
		return
	}
	if err := active.Start(); err != nil {
		tell("node " + active.Node + " of site " + failing + " does not start again: " + err.Error())
		return
	}
	tell(fmt.Sprintf("node %s of site %s is started again, and follows", active.Node, failing))
}

// pause waits, and reports false if ctx is done before.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
