package core

import (
	"slices"

	"github.com/samya-db/samya/site/core/message"
)

// The guard counts the members whose word for the data it needs.

// count takes in what a member knows of the members. Data of before a change of the
// members asks too few of them: the most members that any data tells count. A loss lowers
// their number for no data of before it, since the lost site may have been the site that
// remembers later data. Of the members that the data knows, that are left and that can know
// the data, it needs no more than all, and one at least.
func (c *fencing) count(v *message.Vouch) {
	g := &c.fence
	g.leaveOut(v.Out)
	g.members = max(g.members, v.Members-c.outSince(v.Out))
	g.need = max(1, min(g.knowing()/2, g.standing()))
}

// knowing is the number of members that can know the data. Data needs the word of as many
// as before other members joined that have never heard of the data.
func (g *fence) knowing() int {
	n := g.members
	for i := range g.peers {
		if g.peers[i].later {
			n--
		}
	}
	return n
}

// admitted reports whether a message comes from a member on the data that it was admitted
// with. An empty disk in its place may have lost the memory of others' data.
func (c *fencing) admitted(e *message.Envelope) bool {
	seat := c.roster.Seat(e.From())
	return seat != nil && seat.State.Serves() && seat.Incarnation != 0 && seat.Incarnation == e.Mark.Incarnation
}

// outSince counts the sites that are out and that a voucher takes for members: its data may
// be older than this site's.
func (c *fencing) outSince(out []SiteID) int {
	n := 0
	for i := range c.roster.Seats {
		if m := c.roster.Seats[i].Site; c.roster.banned(m) && !slices.Contains(out, m) {
			n++
		}
	}
	return n
}

// counts reports whether a site's word for the data counts.
func (p *fencedPeer) counts() bool { return !p.newcomer && !p.later }

// leaveOut has the guard wait for no site that is out: none of them vouches. If all sites
// that the data knows are out, others that joined later vouch.
func (g *fence) leaveOut(out []SiteID) {
	for i := range g.peers {
		if p := &g.peers[i]; slices.Contains(out, p.Site) {
			p.newcomer, p.out = true, true
		}
	}
	if len(out) == 0 || g.standing() > 0 {
		return
	}
	for i := range g.peers {
		p := &g.peers[i]
		p.newcomer = p.out
	}
}

// standing counts the sites whose word counts.
func (g *fence) standing() int {
	n := 0
	for i := range g.peers {
		if g.peers[i].counts() {
			n++
		}
	}
	return n
}
