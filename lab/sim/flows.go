package sim

import (
	"cmp"
	"slices"

	"github.com/samya-db/samya/internal/rates"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/stored"
)

// Tokens of buckets and sliding windows come back at any time, so their grants are judged
// over intervals of time, at all sites together. A grant counts to an interval if all the
// time at which the site may have made it lies within: since the batch before its own. It
// counts once its batch is durable and its answer leaves: a crash takes back all others.

// flowing is a grant of a bucket or sliding window, made at some time between from and until.
type flowing struct {
	from, until micros
	tokens      core.Tokens
}

// mostFlowing bounds the grants of an entity that are remembered.
const mostFlowing = 600

// flowRecords are the durable grants of a batch that a site hands over, to be judged.
func (o *observer) flowRecords(n *node, r *stored.Records) (judge []func()) {
	if len(o.s.rates) == 0 {
		return nil
	}
	grant := func(p *op, name string, generation uint64, tokens core.Tokens) {
		if g := o.flowGrant(n, r, p, name, generation, tokens); g != nil {
			judge = append(judge, g)
		}
	}
	for i := range r.Block.Records {
		q := &r.Block.Records[i]
		if p := o.s.opOf(q.Key); p != nil && q.State == stored.Ran && p.kind == acquire {
			grant(p, p.entity, q.Generation, q.Tokens)
		} else if p != nil && q.State == stored.Ran && p.kind == acquireAll {
			for _, part := range q.Parts {
				grant(p, part.Entity, part.Generation, part.Tokens)
			}
		}
	}
	return judge
}

// judgeGrants judges the grants of a batch that is durable.
func (n *node) judgeGrants(flight int) {
	for _, judge := range n.judges[flight] {
		judge()
	}
}

// flowGrant is a grant to be judged; nil if it is none of a bucket or sliding window.
func (o *observer) flowGrant(n *node, r *stored.Records, p *op, name string, generation uint64, tokens core.Tokens) func() {
	t, rated := o.s.rates[name]
	if !rated || t.Kind == rates.Window || slices.Contains(r.Deleted, name) {
		return nil
	}
	g := flowing{n.drainedTo, o.s.now, tokens}
	return func() {
		if p.kind == acquire && slices.Contains(p.flowed, n.i) {
			return // a record of it has changed
		}
		if p.kind == acquire {
			p.flowed = append(p.flowed, n.i)
		}
		o.flows(sequenceID{name, generation}, &t, g)
	}
}

// flows judges the intervals with a grant.
func (o *observer) flows(id sequenceID, t *rates.Terms, g flowing) {
	s := o.s
	s.report.Flows++
	gs := append(o.flow[id], g)
	if len(gs) > mostFlowing {
		gs = gs[len(gs)-mostFlowing/2:]
	}
	o.flow[id] = gs
	q := o.sequence(id)
	if q.limits == nil && len(s.nodes) > 1 {
		return
	}
	most, speed := o.mostOf(q), 1.0
	for _, m := range s.nodes {
		speed = max(speed, m.drift)
	}
	// Batches of other sites may have become durable before, and end later.
	for i := len(gs) - 1; i >= max(0, len(gs)-mostLater); i-- {
		if gs[i].until >= g.until {
			o.flowsUntil(id, t, gs, gs[i].until, most, speed)
		}
	}
}

// mostLater is the number of last grants at which intervals may end.
const mostLater = 20

// flowsUntil judges the intervals that end at a time.
func (o *observer) flowsUntil(id sequenceID, t *rates.Terms, gs []flowing, until micros, most core.Tokens, speed float64) {
	period := float64(o.s.periodOf(t))
	byFrom := slices.SortedFunc(slices.Values(gs), func(a, b flowing) int { return cmp.Compare(b.from, a.from) })
	sum := core.Tokens(0)
	for i := range byFrom {
		g := &byFrom[i]
		if g.until > until {
			continue
		}
		sum += g.tokens
		length := float64(until-g.from) * speed
		bound := float64(most)
		switch {
		case t.Kind == rates.Bucket:
			bound += float64(most) * length / period
		case length >= period:
			return
		}
		if float64(sum) > bound+1e-6*float64(most) {
			o.s.fail(Rates, "%v: %d tokens are granted within %d ms, the limit is %d within %s", id, sum, (until-g.from)/millisecond, most, t.Per())
			return
		}
	}
}

// periodOf is the length of a period, of seconds to an hour.
func (s *sim) periodOf(t *rates.Terms) micros {
	lengths := map[rates.Unit]micros{rates.Second: second, rates.Minute: 60 * second, rates.Hour: 3600 * second}
	return micros(t.Count) * lengths[t.Unit]
}
