package sim

import (
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

const (
	// reconcilingOf is how many seeds there are for each seed with an operator who
	// reconciles entities, and with clients that die.
	reconcilingOf = 5
	// reconcilePause is how many milliseconds lie between two cuts on average.
	reconcilePause = 900
	// dying is how many acquires, in thousandths, are the last of their clients.
	dying = 60
)

// operator counts the tokens that clients have, and reconciles entities.
type operator struct {
	s *sim
	r *rand.Rand
	// used are the reconciliations so far; some are asked for again.
	used []*op
}

// cutRead is a cut under way: each site is asked at a time of its own.
type cutRead struct {
	name string
	// dead are the tokens of clients that had died when the cut began, by generation.
	dead map[uint64]core.Tokens
	// counted is what the sites count, version and generation the entity's; told counts
	// the sites. mixed says that the cut is none.
	counted, returning  core.Tokens
	version, generation uint64
	told                int
	parent, mixed       bool
	// of is how many sites are asked.
	of int
}

// drift is the effect of a decided reconciliation: tokens that leave the net of a site.
type drift struct {
	site   core.SiteID
	tokens core.Tokens
}

// startOperator has an operator reconcile entities in some runs.
func (s *sim) startOperator() {
	if s.o.Seed%reconcilingOf != 2 || len(s.nodes) == 1 || s.o.Hungry {
		return
	}
	s.operator = &operator{s: s, r: rand.New(rand.NewPCG(s.o.Seed, 7))}
	s.every(reconcilePause, s.operator.next)
}

// dies reports whether a client ends with the tokens that it has just got. The tokens are
// in use by nobody from now on.
func (o *operator) dies(p *op) bool {
	if o == nil || p.ttl > 0 || rated(p.entity) || o.r.IntN(1000) >= dying {
		return false
	}
	s := o.s
	gone := func(name string, generation uint64, tokens core.Tokens) {
		s.report.Died++
		id := sequenceID{name, generation}
		s.observe.dead[id] += tokens
		s.observe.outstanding[name] -= tokens
		if l := s.observe.ledgers[id]; l != nil {
			l.got -= tokens
			l.most = max(l.most, l.gave-l.got)
		}
	}
	q := &p.at[p.taken]
	if p.kind != acquireAll {
		gone(p.entity, q.generation, q.tokens)
		return true
	}
	for _, part := range q.parts {
		if !rated(part.Entity) {
			gone(part.Entity, part.Generation, part.Tokens)
		}
	}
	return true
}

// next makes a cut, or asks for an old reconciliation once more, under another id.
func (o *operator) next() {
	s := o.s
	if s.loser.any() {
		// What is in use of a lost site's tokens, nobody can count while the site serves.
		return
	}
	if len(o.used) > 0 && o.r.IntN(6) == 0 {
		old := o.used[o.r.IntN(len(o.used))]
		s.issue(&op{kind: reconcile, entity: old.entity, truth: old.truth, expected: old.expected, wait: 5 * second, site: -1})
		return
	}
	cut := &cutRead{name: s.admin.names[o.r.IntN(len(s.admin.names))], dead: make(map[uint64]core.Tokens)}
	if rated(cut.name) {
		return
	}
	for id, tokens := range s.observe.dead {
		if id.entity == cut.name {
			cut.dead[id.generation] = tokens - s.observe.drifted[id]
		}
	}
	inside := s.inside()
	cut.of = len(inside)
	for _, n := range inside {
		s.after(o.r.Int64N(farthest), func() {
			s.ask(n, cut.name, func(c *call) input.Input { return &input.Read{Call: c, Entity: cut.name, Cut: true} }, func(a *answer.Answer) {
				o.told(cut, a)
			})
		})
	}
}

// told takes in a site's part of a cut. The last part makes the cut: the operator counts
// what the books count, without the tokens of clients that are dead.
func (o *operator) told(cut *cutRead, a *answer.Answer) {
	s, v := o.s, a.View()
	if a.Code != answer.OK {
		cut.mixed = true
		return
	}
	if cut.told++; cut.told == 1 {
		cut.version, cut.generation, cut.counted = v.Version, v.Generation, v.Surplus
	}
	cut.mixed = cut.mixed || v.Version != cut.version || v.Generation != cut.generation
	cut.parent = cut.parent || v.Children > 0
	cut.counted += v.Count.Own
	cut.returning += v.Count.Returning
	if cut.mixed || cut.told < cut.of {
		return
	}
	if cut.parent {
		cut.counted -= v.Surplus
	}
	s.report.Cuts++
	inUse := cut.counted - cut.returning - cut.dead[cut.generation]
	if s.report.Trees == 0 {
		// Too high a count is safe, and may leave a debt.
		inUse += []core.Tokens{0, 0, 0, 5, 100}[o.r.IntN(5)]
	}
	p := &op{
		kind: reconcile, entity: cut.name, expected: cut.version, wait: micros(1+o.r.IntN(8000)) * millisecond, site: -1,
		truth: input.Truth{InUse: max(0, inUse), Counted: cut.counted, Returning: cut.returning, Generation: cut.generation},
	}
	o.used = append(o.used, p)
	s.after(o.r.Int64N(3*second), func() {
		s.issue(p)
		if o.r.IntN(4) == 0 {
			twin := *p
			s.issue(&op{kind: reconcile, entity: p.entity, truth: p.truth, expected: p.expected, wait: twin.wait, site: -1})
		}
	})
}

// reconciles takes in a decided reconciliation. All together, never more comes back than
// clients that died had.
func (o *observer) reconciles(q *sequence, v *avantan.Value, t *truth) core.Tokens {
	o.s.report.Reconciled++
	told := input.Truth{InUse: t.InUse, Counted: t.Counted, Returning: t.Returning}
	d := drift{tokens: told.Drift()}
	if len(v.Contributions) > 0 {
		d.site = v.Contributions[0].Site
	}
	q.drifts[q.settled+1] = d
	if d.tokens < 0 {
		// What the books did not count is charged to the entities above, where it may leave
		// a debt.
		for _, all := range o.created {
			for _, e := range all {
				e.shifted = e.shifted || o.planted[e.id.entity]
			}
		}
	}
	if o.s.operator == nil {
		return d.tokens
	}
	o.drifted[q.id] += d.tokens
	if back, dead := o.drifted[q.id], o.dead[q.id]; back > dead {
		o.s.fail(Reconciled, "%v: %d tokens came back in all, clients that died had %d", q.id, back, dead)
	}
	return d.tokens
}

// driftsAhead adds up the drifts of the decided reconciliations that leave the net of a
// site once the site applies them.
func (q *sequence) driftsAhead(site core.SiteID, applied avantan.Instance) core.Tokens {
	var sum core.Tokens
	for t, d := range q.drifts {
		if t > applied && d.site == site {
			sum += max(0, d.tokens)
		}
	}
	return sum
}

// truth is the part of a limitChange that reconciles.
type truth struct {
	InUse     core.Tokens `json:"in_use"`
	Counted   core.Tokens `json:"counted"`
	Returning core.Tokens `json:"returning"`
}

// drifting returns the drifts that leave a site's net in a transaction, by entity.
func (o *observer) drifting(n *node, r *stored.Records) map[string]core.Tokens {
	var all map[string]core.Tokens
	for i := range r.Entities {
		e := &r.Entities[i]
		q := o.sequence(sequenceID{e.Name, e.Generation})
		if len(q.drifts) == 0 {
			continue
		}
		from := avantan.Instance(0)
		if was := n.durable.Entities[e.Name]; was.Generation == e.Generation {
			from = was.Protocol.Applied
		}
		for t := from + 1; t <= e.Protocol.Applied; t++ {
			if d := q.drifts[t]; d.tokens != 0 && d.site == n.id {
				if all == nil {
					all = make(map[string]core.Tokens)
				}
				all[e.Name] += d.tokens
			}
		}
	}
	return all
}

// driftsApplied takes in the drifts that leave a site's net.
func (o *observer) driftsApplied(n *node, drifts map[string]core.Tokens) {
	o.charged = false
	for _, name := range slices.Sorted(maps.Keys(drifts)) {
		o.moves(n, name, -drifts[name])
		o.charged = o.charged || drifts[name] < 0
	}
}
