package core

import (
	"fmt"

	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

// All that a lost site held is written off. If the site's data turns up after all, it tells
// how many tokens are out through the site; the rest of what was written off is free. A
// change in the entity's own sequence takes the tokens that are out into the net of its
// first member, as a reconciliation does that finds more in use than is counted. The free
// tokens are shared out as those of a raised limit. Each entity knows the sites that were
// rescued, so a change counts once, whoever asks again and however late.

// inheritRescued keeps the tokens of a lost site's leases until the leases have ended, by
// this site's clock. Nobody renews them. The two sites' clocks may differ by the skew, and
// the lost site may have stored its own time so long before its end.
func (c *rebalancing) inheritRescued(e *entity, r *rescue) {
	if r == nil {
		return
	}
	for i, l := range r.Leased {
		rest := Tick(min(max(1, l.Until-c.now.Wall+2*c.cfg.Skew), int64(input.MaxTTL)))
		// No client can name a lease with spaces.
		id := fmt.Sprintf("rescued from %s, generation %d, %d", r.Site, e.generation, i)
		c.admitting.leasing.inheritLease(e, packedLease{ID: id, Holder: "rescued from " + string(r.Site), TTL: rest, Remaining: rest, Share: shareable(e)}, l.Tokens)
	}
}

// unrescued reports whether a change says that all that a lost site held is back, and it is
// not.
func (c *cataloguing) unrescued(ch *input.Change) (some bool) {
	lost := c.roster.Seat(SiteID(ch.Name))
	if ch.Kind != input.RescueSite || lost == nil || lost.State != stored.SeatLost {
		return false
	}
	c.space.ascend("", func(e *entity) bool {
		some = awaits(e, lost.Site, lost.Lost)
		return !some
	})
	return some
}
