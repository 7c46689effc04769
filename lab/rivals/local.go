package rivals

import (
	"fmt"

	"github.com/samya-db/samya/lab/virtual"
)

var _ virtual.System = (*Local)(nil)

// Local is a system of sites that never exchange tokens (Samya, Section 5.5).
type Local struct {
	sites
	constraint bool
}

// NoConstraint makes the system that grants everything at once: the upper bound of
// throughput.
func NoConstraint() *Local { return &Local{} }

// NoRedistribution makes the system in which each site serves from its part of the
// limit, and refuses when its part is used up.
func NoRedistribution() *Local { return &Local{constraint: true} }

// Start divides the limit.
func (l *Local) Start(w *virtual.World, limit int, answer func(*virtual.Request, virtual.Outcome)) error {
	return l.start(w, limit, answer)
}

// Handle serves a request. A stale read returns the site's own tokens; an exact
// read asks all sites.
func (l *Local) Handle(r *virtual.Request) {
	l.w.Serve(r.Place, func() {
		if l.late(r) {
			return
		}
		switch r.Kind {
		case virtual.ReadStale:
			l.settle(r, virtual.Granted)
		case virtual.ReadExact:
			l.gather(r, func(virtual.Place) {}, nil)
		default:
			at := l.at[r.Place]
			at.commit(func() { l.settle(r, l.change(at, r)) })
		}
	})
}

func (l *Local) change(at *site, r *virtual.Request) virtual.Outcome {
	if r.Kind == virtual.Release {
		at.left++
		at.net--
		return virtual.Granted
	}
	if l.constraint && at.left == 0 {
		return virtual.Refused
	}
	at.left--
	at.net++
	return virtual.Granted
}

// Crashed forgets the state of a place that is not durable.
func (l *Local) Crashed(p virtual.Place) { l.at[p].crash() }

// Restarted does nothing: the durable state is there.
func (l *Local) Restarted(virtual.Place) {}

// Out returns the tokens granted and not released.
func (l *Local) Out() int { return l.out() }

// Check checks that the sites have all tokens not granted.
func (l *Local) Check() error {
	for i, at := range l.at {
		if l.constraint && at.left < 0 {
			return fmt.Errorf("site %d has %d tokens left", i, at.left)
		}
	}
	if got := l.left() + l.out(); got != l.limit {
		return fmt.Errorf("%d tokens at sites and %d out, the limit is %d", l.left(), l.out(), l.limit)
	}
	return nil
}

// Counters returns its counters.
func (l *Local) Counters() map[string]float64 { return l.counters() }
