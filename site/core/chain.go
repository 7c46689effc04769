package core

import (
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

// chargeOfAll is the charge of all parts; nil if an entity does not exist.
func (c *charging) chargeOfAll(parts []input.Part) charge {
	ch, found := make(charge, 0, len(parts)), true
	for _, p := range parts {
		e := c.space.find(p.Entity)
		found = found && e != nil
		ch = ch.add(e, p.Tokens)
	}
	if ch = ch.added(); !found {
		return nil
	}
	return ch
}

// missing is the first entity named by parts that does not exist.
func (c *charging) missing(parts []input.Part) string {
	for _, p := range parts {
		if c.space.find(p.Entity) == nil {
			return p.Entity
		}
	}
	return ""
}

// recorded returns the parts with their entities' generations.
func (c *charging) recorded(parts []input.Part) []stored.Part {
	rs := make([]stored.Part, 0, len(parts))
	for _, p := range parts {
		e := c.space.find(p.Entity)
		rs = append(rs, stored.Part{Part: input.Part{Entity: e.name, Tokens: p.Tokens}, Generation: e.generation})
	}
	return rs
}

// chargeBack is the charge that recorded parts give back, to the entities that still
// exist and their present ancestors.
func (c *charging) chargeBack(parts []stored.Part) charge {
	var ch charge
	for _, p := range parts {
		if e := c.space.find(p.Entity); e != nil && e.generation == p.Generation {
			ch = ch.add(e, p.Tokens)
		}
	}
	return ch.added()
}

// chargeOf is the charge of a request, by the present chains; nil if an entity that it
// names does not exist.
func (c *charging) chargeOf(r *request) charge {
	if r.parts != nil {
		return c.chargeOfAll(r.parts)
	}
	return c.space.find(r.entity).charge(nil, r.tokens)
}

// lackingIn is the name of the entity of a generation that a request charges; empty if it
// no longer charges an entity of that generation.
func (c *charging) lackingIn(r *request, generation uint64) string {
	lacking := func(name string) string {
		for e := range c.space.find(name).chain() {
			if e.generation == generation {
				return e.name
			}
		}
		return ""
	}
	for _, p := range r.parts {
		if name := lacking(p.Entity); name != "" {
			return name
		}
	}
	return lacking(r.entity)
}

// named are the entities that a request names.
func (c *charging) named(r *request) []*entity {
	if r.parts == nil {
		return []*entity{c.space.find(r.entity)}
	}
	named := make([]*entity, 0, len(r.parts))
	for _, p := range r.parts {
		named = append(named, c.space.find(p.Entity))
	}
	return named
}

// recordOf is the record of a request with this outcome, which rests on an entity.
func (c *charging) recordOf(r *request, e *entity, state stored.RequestState, tokens, left Tokens) stored.Request {
	q := stored.Request{
		Key: r.key, Body: r.body, Kind: r.kind, State: state, Attempt: r.tries.Number(),
		Generation: e.generation, Tokens: tokens, Left: left,
	}
	if r.parts != nil && state == stored.Ran {
		q.Parts = c.recorded(r.parts)
	}
	return q
}
