package samya

import (
	"time"

	"github.com/samya-db/samya/lab/replay"
	"github.com/samya-db/samya/lab/virtual"
)

// The places of the paper's regions.
const (
	us virtual.Place = iota
	as
	eu
	au
	sa
)

// crashOrder is the order in which regions crash; the paper gives no order. The
// leader of MultiPaxSys never crashes.
var crashOrder = [crashed]virtual.Place{sa, au, eu, as}

// cutSides are the sides of the regions during a cut.
var cutSides = []int{us: 0, as: 0, eu: 0, au: 1, sa: 1}

// faultsOf returns the faults of a run.
func faultsOf(f fault, span time.Duration) []replay.Fault {
	var all []replay.Fault
	switch f {
	case crashes:
		for i, p := range crashOrder {
			all = append(all, replay.Crash(span*time.Duration(i+1)/eras, p))
		}
	case cut:
		from, to := cutSpan(span.Minutes())
		all = append(all, replay.Cut(inMinutes(from), cutSides...), replay.Heal(inMinutes(to)))
	}
	return all
}

func inMinutes(m float64) time.Duration { return time.Duration(m * float64(time.Minute)) }
