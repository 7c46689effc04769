package core

import (
	"iter"
)

// charging moves tokens between the books and the makers of requests.
type charging struct {
	*common
	*forecasting
}

// charged is the number of tokens that a request takes from an entity.
type charged struct {
	of     *entity
	tokens Tokens
}

// charge is the list of tokens that a request takes from each entity: from the entities
// that it names and all their ancestors, from the bottom up, each once.
type charge []charged

// charge appends to room the charge of a request for tokens of the entity.
func (e *entity) charge(room charge, tokens Tokens) charge {
	for ; e != nil; e = e.parent() {
		room = append(room, charged{e, tokens})
	}
	return room
}

// add adds an entity's part of a request to the charge, which holds no entity twice:
// placed of an entity in the charge is its place, from 1.
func (ch charge) add(e *entity, tokens Tokens) charge {
	for ; e != nil; e = e.parent() {
		if e.placed == 0 {
			ch = append(ch, charged{of: e})
			e.placed = int16(len(ch)) //nolint:gosec // at most MaxParts chains
		}
		ch[e.placed-1].tokens += tokens
	}
	return ch
}

// added clears the places that add has set.
func (ch charge) added() charge {
	for i := range ch {
		ch[i].of.placed = 0
	}
	return ch
}

// entities are the charged entities.
func (ch charge) entities() iter.Seq[*entity] {
	return func(yield func(*entity) bool) {
		for i := range ch {
			if !yield(ch[i].of) {
				return
			}
		}
	}
}

// find is the part of an entity, nil if it is not charged.
func (ch charge) find(e *entity) *charged {
	for i := range ch {
		if ch[i].of == e {
			return &ch[i]
		}
	}
	return nil
}

// lower lowers the tokens taken from each entity.
func (ch charge) lower(tokens Tokens) {
	for i := range ch {
		ch[i].tokens = tokens
	}
}

// mover moves tokens between the books and the makers of requests.
type mover interface {
	// take moves tokens out of the books of an entity, which has them.
	take(e *entity, tokens Tokens)
	// fits reports whether an entity can take back tokens; give puts them back.
	fits(e *entity, tokens Tokens) bool
	give(e *entity, tokens Tokens)
}

// takeAll moves the tokens of a granted acquire to its maker.
func takeAll(at mover, ch charge) {
	for i := range ch {
		at.take(ch[i].of, ch[i].tokens)
	}
}

// fitAll reports whether all tokens of a charge can be given back.
func fitAll(at mover, ch charge) bool {
	for i := range ch {
		if !at.fits(ch[i].of, ch[i].tokens) {
			return false
		}
	}
	return true
}

// giveAll gives back the tokens of a charge, which fit.
func giveAll(at mover, ch charge) {
	for i := range ch {
		at.give(ch[i].of, ch[i].tokens)
	}
}

// free implements till. No tokens are granted without it, so none are granted from a window
// that is over. Acquires that wait come first to tokens that come back.
func (c *charging) free(e *entity) Tokens {
	if plain(e) {
		return max(0, e.usable())
	}
	if c.replenishes(e) && e.queue.len() > 0 {
		c.later(e)
		return 0
	}
	c.replenish(e)
	return max(0, e.usable())
}

// take implements mover.
func (c *charging) take(e *entity, tokens Tokens) {
	c.keepWhole(e, e.books.Take(tokens))
	c.tallies.of(e).granted(tokens)
	c.forecasting.demanded(e, tokens)
	c.movedBooks(e)
}

// fits implements mover.
func (c *charging) fits(e *entity, tokens Tokens) bool {
	return rateOf(e) != nil || e.books.Fits(tokens)
}

// give implements mover. Tokens of a rate quota are not given back: the window of their
// grant is not known. creditLease is for tokens of leases.
func (c *charging) give(e *entity, tokens Tokens) {
	if rateOf(e) != nil {
		return
	}
	c.putBack(e, tokens)
}

// putBack puts outstanding tokens back into the books.
func (c *charging) putBack(e *entity, tokens Tokens) {
	c.keepWhole(e, e.books.Return(tokens))
	c.tallies.of(e).released(tokens)
	c.forecasting.returned(e, tokens)
	c.dirtyBooks(e)
}

// creditLease puts tokens of a lease back into the books of its entity and the ancestors. It
// returns the number that comes back to the lease's entity, and reports whether the tokens
// fit. To a rate quota tokens come back as far as they have not come back by the clock.
func (c *charging) creditLease(l *lease, tokens Tokens) (back Tokens, fits bool) {
	var room [MaxDepth]charged
	ch := l.entity.charge(room[:0], tokens)
	for i := range ch {
		if rateOf(ch[i].of) != nil {
			ch[i].tokens = c.unused(ch[i].of, l, tokens)
		}
	}
	if !fitAll(c, ch) {
		return 0, false
	}
	for i := range ch {
		if ch[i].tokens > 0 {
			c.putBack(ch[i].of, ch[i].tokens)
		}
	}
	return ch[0].tokens, true
}

// unused is the number of a lease's tokens that may come back to a rate quota. None do while
// tokens out are on their way to an heir, where they may have come back by the clock.
func (c *charging) unused(e *entity, l *lease, tokens Tokens) Tokens {
	r := rateOf(e)
	mark, marked := l.MarkOf(e.generation)
	if r.flow != nil {
		c.replenish(e)
	}
	switch {
	case !marked || r.flow == nil && mark != r.Window || c.roster.leaves || e.handoff() != nil && e.handoff().Open():
		return 0
	case r.flow != nil:
		tokens = Tokens(r.flow.Unused(mark, int64(tokens)))
	default:
		// The rest has gone to an heir.
		tokens = min(tokens, r.unheld(e)-r.Late-r.Ended.Last-r.Ended.Before)
	}
	if tokens <= 0 || !e.books.Fits(tokens) {
		return 0
	}
	return tokens
}

// creditAll puts outstanding tokens back into the books, all or none, and reports whether
// they fit. The caller marks each entity with later.
func (c *charging) creditAll(ch charge) bool {
	if !fitAll(c, ch) {
		return false
	}
	giveAll(c, ch)
	return true
}

// credit is creditAll for tokens of an entity and its ancestors.
func (c *charging) credit(e *entity, tokens Tokens) bool {
	var room [MaxDepth]charged
	return c.creditAll(e.charge(room[:0], tokens))
}
