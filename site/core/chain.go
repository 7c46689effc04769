package core

import (
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

// chargeOfAll is the charge of the named entities for all parts.
func chargeOfAll(named []*entity, parts []input.Part) charge {
	ch := make(charge, 0, len(parts))
	for i, e := range named {
		ch = ch.add(e, parts[i].Tokens)
	}
	return ch.added()
}

// missing is the first entity named by parts that does not exist.
func (c *charging) missing(parts []input.Part) string {
	for _, p := range parts {
		if t, _ := c.space.above(p.Entity); t == nil && c.space.find(p.Entity) == nil {
			return p.Entity
		}
	}
	return ""
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
	if r.parts == nil {
		return c.space.find(r.entity).charge(nil, r.tokens)
	}
	r.named = make([]*entity, 0, len(r.parts))
	for _, p := range r.parts {
		e := c.space.find(p.Entity)
		if e == nil {
			return nil
		}
		r.named = append(r.named, e)
	}
	return chargeOfAll(r.named, r.parts)
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
