package sim

import (
	"fmt"
	"slices"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/stored"
)

// A run with joins has some sites that are not founders. They run from the start, and
// learn nothing until the administrator adds them. The founders are at least two.

// founding draws the sites that found the cluster.
func (s *sim) founding() []core.SiteID {
	changes := s.o.Leaves || s.o.Losses
	if !s.o.Joins && !changes || len(s.names) < 3 || changes && s.chance(400) {
		return s.names
	}
	return s.names[:2+s.r.IntN(len(s.names)-2)]
}

// joiners are the other sites.
func (s *sim) joiners() []core.SiteID { return s.names[len(s.founders):] }

// startJoins has the administrator add the sites that join, each at a random time.
func (s *sim) startJoins() {
	for _, site := range s.joiners() {
		s.after(s.r.Int64N(s.faultsEnd), func() { s.addSite(site) })
	}
}

// addSite adds a site, again and again until it has a seat.
func (s *sim) addSite(site core.SiteID) {
	if s.observe.catalogue.last().roster.Seat(site) != nil {
		return
	}
	if !s.allKnow() || !s.loser.vouchable(1) {
		s.after(second, func() { s.addSite(site) })
		return
	}
	p := &op{kind: addSite, entity: string(site), wait: micros(s.r.IntN(8000)) * millisecond, site: s.r.IntN(len(s.founders))}
	if s.nodes[p.site].outside() {
		p.site = -1
	}
	s.issue(p)
	s.after(5*second, func() { s.addSite(site) })
}

// joined checks that all sites are members of one roster, and that all entities have
// adopted its voters.
func (s *sim) joined() {
	if !s.changing() {
		return
	}
	want := s.observe.catalogue.last().roster
	for _, site := range s.joiners() {
		if seat := want.Seat(site); seat == nil || seat.State != stored.SeatMember && !outside(&want, site) {
			s.fail(Liveness, "after healing, %s has not joined: %+v", site, want)
			return
		}
	}
	s.report.Joined += len(s.joiners())
	for _, n := range s.inside() {
		if st := n.status; st.Members != len(s.inside()) || st.Behind != 0 {
			s.fail(Liveness, "after healing, %s knows %d members, and %d entities are behind", n.id, st.Members, st.Behind)
		}
		for name, e := range n.drained.Entities {
			if max(1, e.Voters) != want.Version {
				s.fail(Liveness, "after healing, %s: %q goes by version %d of %d", n.id, name, e.Voters, want.Version)
			}
		}
	}
}

// voters is the view of an instance of a sequence: the decisions before it fix it. It
// reports false if one of them is not known.
func (o *observer) voters(q *sequence, t avantan.Instance) (avantan.View, bool) {
	if q.settled < t-1 {
		return nil, false
	}
	roster := &o.catalogue.last().roster
	if q.id.entity == "" {
		roster = &o.catalogue.states[t-1].roster
		return roster.View(roster.Version), true
	}
	if q.limits == nil {
		return nil, false
	}
	return roster.View(q.voters[t-1]), true
}

// mayVote returns the size of a majority of an instance's view, for a site that accepts a
// value. It fails if the site is not in the view.
func (o *observer) mayVote(q *sequence, v vote, site core.SiteID) (quorum int, err error) {
	view, known := o.voters(q, v.t)
	switch {
	case !known:
		return 0, fmt.Errorf("%v: %s accepts at %v before the instance before it is decided", q.id, site, v)
	case !view.Has(site):
		return 0, fmt.Errorf("%v: %s accepts at %v, and the voters are %v", q.id, site, v, view)
	}
	return len(view)/2 + 1, nil
}

// checkRoster compares the roster that a site has stored with the model's.
func (o *observer) checkRoster(n *node, c *stored.Catalogue, want *stored.Roster) {
	got := c.Roster
	if got.Version == 0 && c.Protocol.Applied > 0 {
		got = stored.Founded(o.s.founders)
	}
	same := func(a, b stored.Seat) bool {
		return a.Site == b.Site && a.State == b.State && a.Since == b.Since && a.Incarnation == b.Incarnation && a.Heir == b.Heir && slices.Equal(a.Votes, b.Votes)
	}
	if got.Version != 0 && (got.Version != want.Version || got.Changed != want.Changed || got.Losses != want.Losses || !slices.EqualFunc(got.Seats, want.Seats, same)) {
		o.s.fail(Catalogue, "%s: roster after instance %d of the catalogue: %+v, want %+v", n.id, c.Protocol.Applied, got, *want)
	}
}

// someSite draws a site that clients may go to: a site that has joined once it has told
// that it serves.
func (s *sim) someSite() int {
	if !s.changing() {
		return s.r.IntN(len(s.nodes))
	}
	// Few clients go to a site that drains, and none to a site that is known to be out.
	drains := !s.healed && s.chance(250)
	var open []int
	for i, n := range s.nodes {
		if !n.opened && (!n.cfg.Joining || n.up && n.status.Missing == 0) {
			n.opened, n.openedAt = true, s.now
		}
		if n.opened && !n.out && (drains || !s.known(n)) {
			open = append(open, i)
		}
	}
	if len(open) == 0 {
		return s.r.IntN(len(s.nodes))
	}
	return open[s.r.IntN(len(open))]
}

// known reports whether a site is no member any more, as far as clients know.
func (s *sim) known(n *node) bool {
	if n.struck && n.up {
		// Its clients hear of nothing.
		return false
	}
	seat := s.observe.catalogue.last().roster.Seat(n.id)
	return seat != nil && seat.State != stored.SeatMember && seat.State != stored.SeatJoining
}

// otherSite draws another site that clients may go to.
func (s *sim) otherSite(site int) int {
	if !s.changing() {
		return (site + 1 + s.r.IntN(len(s.nodes)-1)) % len(s.nodes)
	}
	for range 20 {
		if other := s.someSite(); other != site {
			return other
		}
	}
	return site
}

// votedIn reports whether a site was a voter of an instance that is decided.
func (o *observer) votedIn(q *sequence, t avantan.Instance, site core.SiteID) bool {
	return o.catalogue.last().roster.View(q.voters[t-1]).Has(site)
}

// learning reports whether a message is of a site without a roster that asks for the
// catalogue, and tells nothing but that.
func learning(from *node, e *message.Envelope) bool {
	ask := e.Message.Kind == avantan.CatchUpAsk || e.Message.Kind == avantan.Applied
	return from.cfg.Joining && e.Entity == "" && ask && e.Claims == nil && e.Message.Applied == 0 && e.Message.Instance == 0
}

// settled reports whether a site has served: before, its data is of no use to it, and
// nothing is lost with it.
func (n *node) settled() bool { return !n.cfg.Joining || n.opened }

// membersIn are the members that a site's data knows of. A site that joins knows of none:
// the incarnation in its seat guards its data, and all sites count.
func (s *sim) membersIn(n *node, d *Memory) []core.SiteID {
	switch {
	case d.Catalogue != nil && d.Catalogue.Roster.Version > 0:
		var members []core.SiteID
		for i := range d.Catalogue.Roster.Seats {
			if seat := &d.Catalogue.Roster.Seats[i]; seat.State.Serves() {
				members = append(members, seat.Site)
			}
		}
		return members
	case n.cfg.Joining:
		return s.names
	}
	return s.founders
}
