package core

import "math/big"

// An entity may have the name of a key: then it counts in the key's place, with terms and a
// limit of its own. The key has granted tokens until the creation, and grants again after the
// deletion. Each would begin full, so that both granted their limits within a moment.
//
//   - As many tokens as the key's limit count as granted at the creation, spread over the sites
//     as the entity's own. A template begins as after a start: nobody knows which of its keys
//     the template above has granted.
//   - The key begins without tokens at the deletion, and of a template all keys below it.
//
// Each site does so as it applies the change. A site that has not heard of the change goes on
// as before.

// takesOver has a created entity count tokens that a key of its name may have granted.
func (c *cataloguing) takesOver(e *entity) {
	r := rateOf(e)
	t, _ := c.space.above(e.name)
	if r == nil || t == nil || e.books.Left() <= 0 {
		return
	}
	out := e.books.Left()
	switch {
	case isTemplate(e):
		r.restored = true
	case e.limit > t.limit:
		out = part(out, t.limit, e.limit)
	}
	_, err := e.books.Shift(out)
	c.keepWhole(e, err)
}

// part is the same part of tokens as some are of all, rounded up. All are at least 1, and no
// fewer than some.
func part(tokens, some, all Tokens) Tokens {
	n := new(big.Int).Mul(big.NewInt(int64(tokens)), big.NewInt(int64(some)))
	n.Add(n, big.NewInt(int64(all)-1))
	return Tokens(n.Div(n, big.NewInt(int64(all))).Int64())
}

// handsBack has the key of a deleted entity's name begin without tokens.
func (c *cataloguing) handsBack(e *entity) {
	t, key := c.space.above(e.name)
	if rateOf(e) == nil || t == nil {
		return
	}
	k := c.keying.keysOf(t)
	before := k.Len()
	k.Bar(nanos(c.now.Tick), key, isTemplate(e))
	c.space.keys += k.Len() - before
}
