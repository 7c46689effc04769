package sim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/samya-db/samya/avantan/star"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/stored"
)

// A run with leaves has an administrator who drains members, one at a time. Some drains
// are cancelled, and some are asked for again. At least two sites go on to vote: what a
// single voter decides shows in no message.

const (
	// leavePause is how many milliseconds lie between two looks of the administrator at the
	// members on average.
	leavePause = 4000
	// fewestVoters is the fewest voters that the administrator leaves.
	fewestVoters = 2
)

// leaver is the administrator who drains members.
type leaver struct {
	s *sim
	r *rand.Rand
}

// changing reports whether the members may change in this run.
func (s *sim) changing() bool { return s.o.Leaves || s.o.Losses || len(s.joiners()) > 0 }

// startLeaves has the administrator drain members.
func (s *sim) startLeaves() {
	if !s.o.Leaves || len(s.nodes) <= fewestVoters {
		return
	}
	l := &leaver{s: s, r: rand.New(rand.NewPCG(s.o.Seed, 0x1ea5))}
	s.every(leavePause, l.next)
}

// next begins a drain, asks for it again, cancels it, or does nothing.
func (l *leaver) next() {
	s := l.s
	roster := s.observe.catalogue.last().roster
	p := &op{site: -1, wait: micros(l.r.IntN(8000)) * millisecond}
	if of := draining(&roster); of != "" {
		p.kind, p.entity = keepSite, string(of)
		switch draw := l.r.IntN(100); {
		case draw < 4:
		case draw < 12:
			p.kind, p.heir = drainSite, l.heir(&roster, of)
		default:
			return
		}
		s.issue(p)
		return
	}
	if !s.allKnow() {
		return
	}
	voters := roster.View(roster.Version)
	if len(voters) <= fewestVoters || l.r.IntN(100) < 40 {
		return
	}
	of := voters[l.r.IntN(len(voters))]
	if s.loser != nil && !s.loser.spares(of) {
		return
	}
	p.kind, p.entity, p.heir = drainSite, string(of), l.heir(&roster, of)
	if s.o.Losses || len(voters) < fewestVoters+3 || l.r.IntN(2) == 0 {
		// An attempt that comes late must not leave too few voters.
		p.expected = uint64(roster.Version)
	}
	s.issue(p)
}

// allKnow reports whether each site inside durably knows the last roster, in a run with
// leaves or losses. The administrator waits for that before the next change: a site that is down
// while one site leaves and others join finds too few that can vouch for its data.
func (s *sim) allKnow() bool {
	if !s.o.Leaves && !s.o.Losses {
		return true
	}
	last := s.observe.catalogue.last().roster
	joins := slices.ContainsFunc(last.Seats, func(seat stored.Seat) bool { return seat.State == stored.SeatJoining })
	return !joins && !slices.ContainsFunc(s.inside(), func(n *node) bool {
		r := n.durable.roster()
		switch {
		case n.struck:
			return false
		case last.Seat(n.id) == nil:
			return false
		case r == nil:
			return last.Changed > 0
		}
		return r.Changed != last.Changed
	})
}

// heir draws the heir to ask for: mostly none, else any site, fit or not.
func (l *leaver) heir(r *stored.Roster, of core.SiteID) core.SiteID {
	heir := r.Seats[l.r.IntN(len(r.Seats))].Site
	if l.r.IntN(100) < 50 || heir == of && l.r.IntN(100) < 80 {
		return ""
	}
	return heir
}

// draining is the site that drains; "" for none.
func draining(r *stored.Roster) core.SiteID {
	i := slices.IndexFunc(r.Seats, func(s stored.Seat) bool { return s.State == stored.SeatDraining })
	if i < 0 {
		return ""
	}
	return r.Seats[i].Site
}

// outside reports whether a site has no place in a cluster any more.
func outside(r *stored.Roster, site core.SiteID) bool {
	seat := r.Seat(site)
	return seat != nil && (seat.State == stored.SeatGone || seat.State == stored.SeatLost)
}

// outside reports whether the site has no place in the cluster any more, as decided.
func (n *node) outside() bool { return outside(&n.s.observe.catalogue.last().roster, n.id) }

