package sim

import (
	"slices"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/stored"
)

// disk is the disk that the site runs on: its own, or the stale disk it was started on.
func (n *node) disk() *Memory {
	if n.stale != nil {
		return n.stale
	}
	return n.durable
}

// copySome takes a copy of a site's data aside.
func (s *sim) copySome() {
	n := s.nodes[s.r.IntN(len(s.nodes))]
	if n.settled() {
		n.copied = n.durable.Clone()
	}
}

// misplace has a site that is about to start do so on an older copy of its data or on
// none. So many others must durably remember later data that the site cannot be vouched
// for without asking some of them. It misplaces a single site at a time: data that a site
// remembers on the wrong disk is no longer there.
func (n *node) misplace() {
	s := n.s
	if s.healed || n.out || n.other != nil || !n.settled() || !s.faults.Has(StaleSnapshot) || !s.chance(250) ||
		slices.ContainsFunc(s.nodes, func(m *node) bool { return m.stale != nil }) {
		return
	}
	old := n.copied
	if s.chance(250) {
		old = n.emptyDisk()
	}
	if old == nil {
		return
	}
	if !s.refusable(n, old) {
		return
	}
	n.stale = old.Clone()
	s.hit(StaleSnapshot)
	if s.tracing {
		s.note("%s is about to start on data of commit %d, its own is at %d", n.id, old.Commits, n.durable.Commits)
	}
}

// emptyDisk is a disk on which the site makes new data.
func (n *node) emptyDisk() *Memory {
	m := NewMemory(message.Incarnation(n.life)<<8 | message.Incarnation(n.i+1))
	if n.s.upgrade != nil {
		m.Version = n.cfg.Versions.Newest
	}
	return m
}

// refusable reports whether so many others durably remember data later than old that the
// site cannot be vouched for without asking some of them. The site asks half of the others
// that the old data knows of: of before a change of the members it may know of fewer.
func (s *sim) refusable(n *node, old *Memory) bool {
	asked := s.membersIn(n, old)
	ignorant := 0
	for _, m := range s.nodes {
		if !slices.Contains(asked, m.id) {
			continue
		}
		known := m.durable.Remembered[n.id]
		knows := known.Served && (known.Mark.Incarnation != old.Incarnation || known.Mark.Commits > old.Commits)
		// A lost site tells nobody.
		if m != n && (!knows || m.struck) {
			ignorant++
		}
	}
	return ignorant < len(asked)/2
}

// besideEvery is how many milliseconds lie between two double faults on average.
const besideEvery = 8000

// loseTwo takes two sites down. The first starts on an empty disk and the second on an
// old copy of its data. The sites that know better are cut off from both for a while.
// Neither may serve before it is on its own disk again. A copy without a commit is left
// out: two sites that hold nothing cannot be told from a first start.
func (s *sim) loseTwo() {
	if len(s.nodes) < 3 || slices.ContainsFunc(s.nodes, func(m *node) bool { return m.stale != nil || m.other != nil }) {
		return
	}
	old, empty := s.nodes[s.r.IntN(len(s.nodes))], s.nodes[s.r.IntN(len(s.nodes))]
	if old == empty || !old.up || !empty.up || !old.settled() || !empty.settled() || old.copied == nil || old.copied.Commits == 0 {
		return
	}
	none := empty.emptyDisk()
	// Each site counts as on its own disk, since it may be back on it before the other. Of
	// two members nobody else knows better.
	if len(s.membersIn(old, old.copied)) < 3 || !s.refusable(old, old.copied) || !s.refusable(empty, none) {
		return
	}
	old.crash()
	empty.crash()
	if s.violation != nil {
		return
	}
	if s.upgrade != nil {
		none.Version = empty.cfg.Versions.Newest // of the build that starts
	}
	old.stale, empty.stale = old.copied.Clone(), none
	s.hit(EmptyBesideOld)
	if s.tracing {
		s.note("%s is about to start on data of commit %d, its own is at %d, and %s on an empty disk", old.id, old.copied.Commits,
			old.durable.Commits, empty.id)
	}
	cut := func(is bool) {
		for _, m := range s.nodes {
			for _, n := range []*node{old, empty} {
				if m != old && m != empty {
					s.cut[m.i][n.i], s.cut[n.i][m.i] = is, is
				}
			}
		}
	}
	cut(true)
	s.after(micros(2000+s.r.IntN(10_000))*millisecond, func() { cut(false) })
}

