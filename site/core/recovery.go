package core

import (
	"slices"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/internal/versions"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

// Once a majority of the members is lost for good, no sequence decides anything any more:
// not even that these sites are lost. The survivors grant what they hold. An operator
// then tells each survivor which sites are destroyed. From that transaction on the
// survivor hears them no more, waits for no word of theirs, and goes on without them in
// all sequences (avantan, epoch.go). The survivors then decide as usual to write them off.

// recovered takes up an operator's word that a majority is lost. It changes nothing
// unless the code is OK.
func (c *Core) recovered(in *input.Recover) {
	code, why := c.mayRecover(in)
	if code == answer.OK {
		code, why = c.resumeWithout(in.Lost, in.Check)
	}
	a := answer.Answer{Code: code, Lacking: why}
	if code == answer.TooEarly {
		a.Details = &answer.Details{Version: versions.Members}
	}
	c.reply(in.Call, a)
}

// mayRecover judges whether the sites may be given up; why names the site at fault.
func (c *Core) mayRecover(in *input.Recover) (code answer.Code, why string) {
	switch {
	case c.fence.refused != nil || c.stopping:
		return answer.Stopping, ""
	case !c.can(versions.Members):
		return answer.TooEarly, ""
	case c.roster.Version == 0 || !slices.Contains(in.Survivors, c.cfg.Self):
		return answer.Invalid, string(c.cfg.Self)
	}
	for i := range c.roster.Seats {
		site, state := c.roster.Seats[i].Site, c.roster.Seats[i].State
		survives := slices.Contains(in.Survivors, site)
		switch {
		case survives && (c.roster.banned(site) || slices.Contains(in.Lost, site)):
			return answer.Invalid, string(site)
		case (state.Serves() || state == stored.SeatJoining) && !survives && !c.roster.banned(site) && !slices.Contains(in.Lost, site):
			return answer.Invalid, string(site)
		}
	}
	view := c.roster.view(c.roster.Version)
	left := 0
	for _, site := range view {
		if !c.roster.destroyed(site) && !slices.Contains(in.Lost, site) {
			left++
		}
	}
	if left > len(view)/2 && !c.known(in.Lost) {
		return answer.Mismatch, ""
	}
	return answer.OK, ""
}

// known reports whether sites are known to be out or destroyed.
func (c *Core) known(sites []SiteID) bool {
	return !slices.ContainsFunc(sites, func(site SiteID) bool { return !c.roster.banned(site) })
}

// resumeWithout has all sequences go on without sites, or only checks. It fails, and names
// the entity, if no voter of a sequence is left.
func (c *Core) resumeWithout(lost []SiteID, check bool) (code answer.Code, over string) {
	before := c.roster.without
	all := slices.Concat(before, lost)
	slices.Sort(all)
	c.roster.without = slices.Compact(all)
	if slices.Equal(before, c.roster.without) {
		return answer.OK, ""
	}
	dead := make(map[uint16]bool)
	votes := func(version uint16) bool {
		is, seen := dead[version]
		if !seen {
			is = !slices.ContainsFunc(c.roster.view(version), func(site SiteID) bool { return !c.roster.destroyed(site) })
			dead[version] = is
		}
		return !is
	}
	if !votes(c.roster.Version) {
		code = answer.NotFound
	}
	c.space.ascend("", func(e *entity) bool {
		if !votes(e.voters) {
			code, over = answer.NotFound, e.name
		}
		return code == answer.OK
	})
	if code != answer.OK || check {
		c.roster.without = before
		return code, over
	}
	c.cat.dirty = true
	c.cat.protocol = anew(c.cat.protocol)
	c.cataloguing.scheduleCatalogue()
	c.space.ascend("", func(e *entity) bool {
		e.rebalance.noQuorum = 0
		if e.majority != nil {
			e.majority = anew(e.majority)
			c.assessing.schedule(e)
		}
		return true
	})
	c.fencing.resume()
	return answer.OK, ""
}

// anew has a sequence go by the sites destroyed.
func anew(m *avantan.Machine) *avantan.Machine {
	again, err := m.Recover()
	if err != nil {
		panic("core: recovering what has a voter: " + err.Error())
	}
	return again
}
