package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/stored"
)

// A run with losses has sites that are lost for good, at random times: the disk of a site is
// destroyed, or no message reaches the site and it goes on serving its clients. The network of
// such a site may heal before the site is written off, or after. An administrator writes lost
// sites off, also while they join or leave. A majority of the voters of each sequence is
// never lost, whatever change of the members is under way.

const (
	// lossPause is how many milliseconds lie between two losses on average.
	lossPause = 10_000
	// apartOf is how many losses there are for each lost site that goes on serving.
	apartOf = 3
	// drainsUntil is how long after it was asked for a drain may still be decided.
	drainsUntil = keepTrying + 15*second
)

// loser loses sites, and writes them off.
type loser struct {
	s *sim
	r *rand.Rand
	// drained is when a drain was last asked for.
	drained micros
	// armed is what a site has to be in the middle of to be lost next; none for nothing.
	armed underWay
}

// underWay is something under way between sites.
type underWay uint8

const (
	none underWay = iota
	inInstance
	inTransfer
	inBequest
)

// startLosses has sites be lost.
func (s *sim) startLosses() {
	if !s.o.Losses || len(s.nodes) <= fewestVoters {
		return
	}
	s.loser = &loser{s: s, r: rand.New(rand.NewPCG(s.o.Seed, 0x1055)), drained: -drainsUntil}
	s.every(lossPause, s.loser.next)
}

// any reports whether any site is lost.
func (l *loser) any() bool {
	return l != nil && slices.ContainsFunc(l.s.nodes, func(n *node) bool { return n.struck })
}

// next loses a site: at once, or as soon as something is under way with it.
func (l *loser) next() {
	if l.armed = underWay(l.r.IntN(6)); l.armed > inBequest {
		l.armed = none
		l.lose(l.s.nodes[l.r.IntN(len(l.s.nodes))])
	}
}

// pick draws a number below n.
func (l *loser) pick(n int) int {
	if l == nil {
		return 0
	}
	return l.r.IntN(n)
}

// begins is told that something is under way with a site.
func (l *loser) begins(what underWay, site int) {
	if l == nil || l.armed != what || l.s.healed {
		return
	}
	l.armed = none
	l.s.after(l.r.Int64N(200*millisecond), func() {
		if !l.s.healed {
			l.lose(l.s.nodes[site])
		}
	})
}

// lose loses a site, if the others can go on without it.
func (l *loser) lose(n *node) {
	if !l.may(n) {
		return
	}
	n.struck = true
	if l.r.IntN(apartOf) == 0 {
		l.cutOff(n)
	} else {
		n.destroy()
	}
	if l.r.IntN(3) == 0 {
		// Two at once.
		l.lose(l.s.nodes[l.r.IntN(len(l.s.nodes))])
	}
	l.s.after(l.r.Int64N(10*second), func() { l.writeOff(n) })
}

// cutOff has a site go on serving without the others.
func (l *loser) cutOff(n *node) {
	n.apart = true
	if l.s.tracing {
		l.s.note("%s is cut off for good", n.id)
	}
	l.s.after(l.r.Int64N(60*second), func() { n.apart = false })
}

// destroy ends a site and its disk.
func (n *node) destroy() {
	if n.s.tracing {
		n.s.note("%s is destroyed", n.id)
	}
	n.destroyed, n.out = true, true
	n.crash()
	n.stale = nil
}

// may reports whether a site may be lost.
func (l *loser) may(n *node) bool {
	s := l.s
	last := &s.observe.catalogue.last().roster
	if last.Seat(n.id) == nil || n.struck || n.out || n.outside() || s.upgrade != nil && s.observe.catalogue.last().version != newest {
		return false
	}
	n.struck = true
	defer func() { n.struck = false }()
	return l.majority(last.View(last.Version), l.s.now < l.drained+drainsUntil) && l.majority(last.View(last.Version-1), false) && l.vouchable(0)
}

