package core

import (
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/keys"
	"github.com/samya-db/samya/site/core/stored"
)

// keyed are tokens of a key.
type keyed struct {
	of     *entity
	key    string
	tokens Tokens
}

// keying serves acquires of keys.
type keying struct {
	*common
	*charging
	*remembering
	*asking
}

// start has restored rate quotas and their keys fill from now on, not from their first use on.
func (c *keying) start() {
	c.space.ascend("", func(e *entity) bool {
		if r := rateOf(e); r != nil {
			r.pass(e, c.now.Tick)
		}
		return true
	})
}

// keysOf brings the keys of a template up to date.
func (c *keying) keysOf(t *entity) *keys.Table {
	c.replenish(t)
	r := rateOf(t)
	before := r.keyCount()
	r.pass(t, c.now.Tick)
	r.keys.Age(nanos(c.now.Tick))
	c.space.keys += r.keyCount() - before
	return r.keys
}

// keyLeft is the number of tokens that a key has here.
func (c *keying) keyLeft(t *entity, key string) Tokens {
	left := Tokens(c.keysOf(t).Left(nanos(c.now.Tick), key))
	if t.usable() < t.books.Left() {
		// A debt: the tokens left of the template pay it.
		return 0
	}
	return left
}

// takeKeys takes tokens of keys, which have them. Only then does it make room: a key that is
// dropped may have fewer tokens than it was found to have.
func (c *keying) takeKeys(ks ...keyed) {
	now := nanos(c.now.Tick)
	for _, x := range ks {
		k := rateOf(x.of).keys
		before := k.Len()
		if !k.Take(now, x.key, int64(x.tokens)) {
			panic("core: a key without the tokens that it was found to have")
		}
		if before == 0 {
			c.check(x.of) // to forget the keys in time
		}
		c.space.keys += k.Len() - before
	}
	if c.space.keys > c.cfg.MaxKeys {
		c.shedKeys(now)
	}
}

// shedKeys drops keys of the template with the most, if memory is short.
func (c *keying) shedKeys(now int64) {
	c.space.keys = 0
	var most *entity
	for _, t := range c.space.templates {
		n := rateOf(t).keyCount()
		if c.space.keys += n; most == nil || n > rateOf(most).keyCount() || n == rateOf(most).keyCount() && t.name < most.name {
			most = t
		}
	}
	if c.space.keys <= c.cfg.MaxKeys {
		return
	}
	k := rateOf(most).keys
	before, dropped := k.Len(), k.Dropped()
	k.Shed(now)
	c.space.keys += k.Len() - before
	if k.Dropped() > dropped {
		c.out.Events = append(c.out.Events, event.Event{Kind: event.KeysDropped, Entity: most.name})
	}
}

// showKey has the view of a template show a key.
func (c *keying) showKey(t *entity, name, key string, v *answer.View) {
	r, left := rateOf(t), v.Left
	if r.calendar == nil {
		left += v.Net
	}
	switch {
	case r.calendar != nil && c.replenishes(t):
		// A window is due, and with it all tokens.
	case r.keys != nil:
		left = min(left, Tokens(r.keys.Left(nanos(c.now.Tick), key)))
	case r.restored:
		left = 0
	}
	v.Name, v.Rate.Keys = name, false
	v.Net += v.Left - left
	v.Left, v.Usable = left, min(left, v.Usable)
}

// record records a granted acquire, unless nobody repeats it.
func (c *keying) record(r *request, t *entity, tokens Tokens) {
	if !c.forgets(r, t) {
		c.asking.remember(r, t, stored.Ran, tokens)
	}
}

// lacks refuses an acquire of more tokens than a key has here.
func (c *keying) lacks(t *entity, key, name string, tokens, left Tokens) answer.Answer {
	a := answer.Answer{Code: answer.OutOfTokens, Left: left, Lacking: name, Elsewhere: c.peers() != 0}
	if r := rateOf(t); r.calendar != nil {
		a.RetryAfter = r.rollsIn(c.now.Wall)
	} else if in, ok := r.keys.Until(nanos(c.now.Tick), key, int64(tokens)); ok {
		a.RetryAfter = max(1, Tick((in+999_999)/1_000_000)) //nolint:gosec // at least 0
	}
	return a
}
