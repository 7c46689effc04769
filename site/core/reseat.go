package core

import (
	"slices"

	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

// reseat has all machines go by a roster that the catalogue has just decided.
func (c *Core) reseat() {
	if !c.reseated {
		return
	}
	c.reseated = false
	if c.impostor() {
		c.fencing.disown(&UsedNameError{Site: c.cfg.Self})
		return
	}
	if c.roster.out(c.cfg.Self) {
		c.fencing.disown(&OutError{Site: c.cfg.Self, Lost: c.roster.lost(c.cfg.Self)})
		return
	}
	c.fresh = false
	c.starMachine.Members, c.transferMachine.Members = c.roster.names, c.roster.names
	c.fencing.fenceMembers()
	c.asking.askMembers()
	c.leaving.departs()
	c.roster.behind = 0
	c.space.ascend("", func(e *entity) bool {
		c.reseatEntity(e)
		return true
	})
	c.rebalancing.adoptSoon()
	c.auditing.appraiseSoon()
	c.tellSites()
}

// impostor reports whether the roster says that other data served under this site's name.
func (c *Core) impostor() bool {
	seat := c.roster.Seat(c.cfg.Self)
	if seat == nil || seat.State == stored.SeatJoining {
		return c.fresh && seat == nil
	}
	return seat.Incarnation != c.fence.start.Incarnation && (seat.Incarnation != 0 || c.fresh)
}

// tellSites tells the caller of the core which sites it needs to be in touch with.
func (c *Core) tellSites() {
	e := event.Event{Kind: event.SitesChanged, Members: c.namesOf(c.roster.serving), Roster: uint64(c.roster.Version), Heirs: c.roster.Heirs()}
	for m := range c.roster.links() {
		e.Peers = append(e.Peers, m)
	}
	c.out.Events = append(c.out.Events, e)
}

// reseatEntity has an entity go by a new roster. An audit under way ends, since it has not
// asked all members. Members that may have joined do not know of a debt.
func (c *Core) reseatEntity(e *entity) {
	c.roster.count(e, 1)
	c.peering.forgetViews(e)
	e.endAudits()
	if d := e.debt(); d != nil && d.amount > 0 {
		d.lost = c.lossesSince(e)
		if fresh := c.peers() &^ d.of; fresh != 0 {
			d.unheard |= fresh
			c.dirtyRecord(e)
		}
		d.of = c.peers()
	}
	c.leaving.forgetOut(e)
}

// refuseOutside answers callers of a site that is no member yet, or of which some member
// may not know. It reports whether it did.
func (c *Core) refuseOutside(in input.Input) bool {
	if c.settledIn {
		return false
	}
	missing := c.cataloguing.unheard()
	if missing == 0 {
		return false
	}
	// A member that has never heard of this site may be lost, and this site may be needed to
	// write it off. The change is the catalogue's, and no request that this site runs.
	if ch, is := in.(*input.Change); is && ch.Kind == input.LoseSite && c.isMember() {
		return false
	}
	return c.fencing.refuse(in, answer.Answer{Code: answer.Unvouched, Missing: missing})
}

// newcomer has a site that does not serve yet ask a site that its data does not know: the
// data may be of before that site joined.
func (c *fencing) newcomer(from SiteID) {
	g := &c.fence
	if g.open || c.fenced(from) != nil || len(g.peers) >= maxSeats || from == c.cfg.Self {
		return
	}
	p := g.recall(from)
	p.newcomer = true
	g.peers = append(g.peers, p)
	c.ask(c.fenced(from))
}

// recall is what the disk remembers of a site's data.
func (g *fence) recall(site SiteID) fencedPeer {
	if i := slices.IndexFunc(g.remembered, func(r fencedPeer) bool { return r.Site == site }); i >= 0 {
		return g.remembered[i]
	}
	return fencedPeer{Remembered: stored.Remembered{Site: site}, told: g.start.Commits}
}

// fenceMembers has the guard go by the sites of the roster.
func (c *fencing) fenceMembers() {
	g := &c.fence
	for i := range g.peers {
		p := &g.peers[i]
		p.newcomer, p.out = !c.roster.serves(p.Site) || c.roster.destroyed(p.Site), c.roster.banned(p.Site)
	}
	for m := range c.roster.peers() {
		if c.fenced(m) != nil {
			continue
		}
		p := g.recall(m)
		p.newcomer, p.out = !c.roster.serves(m) || c.roster.destroyed(m), c.roster.banned(m)
		g.peers = append(g.peers, p)
		if g.start.Run != 0 {
			g.nextRound = max(1, c.now.Tick)
		}
	}
}

// meet has a site without a roster take others for members that it may learn from.
func (c *fencing) meet(sites []SiteID) {
	if c.roster.Version == 0 {
		c.roster.meet(sites)
		c.fenceMembers()
	}
}
