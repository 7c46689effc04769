package core

import (
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/stored"
)

// claims handles another site's asks and answers about requests.
func (c *repeating) claims(m *message.Claims) {
	p := c.queries.peer(m.From)
	if p == nil {
		return
	}
	for _, a := range m.Answers {
		c.answeredClaim(p, a)
	}
	reply := &message.Claims{From: c.cfg.Self, To: m.From}
	for i := range m.Asks[:min(len(m.Asks), mostAsks)] {
		if v := c.asked(&m.Asks[i]); v != 0 {
			reply.Answers = append(reply.Answers, message.ClaimAnswer{Number: m.Asks[i].Number, Verdict: v})
		}
	}
	if len(reply.Answers) > 0 {
		c.out.Messages = append(c.out.Messages, message.Envelope{Claims: reply})
	}
}

// answeredClaim takes in a member's answer to a claim. A site that leaves has handed over
// the lease, or the lease has ended: its heir can tell, which may be this site.
func (c *repeating) answeredClaim(p *claimPeer, a message.ClaimAnswer) {
	cl, open := p.open.Get(a.Number)
	if !open || cl.Kind != message.ReturnLease || a.Verdict != message.NeverRan || !c.roster.draining(p.site) {
		c.asking.answered(p, a, c.now.Tick)
		return
	}
	heir := c.roster.Seat(p.site).Heir
	if heir != c.cfg.Self {
		c.asking.redirect(p, cl, heir)
		return
	}
	c.leasing.giveBack(cl.Lease, cl.Tokens)
	c.asking.conclude(p, cl, message.DidRun)
}

// asked carries out another site's ask about a request. It returns the verdict to send
// once the effect is durable; 0 for none yet: the site will ask again.
func (c *repeating) asked(a *message.ClaimAsk) message.ClaimVerdict {
	if a.NotAfter > c.now.Wall+c.cfg.RequestHorizon() {
		// This site's clock is behind: a record made now could be forgotten before it has
		// stopped a late attempt.
		return 0
	}
	old, found := c.requests.find(a.Key)
	switch {
	case found && old.body != a.Body:
		return message.NeverRan
	case !found && c.requests.acknowledged(&a.Key):
		// The client has its answer, and no record tells which.
		return message.Forgotten
	}
	switch a.Kind {
	case message.UndoAcquire:
		return c.undoAcquire(a, &old, found)
	case message.SettleRelease:
		return c.settleRelease(a, &old, found)
	case message.ReturnLease:
		return c.returnAsked(a, found)
	}
	return 0
}

// undoAcquire undoes the asked attempts and ensures that none runs later.
func (c *repeating) undoAcquire(a *message.ClaimAsk, old *remembered, found bool) message.ClaimVerdict {
	if w := c.waiting[a.Key]; w != nil && w.body == a.Body && w.tries.Number() <= a.Attempt {
		if !found && !c.remembering.roomForAsked() {
			// There is no room for the record that stops later runs.
			return 0
		}
		c.remembering.superseded(w)
		c.remembering.dropWaiting(w)
	}
	switch {
	case !found:
		return c.never(a, stored.AcquireRequest)
	case old.attempt > a.Attempt || old.state == stored.Undone && old.attempt == a.Attempt:
		return message.NeverRan
	case old.state != stored.Ran:
		c.remembering.recordAgain(old, old.record(a.Key, stored.Undone, a.Attempt))
		return message.NeverRan
	}
	undone := old.record(a.Key, stored.Undone, a.Attempt)
	e := c.space.find(a.Entity)
	switch {
	case old.kind == stored.AllRequest:
		ch := c.charging.chargeBack(c.requests.parts[a.Key])
		if !c.charging.creditAll(ch) {
			return 0
		}
		c.remembering.recordAgain(old, undone)
		for of := range ch.entities() {
			c.later(of)
		}
	case e == nil || e.generation != old.generation:
		c.remembering.recordAgain(old, undone)
	case old.kind == stored.LeasedRequest:
		c.remembering.recordAgain(old, undone)
		c.leasing.endLease(a.Key)
	case !c.charging.credit(e, old.tokens):
		return 0
	default:
		c.remembering.recordAgain(old, undone)
		c.freed(e)
	}
	return message.DidRun
}

// settleRelease tells whether a release ran here, and ensures that the asked attempts do
// not run later.
func (c *repeating) settleRelease(a *message.ClaimAsk, old *remembered, found bool) message.ClaimVerdict {
	parked := c.queries.byKey[a.Key]
	if parked != nil && (parked.Kind != message.SettleRelease || parked.Body != a.Body) {
		parked = nil
	}
	switch {
	case found && (old.state == stored.Ran || old.state == stored.Dropped):
		// A release that was given up here ran at another site, or may have.
		return message.DidRun
	case found && old.attempt > a.Attempt, parked != nil && parked.Attempt >= a.Attempt:
		// This site has to find out about the other attempts itself.
		return message.NeverRan
	case found && old.state == stored.Undone && old.attempt == a.Attempt:
		return message.NeverRan
	}
	if parked != nil {
		// Also if its record is no longer kept.
		c.asking.settled(parked)
	}
	switch {
	case found:
		c.remembering.recordAgain(old, old.record(a.Key, stored.Undone, a.Attempt))
		return message.NeverRan
	case parked != nil:
		return message.NeverRan
	}
	return c.never(a, stored.ReleaseRequest)
}

// returnAsked gives back the tokens of a lease of this site, once for all attempts of a
// release.
func (c *repeating) returnAsked(a *message.ClaimAsk, found bool) message.ClaimVerdict {
	switch {
	case found:
		return message.DidRun
	case !c.remembering.definitive(a):
		return message.Forgotten
	case !c.remembering.roomForAsked():
		return 0
	}
	if l, no := c.leasing.liveLease(a.Lease); l == nil && c.roster.leaves {
		if no.Code == answer.Moved {
			// The site that asks will ask the heir.
			return message.NeverRan
		}
		// The lease is on its way.
		return 0
	}
	r := stored.Request{Kind: stored.ReturnRequest, State: stored.Ran, Attempt: a.Attempt}
	if l, ok := c.leasing.leaseOf(a.Lease); ok && l.Entity == a.Entity {
		r.Tokens = c.leasing.giveBack(a.Lease, a.Tokens)
	}
	c.remembering.recordAsked(a, &r)
	return message.DidRun
}

// askedPart: other members may exceed the bound of the table of requests by an
// askedPart-th with the requests they ask about. Clients that fill the table must not
// keep others from finding out about a request.
const askedPart = 8

// never ensures that attempts of a request without a record do not run later. Its verdict
// is NeverRan if none is known to have run before, else Forgotten.
func (c *repeating) never(a *message.ClaimAsk, kind stored.RequestKind) message.ClaimVerdict {
	verdict, state := message.NeverRan, stored.Undone
	if !c.remembering.definitive(a) {
		verdict = message.Forgotten
		if kind == stored.ReleaseRequest {
			// So no other asking site counts it.
			state = stored.Dropped
		}
	}
	if c.now.Wall > a.NotAfter+c.cfg.Skew {
		// No site takes an attempt any more.
		return verdict
	}
	if !c.remembering.roomForAsked() {
		return 0
	}
	c.remembering.recordAsked(a, &stored.Request{Kind: kind, State: state, Attempt: a.Attempt, Tokens: a.Tokens})
	return verdict
}
