package core

import (
	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/stored"
)

// Clients die without releasing, and the books then count tokens as in use that nobody
// uses. An operator who has counted the tokens that are in use reconciles the entity. A
// cut tells what the books count: each site's tokens of requests that name the entity
// itself. The difference, the drift, is decided in the entity's own sequence at the
// version of the cut, so once at most. The tokens go to the members of that instance as
// those of a raised limit do, and come out of the net of its first member. That site's
// books of the ancestors change as if a client had released the tokens there. So all
// rules of hierarchies hold, moves included. Section 20 of docs/protocol.md has the
// argument.

// truth is the part of a limitChange that reconciles; see input.Truth.
type truth struct {
	InUse     Tokens `json:"in_use"`
	Counted   Tokens `json:"counted"`
	Returning Tokens `json:"returning,omitempty"`
}

// truthOf is the part of a limitChange for a count.
func truthOf(t *input.Truth) *truth {
	return &truth{InUse: t.InUse, Counted: t.Counted, Returning: t.Returning}
}

// told is the count of a truth, without the generation.
func (t *truth) told() input.Truth {
	return input.Truth{InUse: t.InUse, Counted: t.Counted, Returning: t.Returning}
}

// notSurplus is the Surplus of a change that reconciles. A build that knows no such
// changes finds the number out of range, and does not take the change for a limit of 0.
const notSurplus Tokens = -1

// fits reports whether a change's truth and loss are within their bounds, and go with the
// change's surplus.
func (ch *limitChange) fits() bool {
	switch {
	case ch.Truth == nil && ch.Lost == nil && ch.Rescue == nil:
		return ch.Surplus >= 0
	case ch.Rescue != nil:
		return ch.Surplus == notSurplus && ch.Truth == nil && ch.Lost == nil && ch.Rescue.fits()
	case ch.Lost != nil:
		return ch.Surplus == notSurplus && ch.Truth == nil && ch.Lost.Version > 0 && max(ch.Lost.Tokens, -ch.Lost.Tokens) <= mostLost
	}
	counted := ch.Truth.told()
	counted.Generation = 1
	return ch.Surplus == notSurplus && counted.Valid()
}

// reconciled takes the drift that a value has settled out of the books, after the members'
// grants.
func (c *rebalancing) reconciled(e *entity, v *avantan.Value, r *settledLimit) {
	c.retire(e, e.writtenOff()-r.unretired+r.retired)
	e.appraised = max(e.appraised, r.appraised)
	r.settle(e)
	if e.negative() {
		// The loss may show a surplus that nobody has seen.
		c.peering.active(e)
	}
	if !r.charges() || v.Contributions[0].Site != c.cfg.Self {
		return
	}
	defer c.inheritRescued(e, r.rescue)
	if r.drift == 0 {
		return
	}
	c.keepWhole(e, e.books.Recount(r.drift))
	c.outUntil(e, -r.drift, windowOf(e)+afterLoss)
	for a := range sumsOf(e) {
		if a != e {
			_, err := a.books.Shift(-r.drift)
			c.keepWhole(a, err)
			c.later(a)
		}
		c.dirtyBooks(a)
		// Others may take a surplus for tokens that were out here.
		c.peering.tellReturn(a)
		if a.negative() {
			c.peering.active(a)
		}
	}
}

// handOvers are the sites that may have a bequest open.
func (c *common) handOvers() answer.Members {
	m := answer.Members{Version: uint64(c.roster.Version)}
	for site := range c.roster.HandsOver() {
		m.Sites = append(m.Sites, answer.Member{Site: site, State: string(c.roster.Seat(site).State)})
	}
	return m
}

// changing refuses a call that has to do with a count of an entity's tokens in use, while
// a change of the members is under way: a site that leaves hands tokens in use to another,
// and a cut could count them twice or not at all. A site that only joins holds none.
func (c *common) changing(e *entity, call input.Call) bool {
	m := c.handOvers()
	m.Behind = c.roster.behind
	if len(m.Sites) == 0 && e.voters >= c.roster.Version {
		return false
	}
	c.reply(call, answer.Answer{Code: answer.Changing, RetryAfter: 1000, Details: &answer.Details{Members: m}})
	return true
}

// retire sets the number of an entity's tokens that are written off.
func (c *common) retire(e *entity, tokens Tokens) {
	c.writtenOff += tokens - e.writtenOff()
	if tokens != e.writtenOff() {
		e.rarely().writtenOff = tokens
	}
}

// counted counts this site's part of the tokens in use of an entity.
func (c *Core) counted(e *entity) answer.Count {
	n := answer.Count{Own: e.books.Net(), Returning: c.asking.returning(e)}
	if h := e.handoff(); h != nil {
		// An heir counts these tokens too, or will.
		n.Returning += h.State().Moving()
	}
	if rateOf(e) == nil {
		n.Own -= c.space.carriedBelow(e)
	}
	c.leasesOf(e, func(l *lease) { n.Leased += l.Tokens })
	return n
}

// returning bounds the tokens that may yet come back to an entity without another
// request: releases that are parked here, and acquires that ran here after attempts that
// may have run elsewhere. Tokens of leases are left out: their holders' leases tell.
func (c *asking) returning(e *entity) Tokens {
	var sum Tokens
	for i := range c.queries.peers {
		c.queries.peers[i].open.Scan(func(_ message.ClaimNumber, cl *claim) bool {
			sum += c.returningBy(e, cl)
			return true
		})
	}
	return sum
}

// returningBy is returning for a claim, with each member that has not answered it.
func (c *asking) returningBy(e *entity, cl *claim) Tokens {
	if cl.Kind == message.ReturnLease {
		return 0
	}
	r, found := c.requests.find(cl.Key)
	if parts := c.requests.parts[cl.Key]; len(parts) > 0 {
		var sum Tokens
		for _, p := range parts {
			if p.Entity == e.name || allocationOf(c.space.find(p.Entity)) == e {
				sum += p.Tokens
			}
		}
		return sum
	}
	if cl.Entity == e.name || allocationOf(c.space.find(cl.Entity)) == e || !found || r.kind == stored.AllRequest {
		// An earlier attempt may have charged the entity, although this site cannot tell.
		return cl.Tokens
	}
	return 0
}
