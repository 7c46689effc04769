package libra

import (
	"cmp"
	"math"
	"slices"
)

// node is the state of a node in a plan.
type node struct {
	units []int32             // that were on the node at the beginning of the round
	left  [dimensions][]int32 // see Plan.left
	fresh [dimensions]bool    // left has no unit with a decision
	// queues are the units that may still leave the node, by critical dimension and class:
	// first units lighter in the other dimension. They hold while ready.
	queues [dimensions][2][]candidate
	ready  bool
	stale  bool // another node has more room since: look again before giving up
	idle   bool // no decision was left when the node had its turn
	split  bool // units of it are split
}

// candidate is a unit that may leave a node, with the affinity that its move loses for its
// load, at least.
type candidate struct {
	loss, load float64
	unit       int32
}

// before orders candidates: the least loss first, then the largest load.
func (c *candidate) before(o *candidate) bool {
	switch {
	case c.loss != o.loss:
		return c.loss < o.loss
	case c.load != o.load:
		return c.load > o.load
	}
	return c.unit < o.unit
}

// sink restores the heap q below i, after its candidate got more loss.
func sink(q []candidate, i int) {
	for {
		first := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(q); child++ {
			if q[child].before(&q[first]) {
				first = child
			}
		}
		if first == i {
			return
		}
		q[i], q[first] = q[first], q[i]
		i = first
	}
}

// move finds a move off a hot node: paper, section III-B. First it looks for a unit that
// is lighter in the other dimension (condition 2, against interference). Where there is
// none, other units do as well: the destination's bound covers both dimensions.
//
// While only hot nodes give load away, a unit that cannot move stays so: destinations fill, and
// sources empty. For the same reason the loss of a move only grows. So a candidate at the
// head of its queue either leaves it, or sinks, and the plan need not look at all others.
func (p *Plan) move(hot int, d Dimension) (unit, to int, ok bool) {
	n := &p.nodes[hot]
	if p.closed(hot, d) {
		return none, none, false
	}
	for {
		if !n.ready {
			p.queue(hot)
		}
		for class := range n.queues[d] {
			if class == 1 && p.opt.Printed {
				break
			}
			if i, j, ok := p.first(&n.queues[d][class], hot, d); ok {
				return i, j, true
			}
		}
		if !n.stale {
			return none, none, false
		}
		n.ready = false
	}
}

// closed reports whether no node but a hot node has room for any unit worth a move in d.
func (p *Plan) closed(hot int, d Dimension) bool {
	for j, l := range p.loads {
		if j != hot && (p.opt.Printed || max(l.most(), l[d]+p.opt.Benefit) <= 1+p.opt.Tolerance) {
			return false
		}
	}
	return true
}

// first returns the first candidate of a queue that may move, and where to.
func (p *Plan) first(queue *[]candidate, hot int, d Dimension) (unit, to int, ok bool) {
	q := *queue
	for len(q) > 0 {
		c := &q[0]
		i := int(c.unit)
		j, loss, ok := none, 0., false
		if !p.busy[i] && p.leaves(hot, c.load, d) {
			j, loss, ok = p.destination(i, d)
		}
		switch {
		case !ok:
			q[0] = q[len(q)-1]
			q = q[:len(q)-1]
		case loss <= c.loss:
			*queue = q
			return i, j, true
		default:
			c.loss = loss
		}
		sink(q, 0)
	}
	*queue = q
	return none, none, false
}

// queue fills the queues of a node.
func (p *Plan) queue(hot int) {
	n := &p.nodes[hot]
	n.ready, n.stale = true, false
	loss := 0.
	if p.opt.Affinity != nil {
		loss = math.Inf(-1) // not known before its turn
	}
	for _, d := range Dimensions() {
		for class := range n.queues[d] {
			n.queues[d][class] = n.queues[d][class][:0]
		}
		// A sorted queue is a heap.
		for _, i := range p.left(hot, d) {
			u := &p.units[i]
			if u.Load[d] <= p.opt.Benefit {
				break
			}
			class := 0
			if u.Load[d.other()] >= u.Load[d] {
				class = 1
			}
			n.queues[d][class] = append(n.queues[d][class], candidate{loss, u.Load[d], i})
		}
	}
}

// leaves reports whether the source keeps enough without a load: below 1 - λ it would
// soon be a destination, and units would go back and forth.
func (p *Plan) leaves(source int, load float64, d Dimension) bool {
	return p.opt.Printed || p.loads[source][d]-load >= 1-p.opt.Tolerance
}

// destination returns the node for a unit: of the nodes that the unit does not lift above
// 1 + λ, nor above its source, in either dimension the node with the largest affinity, then the least load
// afterwards, then the lowest number. It returns the loss of affinity for the load, too.
func (p *Plan) destination(i int, d Dimension) (to int, loss float64, ok bool) {
	u := &p.units[i]
	affinity := func(int) float64 { return 0 }
	if p.opt.Affinity != nil {
		affinity = func(node int) float64 { return p.opt.Affinity(i, node) }
	}
	to = none
	if p.opt.Printed {
		to = p.printed(u, d)
	} else {
		bound := min(1+p.opt.Tolerance, p.loads[u.Node].most())
		load, most := math.Inf(1), math.Inf(-1)
		for j := range p.loads {
			if j == u.Node || slices.Contains(u.Barred, j) {
				continue
			}
			after := p.loads[j].plus(u.Load, 1).most()
			if after > bound || p.widens(u, j, d) {
				continue
			}
			a := affinity(j)
			if c := cmp.Compare(a, most); c > 0 || c == 0 && after < load {
				to, load, most = j, after, a
			}
		}
	}
	if to == none {
		return none, 0, false
	}
	return to, (affinity(u.Node) - affinity(to)) / u.Load[d], true
}

// printed is destination as the paper prints it.
func (p *Plan) printed(u *Unit, d Dimension) int {
	to := none
	for j := range p.loads {
		if j != u.Node && !slices.Contains(u.Barred, j) && (to == none || p.loads[j][d] < p.loads[to][d]) {
			to = j
		}
	}
	if to == none || !(p.loads[to][d]+u.Load[d] < 1+p.opt.Tolerance) {
		return none
	}
	return to
}
