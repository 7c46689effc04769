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
// time at which the site may have made it lies within: since the batch before its own.

// flowing is a grant of a bucket or sliding window, made at some time between from and until.
type flowing struct {
	from, until micros
	tokens      core.Tokens
}

// mostFlowing bounds the grants of an entity that are remembered.
const mostFlowing = 600

// flowRecords judges the durable grants of a batch that a site hands over.
func (o *observer) flowRecords(n *node, r *stored.Records) {
	if len(o.s.rates) == 0 {
		return
	}
	for i := range r.Block.Records {
		q := &r.Block.Records[i]
		if p := o.s.opOf(q.Key); p != nil && q.State == stored.Ran && p.kind == acquire {
			o.flowGrant(n, r, p, p.entity, q.Generation, q.Tokens)
		} else if p != nil && q.State == stored.Ran && p.kind == acquireAll {
			for _, part := range q.Parts {
				o.flowGrant(n, r, p, part.Entity, part.Generation, part.Tokens)
			}
		}
	}
}

func (o *observer) flowGrant(n *node, r *stored.Records, p *op, name string, generation uint64, tokens core.Tokens) {
	t, rated := o.s.rates[name]
	if !rated || t.Kind == rates.Window || p.at[n.i].state == stored.Ran || slices.Contains(p.flowed, n.i) || slices.Contains(r.Deleted, name) {
		return
	}
	if p.kind == acquire {
		p.flowed = append(p.flowed, n.i)
	}
	o.flows(n, sequenceID{name, generation}, &t, tokens)
}

// flows judges the intervals that end with a grant.
func (o *observer) flows(n *node, id sequenceID, t *rates.Terms, tokens core.Tokens) {
	s := o.s
	s.report.Flows++
	gs := append(o.flow[id], flowing{min(n.drainedTo, s.now), s.now, tokens})
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
	period := float64(s.periodOf(t))
	byFrom := slices.SortedFunc(slices.Values(gs), func(a, b flowing) int { return cmp.Compare(b.from, a.from) })
	sum := core.Tokens(0)
	for i := range byFrom {
		g := &byFrom[i]
		sum += g.tokens
		length := float64(s.now-g.from) * speed
		bound := float64(most)
		switch {
		case t.Kind == rates.Bucket:
			bound += float64(most) * length / period
		case length >= period:
			return
		}
		if float64(sum) > bound+1e-6*float64(most) {
			s.fail(Rates, "%v: %d tokens are granted within %d ms, the limit is %d within %s", id, sum, (s.now-g.from)/millisecond, most, t.Per())
			return
		}
	}
}

// periodOf is the length of a period, of seconds to an hour.
func (s *sim) periodOf(t *rates.Terms) micros {
	lengths := map[rates.Unit]micros{rates.Second: second, rates.Minute: 60 * second, rates.Hour: 3600 * second}
	return micros(t.Count) * lengths[t.Unit]
}
