package sim

import (
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
)

// crashSome crashes a site: at once, or at an effect soon after.
func (s *sim) crashSome() {
	n := s.nodes[s.r.IntN(len(s.nodes))]
	midway := s.chance(500)
	switch {
	case !n.up:
	case n.kept != nil && s.faults.Has(TornWrites) && s.chance(400):
		n.tearAt = 1 + s.r.IntN(s.chances.depth)
	case !midway && s.faults.Has(Crash):
		s.hit(Crash)
		if s.chance(200) && !n.paused() {
			n.stop()
			return
		}
		n.crash()
	case midway && s.faults.Has(CrashMidEffects):
		n.fuse = 1 + s.r.IntN(12)
	}
}

// crashUnderWay now and then crashes a site of a direct transfer that is about to leave,
// once a run goes on for more rare events.
func (s *sim) crashUnderWay(p pair) {
	if s.healed || s.byHand || !s.faults.Has(Crash) || s.chances.underWay == 0 || !s.chance(s.chances.underWay) {
		return
	}
	n := s.nodes[p.donor]
	if s.chance(500) {
		n = s.nodes[p.receiver]
	}
	life := n.life
	s.after(s.r.Int64N(100*millisecond), func() {
		if n.up && n.life == life && n.stale == nil {
			s.hit(Crash)
			n.crash()
		}
	})
}

// stop tells a site to stop. The site does so a while later: until then nobody waits
// there for tokens.
func (n *node) stop() {
	s, life := n.s, n.life
	n.step(input.Stop{})
	if n.up && s.violation == nil {
		if waiting := n.status.Waiting; waiting > 0 {
			s.fail(Deadline, "%s is about to stop, %d acquires wait there", n.id, waiting)
		}
	}
	s.after(micros(s.r.IntN(1000))*millisecond, func() {
		if n.life == life {
			n.crash()
		}
	})
}

// diskFault makes a site's disk fail or slow.
func (s *sim) diskFault() {
	n := s.nodes[s.r.IntN(len(s.nodes))]
	slow := s.chance(500)
	switch {
	case n.kept != nil && s.faults.Has(FullDisk) && s.chance(300):
		n.kept.fill(true)
		s.noted(n, FullDisk, s.now+fullFor)
		s.after(fullFor, func() { n.kept.fill(false) })
	case slow && s.faults.Has(SlowDisk):
		s.hit(SlowDisk)
		n.slowUntil = s.now + micros(500+s.r.IntN(8000))*millisecond
		s.noted(n, SlowDisk, n.slowUntil)
	case !slow && s.faults.Has(SyncError):
		n.badSync = true
	}
}

// fullFor is the longest time that a disk stays full.
const fullFor = 20 * second

func (s *sim) noted(n *node, f Fault, until micros) {
	if s.tracing {
		s.note("%s: %v until %d ms", n.id, f, until/millisecond)
	}
}

// pauseSome freezes a site, or sets its calendar.
func (s *sim) pauseSome() {
	n := s.nodes[s.r.IntN(len(s.nodes))]
	if s.fails(ClockJump, 300) {
		n.wall, n.jumped = n.clock()+n.aheadBy, s.now
	}
	if n.up && !n.paused() && s.fails(Pause, 700) {
		if s.now > n.resumes+slack {
			n.freezes = s.now
		}
		n.resumes = s.now + micros(20+s.r.IntN(6000))*millisecond
		s.noted(n, Pause, n.resumes)
	}
}

// storm sends a site many acquires at once.
func (s *sim) storm() {
	if s.report.Crowded > 0 && s.chance(600) {
		// Else the tables of requests are full all the time.
		return
	}
	c := s.clients[s.r.IntN(len(s.clients))]
	name := s.admin.names[s.r.IntN(len(s.admin.names))]
	site := s.r.IntN(len(s.nodes))
	s.hit(Overload)
	for range 20 + s.r.IntN(100) {
		p := &op{
			kind: acquire, entity: name, site: site,
			tokens: core.Tokens(1 + s.r.IntN(c.big)), wait: micros(s.r.IntN(3000)) * millisecond,
		}
		p.then = func(a *answer.Answer) { c.took(p, a) }
		s.issue(p)
	}
}

// partition cuts links, or heals them all.
func (s *sim) partition() {
	n := len(s.nodes)
	if n == 1 {
		return
	}
	for i := range s.cut {
		clear(s.cut[i])
	}
	if s.extended == 1 && s.report.Trees == 1 && s.chance(600) {
		// Else some runs hardly ever decide on where entities stand.
		return
	}
	kinds := []Fault{PartitionFull, PartitionIsolate, PartitionOneWay, PartitionBridge, PartitionLinks}
	side := make([]bool, n)
	for i := range side {
		side[i] = s.chance(500)
	}
	lone, pick := s.r.IntN(n), s.r.IntN(len(kinds)+1)
	if pick == len(kinds) || !s.faults.Has(kinds[pick]) {
		return
	}
	kind, cuts := kinds[pick], false
	for i := range n {
		for j := range n {
			cut := false
			switch kind {
			case PartitionFull:
				cut = side[i] != side[j]
			case PartitionIsolate:
				cut = i == lone || j == lone
			case PartitionOneWay:
				cut = side[i] && !side[j]
			case PartitionBridge:
				cut = side[i] != side[j] && i != lone && j != lone
			case PartitionLinks:
				cut = s.chance(300)
			}
			s.cut[i][j] = cut
			cuts = cuts || cut && i != j
		}
	}
	if s.tracing {
		s.note("%v: %v", kind, s.cut)
	}
	if cuts {
		s.hit(kind)
	}
}

// hint tells a site which others seem reachable, right or wrong.
func (s *sim) hint() {
	n := s.nodes[s.r.IntN(len(s.nodes))]
	var up []core.SiteID
	for _, m := range s.nodes {
		seems := m.up && !s.cut[n.i][m.i] && !s.cut[m.i][n.i] && !n.apart && !m.apart
		if m != n && seems != s.fails(WrongDetector, 100) {
			up = append(up, m.id)
		}
	}
	n.awake(func() {
		// An input held back by a pause must not come after the hint at the end.
		if !s.healed {
			n.step(input.Reachable{Sites: up})
		}
	})
}
