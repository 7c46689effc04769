package core

import (
	"cmp"
	"slices"
)

// chargeOf is what a request takes of each entity, by the chains that these have;
// nil if an entity that it names is not there.
func (c *Core) chargeOf(r *request) charge {
	e := c.space.find(r.entity)
	if e == nil {
		return nil
	}
	return e.charge(nil, r.tokens)
}

// lackingIn is the name of the entity of a generation that a request charges; empty
// if it charges none of that generation any more.
func (c *Core) lackingIn(r *request, generation uint64) string {
	for e := range c.chargeOf(r).entities() {
		if e.generation == generation {
			return e.name
		}
	}
	return ""
}

// removed reports whether an entity that the acquire names was deleted.
func (w *waiting) removed() bool { return w.charge[0].of.removed }

// stale reports whether the acquire charges others than by the chains as they are.
func (w *waiting) stale() bool {
	i := 0
	for e := range w.charge[0].of.chain() {
		if i == len(w.charge) || w.charge[i].of != e {
			return true
		}
		i++
	}
	return i < len(w.charge)
}

// rechain goes through the acquires that wait after entities were moved or deleted.
// Those that name a deleted one are answered. The others charge who stands above
// what they name; one that waits for an entity that it does not charge any more, or
// for another number of tokens, is placed anew.
func (c *Core) rechain() {
	var ws []*waiting
	for _, w := range c.waiting {
		if w.removed() || w.stale() {
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
		c.charges -= len(w.charge)
		w.charge = w.charge[0].of.charge(nil, w.tokens)
		c.charges += len(w.charge)
		if x := w.charge.find(w.at); x != nil && x.tokens == w.needs {
			continue
		}
		w.at.queue.remove(w)
		c.later(w.at)
		c.goOn(w, turn{mayWait: true})
	}
}
