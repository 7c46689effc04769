package sim

import (
	"slices"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/stored"
)

// lines are the acquires that wait at a site for each entity that they name, in the order
// of arrival; acquires of several entities are under "".
type lines map[string][]*place

// place is an acquire that waits, with all calls that wait for it.
type place struct {
	op      *op
	arrived uint64
	calls   []*call
	// number is the site's own number of the acquire.
	number uint64
	// roamed: its entity stood in a tree while it waited, so it may have waited for
	// another entity, and have come back behind others.
	roamed bool
	// servable is since when the site has all tokens that the acquire needs, all at once;
	// 0 for not now. turned is when an earlier acquire was last granted: others may have
	// waited for that acquire, and wait for the next now.
	servable, turned micros
}

// joinLine notes the place of a call just handed over, if it waits: at the end, or with
// an earlier call of its request. It reports whether the call is at the end.
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

// waits reports whether anybody still waits for the acquire.
func (p *place) waits() bool {
	return slices.ContainsFunc(p.calls, func(c *call) bool { return !c.served && !c.cancelled })
}

// needless fails if a waiting acquire could be served, or was passed by another that may
// wait as well and takes as much.
func (o *observer) needless(n *node, batch *core.Effects) {
	if len(n.lines) == 0 {
		return
	}
	for i := range batch.Replies {
		batch.Replies[i].Call.(*call).served = true
	}
	shared := n.shared()
	for _, name := range append([]string{""}, o.s.admin.names...) {
		line := n.lines[name]
		if len(line) == 0 {
			continue
		}
		planted := name != "" && n.drained.planted(name)
		n.turn(line, o.s.now)
		for _, p := range line {
			p.roamed = p.roamed || planted
			o.outgrown(n, p)
			o.servable(n, p)
		}
		if name != "" {
			o.overtaken(n, batch, line, shared[name])
		}
		if line = slices.DeleteFunc(line, func(p *place) bool { return !p.waits() }); len(line) == 0 {
			delete(n.lines, name)
			continue
		}
		n.lines[name] = line
	}
}

// turn notes which acquires of a line come after an acquire that the batch grants.
func (n *node) turn(line []*place, now micros) {
	granted := false
	for _, p := range line {
		if granted {
			p.turned = now
		}
		granted = granted || slices.Contains(n.granted, p.op)
	}
}

// mayHold is how long an acquire may still wait at a site with all tokens it needs since
// then: Hold, and the time until the site sees them. A site with a slow disk looks after
// its syncs: after the sync under way, and the next.
func (n *node) mayHold(since micros) micros {
	most := micros(n.cfg.Hold)*millisecond*11/10 + seenWithin
	if since < n.slowUntil {
		most += 2 * slowest
	}
	return most
}

// seenWithin is how long after a change of a site's state the site sees it, at most.
const seenWithin = 300 * millisecond

// servable checks whether a site has all tokens that a waiting acquire needs. It fails if
// the acquire goes on waiting so, whatever else waits and whoever is away.
func (o *observer) servable(n *node, p *place) {
	since := max(p.servable, p.turned, n.resumes)
	if p.servable != 0 && o.s.now > since+n.mayHold(since) {
		o.s.report.WaitedThoughKept++
		o.s.fail(Serving, "%s: %v waits, for %d ms with all that it needs", n.id, p.op, (o.s.now-since)/millisecond)
	}
	lacks := func(c charge) bool { return c.tokens > n.usable(c.name) }
	switch charges := n.drained.charges(p.op); {
	case !p.waits(), len(charges) == 0, slices.ContainsFunc(charges, lacks), n.behind(p, charges):
		p.servable = 0
	case p.servable == 0:
		p.servable = max(1, o.s.now)
		o.s.report.Held++
	}
}

