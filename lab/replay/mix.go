package replay

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/samya-db/samya/lab/virtual"
	"github.com/samya-db/samya/predict"
)

// Read is a read of the number of free tokens.
type Read struct {
	// Due is the time of the read, since the start of the run.
	Due time.Duration
	// Place is the place of the asked server.
	Place virtual.Place
	// Exact asks for the number at a single instant, instead of the server's own
	// knowledge.
	Exact bool
}

// WithReads returns the demand with a share of its requests turned into reads, from
// 0 to 1. Each lease drawn from the seed becomes two reads, at its acquire and at
// its release. So the number and the times of requests stay the same, even with
// reads alone. The sites' history shrinks with the leases.
func (d *Demand) WithReads(share float64, exact bool, seed uint64) (*Demand, error) {
	if !(share >= 0 && share <= 1) {
		return nil, fmt.Errorf("a share of %v of reads, must be within 0 and 1", share)
	}
	mixed := *d
	mixed.Leases, mixed.Reads = nil, slices.Clone(d.Reads)
	r := rand.New(rand.NewPCG(seed, 0x7265)) //nolint:gosec // a simulation, to be repeated
	for _, l := range d.Leases {
		if r.Float64() >= share {
			mixed.Leases = append(mixed.Leases, l)
			continue
		}
		mixed.Reads = append(mixed.Reads, Read{Due: l.Due, Place: l.Place, Exact: exact})
		if end := l.Due + l.Hold; end < d.Span {
			mixed.Reads = append(mixed.Reads, Read{Due: end, Place: l.Place, Exact: exact})
		}
	}
	slices.SortStableFunc(mixed.Reads, func(a, b Read) int { return cmp.Compare(a.Due, b.Due) })
	mixed.reads = 1 - (1-d.reads)*(1-share)
	mixed.thinHistory(1 - share)
	return &mixed, nil
}

// thinHistory keeps a part of the history.
func (d *Demand) thinHistory(part float64) {
	if part == 1 || d.History == nil {
		return
	}
	thin := make([][]predict.Bin, len(d.History))
	for p, bins := range d.History {
		for _, b := range bins {
			thin[p] = append(thin[p], predict.Bin{Net: b.Net * part, Peak: b.Peak * part})
		}
	}
	d.History = thin
}

// Stretch returns the demand k times as slow, for k above 0 and at most 1000: a bin
// of the trace takes k times as long, and leases live k times as long.
func (d *Demand) Stretch(k float64) (*Demand, error) {
	if !(k > 0 && k <= 1000) {
		return nil, fmt.Errorf("stretched %v times, must be above 0 and at most 1000", k)
	}
	slow := *d
	longer := func(t time.Duration) time.Duration { return time.Duration(k * float64(t)) }
	slow.Bin, slow.Span = longer(d.bin()), longer(d.Span)
	slow.Leases = make([]Lease, len(d.Leases))
	for i, l := range d.Leases {
		slow.Leases[i] = Lease{Due: longer(l.Due), Hold: turnaround + longer(l.Hold-turnaround), Place: l.Place}
	}
	slow.Reads = make([]Read, len(d.Reads))
	for i, r := range d.Reads {
		slow.Reads[i] = Read{Due: longer(r.Due), Place: r.Place, Exact: r.Exact}
	}
	return &slow, nil
}
