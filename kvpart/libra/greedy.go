package libra

import (
	"math"
	"slices"
)

// greedy decides a move of a rule for comparison, or a split where there is no move: from
// the node with the largest score to the node with the least, the heaviest unit that
// lowers the larger of both scores.
func (p *Plan) greedy() {
	switch p.opt.Rule {
	case OnlyCPU:
		p.pair(p.score(1), 1)
	case OnlyDisk:
		p.pair(p.score(0), 0)
	case Weighted:
		p.pair(p.score(*p.opt.Weight), *p.opt.Weight)
	case Isolated:
		// Each schedules in its turn if its own dimension asks for it.
		for range dimensions {
			w := float64(1 - p.turn)
			p.turn = p.turn.other()
			if p.pair(p.score(w), w) {
				return
			}
		}
	case Cooperative:
	}
}

// balanced reports whether the rule has nothing to do.
func (p *Plan) balanced() bool {
	most := func(weight float64) float64 { return slices.Max(p.score(weight)) }
	bound := 1 + p.opt.Tolerance
	switch p.opt.Rule {
	case OnlyCPU:
		return most(1) <= bound
	case OnlyDisk:
		return most(0) <= bound
	case Isolated:
		return most(1) <= bound && most(0) <= bound
	case Weighted:
		return most(*p.opt.Weight) <= bound
	case Cooperative:
	}
	return p.Excess() <= p.opt.Tolerance
}

// weigh is the score of a load, with a weight of the processor.
func weigh(l Load, weight float64) float64 { return weight*l[CPU] + (1-weight)*l[Disk] }

// score returns the scores of the nodes. The next call overwrites them.
func (p *Plan) score(weight float64) []float64 {
	p.scores = p.scores[:0]
	for _, l := range p.loads {
		p.scores = append(p.scores, weigh(l, weight))
	}
	return p.scores
}

// pair decides for the nodes with the largest and the least score, and reports whether it
// did.
func (p *Plan) pair(scores []float64, weight float64) bool {
	from, to := 0, 0
	for j, s := range scores {
		if s > scores[from] {
			from = j
		}
		if s < scores[to] {
			to = j
		}
	}
	if scores[from] <= 1+p.opt.Tolerance {
		return false
	}
	d := CPU
	if weight < .5 {
		d = Disk
	}
	best, target, heaviest := none, to, none
	for _, unit := range p.nodes[from].units {
		i := int(unit)
		u := &p.units[i]
		s := weigh(u.Load, weight)
		if p.busy[i] || s <= p.opt.Benefit {
			continue
		}
		if s > p.cap() && !u.Whole && (heaviest == none || s > weigh(p.units[heaviest].Load, weight)) {
			heaviest = i
		}
		if best != none && s <= weigh(p.units[best].Load, weight) {
			continue
		}
		if j := least(scores, to, u); j != none && scores[j]+s < scores[from] {
			best, target = i, j
		}
	}
	switch {
	case best != none:
		p.migrate(best, target, d)
	case heaviest != none && !p.nodes[from].split:
		p.split(heaviest, d, math.Inf(1))
	default:
		return false
	}
	return true
}

// least returns the node with the least score that may get u: node to, unless u is barred
// from it.
func least(scores []float64, to int, u *Unit) int {
	if !slices.Contains(u.Barred, to) {
		return to
	}
	to = none
	for j, s := range scores {
		if j != u.Node && !slices.Contains(u.Barred, j) && (to == none || s < scores[to]) {
			to = j
		}
	}
	return to
}