// behind reports whether another acquire waits for tokens of a bucket or sliding window that an
// acquire needs too: they may be saved for the other.
func (n *node) behind(p *place, charges []charge) bool {
	for _, c := range charges {
		if !n.s.flows(c.name) {
			continue
		}
		for _, name := range []string{"", c.name} {
			if slices.ContainsFunc(n.lines[name], func(w *place) bool {
				names := func(x charge) bool { return x.name == c.name }
				return w != p && w.waits() && slices.ContainsFunc(n.drained.charges(w.op), names)
			}) {
				return true
			}
		}
	}
	return false
}

// shared names the entities that waiting acquires of several entities need.
func (n *node) shared() map[string]bool {
	var shared map[string]bool
	for _, p := range n.lines[""] {
		if !p.waits() {
			continue
		}
		if shared == nil {
			shared = make(map[string]bool)
		}
		for _, c := range n.drained.charges(p.op) {
			shared[c.name] = true
		}
	}
	return shared
}

// granting notes which acquires a batch grants tokens, before it is taken in.
func (o *observer) granting(n *node, r *stored.Records) {
	n.granted = n.granted[:0]
	if len(n.lines) == 0 {
		return
	}
	for i := range r.Block.Records {
		q := &r.Block.Records[i]
		if p := o.s.opOf(q.Key); p != nil && p.kind == acquire && q.State == stored.Ran && !n.hasRun(p) {
			n.granted = append(n.granted, p)
		}
	}
}

// hasRun reports whether a request has run at a site, also if that is not durable
// yet.
func (n *node) hasRun(p *op) bool {
	for _, batch := range slices.Backward(n.flights) {
		for _, q := range slices.Backward(batch.Records.Block.Records) {
			if q.Key == p.key {
				return q.State == stored.Ran
			}
		}
	}
	return p.at[n.i].state == stored.Ran && n.remembers(p)
}

// remembers reports whether a site still has a record of a request.
func (n *node) remembers(p *op) bool { return n.durable.remembers(p.at[n.i].block) }

// overtaken looks for grants to acquires that came after an acquire that still waits. A
// later acquire that may wait as well gets fewer tokens than the waiting acquire needs.
// Nobody can tell for which entity an acquire of several entities waits.
func (o *observer) overtaken(n *node, batch *core.Effects, line []*place, shared bool) {
	for _, p := range n.granted {
		if p.entity != line[0].op.entity {
			continue
		}
		took := grantedTo(p, batch)
		fails := func(w *place) bool {
			return w.op.tokens <= took && p.wait > 0 && !w.roamed && !shared && n.cfg.MaxWaiting == 0
		}
		if i := slices.IndexFunc(line, func(l *place) bool { return l.op == p }); i >= 0 {
			if slices.ContainsFunc(line[i+1:], (*place).waits) {
				o.s.report.InTurn++
			}
			for _, w := range line[:i] {
				if !w.waits() {
					continue
				}
				o.s.report.Passed++
				if n.cfg.Hold == 1 && !n.s.flows(p.entity) && fails(w) && o.s.now < p.until-slack {
					o.s.fail(Serving, "%s grants %v %d tokens before %v, which came first", n.id, p, took, w.op)
				}
			}
			continue
		}
		// It never waited, and was granted tokens when it came.
		for _, w := range line {
			before := func(r core.Reply) bool {
				c := r.Call.(*call)
				return c.op == p && c.arrived < w.arrived
			}
			if !w.waits() || w.op == p || slices.ContainsFunc(batch.Replies, before) {
				continue
			}
			o.s.report.Passed++
			if fails(w) {
				o.s.fail(Serving, "%s grants %v %d tokens past %v, which waits", n.id, p, took, w.op)
			}
		}
	}
}

// grantedTo is how many tokens a batch grants an acquire.
func grantedTo(p *op, batch *core.Effects) (tokens core.Tokens) {
	for i := range batch.Records.Block.Records {
		if r := &batch.Records.Block.Records[i]; r.Key == p.key {
			tokens = r.Tokens
		}
	}
	return tokens
}
