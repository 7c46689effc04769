package core

import (
	"slices"

	"github.com/samya-db/samya/site/core/message"
)

// A site that is out answers no claims. A site that is gone had forgotten all requests and
// taken no new ones before: a claim that is still open is about attempts that never ran
// there. What a site that is lost has run, nobody knows: its claims end as if it had
// forgotten the requests. So a release that may have run there is not counted.

// dismiss ends the claims on a site that is out.
func (c *leaving) dismiss(site SiteID) {
	c.asking.askOf(site)
	p := c.queries.peer(site)
	if p.gone || p.lost {
		return
	}
	if p.lost = c.roster.lost(site); p.lost {
		c.asking.concludeAll(p, message.Forgotten)
		return
	}
	p.gone = true
	heir := c.roster.heir(site)
	for _, cl := range p.claims() {
		if cl.Kind != message.ReturnLease {
			continue
		}
		// The heir has the lease, if it has not ended.
		if heir == c.cfg.Self {
			c.leasing.giveBack(cl.Lease, cl.Tokens)
			c.asking.conclude(p, cl, message.DidRun)
			continue
		}
		c.asking.redirect(p, cl, heir)
	}
	c.asking.concludeAll(p, message.NeverRan)
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