// inside are the sites with a place in the cluster, or about to get one.
func (s *sim) inside() []*node {
	return slices.DeleteFunc(slices.Clone(s.nodes), (*node).outside)
}

// roster is the roster on a site's disk; nil for none.
func (m *Memory) roster() *stored.Roster {
	if m.Catalogue == nil || m.Catalogue.Roster.Version == 0 {
		return nil
	}
	return &m.Catalogue.Roster
}

// leaves reports whether a site knows that it drains.
func (m *Memory) leaves(site core.SiteID) bool {
	r := m.roster()
	if r == nil {
		return false
	}
	seat := r.Seat(site)
	return seat != nil && seat.State == stored.SeatDraining
}

// leavesStopped reports whether a site stops as it has no place in the cluster. It stays
// stopped, or is started once more, in vain.
func (n *node) leavesStopped(err error) bool {
	s := n.s
	if _, out := errors.AsType[*core.OutError](err); !out || n.stale != nil {
		return false
	}
	if !n.outside() {
		s.fail(Leaving, "%s stops, and has a place in the cluster: %w", n.id, err)
		return true
	}
	if s.tracing {
		s.note("%s stops: %v", n.id, err)
	}
	if n.writtenOff() {
		s.report.LostStopped++
	}
	n.countParts()
	n.out, n.up, n.core, n.calls = true, false, nil, nil
	n.life++
	n.drained = n.durable.Clone()
	s.observe.lost(n)
	if !s.healed && s.r.IntN(4) == 0 {
		n.bootLater()
	}
	return true
}

// leaveAll waits after healing until all drains have ended, and checks that each has.
func (s *sim) leaveAll() {
	if !s.o.Leaves && !s.o.Losses {
		return
	}
	resting := func() bool { return s.unrest() == "" }
	rest := func() {
		for end := s.now + 3*retention + 60*second; s.now < end && s.violation == nil && !resting(); {
			s.runUntil(s.now + second)
		}
	}
	rest()
	// Clients of a site that is out for good go on for a while.
	for end := s.now + 2*keepTrying; s.now < end && s.pending > 0 && s.violation == nil; {
		s.runUntil(s.now + second)
	}
	// They may have got leases.
	rest()
	if s.violation != nil || resting() {
		return
	}
	s.fail(Liveness, "after healing, the changes of the members do not end: %s; %+v", s.unrest(), s.observe.catalogue.last().roster)
}

// unrest tells what keeps the changes of the members from their end; empty for nothing.
func (s *sim) unrest() string {
	roster := s.observe.catalogue.last().roster
	if of := draining(&roster); of != "" {
		return s.rests(of)
	}
	if why := s.loser.waits(); why != "" {
		return why
	}
	for i := range roster.Seats {
		if seat := &roster.Seats[i]; seat.Unsettled {
			return "a cancelled drain: " + s.rests(seat.Site)
		}
	}
	for _, site := range s.joiners() {
		if seat := roster.Seat(site); seat == nil || seat.State == stored.SeatJoining {
			return fmt.Sprintf("%s has not joined", site)
		}
	}
	for _, n := range s.nodes {
		switch r := n.drained.roster(); {
		case n.outside() && n.up:
			return fmt.Sprintf("%s is out, and goes on", n.id)
		case n.outside():
		case len(n.live()) > 0:
			// Leases are long here: rest comes after the last.
			return fmt.Sprintf("%s has %d leases", n.id, len(n.live()))
		case n.status.Behind > 0 || r != nil && r.Version != roster.Version:
			return fmt.Sprintf("%s does not know all, or %d entities are behind", n.id, n.status.Behind)
		}
	}
	return ""
}

// rests tells what a site that drains still has.
func (s *sim) rests(site core.SiteID) string {
	n := s.nodes[slices.Index(s.names, site)]
	return fmt.Sprintf("%s has %+v, books %+v, entities %+v", n.id, n.status, n.drained.Books, n.drained.Entities)
}

