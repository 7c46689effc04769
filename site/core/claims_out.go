package core

import (
	"slices"

	"github.com/samya-db/samya/site/core/message"
)

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
