package core

import (
	"fmt"

	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

// admit proposes to make a member of a site that joins, once it has learned the
// catalogue. Any member may propose it: the request id is the same. The change names the
// incarnation of the site's data: whoever comes later with other data is refused.
func (c *fencing) admit() {
	due := c.cat.admits
	c.cat.admits = false
	if !due || c.roster.behind > 0 || !c.isMember() {
		return
	}
	for i := range c.roster.Seats {
		s := &c.roster.Seats[i]
		p := c.fenced(s.Site)
		if s.State != stored.SeatJoining || c.cat.heard[s.Site] < s.Since || p == nil || p.Mark.Incarnation == 0 && c.fence.start.Run != 0 {
			continue
		}
		ch := input.Change{
			Kind: input.AdmitSite, Name: string(s.Site), Expected: uint64(c.roster.Version),
			Incarnation: uint64(p.Mark.Incarnation),
			RequestID:   fmt.Sprintf("admit\x00%s\x00%d\x00%x", s.Site, c.roster.Version, p.Mark.Incarnation), Wait: c.cfg.Sync,
		}
		c.cataloguing.change(&ch)
		return
	}
}
