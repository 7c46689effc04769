package core

import (
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
)

// reset has the tokens out of a rate quota come back at this site, or those of a key. The
// quota may grant its limit again from then on: its bounds hold from the reset on. Tokens of
// open leases stay out: they come back as they would have. Late tokens stay late.
func (c *Core) reset(r *input.Reset) {
	e, key := c.space.find(r.Entity), ""
	if e == nil {
		e, key = c.space.above(r.Entity)
	}
	switch {
	case e == nil:
		c.reply(r.Call, answer.Answer{Code: answer.NotFound})
	case e.halted():
		c.reply(r.Call, answer.Answer{Code: answer.Halted})
	case c.roster.leaves || e.handoff() != nil && e.handoff().Open():
		c.reply(r.Call, answer.Answer{Code: answer.Draining})
	case rateOf(e) == nil:
		c.reply(r.Call, answer.Answer{Code: answer.Unrated})
	case isTemplate(e):
		c.reply(r.Call, answer.Answer{Tokens: c.keying.resetKeys(e, key)})
	default:
		c.reply(r.Call, answer.Answer{Tokens: c.resetRate(e)})
	}
}

// resetRate has the tokens out of a rate quota come back, and returns their number.
func (c *Core) resetRate(e *entity) Tokens {
	c.replenish(e)
	r := rateOf(e)
	back := max(0, r.comesBack(e, r.Window)-c.lentBelow(e))
	if r.flow != nil {
		r.flow.Fill()
	}
	c.keepWhole(e, e.books.Return(back))
	if e.exhaustion != nil {
		*e.exhaustion = exhaustion{}
	}
	c.dirtyBooks(e)
	c.later(e)
	return back
}

// lentBelow is the number of tokens in leases of an entity and its descendants, but for leases
// of share, whose tokens are held.
func (c *leasing) lentBelow(e *entity) (tokens Tokens) {
	for _, x := range c.space.subtree(e) {
		c.leasesOf(x, func(l *lease) {
			if !l.Share {
				tokens += l.Tokens
			}
		})
	}
	return tokens
}

// resetKeys gives a key all its tokens, or all keys of a template if the key is empty. It
// returns the number of tokens that a key has got.
func (c *keying) resetKeys(t *entity, key string) Tokens {
	k, now := c.keysOf(t), nanos(c.now.Tick)
	count := k.Len()
	defer func() { c.space.keys += k.Len() - count }()
	if key == "" {
		k.Fill(now)
		return 0
	}
	before := k.Left(now, key)
	k.Reset(now, key)
	return Tokens(k.Left(now, key) - before)
}
