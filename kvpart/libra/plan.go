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
// raises the excess: a source exceeds the tolerance, and its destination does not.
type Plan struct {
	opt   Options
	units []Unit // with relative loads and present nodes
	loads []Load // relative, of nodes
	busy  []bool // units that moved or split in this round
	// queues are the units of a node by falling load, one queue a dimension, made at first
	// use. Units that arrive in the round do not join: they do not move again.
	queues [][dimensions][]int32
	// decided are decisions to return before any other.
	decided []Action
	planned []bool // nodes whose turn has been
	moves   int
	splits  int
	aim     aim
	turn    Dimension // of Isolated
	scores  []float64 // of Weighted
}

// NewPlan begins a round over nodes with units. It fails with ErrInput if an option, the
// number of nodes (at least 1) or a unit is out of its range. It does not keep units.
func NewPlan(o Options, nodes int, units []Unit) (*Plan, error) {
	if nodes < 1 {
		return nil, fmt.Errorf("%w: %d nodes, want 1 or more", ErrInput, nodes)
	}
	if err := o.check(nodes, len(units)); err != nil {
		return nil, err
	}
	p := &Plan{
		opt: o, units: slices.Clone(units), loads: make([]Load, nodes), busy: make([]bool, len(units)),
		queues: make([][dimensions][]int32, nodes), planned: make([]bool, nodes), aim: aim{hot: none},
	}
	var sum Load
	for i := range p.units {
		if err := p.units[i].check(i, nodes); err != nil {
			return nil, err
		}
		sum = sum.plus(p.units[i].Load, 1)
	}
	for i := range p.units {
		u := &p.units[i]
		for d := range sum {
			if sum[d] > 0 {
				// Not load/(sum/nodes): the mean of tiny loads may round to 0.
				u.Load[d] = u.Load[d] / sum[d] * float64(nodes)
			}
		}
		p.loads[u.Node] = p.loads[u.Node].plus(u.Load, 1)
	}
	if math.IsInf(sum[CPU], 0) || math.IsInf(sum[Disk], 0) {
		return nil, fmt.Errorf("%w: sum of loads %v, want numbers", ErrInput, sum)
	}
	return p, nil
}

// Excess returns the excess Δ of the nodes once the decisions so far are carried out.
func (p *Plan) Excess() float64 { return p.excess(p.worst()) }

// Loads returns the relative loads of the nodes once the decisions so far are carried out.
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

// Step returns the next decision of the round.
func (p *Plan) Step() Action {
	if len(p.decided) == 0 {
		switch {
		case p.opt.Moves > 0 && p.moves >= p.opt.Moves:
			return p.end()
		case p.opt.Rule != Cooperative:
			p.greedy()
		case p.Excess() > p.opt.Tolerance:
			p.relieve()
		}
	}
	if len(p.decided) == 0 {
		return p.end()
	}
	a := p.decided[0]
	p.decided = p.decided[1:]
	return a
}

// end returns the end of the round.
func (p *Plan) end() Action {
	switch {
	case p.balanced():
		return Action{Kind: Done}
	case p.splits > 0 || p.opt.Moves > 0 && p.moves >= p.opt.Moves:
		return Action{Kind: Wait}
	}
	return Action{Kind: Stuck}
}

// relieve decides for one hot node, the hottest with a decision left.
func (p *Plan) relieve() {
	for {
		hot := -1
		for j := range p.loads {
			if e := p.excess(j); e > p.opt.Tolerance && !p.planned[j] && (hot < 0 || e > p.excess(hot)) {
				hot = j
			}
		}
		if hot < 0 {
			return
		}
		if p.opt.Eager {
			p.eager(hot)
		} else {
			p.lazy(hot)
		}
		if len(p.decided) > 0 {
			return
		}
		p.planned[hot] = true
	}
}

// eager decides a move, or a split if there is no move.
func (p *Plan) eager(hot int) {
	d := p.loads[hot].critical()
	if unit, to, ok := p.move(hot, d); ok {
		p.migrate(unit, to, d)
		return
	}
	for _, i := range p.queue(hot, d) {
		if !p.busy[i] && p.splittable(int(i)) {
			p.split(int(i), d)
			// The load of the parts is handled when it is known.
			p.planned[hot] = true
			return
		}
	}
}

// aim is where the search for moves off a hot node goes on. While only that node gives
// load away its units do not become movable again: the load of all other nodes grows, and
// its own falls.
type aim struct {
	hot  int
	next [dimensions][3]int // positions in its queues, in the first and the second pass
}

const none = -1

