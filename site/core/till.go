package core

import (
	"github.com/samya-db/samya/site/core/input"
)

// till is where a request runs: the core, with all tokens of an entity, or a shard beside
// other shards. The functions here decide for both alike, and say what a request moves.
type till interface {
	mover
	// free is the number of tokens of an entity that an acquire may have at most.
	free(e *entity) Tokens
	// waits reports whether an acquire that may wait until a time does so for the tokens that
	// an entity lacks.
	waits(e *entity, tokens Tokens, until Tick) bool
	// roomToWait reports whether an acquire that names an entity may wait for tokens of e.
	// first is the number of entities that it charges if it has not waited yet, else 0.
	roomToWait(e *entity, tokens Tokens, named string, first int) bool
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

// first is the number of entities charged by an acquire that has not waited yet, else 0.
func (t *turn) first(ch charge) int {
	if t.arrived == 0 {
		return len(ch)
	}
	return 0
}

// verdict is the decision about an acquire. If all entities are nil the acquire is granted.
type verdict struct {
	// over is the entity with the limit that the acquire exceeds by most.
	over *charged
	// waits is the entity for which the acquire waits.
	waits *charged
	// refusing is the entity for want of whose tokens the acquire is refused.
	refusing *charged
	// full is the entity for which the acquire cannot wait, as too many do.
	full *charged
	// crowded says that the acquire would wait, and cannot.
	crowded bool
}

func (v *verdict) granted() bool {
	return v.over == nil && v.waits == nil && v.refusing == nil && v.full == nil
}

// decide decides about an acquire. No acquire of more than a limit is granted, whatever is
// left. An acquire waits at the first entity of its charge that lacks tokens, or holds, and
// lets it wait. It is refused if an entity lacks tokens and does not let it wait. Where no more
// acquires can wait it is granted if it need not wait. If it is granted, the charge has been
// lowered to the tokens that all entities have.
func decide(at till, r *request, ch charge, t *turn) (v verdict) {
	if v.over = ch.exceeds(r); v.over != nil {
		return v
	}
	ch.limited(r)
	most := input.MaxTokens
	for i := range ch {
		x := &ch[i]
		least, free := min(r.least, x.tokens), at.free(x.of)
		if x.of.queue.saves(t.arrived) {
			free = 0
		}
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
	switch {
	case v.waits == nil && most < ch[0].tokens:
		ch.lower(most)
	case v.waits != nil && !at.roomToWait(v.waits.of, v.waits.tokens, r.entity, t.first(ch)):
		full := v.waits
		if v = decide(at, r, ch, &turn{}); !v.granted() {
			v = verdict{full: full}
		}
		v.crowded = true
	}
	return v
}

// granted is the number of tokens that its maker gets for a charge.
func (r *request) granted(ch charge) Tokens {
	if r.parts != nil {
		return r.tokens
	}
	return ch[0].tokens
}

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
