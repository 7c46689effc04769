package sim

import (
	"cmp"
	"math"
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
// The grants of holders of shares count as those of sites.
//
// A reset within the interval gives back grants that were made within the interval and
// before the reset, as many as the reset tells. Tokens that were out at the beginning of
// the interval make the interval no larger: levels and tokens out add up to the limit.

// flowing is a grant of a bucket or sliding window, made at some time between from and until,
// or a reset.
type flowing struct {
	from, until micros
	tokens      core.Tokens
	// site made the grant, or was reset.
	site  int
	reset bool
	// of is the lease that holds the tokens; nil for none.
	of *reservation
}

// flows reports whether an entity is a bucket or sliding window.
func (s *sim) flows(name string) bool {
	t, rated := s.rates[name]
	return rated && t.Kind != rates.Window
}

// allTokens stands for the tokens that come back by the reset of a key: at most the limit. The
// site tells how many more it has left of the key, and some may be set aside.
const allTokens core.Tokens = math.MaxInt64

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
		if p == nil || q.State != stored.Ran || !p.kind.acquires() || p.share {
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
					o.flows(o.sequence(sequenceID{part.Entity, part.Generation}), part.Entity, &t, flowing{from: from, until: until, tokens: part.Tokens, site: n.i})
				}
			}
		})
	}
	return judge
}

// judgeGrants judges the grants of a batch that is durable.
func (n *node) judgeGrants(flight int) {
	for _, judge := range n.notes[flight].judges {
		judge()
	}
}

// flows judges the intervals with a grant of an entity or a key of it, or takes in a reset.
func (o *observer) flows(q *sequence, name string, t *rates.Terms, g flowing) {
	s, id, most := o.s, sequenceID{name, q.id.generation}, o.mostOf(q)
	if g.reset {
		g.tokens = min(g.tokens, most)
	}
	gs := append(o.flow[id], g)
	if len(gs) > mostFlowing {
		gs = gs[len(gs)-mostFlowing/2:]
	}
	o.flow[id] = gs
	if s.tracing {
		s.note("%v: %+v", id, g)
	}
	if g.reset {
		return
	}
	s.report.Flows++
	if q.limits == nil && len(s.nodes) > 1 {
		return
	}
	speed := 1.0
	for _, m := range s.nodes {
		speed = max(speed, m.drift)
	}
	// Batches of other sites may have become durable before, and end later.
	for i := len(gs) - 1; i >= max(0, len(gs)-mostLater); i-- {
		if gs[i].until >= g.until && !gs[i].reset {
			o.flowsUntil(id, t, gs, gs[i].until, most, speed)
		}
	}
}

// mostLater is the number of last grants at which intervals may end.
const mostLater = 20

// flowsUntil judges the intervals that end at a time.
func (o *observer) flowsUntil(id sequenceID, t *rates.Terms, gs []flowing, until micros, most core.Tokens, speed float64) {
	period := float64(o.s.periodOf(t))
	byFrom := make([]int, 0, len(gs))
	gives := make(map[int]core.Tokens)
	for i := range gs {
		switch {
		case gs[i].until > until:
		case gs[i].reset:
			gives[i] = gs[i].tokens
		default:
			byFrom = append(byFrom, i)
		}
	}
	slices.SortStableFunc(byFrom, func(a, b int) int { return cmp.Compare(gs[b].from, gs[a].from) })
	sum := core.Tokens(0)
	for _, i := range byFrom {
		g := &gs[i]
		sum += g.tokens - o.givenBack(t, gs, i, gives)
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

// givenBack is the number of tokens of a grant that later resets of its site have given back;
// of a key resets of any site, as shares of a template move. The resets give so many fewer of
// others: gives has the rest of each.
func (o *observer) givenBack(t *rates.Terms, gs []flowing, grant int, gives map[int]core.Tokens) (back core.Tokens) {
	if len(gives) == 0 {
		return 0
	}
	g := &gs[grant]
	for i := grant + 1; i < len(gs) && back < g.tokens; i++ {
		if rest := gives[i]; rest > 0 && g.from <= gs[i].from && (t.Keys || g.site == gs[i].site) {
			tokens := min(rest, g.tokens-back)
			back, gives[i] = back+tokens, rest-tokens
		}
	}
	return back
}

// periodOf is the length of a period, of seconds to an hour.
func (s *sim) periodOf(t *rates.Terms) micros {
	lengths := map[rates.Unit]micros{rates.Second: second, rates.Minute: 60 * second, rates.Hour: 3600 * second}
	return micros(t.Count) * lengths[t.Unit]
}
