package core

import (
	"cmp"
	"slices"

	"github.com/samya-db/samya/site/core/answer"
)

// removed reports whether an entity that the acquire names was deleted.
func (w *waiting) removed() bool {
	return w.charge[0].of.removed || slices.ContainsFunc(w.named, func(e *entity) bool { return e.removed })
}

// stale reports whether the acquire's charge differs from its charge by the present
// chains and limits.
func (c *admitting) stale(w *waiting) bool {
	var room [MaxDepth]charged
	if w.parts != nil {
		return !slices.Equal(w.charge, chargeOfAll(w.named, w.parts))
	}
	ch := w.charge[0].of.charge(room[:0], w.tokens)
	ch.limited(&w.request)
	return !slices.Equal(w.charge, ch)
}

// rechain updates the waiting acquires after entities were moved or deleted. It answers
// acquires that name a deleted entity. Other acquires charge the present ancestors. An
// acquire that waits for an entity it no longer charges, or for another number of tokens,
// is placed anew. An acquire of more than a limit is refused.
func (c *admitting) rechain() {
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
			c.remembering.ended(w, answer.Answer{Code: answer.NotFound})
			continue
		}
		ch := c.charging.chargeOf(&w.request)
		if over := ch.exceeds(&w.request); over != nil {
			w.at.queue.remove(w)
			c.later(w.at)
			c.ended(w, &verdict{over: over})
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
		c.resume(w, turn{mayWait: true})
	}
}

// relimit updates the waiting acquires that charge an entity after its limit has changed:
// they ask for at most the new limit, or are refused if they need more.
func (c *admitting) relimit(e *entity) {
	var ws []*waiting
	for _, w := range c.waiting {
		if w.charge.find(e) != nil && (w.charge.exceeds(&w.request) != nil || c.stale(w)) {
			ws = append(ws, w)
		}
	}
	slices.SortFunc(ws, func(a, b *waiting) int { return cmp.Compare(a.arrived, b.arrived) })
	for _, w := range ws {
		c.later(w.at)
		ch := c.charging.chargeOf(&w.request)
		if over := ch.exceeds(&w.request); over != nil {
			w.at.queue.remove(w)
			c.ended(w, &verdict{over: over})
			continue
		}
		ch.limited(&w.request)
		if x := ch.find(w.at); x.tokens <= w.needs || w.at.queue.asked() <= maxQueued-x.tokens {
			w.charge = ch
			w.at.queue.renew(w, x.tokens)
		}
	}
}
