package sim

import (
	"slices"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/stored"
)

// excess says whether an acquire asks for more than a limit, by the limits that its site
// knows when the core gets the acquire.
type excess uint8

const (
	// unsure: the site has begun work that it has not told yet, or it remembers the
	// request.
	unsure excess = iota
	within
	beyond
)

// oversize has an acquire ask for a good part of the limit now and then. Often this is
// more than is left anywhere, more than the limit, or more than the limit of a parent.
// Such an acquire may wait for long. Others ask for tokens that can be had.
func (p *op) oversize(s *sim) {
	d := s.nodes[p.site].drained
	limit := d.Entities[p.entity].Limit
	switch draw := s.r.IntN(100); {
	case draw < 11 && limit > 0:
		p.tokens = 1 + core.Tokens(s.r.Int64N(int64(limit)))
	case draw < 14:
		p.tokens = limit + 1 + core.Tokens(s.r.Int64N(int64(limit+1)))
	case draw < 20 && d.Entities[p.entity].Parent != 0:
		above := d.chain(p.entity)[1:]
		limit = d.Entities[above[s.r.IntN(len(above))]].Limit
		p.tokens = limit + 1 + core.Tokens(s.r.Int64N(int64(limit/4+1)))
	default:
		for _, name := range d.chain(p.entity) {
			limit = min(limit, d.Entities[name].Limit)
		}
		if limit > 0 {
			p.tokens = 1 + (p.tokens-1)%limit
		}
		return
	}
	if p.wait > 0 && s.chance(500) {
		p.wait += 10 * second
	}
}

// oversizeAll has an acquire of several entities ask for more than a limit now and then:
// by a single part, or by two parts that only together exceed it. Most others ask for
// tokens that can be had.
func (p *op) oversizeAll(s *sim) {
	d := s.nodes[p.site].drained
	if !s.chance(60) {
		if d.exceeds(p) && s.chance(800) {
			for i := range p.parts {
				p.parts[i].Tokens = 1
			}
			p.tokens = core.Tokens(len(p.parts))
		}
		return
	}
	part := p.parts[s.r.IntN(len(p.parts))]
	chain := d.chain(part.Entity)
	if len(chain) == 0 {
		return
	}
	limit := d.Entities[chain[s.r.IntN(len(chain))]].Limit
	first := core.Tokens(s.r.Int64N(int64(limit + 1)))
	p.parts = append(p.parts, input.Part{Entity: part.Entity, Tokens: first + 1}, input.Part{Entity: part.Entity, Tokens: limit + 1 - first})
	p.tokens += limit + 2
}

// wanted is the least that an acquire asks for of an entity.
func (p *op) wanted(c charge) core.Tokens {
	if p.kind == acquireAll {
		return c.tokens
	}
	return p.leastTokens()
}

// exceeds reports whether an acquire asks for more than a stored limit.
func (m *Memory) exceeds(p *op) bool {
	return slices.ContainsFunc(m.raw(p), func(c charge) bool { return p.wanted(c) > m.Entities[c.name].Limit })
}

// stateOf is the state that a site has recorded for a request, durable or not yet; 0 for
// none.
func (n *node) stateOf(p *op) stored.RequestState {
	for _, batch := range slices.Backward(n.flights) {
		for _, q := range slices.Backward(batch.Records.Block.Records) {
			if q.Key == p.key {
				return q.State
			}
		}
	}
	return p.at[n.i].state
}

// excess says whether an acquire asks for more than a limit, just before the core gets
// it.
func (n *node) excess(c *call) excess {
	p := c.op
	if st := n.stateOf(p); c.mutant || n.stale != nil || !n.stepped || n.pending() || st != 0 && st != stored.Undone {
		return unsure
	}
	switch {
	case len(n.drained.chain(p.entity)) == 0 && p.kind == acquire:
		return unsure
	case n.drained.exceeds(p):
		return beyond
	}
	return within
}

// refusesAtOnce checks that an acquire of more than a limit does not wait, once the core
// has it.
func (n *node) refusesAtOnce(c *call) {
	c.joined = n.core.Arrival(c) != 0
	if c.excess == beyond && c.joined {
		n.s.fail(Refusal, "%s lets %v wait, which asks for more than a limit", n.id, c)
	}
}

