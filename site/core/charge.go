package core

import "iter"

// charged is what a request takes of one entity.
type charged struct {
	of     *entity
	tokens Tokens
}

// charge is what a request takes of each entity: of those that it names and of all
// above them, from the bottom up, each of them once.
type charge []charged

// charge puts into room what a request takes that asks for tokens of the entity.
func (e *entity) charge(room charge, tokens Tokens) charge {
	for ; e != nil; e = e.parent() {
		room = append(room, charged{e, tokens})
	}
	return room
}

// add puts an entity's part of a request into the charge, which holds no entity
// twice: placed has the places of those that it holds, from 1.
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

// added ends what add began.
func (ch charge) added() charge {
	for i := range ch {
		ch[i].of.placed = 0
	}
	return ch
}

// entities are those charged.
func (ch charge) entities() iter.Seq[*entity] {
	return func(yield func(*entity) bool) {
		for i := range ch {
			if !yield(ch[i].of) {
				return
			}
		}
	}
}

// find is what is taken of an entity, nil for nothing.
func (ch charge) find(e *entity) *charged {
	for i := range ch {
		if ch[i].of == e {
			return &ch[i]
		}
	}
	return nil
}

// lower has it take fewer tokens of each.
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

// creditAll puts tokens that were out back into the books, all or none, and reports
// whether they fit. The caller goes on with freedAll.
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

// credit does that for tokens of one entity, and so of all above it.
func (c *Core) credit(e *entity, tokens Tokens) bool {
	var room [MaxDepth]charged
	return c.creditAll(e.charge(room[:0], tokens))
}

// freed looks what becomes of tokens that came back to an entity and to all above.
func (c *Core) freed(e *entity) {
	for ; e != nil; e = e.parent() {
		c.freedOne(e)
	}
}

func (c *Core) freedOne(e *entity) {
	c.serveQueue(e)
	c.tellGain(e)
	c.pursue(e)
	c.schedule(e)
}

// later has an entity looked at before the step ends: what was done for another one
// has taken of its tokens, or has had an acquire join its queue or leave it. That
// other one may be in the middle of what it does, and it goes by what it has left.
func (c *Core) later(e *entity) {
	if !e.due {
		e.due = true
		c.due = append(c.due, e)
	}
}

// catchUp looks at the entities that were left for later. It comes to an end: with
// no tokens coming in, what stays in a queue that was worked off lacks tokens, or waits
// for a hold, of which each acquire has one.
func (c *Core) catchUp() {
	for i := 0; i < len(c.due); i++ {
		e := c.due[i]
		e.due = false
		if !c.serves(e) {
			continue
		}
		c.freedOne(e)
	}
	clear(c.due)
	c.due = c.due[:0]
}