// vouchable reports whether each member that is not lost can be vouched for once it starts
// again, by half of the others: also once the sites that join are members, and some more.
func (l *loser) vouchable(more int) bool {
	if l == nil {
		return true
	}
	last := &l.s.observe.catalogue.last().roster
	all := more
	for i := range last.Seats {
		if !outside(last, last.Seats[i].Site) {
			all++
		}
	}
	left := slices.DeleteFunc(l.s.inside(), func(n *node) bool {
		seat := last.Seat(n.id)
		return n.struck || seat == nil || !seat.State.Serves()
	})
	return !slices.ContainsFunc(left, func(n *node) bool {
		// It goes by the members that it knows.
		remember, knows := 0, l.s.membersIn(n, n.durable)
		for _, m := range left {
			// A site that has joined vouches once it knows so.
			if m != n && slices.Contains(knows, m.id) && m.durable.Remembered[n.id].Served && m.durable.member(m) {
				remember++
			}
		}
		return remember < max(all, len(knows))/2
	})
}

// majority reports whether a majority of a view is not lost, even once sites with a seat that
// are lost begin to vote, and if drains is set one that is not lost ends.
func (l *loser) majority(v avantan.View, drains bool) bool {
	if len(v) == 0 {
		return true
	}
	last := &l.s.observe.catalogue.last().roster
	alive, all := 0, len(v)
	for _, n := range l.s.nodes {
		seat := last.Seat(n.id)
		switch {
		case v.Has(n.id) && !n.struck:
			alive++
		case n.struck && !v.Has(n.id) && seat != nil && (seat.State == stored.SeatJoining || seat.State == stored.SeatDraining):
			all++
		}
	}
	if drains {
		alive, all = alive-1, all-1
	}
	return 2*alive > all
}

// spares reports whether a member may be drained: the lost sites leave a majority without it.
func (l *loser) spares(of core.SiteID) bool {
	last := &l.s.observe.catalogue.last().roster
	v := last.View(last.Version)
	struck := l.s.nodes[l.s.observe.place(of)].struck
	if !struck && !l.majority(v, true) {
		return false
	}
	l.drained = l.s.now
	return true
}

// writeOff has the administrator write a lost site off, again and again until it is out.
func (l *loser) writeOff(n *node) {
	s := l.s
	if n.outside() || s.violation != nil {
		return
	}
	p := &op{kind: loseSite, entity: string(n.id), wait: micros(l.r.IntN(8000)) * millisecond, site: l.someMember()}
	if s.observe.catalogue.last().roster.Seat(n.id).State == stored.SeatJoining {
		p.kind = removeSite
	}
	s.issue(p)
	s.after(2*second+l.r.Int64N(4*second), func() { l.writeOff(n) })
}

// someMember draws a site that is not lost. In the end it may be a site that does not serve
// yet: it may wait for the lost site.
func (l *loser) someMember() int {
	for range 20 {
		if n := l.s.nodes[l.r.IntN(len(l.s.nodes))]; !n.struck && (n.opened || l.s.healed) && !n.outside() {
			return n.i
		}
	}
	return -1
}

// member reports whether a site knows that it is a member.
func (m *Memory) member(n *node) bool {
	r := m.roster()
	if r == nil {
		return !n.cfg.Joining
	}
	seat := r.Seat(n.id)
	return seat != nil && seat.State.Serves()
}

// waits tells which lost site is not written off yet, or of which entity the tokens are not
// that it held; empty for none.
func (l *loser) waits() string {
	if l == nil {
		return ""
	}
	last := &l.s.observe.catalogue.last().roster
	for _, n := range l.s.inside() {
		if n.struck {
			return fmt.Sprintf("%s is lost", n.id)
		}
		for name, e := range n.drained.Entities {
			if max(e.Born, e.Appraised) < last.Losses {
				return fmt.Sprintf("%s: what was lost of %q is not written off", n.id, name)
			}
		}
	}
	return ""
}
