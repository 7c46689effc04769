package core

import (
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/message"
)

// A site remembers the data of other members, so that it can vouch for theirs later.

func (c *fencing) fenced(site SiteID) *fencedPeer {
	for i := range c.fence.peers {
		if p := &c.fence.peers[i]; p.Site == site {
			return p
		}
	}
	return nil
}

// remembers adds to the members what this site remembers of the data of lost sites.
func (c *fencing) remembers(m answer.Members) answer.Members {
	for i := range m.Sites {
		s := &m.Sites[i]
		if !c.roster.lost(s.Site) {
			continue
		}
		p := c.fenced(s.Site)
		if p == nil {
			p = new(c.fence.recall(s.Site))
		}
		s.Remembered = answer.Remembered{Incarnation: uint64(p.Mark.Incarnation), Commits: uint64(p.Mark.Commits), Served: p.Served}
	}
	return m
}

func (c *fencing) say(to SiteID, v message.Vouch) {
	v.From, v.To = c.cfg.Self, to
	c.out.Messages = append(c.out.Messages, message.Envelope{Vouch: &v})
}

// answerAsk says whether a member's data is the latest, as far as this site remembers.
func (c *fencing) answerAsk(p *fencedPeer, asked message.Mark) {
	if asked.Incarnation == 0 || asked.Run == 0 {
		return
	}
	p.inVain = message.Mark{}
	known := p.Mark
	same := known.Incarnation == asked.Incarnation
	// If nobody vouches for a site's own data, its lack of memory says nothing: its disk
	// may be empty. Only if neither site ever changed anything, as at a cluster's first
	// start, nothing can be lost.
	// Nor does it if the site has joined: it was not there when the member began. Before
	// it is admitted, its memory does not count at all.
	// Under the name of a site that joins, no data has served.
	counts := same && c.isMember() || c.fence.open && !c.cfg.Joining || c.roster.joining(p.Site) || asked.Commits == 0 && c.fence.commits == 0
	switch {
	case same && known.Run == asked.Run:
	case same && asked.Commits < known.Commits, !same && p.Served:
		c.say(p.Site, message.Vouch{Kind: message.VouchNo, Asked: asked, Known: known})
		return
	case !counts:
		// Nor is the mark remembered: it would count at the next start.
		p.inVain = asked
		nothing := message.Vouch{Kind: message.VouchNothing, Asked: asked}
		switch {
		case !c.fence.open:
		case c.isMember():
			// The site has joined later, and may never hear of data that does not serve.
			c.tellMembers(&nothing)
		default:
			// It may be a member, and can hear of that only from members that serve.
			nothing.Members = 1
		}
		c.say(p.Site, nothing)
		return
	case same:
		p.Mark, p.Before = asked, known.Run
		c.memorize(p)
		c.mistrust(p.Site)
	default:
		p.Mark, p.Before = asked, 0
		c.memorize(p)
		c.mistrust(p.Site)
	}
	// The vouched mark is durable before the answer leaves.
	c.fence.flush = c.fence.flush || p.dirty
	yes := message.Vouch{Kind: message.VouchYes, Asked: asked}
	if c.roster.Changed > 0 || len(c.roster.without) > 0 {
		c.tellMembers(&yes)
	}
	c.say(p.Site, yes)
}

// tellMembers adds to an answer what this site knows of the members.
func (c *fencing) tellMembers(v *message.Vouch) {
	v.Members = c.roster.left()
	for i := range c.roster.Seats {
		if site := c.roster.Seats[i].Site; c.roster.banned(site) {
			v.Out = append(v.Out, site)
		}
	}
}

// heard notes the mark that came with a member's message. It reports whether the message
// may be taken, as this site has vouched for the message's run.
func (c *fencing) heard(p *fencedPeer, m message.Mark) bool {
	switch {
	case p == nil || m.Incarnation != p.Mark.Incarnation:
	case m.Run == p.Mark.Run:
		if m.Commits > p.Mark.Commits || !p.Served && m.Commits > 0 {
			p.Mark.Commits, p.Served = max(m.Commits, p.Mark.Commits), true
			c.memorize(p)
		}
		return true
	case m.Run == p.Before && m.Commits <= p.Mark.Commits:
		return true
	}
	if p != nil && (p.repliedAt == 0 || c.now.Tick >= p.repliedAt+pressing) {
		p.repliedAt = c.now.Tick
		c.say(p.Site, message.Vouch{Kind: message.VouchWho, Asked: m})
	}
	return false
}

// takes reports whether a protocol message may be taken.
func (c *fencing) takes(from SiteID, e *message.Envelope) bool {
	p := c.fenced(from)
	if p != nil && (!c.settledIn || c.cfg.Joining && p.Mark.Incarnation == 0) && !learns(e) {
		c.follow(p, e.Mark)
	}
	return c.fence.start.Run == 0 || c.heard(p, e.Mark)
}

// learns reports whether a message comes from a site that has learned nothing of the
// catalogue yet. It may be on other data than it has served on.
func learns(e *message.Envelope) bool {
	return e.Entity == "" && e.Gossip == nil && e.Claims == nil && e.Message.Validate() == nil && e.Message.SenderApplied() == 0
}

// follow has a site that joins remember the run of a member that sends it more than
// questions: only a member that others have vouched for does. The site takes no
// member's own word for its run, as it was not there when the member began.
func (c *fencing) follow(p *fencedPeer, m message.Mark) {
	if p.Mark.Incarnation == m.Incarnation {
		older := m.Commits < p.Mark.Commits || m.Run == p.Before && m.Commits == p.Mark.Commits
		if m.Run == p.Mark.Run || older {
			return
		}
	} else if p.Served {
		return
	}
	c.mistrust(p.Site)
	p.Before, p.Mark = p.Mark.Run, m
	p.Served = p.Served || m.Commits > 0
	c.memorize(p)
}

// memorize has the memory of a member made durable in a while.
func (c *fencing) memorize(p *fencedPeer) {
	g := &c.fence
	p.dirty = true
	if !g.forgetful {
		g.forgetful, g.flushAt = true, c.now.Tick+c.cfg.Tell
	}
}

// seal counts the transaction that is about to be handed over, adds to it the memory of
// other members, and marks the messages that leave after it.
func (c *fencing) seal() {
	g, rec := &c.fence, &c.out.Records
	if !rec.Empty() {
		g.commits++
		rec.Commits = g.commits
		if g.nextRound == 0 && g.start.Run != 0 && len(g.peers) > 0 {
			g.nextRound = c.now.Tick + c.cfg.Tell
		}
	}
	if c.learnt {
		rec.Version, c.learnt = c.versions.Cluster, false
	}
	if g.forgetful && (g.flush || rec.Commits != 0) {
		for i := range g.peers {
			if p := &g.peers[i]; p.dirty {
				p.dirty = false
				rec.Remembered = append(rec.Remembered, p.Remembered)
			}
		}
		g.forgetful, g.flushAt = false, 0
	}
	g.flush = false
	if g.start.Run == 0 {
		return
	}
	mark := message.Mark{Incarnation: g.start.Incarnation, Run: g.start.Run, Commits: g.commits}
	for i := range c.out.Messages {
		e := &c.out.Messages[i]
		e.Mark = mark
		if p := c.fenced(e.To()); p != nil {
			p.told, p.toldAt = g.commits, c.now.Tick
		}
	}
}
