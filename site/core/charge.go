package core

import "iter"

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

// take moves the tokens to the maker of a request.
func (c *Core) take(ch charge) {
	for i := range ch {
		e, tokens := ch[i].of, ch[i].tokens
		c.keepWhole(e, e.books.Take(tokens))
		c.demanded(e, tokens)
		c.dirtyBooks(e)
	}
}

// creditAll puts outstanding tokens back into the books, all or none, and reports whether
// they fit. The caller marks each entity with later.
func (c *Core) creditAll(ch charge) bool {
	for i := range ch {
		if !ch[i].of.books.Fits(ch[i].tokens) {
			return false
		}
	}
	for i := range ch {
		e, tokens := ch[i].of, ch[i].tokens
		c.keepWhole(e, e.books.Return(tokens))
		c.returned(e, tokens)
		c.dirtyBooks(e)
	}
	return true
}

// credit is creditAll for tokens of an entity and its ancestors.
func (c *Core) credit(e *entity, tokens Tokens) bool {
	var room [MaxDepth]charged
	return c.creditAll(e.charge(room[:0], tokens))
}

// freed marks an entity and its ancestors, after tokens were returned to them.
func (c *Core) freed(e *entity) {
	for ; e != nil; e = e.parent() {
		c.later(e)
	}
}

// later marks an entity whose tokens or queue have changed. The settling at the end of
// the step serves the queue, and does all that check asks for. The work that changed the
// entity may not be finished, and relies on the tokens left.
func (c *Core) later(e *entity) {
	e.changed = true
	c.check(e)
}

// check marks an entity. The settling at the end of the step looks whether to ask other
// sites for tokens, and when to look at the entity again.
func (c *Core) check(e *entity) {
	if !e.due {
		e.due = true
		c.due = append(c.due, e)
	}
}

// settle ends a step: it looks at the marked entities. It comes to an end: with no tokens
// coming in, acquires that stay in a served queue lack tokens, or wait for a hold, and
// each acquire has a single hold.
func (c *Core) settle() {
	for i := 0; i < len(c.due); i++ {
		e := c.due[i]
		changed := e.changed
		e.due, e.changed = false, false
		if !c.serves(e) {
			continue
		}
		if changed {
			c.serveQueue(e)
			c.tellGain(e)
		}
		c.pursue(e)
		c.schedule(e)
	}
	clear(c.due)
	c.due = c.due[:0]
}