// empty reports why a site that is retired holds something; nil if it does not.
func (o *observer) empty(n *node) error {
	for _, d := range []*Memory{n.durable, n.drained} {
		if d == nil {
			continue
		}
		for name, b := range d.Books {
			e := d.Entities[name]
			if b.Left != 0 || b.Net != 0 || e.Protocol.Pledge != nil && e.Protocol.Pledge.Offered != 0 || e.Handoff.Open != nil || d == n.drained && o.inFlight(n, &e, "") {
				return fmt.Errorf("%q: %+v, %+v", name, b, e)
			}
			if slices.ContainsFunc(e.Star.Slices, func(s star.Slice) bool { return !s.Committed }) {
				return fmt.Errorf("%q: it has a part in %+v", name, e.Star.Slices)
			}
		}
		for _, l := range d.Leases {
			if o.catalogue.last().entities[l.Entity] == l.Generation {
				return fmt.Errorf("lease %+v", l)
			}
		}
		if len(d.Claims) > 0 {
			return fmt.Errorf("%d claims", len(d.Claims))
		}
	}
	for _, b := range n.durable.Blocks.List {
		if age := micros(float64(o.s.now-n.blocks[b.Number])*n.drift) + slack; age < retention && slices.ContainsFunc(b.Value.Records, tells) {
			return fmt.Errorf("requests that it answered %d ms ago", age/millisecond)
		}
	}
	for id, q := range o.sequences {
		if q.direct == nil || q.direct.over || id.entity == "" {
			continue
		}
		for p, sent := range q.direct.sent {
			if (p.donor == n.i || p.receiver == n.i) && q.direct.credited[p] < uint64(len(sent)) && !o.s.nodes[p.donor].writtenOff() && !o.s.nodes[p.receiver].writtenOff() {
				return fmt.Errorf("%v: a transfer is under way from %s to %s", id, o.s.names[p.donor], o.s.names[p.receiver])
			}
		}
	}
	return nil
}

// tells reports whether a site has to keep the record of a request: another site may ask
// about it. A record that only stops later attempts stops none at a site that has left.
func tells(q stored.Request) bool { return q.State == stored.Ran || q.State == stored.Parked }

// changedSites checks the sites that a decided change of the catalogue moves to other
// states.
func (o *observer) changedSites(before, after *stored.Roster) {
	for i := range after.Seats {
		seat := &after.Seats[i]
		was := before.Seat(seat.Site)
		if was != nil && was.State == seat.State {
			continue
		}
		n := o.s.nodes[slices.Index(o.s.names, seat.Site)]
		switch {
		case seat.State == stored.SeatDraining:
			o.departing[seat.Site] = true
			o.s.report.Drains++
		case seat.State == stored.SeatMember && was != nil && was.State == stored.SeatDraining:
			o.s.report.Kept++
			o.stayed[seat.Site] = true
		case seat.State == stored.SeatLost:
			o.s.report.Losses++
			if !n.destroyed {
				o.s.report.LostServing++
			}
		case seat.State == stored.SeatGone && was != nil && was.State == stored.SeatDraining:
			o.s.report.Left++
			if err := o.empty(n); err != nil {
				o.s.fail(Leaving, "%s is retired, and still has %w", n.id, err)
			}
		}
	}
}

// grantsNothing checks a batch of a site that knew of its drain before.
func (o *observer) grantsNothing(n *node, r *stored.Records) {
	if !o.s.o.Leaves || !n.drained.leaves(n.id) || r.Catalogue != nil && r.Catalogue.Roster.Seat(n.id).State != stored.SeatDraining {
		return
	}
	for i := range r.Block.Records {
		q := &r.Block.Records[i]
		if p := o.s.opOf(q.Key); p != nil && p.kind.acquires() && q.State == stored.Ran && !n.hasRun(p) {
			o.s.fail(Leaving, "%s grants %v, and drains", n.id, p)
		}
	}
}

// movesOn has a client go to the heir of a site with a request about a lease that is
// there. The client names either site as the lease's home, if nobody may have the request
// under another home.
func (p *op) movesOn(n *node, a *answer.Answer) {
	if a.Code != answer.Moved || p.lease == nil {
		return
	}
	heir := p.s.heirOf(n)
	p.site = heir.i
	if p.kind == release && !p.tries.roams && p.s.chance(500) {
		p.home = heir.id
	}
}
