package core

import (
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
		c.asking.concludeOut(p)
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
	c.asking.concludeOut(p)
}
