package replay

import (
	"fmt"
	"slices"
	"time"

	"github.com/samya-db/samya/lab/virtual"
)

// Fault is a change of the world at a time since the start of the run.
type Fault struct {
	At   time.Duration
	kind faultKind
	// place is the place of a crash or a restart.
	place virtual.Place
	side  []int
}

type faultKind uint8

const (
	crash faultKind = iota + 1
	restart
	cut
	heal
)

// Crash crashes a place: its server and, if it has any, its clients. The clients
// are gone for good, and their tokens stay out. Demand for the place goes on when
// it restarts.
func Crash(at time.Duration, p virtual.Place) Fault { return Fault{At: at, kind: crash, place: p} }

// Restart brings a place up again.
func Restart(at time.Duration, p virtual.Place) Fault {
	return Fault{At: at, kind: restart, place: p}
}

// Cut separates the places: places with the same number reach each other, and
// clients go on asking their own place. A place of a server elsewhere without a
// number is on the side of the first place of its region, or of place 0.
func Cut(at time.Duration, side ...int) Fault { return Fault{At: at, kind: cut, side: side} }

// Heal ends a cut.
func Heal(at time.Duration) Fault { return Fault{At: at, kind: heal} }

// checkFaults checks the faults of a run against its world.
func checkFaults(faults []Fault, places, asked int) error {
	for _, f := range faults {
		switch {
		case f.kind == 0:
			return fmt.Errorf("a fault at %v that is none", f.At)
		case f.place < 0 || int(f.place) >= places:
			return fmt.Errorf("a fault of place %d, there are %d", f.place, places)
		case f.kind == cut && (len(f.side) < asked || len(f.side) > places):
			return fmt.Errorf("a cut between %d of %d places", len(f.side), asked)
		}
	}
	return nil
}

// fault applies a fault.
func (r *run) fault(f *Fault) {
	switch f.kind {
	case crash:
		r.crash(f.place)
	case restart:
		r.restart(f.place)
	case cut:
		r.world.Cut(r.sides(f.side))
	case heal:
		r.world.Heal()
	}
}

// sides returns the sides of all places, given the sides of the first places.
func (r *run) sides(named []int) []int {
	all := r.world.Options().Places
	side := slices.Clone(named)
	for _, region := range all[len(named):] {
		at := max(0, slices.Index(all[:len(named)], region))
		side = append(side, named[at])
	}
	return side
}

// crash crashes a place with its clients. They get no answer to their requests, and
// the outcomes are unknown.
func (r *run) crash(p virtual.Place) {
	if !r.world.Up(p) {
		return
	}
	r.world.Crash(p)
	r.system.Crashed(p)
	if int(p) >= len(r.clients) {
		return
	}
	r.clients[p].life++
	for _, calls := range [][]call{r.calls, r.reads} {
		for i := range calls {
			c := &calls[i]
			if !c.waits || c.Place != p {
				continue
			}
			c.waits = false
			r.pending--
			switch c.Kind {
			case virtual.Acquire:
				r.result.Lost++
				r.unknown++
			case virtual.Release:
				r.unknown++
			default:
				r.result.LostReads++
			}
		}
	}
}

// restart brings a place up again.
func (r *run) restart(p virtual.Place) {
	if !r.world.Up(p) {
		r.world.Restart(p)
		r.system.Restarted(p)
	}
}

// mend ends all faults.
func (r *run) mend() {
	r.world.Heal()
	for p := range r.world.Places() {
		r.restart(virtual.Place(p))
	}
}
