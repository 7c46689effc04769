package core

import (
	"cmp"
	"slices"
)

// No site can ever grant more tokens of an entity than the limit of the entity or of any
// of its ancestors. An acquire of more that is content with nothing less is refused at
// once: it is no demand, does not wait, and has no tokens moved. An acquire that is
// content with less asks for the lowest limit at most. The site goes by the limits that
// it knows. While an acquire waits the limits may change, and the same rule holds.

// exceeds returns the charge with the limit that an acquire exceeds by most, the first of
// several; nil if the acquire exceeds none.
func (ch charge) exceeds(r *request) *charged {
	var most *charged
	for i := range ch {
		if x := &ch[i]; x.excess(r) > 0 && (most == nil || x.excess(r) > most.excess(r)) {
			most = x
		}
	}
	return most
}

// excess is the number of tokens that an acquire needs beyond the limit, at least.
func (x *charged) excess(r *request) Tokens { return min(r.least, x.tokens) - x.of.limit }

// limited lowers the charge of an entity and its ancestors to the lowest limit. A request
// that takes different numbers of tokens is content with nothing less, and stays as it
// is.
func (ch charge) limited(r *request) {
	if r.parts != nil {
		return
	}
	most := ch[0].tokens
	for i := range ch {
		most = min(most, ch[i].of.limit)
	}
	if most < ch[0].tokens {
		ch.lower(most)
	}
}

// exceeded is the answer to an acquire of more than a limit.
func exceeded(over *charged) Answer {
	return Answer{Code: ExceedsLimit, Tokens: over.of.limit, Left: over.of.usable(), Lacking: over.of.name}
}

// refuseExcess records that an acquire asked for more than a limit, and returns the
// answer. Without the record a late duplicate could be granted unnoticed.
func (c *Core) refuseExcess(r *request, over *charged) Answer {
	c.remember(r, over.of, Refused, beyond(over.of.limit))
	return exceeded(over)
}

// beyond is the smallest number of tokens that exceeds a limit. A record of a refusal for
// the limit has that number; 0 stands for a refusal for want of tokens.
func beyond(limit Tokens) Tokens { return limit + 1 }

// relimit updates the waiting acquires that charge an entity after its limit has changed:
// they ask for at most the new limit, or are refused if they need more.
func (c *Core) relimit(e *entity) {
	var ws []*waiting
	for _, w := range c.waiting {
		if w.charge.find(e) != nil && (w.charge.exceeds(&w.request) != nil || c.stale(w)) {
			ws = append(ws, w)
		}
	}
	slices.SortFunc(ws, func(a, b *waiting) int { return cmp.Compare(a.arrived, b.arrived) })
	for _, w := range ws {
		c.later(w.at)
		ch := c.chargeOf(&w.request)
		if over := ch.exceeds(&w.request); over != nil {
			w.at.queue.remove(w)
			c.ended(w, c.refuseExcess(&w.request, over))
			continue
		}
		ch.limited(&w.request)
		if x := ch.find(w.at); x.tokens <= w.needs || w.at.queue.asked() <= maxQueued-x.tokens {
			w.charge = ch
			w.at.queue.renew(w, x.tokens)
		}
	}
}
