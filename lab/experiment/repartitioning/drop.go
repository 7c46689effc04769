package repartitioning

import (
	"time"

	"github.com/samya-db/samya/kvpart"
)

// The runs that show the throughput during a cut. The graph must be large, so that
// a cut takes a while: all keys are wanted alike, and nothing in the graph expires.
// Few requests may be under way: a long queue would keep the workers busy during
// the pause and hide it.
const (
	dropName     = "drop"
	dropWorkload = "E uniform"
	dropLonger   = 6 // multiple of the requests of E
	dropInFlight = 256
	dropEvery    = 500 * time.Millisecond
	// dropShare is the share of a core for tracking and cutting; during a cut they
	// take twice the share.
	dropShare = .15
)

// dropCells are Base and Async with the same settings.
func (m *measured) dropCells() []cell {
	workers := m.workers[0]
	return []cell{
		{workload: dropWorkload, workers: workers, variant: variant{name: "Base", kind: kvpart.Base, interval: .15}},
		{workload: dropWorkload, workers: workers, variant: variant{name: plainAsync, kind: kvpart.Async}},
	}
}

// forDrop is the setting of the dropCells.
func (s *setting) forDrop() *setting {
	n := *s
	n.inFlight = dropInFlight
	n.gain, n.every, n.share = -1, dropEvery, dropShare
	return &n
}
