package repartitioning

import (
	"time"

	"github.com/samya-db/samya/kvpart"
)

// The runs that show what a cut does to the throughput meanwhile. The graph must
// be large, so that a cut takes a while: all keys are wanted as often, and nothing
// of the graph expires. Little may be under way, or the workers would go on with
// what they have while nothing new is handed over, which hides the pause.
const (
	dropName     = "drop"
	dropWorkload = "E uniform"
	dropLonger   = 6 // so many times the requests of E
	dropInFlight = 256
	dropEvery    = 500 * time.Millisecond
	// dropShare is the share of a core for tracking and cutting; while a cut is under
	// way it takes twice that.
	dropShare = .15
)

// dropCells are Base and Async, otherwise alike.
func (m *measured) dropCells() []cell {
	workers := m.workers[0]
	return []cell{
		{workload: dropWorkload, workers: workers, variant: variant{name: "Base", kind: kvpart.Base, interval: .15}},
		{workload: dropWorkload, workers: workers, variant: variant{name: plainAsync, kind: kvpart.Async}},
	}
}

// forDrop is the setting of those runs.
func (s *setting) forDrop() *setting {
	n := *s
	n.inFlight = dropInFlight
	n.gain, n.every, n.share = -1, dropEvery, dropShare
	return &n
}