// barren checks a site's messages, events and records right after it was handed an
// acquire of more than a limit. No tokens move, nobody is asked for any, and nothing is
// begun.
func (o *observer) barren(n *node, batch *core.Effects) {
	if !slices.ContainsFunc(batch.Replies, func(r core.Reply) bool { return r.Answer.Code == answer.ExceedsLimit }) {
		return
	}
	r := &batch.Records
	asks := func(e message.Envelope) bool { return e.Claims == nil }
	begins := func(e event.Event) bool { return e.Kind == event.RedistributionStarted }
	if len(r.Books)+len(r.Entities) > 0 || slices.ContainsFunc(batch.Messages, asks) || slices.ContainsFunc(batch.Events, begins) {
		o.s.fail(Refusal, "%s refuses an acquire of more than a limit, and stores %+v, %+v, sends %+v, tells %+v", n.id,
			r.Books, r.Entities, batch.Messages, batch.Events)
	}
}

// outgrown fails if a waiting acquire asks for more than a limit that the site knows.
func (o *observer) outgrown(n *node, p *place) {
	if p.waits() && n.drained.exceeds(p.op) {
		o.s.fail(Refusal, "%s: %v still waits, and asks for more than a limit", n.id, p.op)
	}
}

// unexceeding checks the code of an answer, of a dry run too, against the limits at the
// time when the acquire came.
func (o *observer) unexceeding(n *node, c *call, a *answer.Answer) {
	switch a.Code {
	case answer.ExceedsLimit:
		if c.excess == within && !c.joined {
			o.s.fail(Refusal, "%s answers %v: more than the limit %d of %q, and all limits allow for it", n.id, c, a.Tokens, a.Lacking)
		}
	case answer.OK, answer.OutOfTokens, answer.QueueFull:
		if c.excess == beyond {
			o.s.fail(Refusal, "%s answers %v, which asks for more than a limit: %v", n.id, c, a.Code)
		}
	}
}

// exceeded checks a refusal for a limit, answered for the first time: the acquire charges
// the entity named, and the entity has or had that limit.
func (o *observer) exceeded(n *node, c *call, a *answer.Answer) {
	p, q := c.op, &c.op.at[n.i]
	o.s.report.Exceeded++
	if c.joined {
		o.s.report.Outgrown++
	}
	over := n.lacks(p, q.generation)
	if over == nil || !n.tells(p, q) {
		return
	}
	switch {
	case a.Lacking != over.name:
		o.s.fail(Answers, "%s answers %v: the limit of %q, recorded is %q", n.id, c, a.Lacking, over.name)
	case q.asks <= a.Tokens:
		o.s.fail(Refusal, "%s answers %v: %q has the limit %d, which is not too low", n.id, c, a.Lacking, a.Tokens)
	case !o.everLimit(sequenceID{over.name, q.generation}, a.Tokens):
		o.s.fail(Answers, "%s answers %v: %q never had the limit %d", n.id, c, a.Lacking, a.Tokens)
	}
}

// everLimit reports whether an entity ever had a limit, by the decided changes.
func (o *observer) everLimit(id sequenceID, limit core.Tokens) bool {
	return len(o.s.nodes) == 1 || slices.ContainsFunc(o.sequence(id).limits, func(l limitState) bool { return l.limit == limit })
}

// withinLimits checks a grant that is about to become durable. A site grants no more at
// once than the limit of any charged entity, as the site knew it.
func (o *observer) withinLimits(n *node, p *op, granted core.Tokens) {
	if o.batch.Catalogue != nil || len(o.s.nodes) == 1 {
		return
	}
	for _, c := range n.durable.raw(p) {
		if p.kind == acquire {
			c.tokens = granted
		}
		e := n.durable.Entities[c.name]
		q, to := o.sequence(sequenceID{c.name, e.Generation}), e.Protocol.Applied
		for i := range o.batch.Entities {
			if b := &o.batch.Entities[i]; b.Name == c.name && b.Generation == e.Generation {
				to = b.Protocol.Applied
			}
		}
		most := core.Tokens(0)
		for t := e.Protocol.Applied; t <= min(to, avantan.Instance(len(q.limits)-1)); t++ { //nolint:gosec // few
			most = max(most, q.limits[t].limit)
		}
		if c.tokens > most {
			o.s.fail(Refusal, "%s grants %v %d tokens of %q, whose limit is %d", n.id, p, c.tokens, c.name, most)
		}
	}
}
