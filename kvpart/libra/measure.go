package libra

import (
	"cmp"
	"fmt"
	"math"
)

// WriteCost is the paper's c: the processor time of a write over the time of a read (section
// IV-A). It is of the paper's hardware; whoever can should measure it.
const WriteCost = 1.63

// MapCPU shares the measured processor time of a node out to its units, by their reads and
// writes; a write counts as cost reads (paper, section IV-A). A node without requests
// shares out nothing. All arguments are at least 0, and reads and writes equally long.
func MapCPU(dst []float64, measured float64, reads, writes []float64, cost float64) []float64 {
	sum := 0.
	for i := range reads {
		sum += reads[i] + cost*writes[i]
	}
	for i := range reads {
		l := 0.
		if sum > 0 {
			l = measured * ((reads[i] + cost*writes[i]) / sum)
		}
		dst = append(dst, l)
	}
	return dst
}

// Guard suspends balancing while loads fluctuate (paper, section IV-A): a plan made of
// measurements of a spike would move units for nothing. The zero value is ready.
type Guard struct {
	// Limit is the largest change of a node's load between two measurements that is
	// steady, as a share: .2 if 0.
	Limit float64
	last  []Load
}

const defaultFluctuation = .2

// Steady takes the loads of all nodes, measured once more, and reports whether to balance:
// whether no node changed by more than the limit, in either dimension, as a share of its
// former load or of the mean, whichever is larger. The paper takes the former load alone,
// so that an idle node would suspend balancing with its first request. The first
// measurement, and a change of the number of nodes, is not steady.
func (g *Guard) Steady(loads []Load) bool {
	limit := cmp.Or(g.Limit, defaultFluctuation)
	steady := len(g.last) == len(loads) && len(loads) > 0
	for d := range dimensions {
		mean := 0.
		for _, l := range loads {
			mean += l[d] / float64(len(loads))
		}
		for j := range loads {
			if steady && !(math.Abs(loads[j][d]-g.last[j][d]) <= limit*max(g.last[j][d], mean)) {
				steady = false // also if a load is not a number
			}
		}
	}
	g.last = append(g.last[:0], loads...)
	return steady
}

// Merges returns which neighbours to merge, no more pairs than most: an index i says that the
// units i and i+1, which are neighbours in the order of keys, merge. Only cold units
// of the same node merge, so that the result is far from a split: below λ/8 of the mean in
// both dimensions. No unit is in two pairs. It fails as NewPlan does.
func Merges(o Options, nodes int, units []Unit, most int) ([]int, error) {
	p, err := NewPlan(o, nodes, units)
	if err != nil {
		return nil, fmt.Errorf("merge: %w", err)
	}
	var pairs []int
	for i := 0; i+1 < len(p.units) && len(pairs) < most; i++ {
		a, b := &p.units[i], &p.units[i+1]
		if a.Node == b.Node && a.Load.plus(b.Load, 1).most() <= p.opt.Tolerance/8 {
			pairs = append(pairs, i)
			i++
		}
	}
	return pairs, nil
}
