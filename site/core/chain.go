package core

import (
	"cmp"
	"slices"
)

// chargeOf is the charge of a request, by the present chains; nil if an entity that it
// names does not exist.
func (c *Core) chargeOf(r *request) charge {
	if r.parts != nil {
		return c.chargeOfAll(r.parts)
	}
	return c.space.find(r.entity).charge(nil, r.tokens)
}

// lackingIn is the name of the entity of a generation that a request charges; empty if it
// no longer charges an entity of that generation.
func (c *Core) lackingIn(r *request, generation uint64) string {
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

// removed reports whether an entity that the acquire names was deleted.
func (w *waiting) removed() bool {
	return slices.ContainsFunc(w.named, func(e *entity) bool { return e.removed })
}

// named are the entities that a request names.
func (c *Core) named(r *request) []*entity {
	if r.parts == nil {
		return []*entity{c.space.find(r.entity)}
	}
	named := make([]*entity, 0, len(r.parts))
	for _, p := range r.parts {
		named = append(named, c.space.find(p.Entity))
	}
	return named
}

// stale reports whether the acquire's charge differs from its charge by the present
// chains and limits.
func (c *Core) stale(w *waiting) bool {
	var room [MaxDepth]charged
	if w.parts != nil {
		return !slices.Equal(w.charge, c.chargeOfAll(w.parts))
	}
	ch := w.charge[0].of.charge(room[:0], w.tokens)
	ch.limited(&w.request)
	return !slices.Equal(w.charge, ch)
}

// rechain updates the waiting acquires after entities were moved or deleted. It answers
// acquires that name a deleted entity. Other acquires charge the present ancestors. An
// acquire that waits for an entity it no longer charges, or for another number of tokens,
// is placed anew. An acquire of more than a limit is refused.
func (c *Core) rechain() {
	var ws []*waiting
	for _, w := range c.waiting {
		if w.removed() || c.stale(w) {
			ws = append(ws, w)
		}
	}
	slices.SortFunc(ws, func(a, b *waiting) int { return cmp.Compare(a.arrived, b.arrived) })
	for _, w := range ws {
		if w.removed() {
			w.at.queue.remove(w)
			c.later(w.at)
			c.ended(w, Answer{Code: NotFound})
			continue
		}
		ch := c.chargeOf(&w.request)
		if over := ch.exceeds(&w.request); over != nil {
			w.at.queue.remove(w)
			c.later(w.at)
			c.ended(w, c.refuseExcess(&w.request, over))
			continue
		}
		ch.limited(&w.request)
		c.charges += len(ch) - len(w.charge)
		w.charge = ch
		if x := w.charge.find(w.at); x != nil && x.tokens == w.needs {
			continue
		}
		w.at.queue.remove(w)
		c.later(w.at)
		c.goOn(w, turn{mayWait: true})
	}
}
