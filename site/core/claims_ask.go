package core

import (
	"slices"

	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/stored"
)

// answered takes in a member's answer to a claim.
func (c *asking) answered(p *claimPeer, a message.ClaimAnswer, now Tick) {
	cl, ok := p.open.Get(a.Number)
	if !ok {
		return
	}
	p.drop(cl.Number, c.cfg.MaxClaims)
	if p.pause = askPause; p.unanswered > 0 {
		if p.unanswered--; p.unanswered == 0 && p.open.Len() > 0 {
			p.next = max(1, now)
		}
	}
	cl.Sites = slices.DeleteFunc(cl.Sites, func(s SiteID) bool { return s == p.site })
	c.out.Events = append(c.out.Events, event.Event{Kind: event.ClaimAnswered, Entity: cl.Entity, Verdict: a.Verdict})
	c.concluded(cl, a.Verdict)
}

// concluded follows up on a member's verdict, or on a missing verdict.
func (c *asking) concluded(cl *claim, verdict message.ClaimVerdict) {
	switch {
	case cl.Kind != message.UndoAcquire && verdict != message.NeverRan:
		c.settleParked(cl, stored.Dropped)
	case len(cl.Sites) > 0:
		c.storeClaim(cl)
	case cl.Kind == message.SettleRelease:
		c.settleParked(cl, stored.Ran)
	case cl.Kind == message.ReturnLease:
		c.settleParked(cl, stored.Dropped)
	default:
		c.settled(cl)
	}
}

// settleParked counts a parked release, or gives it up. The same transaction ends the
// claim, so it happens once even without a record.
func (c *asking) settleParked(cl *claim, state stored.RequestState) {
	if e := c.space.find(cl.Entity); e != nil && e.halted() {
		return
	}
	c.settled(cl)
	var e *entity
	if state == stored.Ran {
		e = c.space.find(cl.Entity)
		if e == nil || e.generation != cl.Generation || !c.charging.credit(e, cl.Tokens) {
			e, state = nil, stored.Dropped
		}
	}
	switch old, found := c.requests.find(cl.Key); {
	case !found:
		c.recordSettled(cl, state)
	case old.body == cl.Body && old.state == stored.Parked:
		c.remembering.recordAgain(&old, old.record(cl.Key, state, old.attempt))
	}
	if e != nil {
		c.freed(e)
	}
}

// recordSettled records the end of a parked release without a record in memory. The disk
// may still have its record: after a restart the release would look parked, and other
// sites would be told that it never ran.
func (c *asking) recordSettled(cl *claim, state stored.RequestState) {
	kind := stored.ReleaseRequest
	if cl.Kind == message.ReturnLease {
		kind = stored.ReturnRequest
	}
	c.remembering.recordAsked(&cl.ClaimAsk, &stored.Request{
		Kind: kind, State: state, Attempt: cl.Attempt + 1, Generation: cl.Generation, Tokens: cl.Tokens,
	})
}

// askFresh asks the members about the claims made since the last transaction.
func (c *asking) askFresh() {
	if !c.queries.fresh {
		return
	}
	c.queries.fresh = false
	for i := range c.queries.peers {
		p := &c.queries.peers[i]
		from := p.fresh
		p.fresh = 0
		if p.lost || p.gone {
			if p.open.Len() > 0 {
				p.next = c.now.Tick + 1
			}
			continue
		}
		for from != 0 && p.open.Len() > 0 {
			if p.next == 0 {
				p.next = c.now.Tick + p.pause
			}
			from, _ = c.askFrom(p, from)
			if from != 0 {
				from++
			}
		}
	}
}

// askFrom asks a member about the claims from a number on, as many as fit into a message.
// It returns the last claim's number, 0 if no other follows, and the number of claims.
func (c *asking) askFrom(p *claimPeer, from message.ClaimNumber) (last message.ClaimNumber, asked int) {
	m := &message.Claims{From: c.cfg.Self, To: p.site}
	more := false
	p.open.Ascend(from, func(n message.ClaimNumber, cl *claim) bool {
		if more = len(m.Asks) == min(c.cfg.MaxAsks, mostAsks); more {
			return false
		}
		m.Asks = append(m.Asks, cl.ClaimAsk)
		last = n
		return true
	})
	if len(m.Asks) > 0 {
		c.out.Messages = append(c.out.Messages, message.Envelope{Claims: m})
	}
	if !more {
		last = 0
	}
	return last, len(m.Asks)
}

func (q *queries) wakeAt() Tick {
	var t Tick
	if q.open > 0 {
		for i := range q.peers {
			t = earlier(t, q.peers[i].next)
		}
	}
	return t
}

// askAgain asks members about their next claims, if it is time to.
func (c *asking) askAgain() {
	if c.queries.open == 0 {
		return
	}
	for i := range c.queries.peers {
		p := &c.queries.peers[i]
		if p.next == 0 || p.next > c.now.Tick {
			continue
		}
		if c.concludeOut(p) {
			continue
		}
		p.cursor, p.unanswered = c.askFrom(p, p.cursor+1)
		p.next = c.now.Tick + p.pause
		p.pause = min(2*p.pause, maxAskPause)
	}
}

// cameUp notes the sites that are up, and has the sites that came up asked at once.
func (c *asking) cameUp(sites []SiteID) {
	c.queries.absent = false
	for i := range c.queries.peers {
		p := &c.queries.peers[i]
		up := slices.Contains(sites, p.site)
		c.queries.absent = c.queries.absent || !up && !p.gone && !p.lost
		if up && p.next != 0 && !c.seemsUp(p.site) {
			p.next, p.pause = max(1, c.now.Tick), askPause
		}
	}
}

// openOn counts the open claims on a site.
func (q *queries) openOn(site SiteID) int {
	if p := q.peer(site); p != nil {
		return p.open.Len()
	}
	return 0
}

// claims lists the open claims.
func (p *claimPeer) claims() []*claim { return p.open.Values() }

// concludeAll ends all claims on a site with a verdict of this site.
func (c *asking) concludeAll(p *claimPeer, verdict message.ClaimVerdict) {
	for _, cl := range p.claims() {
		c.conclude(p, cl, verdict)
	}
}

// concludeOut ends the claims on a site that is out, and reports whether it is. An acquire
// may have waited here since before the site was out.
func (c *asking) concludeOut(p *claimPeer) bool {
	switch {
	case p.lost:
		c.concludeAll(p, message.Forgotten)
	case p.gone:
		c.concludeAll(p, message.NeverRan)
	}
	return p.lost || p.gone
}

// conclude ends a claim on a site with a verdict of this site.
func (c *asking) conclude(p *claimPeer, cl *claim, verdict message.ClaimVerdict) {
	p.drop(cl.Number, c.cfg.MaxClaims)
	cl.Sites = slices.DeleteFunc(cl.Sites, func(s SiteID) bool { return s == p.site })
	c.concluded(cl, verdict)
}

// redirect asks another site instead.
func (c *asking) redirect(p *claimPeer, cl *claim, to SiteID) {
	p.drop(cl.Number, c.cfg.MaxClaims)
	c.askOf(to)
	cl.Sites = c.queries.union([]SiteID{to}, nil)
	heir := c.queries.peer(to)
	heir.open.Set(cl.Number, cl)
	if heir.next == 0 {
		heir.next = c.now.Tick + 1
	}
	c.storeClaim(cl)
}
