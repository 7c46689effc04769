package sim

import (
	"slices"

	"github.com/samya-db/samya/site/core"
)

// lines are the acquires that wait at a site for each entity that they name, as
// they have come; those of several entities are under "".
type lines map[string][]*place

// place is an acquire that waits, with all who wait for it.
type place struct {
	op      *op
	arrived uint64
	calls   []*call
	// number is the site's own of it.
	number uint64
	// roamed: its entity stood in a tree while it waited, so it may have waited for
	// another entity, and have come back behind others.
	roamed bool
}

// joinLine notes where a call stands that was just handed over, if it waits: at the
// end, or with an earlier one of its request. It reports whether it is at the end.
func (n *node) joinLine(c *call) bool {
	number := n.core.Arrival(c)
	if number == 0 {
		return false
	}
	line := n.lines[c.op.entity]
	if i := slices.IndexFunc(line, func(p *place) bool { return p.number == number }); i >= 0 {
		line[i].calls = append(line[i].calls, c)
		return false
	}
	n.lines[c.op.entity] = append(line, &place{
		op: c.op, arrived: c.arrived, calls: []*call{c}, number: number, roamed: n.drained.planted(c.op.entity),
	})
	return true
}

// waits reports whether anybody still waits for it.
func (p *place) waits() bool {
	return slices.ContainsFunc(p.calls, func(c *call) bool { return !c.served && !c.cancelled })
}

// needless fails if what is left would do for the acquire that has waited longest,
// or if one was granted tokens past another that came before it and still waits.
func (o *observer) needless(n *node, batch *core.Effects) {
	if len(n.lines) == 0 {
		return
	}
	for i := range batch.Replies {
		batch.Replies[i].Call.(*call).served = true
	}
	short := o.short(n)
	if short.needs == nil {
		clear(n.lines)
		return
	}
	for _, name := range o.s.admin.names {
		line := n.lines[name]
		if len(line) == 0 {
			continue
		}
		first := slices.IndexFunc(line, (*place).waits)
		if first >= 0 {
			planted := n.drained.planted(name)
			for _, p := range line {
				p.roamed = p.roamed || planted
			}
			p, left := line[first], n.drained.books[name].Left
			alone := !p.roamed && !short.shared[name]
			if alone && p.op.tokens <= left {
				o.s.report.WaitedThoughKept++
				o.s.fail(Serving, "%s: %v waits, left are %d", n.id, p.op, left)
			}
			o.overtaken(n, batch, line, p, alone)
		}
		n.lines[name] = slices.DeleteFunc(line, func(p *place) bool { return !p.waits() })
	}
	n.lines[""] = slices.DeleteFunc(n.lines[""], func(p *place) bool { return !p.waits() })
	o.allServed(n, &short)
}

// shortage is what the acquires that wait at a site need: the most that one needs
// of each entity, and which entities acquires of several need; nil if none waits.
type shortage struct {
	needs  map[string]core.Tokens
	shared map[string]bool
}

func (o *observer) short(n *node) (sh shortage) {
	for name, line := range n.lines {
		for _, p := range line {
			if !p.waits() {
				continue
			}
			if sh.needs == nil {
				sh.needs, sh.shared = make(map[string]core.Tokens), make(map[string]bool)
			}
			for _, c := range n.drained.charges(p.op) {
				sh.needs[c.name] = max(sh.needs[c.name], c.tokens)
				sh.shared[c.name] = sh.shared[c.name] || name == ""
			}
		}
	}
	return sh
}

// allServed fails if an acquire waits, and of all the entities that it charges there
// is none of which the site lacks what it, or another that waits, needs.
func (o *observer) allServed(n *node, sh *shortage) {
	lacks := func(c charge) bool { return sh.needs[c.name] > n.drained.books[c.name].Left }
	for _, name := range append([]string{""}, o.s.admin.names...) {
		for _, p := range n.lines[name] {
			if p.waits() && !slices.ContainsFunc(n.drained.charges(p.op), lacks) {
				o.s.report.WaitedThoughKept++
				o.s.fail(Serving, "%s: %v waits, and nothing that it charges lacks tokens: %v", n.id, p.op, sh.needs)
			}
		}
	}
}

// granting notes which acquires a batch grants tokens, before it is taken in.
func (o *observer) granting(n *node, r *core.Records) {
	n.granted = n.granted[:0]
	if len(n.lines) == 0 {
		return
	}
	for i := range r.Block.Records {
		q := &r.Block.Records[i]
		if p := o.s.opOf(q.Key); p != nil && p.kind == acquire && q.State == core.Ran && n.drained.requests[q.Key].State != core.Ran {
			n.granted = append(n.granted, p)
		}
	}
}

// overtaken looks for grants to acquires that came after one that still waits: for
// an entity that is charged with no other, there must be none.
func (o *observer) overtaken(n *node, batch *core.Effects, line []*place, first *place, alone bool) {
	for _, p := range n.granted {
		if p.entity != first.op.entity {
			continue
		}
		before := func(arrived uint64) bool { return arrived < first.arrived }
		if slices.ContainsFunc(line, func(l *place) bool { return l.op == p && before(l.arrived) }) {
			o.s.report.InTurn++
			continue
		}
		// Else it never waited, and was granted tokens when it came.
		if alone && !slices.ContainsFunc(batch.Replies, func(r core.Reply) bool {
			c := r.Call.(*call)
			return c.op == p && before(c.arrived)
		}) {
			o.s.fail(Serving, "%s grants %v past %v, which waits", n.id, p, first.op)
		}
	}
}
