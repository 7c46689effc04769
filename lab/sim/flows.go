package sim

import (
	"cmp"
	"slices"

	"github.com/samya-db/samya/internal/rates"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/input"
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
	from := n.drainedTo
	for i := range r.Block.Records {
		q := r.Block.Records[i]
		p := o.s.opOf(q.Key)
		if p == nil || q.State != stored.Ran || !p.kind.acquires() {
			continue
		}
		parts := q.Parts
		if p.kind == acquire {
			parts = []stored.Part{{Part: input.Part{Entity: p.entity, Tokens: q.Tokens}, Generation: q.Generation}}
		}
		parts = slices.DeleteFunc(slices.Clone(parts), func(part stored.Part) bool { return slices.Contains(r.Deleted, part.Entity) })
		until := o.s.now
		judge = append(judge, func() {
			if slices.Contains(p.flowed, n.i) {
				return // it ran before: its record has changed
			}
			p.flowed = append(p.flowed, n.i)
			for _, part := range parts {
				if t, rated := o.s.rates[part.Entity]; rated && t.Kind != rates.Window {
					o.flows(sequenceID{part.Entity, part.Generation}, &t, flowing{from, until, part.Tokens})
				}
			}
		})
	}
	return judge
}

// judgeGrants judges the grants of a batch that is durable.
func (n *node) judgeGrants(flight int) {
	for _, judge := range n.judges[flight] {
		judge()
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
