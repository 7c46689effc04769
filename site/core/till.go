package core

import "github.com/samya-db/samya/site/core/input"

// mover moves tokens between the books and the makers of requests.
type mover interface {
	// take moves tokens out of the books of an entity, which has them.
	take(e *entity, tokens Tokens)
	// fits reports whether an entity can take back tokens; give puts them back.
	fits(e *entity, tokens Tokens) bool
	give(e *entity, tokens Tokens)
}

// till is where a request runs: the core, with all tokens of an entity, or a shard beside
// other shards. The functions here decide for both alike, and say what a request moves.
type till interface {
	mover
	// free is the number of tokens of an entity that an acquire may have at most.
	free(e *entity) Tokens
	// waits reports whether an acquire that may wait until a time does so for the tokens that
	// an entity lacks.
	waits(e *entity, tokens Tokens, until Tick) bool
}

// turn is the state of an acquire that is to be granted, refused or to wait.
type turn struct {
	// at is the entity that the acquire has waited for, nil for none; there it does not
	// wait again. arrived orders its arrival at the site, 0 for now.
	at      *entity
	arrived uint64
	// content says that it takes the tokens there are, if not fewer than least.
	content bool
	// mayWait says that it may wait for other entities, waited that it has waited for a
	// hold and waits for no other.
	mayWait, waited bool
	// until is the time until which it may wait.
	until Tick
}

// verdict is the decision about an acquire. If all fields are nil the acquire is granted.
type verdict struct {
	// over is the entity with the limit that the acquire exceeds by most.
	over *charged
	// waits is the entity for which the acquire waits.
	waits *charged
	// refusing is the entity for want of whose tokens the acquire is refused.
	refusing *charged
}

func (v *verdict) granted() bool { return v.over == nil && v.waits == nil && v.refusing == nil }

// decide decides about an acquire. No acquire of more than a limit is granted, whatever is
// left. An acquire waits at the first entity of its charge that lacks tokens, or holds, and
// lets it wait. It is refused if an entity lacks tokens and does not let it wait. If it is
// granted, the charge has been lowered to the tokens that all entities have.
func decide(at till, r *request, ch charge, t turn) (v verdict) {
	if v.over = ch.exceeds(r); v.over != nil {
		return v
	}
	ch.limited(r)
	most := input.MaxTokens
	for i := range ch {
		x := &ch[i]
		least, free := min(r.least, x.tokens), at.free(x.of)
		mayWait := t.mayWait && x.of != t.at
		held := mayWait && !t.waited && x.of.queue.holds(t.arrived)
		switch {
		case !held && (free >= x.tokens || t.content && free >= least):
		case held || mayWait && at.waits(x.of, x.tokens, t.until):
			if v.waits == nil {
				v.waits = x
			}
		case free < least:
			return verdict{refusing: x}
		}
		if free < x.tokens {
			most = min(most, free)
		}
	}
	if v.waits == nil && most < ch[0].tokens {
		ch.lower(most)
	}
	return v
}

// takeAll moves the tokens of a granted acquire to its maker.
func takeAll(at mover, ch charge) {
	for i := range ch {
		at.take(ch[i].of, ch[i].tokens)
	}
}

// granted is the number of tokens that its maker gets for a charge.
func (r *request) granted(ch charge) Tokens {
	if r.parts != nil {
		return r.tokens
	}
	return ch[0].tokens
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
