package core

import (
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
)

// keysIn finds the parts of a request that name keys, each key once, and places all parts at
// their entities; a key's is its template. rest is the charge of the others, and of the
// entities above the templates. If an entity is missing, ok is false.
func (c *keying) keysIn(r *request) (ks []keyed, rest charge, ok bool) {
	r.named = make([]*entity, 0, len(r.parts))
	for _, p := range r.parts {
		e := c.space.find(p.Entity)
		if e != nil {
			rest = rest.add(e, p.Tokens)
		} else if t, key := c.space.above(p.Entity); t != nil {
			e, ks = t, addKey(ks, t, key, p.Tokens)
			rest = rest.add(t.parent(), p.Tokens)
		}
		ok = e != nil
		if r.named = append(r.named, e); !ok {
			break
		}
	}
	return ks, rest.added(), ok
}

// addKey adds tokens of a key.
func addKey(ks []keyed, t *entity, key string, tokens Tokens) []keyed {
	for i := range ks {
		if ks[i].of == t && ks[i].key == key {
			ks[i].tokens += tokens
			return ks
		}
	}
	return append(ks, keyed{t, key, tokens})
}

// refuses is the answer to a request that names a key without the tokens; false if all keys
// have them.
func (c *keying) refuses(ks []keyed) (answer.Answer, bool) {
	for _, k := range ks {
		name := k.of.name + "/" + k.key
		if k.of.halted() {
			return answer.Answer{Code: answer.Halted}, true
		}
		switch left := c.keyLeft(k.of, k.key); {
		case k.tokens > k.of.limit:
			return answer.Answer{Code: answer.ExceedsLimit, Tokens: k.of.limit, Left: left, Lacking: name}, true
		case k.tokens > left:
			return c.lacks(k.of, k.key, name, k.tokens, left), true
		}
	}
	return answer.Answer{}, false
}

// acquireKey grants or refuses an acquire of a name that is no entity's: of a key, if there is
// a template above. The entities above the template have to have the tokens, too.
func (c *admitting) acquireKey(a *input.Acquire, r *request) {
	t, key := c.space.above(a.Entity)
	switch {
	case t == nil:
		c.reply(a.Call, answer.Answer{Code: answer.NotFound})
		return
	case t.halted():
		c.reply(a.Call, answer.Answer{Code: answer.Halted})
		return
	case a.Lease != nil:
		c.reply(a.Call, answer.Answer{Code: answer.OfKey})
		return
	case !a.DryRun && !c.forgets(r, t) && c.remembering.tableFull(a.Call, t, 0):
		return
	}
	left := c.keying.keyLeft(t, key)
	switch {
	case r.least > t.limit:
		c.reply(a.Call, answer.Answer{Code: answer.ExceedsLimit, Tokens: t.limit, Left: left, Lacking: a.Entity})
		return
	case left < r.least:
		c.reply(a.Call, c.keying.lacks(t, key, a.Entity, r.least, left))
		return
	}
	r.tokens = min(r.tokens, t.limit, left)
	var room [MaxDepth]charged
	c.grantKeys(a.Call, r, []keyed{{t, key, r.tokens}}, t.parent().charge(room[:0], r.tokens), a.DryRun)
}

// acquireKeys grants or refuses an acquire of several entities with keys among them. It does
// not wait. Keys come first: a request that they refuse leaves no trace at the entities.
func (c *admitting) acquireKeys(call input.Call, r *request, ks []keyed, rest charge) {
	if a, refused := c.keying.refuses(ks); refused {
		c.reply(call, a)
		return
	}
	c.grantKeys(call, r, ks, rest, false)
}

// grantKeys grants an acquire of keys with the tokens, unless the rest of its charge refuses
// it. A dry run moves nothing.
func (c *admitting) grantKeys(call input.Call, r *request, ks []keyed, rest charge, dry bool) {
	var v verdict
	if len(rest) > 0 {
		v = decide(c, r, rest, &turn{})
		switch {
		case !v.granted() && dry:
			c.reply(call, c.tells(&v, r, rest))
			return
		case !v.granted():
			c.reply(call, c.conclude(&v, r, rest))
			if v.refusing != nil {
				c.demandRefused(v.refusing)
			}
			return
		case r.parts == nil:
			r.tokens = r.granted(rest)
			ks[0].tokens = r.tokens
		}
	}
	a := answer.Answer{Code: answer.OK, Tokens: r.tokens}
	if !dry {
		c.keying.takeKeys(ks...)
		if len(rest) > 0 {
			a = c.conclude(&v, r, rest)
			for e := range rest.entities() {
				c.assessing.checkTrigger(e)
			}
		} else {
			c.keying.record(r, ks[0].of, r.tokens)
		}
	}
	if r.parts == nil || isTemplate(r.named[0]) || len(rest) == 0 {
		a.Left = c.keying.keyLeft(ks[0].of, ks[0].key)
	}
	c.reply(call, a)
}
