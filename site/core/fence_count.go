package core

import (
	"slices"

	"github.com/samya-db/samya/site/core/message"
)

// The guard counts the members whose word for the data it needs.

// count takes in what a member knows of the members. Data of before a change of the
// members may ask too few of them, or more than are left. So the latest word counts: sites
// come and go, and none comes back. Of the members that the data knows, that are left and
// that can know the data, it needs no more than all, and one at least.
func (g *fence) count(v *message.Vouch) {
	g.leaveOut(v.Out)
	gone := len(v.Out)
	if all, known := v.Members+gone, g.members+g.gone; all > known || all == known && gone > g.gone {
		g.members, g.gone = v.Members, gone
	}
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
