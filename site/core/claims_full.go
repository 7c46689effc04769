package core

import (
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/message"
)

// lookedAt is the number of the oldest claims on a member that a search for a claim to
// give up looks at.
const lookedAt = 64

// roomForClaim reports whether another claim on a member may be made. At the bound it
// gives up old claims for new ones: else a member that is lost for good would have
// repeats refused for ever.
func (c *asking) roomForClaim(p *claimPeer) bool {
	for p.open.Len() >= c.cfg.MaxClaims {
		if !p.full {
			p.full = true
			c.out.Events = append(c.out.Events, event.Event{Kind: event.ClaimsFull, Site: p.site})
		}
		cl := c.oldClaim(p)
		if cl == nil {
			return false
		}
		c.giveUpClaim(p, cl)
	}
	return true
}

// oldClaim returns a claim on a member that may be given up, nil for none: no attempt can
// follow any more, and the claim has stayed open for another Retention since. A claim for
// a release comes last: its tokens would stay out.
func (c *asking) oldClaim(p *claimPeer) *claim {
	var found *claim
	looked := 0
	p.open.Scan(func(_ message.ClaimNumber, cl *claim) bool {
		if looked++; looked > lookedAt {
			return false
		}
		if c.now.Wall <= cl.NotAfter+c.cfg.Retention+c.cfg.Skew {
			return true
		}
		if found == nil || cl.Kind == message.UndoAcquire && found.Kind != message.UndoAcquire {
			found = cl
		}
		return found.Kind != message.UndoAcquire
	})
	return found
}

// giveUpClaim ends a claim on a member as if the member had forgotten the request: tokens
// that the request has put out there stay out, and a parked release is not counted. That
// grants no token twice.
func (c *asking) giveUpClaim(p *claimPeer, cl *claim) {
	c.out.Events = append(c.out.Events, event.Event{Kind: event.ClaimGivenUp, Entity: cl.Entity, Site: p.site, Request: cl.Key})
	c.conclude(p, cl, message.Forgotten)
}