// stopped ends the site if its core says so, and puts the right disk back.
func (n *node) stopped() bool {
	s := n.s
	err := n.core.Refused()
	if err != nil && n.leavesStopped(err) {
		return true
	}
	switch {
	case err == nil && n.stale != nil && n.status.Missing == 0:
		s.fail(StaleData, "%s serves on data of commit %d, its own is at %d", n.id, n.stale.Commits, n.durable.Commits)
		return true
	case err == nil:
		return false
	case n.stale == nil:
		s.fail(StaleData, "%s stops on the data that it had: %w", n.id, err)
		return true
	}
	if s.tracing {
		s.note("%s stops: %v", n.id, err)
	}
	s.report.StaleRefused++
	n.putBack()
	return true
}

// putBack ends a start on stale data. The site starts again on its own.
func (n *node) putBack() {
	n.countParts()
	n.stale, n.up, n.core, n.calls = nil, false, nil, nil
	n.life++
	n.bootLater()
}

// staleBatch checks a batch of a site that was started on stale data.
func (n *node) staleBatch(batch *core.Effects) {
	if batch.Records.Commits != 0 {
		n.s.fail(StaleData, "%s changes stale data: %+v", n.id, batch.Records)
	}
}

// counted checks the numbers of a batch that is about to become durable. It also checks
// that nothing remembered is taken back.
func (o *observer) counted(n *node, r *stored.Records) {
	if r.Commits != 0 && r.Commits != n.durable.Commits+1 {
		o.s.fail(Monotonic, "%s commits number %d after %d", n.id, r.Commits, n.durable.Commits)
	}
	for _, m := range r.Remembered {
		was := n.durable.Remembered[m.Site]
		if was.Served && (!m.Served || m.Mark.Incarnation != was.Mark.Incarnation || m.Mark.Commits < was.Mark.Commits) {
			o.s.fail(StaleData, "%s remembers %+v, and then %+v", n.id, was, m)
		}
	}
}

// marked checks the mark of a message: all that the message may rest on, and
// nothing that its sender could lose.
func (o *observer) marked(from *node, e *message.Envelope) {
	disk := from.disk()
	want := message.Mark{Incarnation: disk.Incarnation, Run: from.run(), Commits: disk.Commits}
	if e.Mark != want {
		o.s.fail(StaleData, "%s sends a message with mark %+v, durable is %+v", from.id, e.Mark, want)
	}
	switch {
	case learning(from, e):
	case e.Vouch == nil && from.stale != nil:
		o.s.fail(StaleData, "%s, on stale data, sends %+v", from.id, *e)
	case e.Vouch == nil && from.status.Missing > from.status.Settling:
		o.s.fail(StaleData, "%s, not vouched for, sends %+v", from.id, *e)
	case e.Vouch != nil && e.Vouch.Kind == message.VouchYes:
		asked, known := e.Vouch.Asked, disk.Remembered[e.To()].Mark
		// Remembered data that never served may have given way to other data within the
		// same batch.
		gaveWay := slices.ContainsFunc(from.leaving, func(later message.Envelope) bool {
			return later.Vouch != nil && later.Vouch.Kind == message.VouchYes && later.To() == e.To() &&
				later.Vouch.Asked.Incarnation == known.Incarnation && known.Incarnation != asked.Incarnation
		})
		if !gaveWay && (known.Run == 0 || known.Incarnation != asked.Incarnation || known.Commits < asked.Commits) {
			o.s.fail(StaleData, "%s vouches for %+v of %s, and durably remembers %+v", from.id, asked, e.To(), known)
		}
	}
}

// unvouched notes the answer of a site that may not serve yet.
func (o *observer) unvouched(n *node, c *call, a answer.Answer) {
	if a.Missing <= 0 {
		o.s.fail(Answers, "%s answers %v: %+v", n.id, c.op, a)
	}
	o.s.report.Unvouched++
	if c.look != nil {
		return
	}
	o.s.after(o.s.r.Int64N(3*millisecond), func() { c.op.returned(n, c, a) })
}

// run is the id of the site's present start.
func (n *node) run() message.Run { return message.Run(n.life)<<8 | message.Run(n.i+1) }

// vouchedFor checks, after healing, that the site serves on its own data.
func (n *node) vouchedFor() bool {
	ok := n.up && n.stale == nil && n.status.Missing == 0
	if !ok {
		n.s.fail(Liveness, "after healing, %s does not serve: up %t, stale %t", n.id, n.up, n.stale != nil)
	}
	return ok
}