// move finds a move off a hot node: paper, section III-B. First it looks for a unit that
// is lighter in the other dimension (condition 2, against interference). Where there is
// none, other units do as well: the destination's bound covers both dimensions.
func (p *Plan) move(hot int, d Dimension) (unit, to int, ok bool) {
	if p.aim.hot != hot {
		p.aim = aim{hot: hot}
	}
	for pass := range 3 {
		if pass > 0 && p.opt.Printed {
			break
		}
		queue, next := p.queue(hot, d), &p.aim.next[d][pass]
		if p.opt.Affinity != nil {
			*next = 0
		}
		best := math.Inf(1)
		for ; *next < len(queue); *next++ {
			i := int(queue[*next])
			u := &p.units[i]
			if u.Load[d] <= p.opt.Benefit {
				break
			}
			if p.busy[i] || pass != 1 && u.Load[d.other()] >= u.Load[d] || !p.leaves(hot, u, d) {
				continue
			}
			j, ok := p.destination(i, d, pass == 2)
			if !ok {
				continue
			}
			if p.opt.Affinity == nil {
				return i, j, true
			}
			if loss := (p.opt.Affinity(i, hot) - p.opt.Affinity(i, j)) / u.Load[d]; loss < best {
				unit, to, best = i, j, loss
			}
		}
		if !math.IsInf(best, 1) {
			return unit, to, true
		}
	}
	return 0, 0, false
}

// leaves reports whether the source keeps enough load without u: below 1 - λ it would
// soon be a destination, and units would go back and forth.
func (p *Plan) leaves(source int, u *Unit, d Dimension) bool {
	return p.opt.Printed || p.loads[source][d]-u.Load[d] >= 1-p.opt.Tolerance
}

// destination returns the node for a unit: of the nodes that the unit does not lift above
// 1 + λ in either dimension the one with the largest affinity, then the least load
// afterwards, then the lowest number.
func (p *Plan) destination(i int, d Dimension, swap bool) (node int, ok bool) {
	u := &p.units[i]
	if p.opt.Printed {
		return p.printed(u, d)
	}
	load, affinity := math.Inf(1), math.Inf(-1)
	for j := range p.loads {
		if j == u.Node || slices.Contains(u.Barred, j) {
			continue
		}
		after := p.loads[j].plus(u.Load, 1).most()
		fits := after <= 1+p.opt.Tolerance && !p.widens(u, j, d)
		if swap {
			fits = p.loads[j][d]+u.Load[d] <= 1+p.opt.Tolerance && after < p.loads[u.Node][d]
		}
		if !fits {
			continue
		}
		a := 0.
		if p.opt.Affinity != nil {
			a = p.opt.Affinity(i, j)
		}
		if c := cmp.Compare(a, affinity); c > 0 || c == 0 && after < load {
			node, ok, load, affinity = j, true, after, a
		}
	}
	return node, ok
}

// printed is destination as the paper prints it.
func (p *Plan) printed(u *Unit, d Dimension) (node int, ok bool) {
	node = -1
	for j := range p.loads {
		if j != u.Node && !slices.Contains(u.Barred, j) && (node < 0 || p.loads[j][d] < p.loads[node][d]) {
			node = j
		}
	}
	return node, node >= 0 && p.loads[node][d]+u.Load[d] < 1+p.opt.Tolerance
}

// cap is the load above which a unit may be split: λ/2 (paper, theorem 1).
func (p *Plan) cap() float64 { return p.opt.Tolerance / 2 }

func (p *Plan) splittable(i int) bool {
	u := &p.units[i]
	return !u.Whole && u.Load.most() > p.cap()
}

// queue returns the units of a node by falling load.
func (p *Plan) queue(node int, d Dimension) []int32 {
	if q := p.queues[node][d]; q != nil {
		return q
	}
	q := []int32{}
	for i := range p.units {
		if p.units[i].Node == node && !p.busy[i] {
			q = append(q, int32(i))
		}
	}
	slices.SortFunc(q, func(a, b int32) int {
		return cmp.Or(cmp.Compare(p.units[b].Load[d], p.units[a].Load[d]), cmp.Compare(a, b))
	})
	p.queues[node][d] = q
	return q
}

// shift moves a unit in the plan.
func (p *Plan) shift(i, to int) {
	u := &p.units[i]
	p.loads[u.Node] = p.loads[u.Node].plus(u.Load, -1)
	p.loads[to] = p.loads[to].plus(u.Load, 1)
	u.Node = to
}

// migrate decides a move.
func (p *Plan) migrate(i, to int, d Dimension) {
	from := p.units[i].Node
	p.shift(i, to)
	p.busy[i] = true
	p.moves++
	p.decided = append(p.decided, Action{Kind: Migrate, Unit: i, From: from, To: to, Dimension: d})
}

// split decides a split: into parts of λ/2 of the mean, in the dimension in which the unit
// is heaviest.
func (p *Plan) split(i int, d Dimension) {
	u := &p.units[i]
	if u.Load[d] <= p.cap() {
		d = u.Load.critical()
	}
	p.busy[i] = true
	p.splits++
	p.decided = append(p.decided, Action{
		Kind: Split, Unit: i, From: u.Node, To: u.Node, Dimension: d,
		Share: p.cap() / u.Load[d], Parts: int(math.Ceil(u.Load.most() / p.cap())),
	})
}
