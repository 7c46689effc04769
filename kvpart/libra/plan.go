package libra

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Plan is a round of decisions: call Step until it returns Done, Wait or Stuck, carry the
// decisions out, measure, and make a new plan. A decision counts as carried out at once.
//
// A round ends: each unit moves at most once and is split at most once, so Step decides at
// most twice the number of units. With the rule Cooperative, unless Printed, no decision
// raises the excess but the first of two moves that swap units, and the second makes up
// for it: see Action. No destination gets more than the tolerance, nor more than its
// source had, with two exceptions. A swap may leave a node with as much as before. And if
// nothing else helps and no unit of the worst node can be split, a last move or swap may
// leave another node above the tolerance, with less than the worst node had.
type Plan struct {
	opt   Options
	units []Unit // with relative loads and present nodes
	loads []Load // relative, of nodes
	busy  []bool // units that moved or split in this round
	nodes []node
	// single says that a dimension has no load.
	single bool
	// decided are decisions to return before any other.
	decided []Action
	moves   int
	splits  int
	planned bool      // lazy was called
	turn    Dimension // of Isolated
	scores  []float64 // of the rules for comparison
}

const none = -1

// NewPlan begins a round over nodes with units. It fails with ErrInput if an option, the
// number of nodes (at least 1), a unit or the sum of loads is out of its range. It keeps
// no units but their Barred, which must not change before the end of the round.
func NewPlan(o Options, nodes int, units []Unit) (*Plan, error) {
	if nodes < 1 {
		return nil, fmt.Errorf("%w: %d nodes, want 1 or more", ErrInput, nodes)
	}
	if err := o.check(nodes, len(units)); err != nil {
		return nil, err
	}
	p := &Plan{
		opt: o, units: slices.Clone(units), loads: make([]Load, nodes), busy: make([]bool, len(units)),
		nodes: make([]node, nodes),
	}
	var sum Load
	for i := range p.units {
		if err := p.units[i].check(i, nodes); err != nil {
			return nil, err
		}
		sum = sum.plus(p.units[i].Load, 1)
	}
	for _, d := range Dimensions() {
		if math.IsInf(sum[d], 0) {
			return nil, fmt.Errorf("%w: sum of %s loads is %v, want %v at most", ErrInput, d, sum[d], math.MaxFloat64)
		}
	}
	p.single = sum[CPU] == 0 || sum[Disk] == 0
	for i := range p.units {
		u := &p.units[i]
		for d := range sum {
			if sum[d] > 0 {
				// Not load/(sum/nodes): the mean of tiny loads may round to 0.
				u.Load[d] = u.Load[d] / sum[d] * float64(nodes)
			}
		}
		p.loads[u.Node] = p.loads[u.Node].plus(u.Load, 1)
		p.nodes[u.Node].units = append(p.nodes[u.Node].units, int32(i))
	}
	return p, nil
}

// Excess returns the excess Δ of the nodes once the decisions so far are carried out,
// including decisions on a hot node that Step is still to return. It is -1 without load.
func (p *Plan) Excess() float64 { return p.excess(p.worst()) }

// Loads returns the relative loads of the nodes, after the same decisions as Excess.
func (p *Plan) Loads() []Load { return slices.Clone(p.loads) }

// Node returns the node of a unit once the decisions so far are carried out.
func (p *Plan) Node(unit int) int { return p.units[unit].Node }

func (p *Plan) excess(node int) float64 { return p.loads[node].most() - 1 }

// worst returns the node with the largest excess, the lowest of equals.
func (p *Plan) worst() int {
	worst := 0
	for j := range p.loads {
		if p.excess(j) > p.excess(worst) {
			worst = j
		}
	}
	return worst
}

// Step returns the next decision of the round. At the end it returns the end each time.
func (p *Plan) Step() Action {
	if len(p.decided) == 0 {
		switch {
		case p.full():
			return p.end()
		case p.opt.Rule != Cooperative:
			p.greedy()
		case p.Excess() <= p.opt.Tolerance:
		case p.opt.Eager:
			p.eager()
		case !p.planned:
			p.planned = true
			p.lazy()
		}
	}
	if len(p.decided) == 0 {
		return p.end()
	}
	a := p.decided[0]
	p.decided = p.decided[1:]
	return a
}

// full reports whether the round has as many moves as it may have.
func (p *Plan) full() bool { return p.opt.Moves > 0 && p.moves >= p.opt.Moves }

// end returns the end of the round.
func (p *Plan) end() Action {
	switch {
	case p.balanced():
		return Action{Kind: Done}
	case p.splits > 0 || p.full():
		return Action{Kind: Wait}
	}
	return Action{Kind: Stuck}
}

// eager decides for a hot node, the hottest with a decision left.
func (p *Plan) eager() {
	for {
		hot := none
		for j := range p.loads {
			if e := p.excess(j); e > p.opt.Tolerance && !p.nodes[j].idle && (hot == none || e > p.excess(hot)) {
				hot = j
			}
		}
		if hot == none {
			p.resort()
			return
		}
		p.relieve(hot)
		if len(p.decided) > 0 {
			return
		}
		p.nodes[hot].idle = true
	}
}

