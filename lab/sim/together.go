package sim

import (
	"slices"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

// mostParts is how many parts an acquire of several entities has at most.
const mostParts = 4

// several makes an acquire ask for several entities, all or none; an entity may be named
// twice.
func (p *op) several(s *sim, big int) {
	p.kind, p.entity = acquireAll, ""
	for range 1 + s.r.IntN(mostParts) {
		part := input.Part{Entity: s.admin.names[s.r.IntN(len(s.admin.names))], Tokens: core.Tokens(1 + s.r.IntN(1+big/2))}
		p.parts, p.tokens = append(p.parts, part), p.tokens+part.Tokens
	}
}

// partsOf are the parts of an acquire of several entities. For another number of tokens
// they differ: in another order, or with more.
func (p *op) partsOf(tokens core.Tokens) []input.Part {
	parts := slices.Clone(p.parts)
	last := len(parts) - 1
	switch {
	case tokens == p.tokens:
	case parts[0] != parts[last] && p.id%2 == 0:
		parts[0], parts[last] = parts[last], parts[0]
	default:
		parts[p.id%len(parts)].Tokens += tokens - p.tokens
	}
	return parts
}

// runsAll takes in that an acquire of several entities has run at a site: it is
// recorded as it was asked for.
func (o *observer) runsAll(n *node, p *op, q *recorded) {
	same := func(r stored.Part, part input.Part) bool { return r.Part == part }
	if !slices.EqualFunc(q.parts, p.parts, same) {
		o.s.fail(Answers, "%s records %v as %v", n.id, p, q.parts)
		return
	}
	for _, part := range q.parts {
		// An entity that the same transaction deletes takes its tokens out along.
		o.moves(n, part.Entity, part.Tokens)
		o.put[part.Entity] += part.Tokens
	}
}

// undoesAll takes in that an acquire of several entities is undone: each part with an
// entity that is still there.
func (o *observer) undoesAll(n *node, was *recorded) {
	o.s.report.BatchesUndone++
	for _, part := range was.parts {
		if !rated(part.Entity) && o.stillThere(n, part.Entity, part.Generation) {
			o.moves(n, part.Entity, -part.Tokens)
		}
	}
}

// refuses takes in that a site has refused an acquire: the acquire charges the entity
// that lacked the tokens. It returns the least that the acquire asks of that entity:
// later another number of its parts may be below it.
func (o *observer) refuses(n *node, p *op, r *stored.Request) core.Tokens {
	e := n.durable.Entities[p.entity]
	above := e.Generation != r.Generation && e.Parent != 0
	switch {
	case r.Tokens > 0 && above:
		o.s.report.ExceededAbove++
	case r.Tokens > 0:
	case p.kind == acquireAll:
		o.s.report.BatchesRefused++
	case above:
		o.s.report.RefusedAbove++
	}
	lacking, moved := n.lacks(p, r.Generation), o.batch.Catalogue != nil
	switch {
	case lacking == nil && !moved:
		o.s.fail(Answers, "%s records that generation %d lacks what %v asks for", n.id, r.Generation, p)
		return 0
	case p.kind == acquire || moved:
		// Before or after a move: no entity is asked for more than all parts together.
		return p.leastTokens()
	default:
		return lacking.tokens
	}
}

// lacks is the charge of an acquire to the entity of a generation as it is stored,
// nil for none.
func (n *node) lacks(p *op, generation uint64) *charge {
	list := n.durable.charges(p)
	i := slices.IndexFunc(list, func(c charge) bool { return n.durable.Entities[c.name].Generation == generation })
	if i < 0 {
		return nil
	}
	return &list[i]
}

// tells reports whether a site that refuses an acquire again has to name the same entity:
// the acquire still charges it.
func (n *node) tells(p *op, q *recorded) bool {
	return q.state != stored.Refused || n.lacks(p, q.generation) != nil && n.s.now > n.replanted+2*slack
}

// lacked checks a refusal: the entity named did not have the tokens, whatever waited
// there.
func (o *observer) lacked(n *node, c *call, a *answer.Answer) {
	p, q := c.op, &c.op.at[n.i]
	lacking := n.lacks(p, q.generation)
	if lacking == nil || !n.tells(p, q) {
		return
	}
	switch {
	case a.Lacking != lacking.name:
		o.s.fail(Answers, "%s answers %v: %q lacks tokens, recorded is %q", n.id, c, a.Lacking, lacking.name)
	case a.Left >= q.asks:
		o.s.fail(Refusal, "%s answers %v: %q lacks tokens, and has %d left", n.id, c, a.Lacking, a.Left)
	}
}