// relieve decides a move, else an exchange, else a split of the heaviest unit.
func (p *Plan) relieve(hot int) {
	d := p.loads[hot].critical()
	if unit, to, ok := p.move(hot, d); ok {
		p.migrate(unit, to, d)
		return
	}
	if p.exchange(hot, d, false) {
		return
	}
	if splits := p.heavy(hot, d); len(splits) > 0 {
		p.split(splits[0], d, math.Inf(1))
	}
}

// cap is the load above which a unit may be split: λ/2 (paper, theorem 1).
func (p *Plan) cap() float64 { return p.opt.Tolerance / 2 }

// left returns the units of a node without a decision, the heaviest in d first.
func (p *Plan) left(node int, d Dimension) []int32 {
	n := &p.nodes[node]
	left := &n.left[d]
	if *left == nil {
		*left = slices.Clone(n.units)
		slices.SortStableFunc(*left, func(a, b int32) int { return cmp.Compare(p.units[b].Load[d], p.units[a].Load[d]) })
	}
	if !n.fresh[d] {
		*left = slices.DeleteFunc(*left, func(i int32) bool { return p.busy[i] })
		n.fresh[d] = true
	}
	return *left
}

// heavy returns the units of a node that may be split, the heaviest in d first.
func (p *Plan) heavy(hot int, d Dimension) (units []int) {
	for _, i := range p.left(hot, d) {
		if u := &p.units[i]; !u.Whole && u.Load[d] > p.opt.Benefit && u.Load.most() > p.cap() {
			units = append(units, int(i))
		}
	}
	return units
}

// shift moves a unit in the plan.
func (p *Plan) shift(i, to int) {
	u := &p.units[i]
	from := u.Node
	had := p.room(from)
	p.loads[from] = p.loads[from].plus(u.Load, -1)
	p.loads[to] = p.loads[to].plus(u.Load, 1)
	u.Node = to
	if p.room(from) {
		// Units that other nodes could not move the source may take now.
		for j := range p.nodes {
			if n := &p.nodes[j]; j != from {
				n.ready, n.stale, n.idle = n.ready && had, true, n.split
			}
		}
	}
}

// room reports whether a node that gives load away can be a destination.
func (p *Plan) room(source int) bool {
	least := func(d Dimension) bool {
		return !slices.ContainsFunc(p.loads, func(l Load) bool { return l[d] < p.loads[source][d] })
	}
	return p.loads[source].most() <= 1+p.opt.Tolerance || p.opt.Printed && (least(CPU) || least(Disk))
}

// decide marks a unit of a node as decided upon.
func (p *Plan) decide(i, node int) {
	p.busy[i] = true
	p.nodes[node].fresh = [dimensions]bool{}
}

// migrate decides a move.
func (p *Plan) migrate(i, to int, d Dimension) {
	from := p.units[i].Node
	p.shift(i, to)
	p.decide(i, from)
	p.moves++
	p.decided = append(p.decided, Action{Kind: Migrate, Unit: i, From: from, To: to, Dimension: d})
}

// partFill is the load of a part as a share of λ/2: estimates of loads err, and parts above
// λ/2 would be split again.
const partFill = .8

// split decides a split, in the dimension in which the unit is heaviest, into even parts. If
// only some load of the unit must leave its node, in dimension d, the last part is the rest,
// which stays: parts that stay together need not be parts. The node decides no more
// in this round: the loads of the parts are not known.
func (p *Plan) split(i int, d Dimension, leaves float64) {
	u := &p.units[i]
	heaviest := u.Load.critical()
	p.decide(i, u.Node)
	p.nodes[u.Node].split, p.nodes[u.Node].idle = true, true
	p.splits++
	parts := max(2, math.Ceil(u.Load[heaviest]/p.partSize(u)))
	share := 1 / parts
	if leaves < u.Load[d] {
		parts = min(parts, math.Ceil(leaves/u.Load[d]*parts)+1)
	}
	p.decided = append(p.decided, Action{
		Kind: Split, Unit: i, From: u.Node, To: u.Node, Dimension: heaviest, Share: share, Parts: int(parts),
	})
}

// partSize is the load of a part of a unit. Below λ/2 each node can be balanced (paper,
// theorem 1). The lazy rule splits into larger parts while a node has room for two of them,
// and their dimensions differ by the tolerance at most: there are fewer units then.
func (p *Plan) partSize(u *Unit) float64 {
	size := partFill * p.cap()
	if p.opt.Eager || p.opt.Rule != Cooperative {
		return size
	}
	room := 0.
	for j, l := range p.loads {
		if j != u.Node && !slices.Contains(u.Barred, j) {
			room = max(room, 1-l.most())
		}
	}
	if g := gap(u.Load); g > 0 {
		room = min(room, 2*p.opt.Tolerance*u.Load.most()/g)
	}
	return max(size, room/2)
}
