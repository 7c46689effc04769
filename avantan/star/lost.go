package star

import (
	"slices"

	"github.com/samya-db/samya/avantan"
)

// How instances end that have a member in R that is written off. See the package comment.

// lost is the set of members that are written off. It stays the same during a step.
func (s *step) lost() siteSet {
	if !s.looked {
		s.looked, s.gone = true, s.cfg.allLost()
	}
	return s.gone
}

// lostIn is the set of members of R that are written off. If it has grown, answers that
// did not know of it count no more, and the slice is looked after at once.
func (s *step) lostIn(i int) siteSet {
	c := &s.cares[i]
	lost := s.lost()
	if lost != 0 {
		lost &= s.cfg.setOf(s.state.Slices[i].Value)
	}
	if lost != c.lost {
		c.lost, c.undecided, c.deadline = lost, 0, min(c.deadline, s.now)
	}
	return lost
}

// doubt is the set of members of R that are written off and whose vote is not known here.
// What was heard of them before is as good as ever: a leader has accepted.
func (s *step) doubt(i int) siteSet { return s.lostIn(i) &^ s.cares[i].accepted }

// lookForLost lets go of everything that waits for a member written off.
func (s *step) lookForLost() {
	lost := s.lost()
	if lost == 0 {
		return
	}
	if s.lead != nil {
		s.lead.answers |= lost
		s.collected()
	}
	// From the end, since abort removes the slice.
	for i := range slices.Backward(s.cares) {
		switch sl := &s.state.Slices[i]; {
		case !sl.unvoted():
			s.lostIn(i)
		case s.cfg.lost(sl.ID.Leader):
			s.abort(i)
		}
	}
}

// sayAccepted tells a member that asks that this site has accepted, and whether it waits
// for an outcome that it cannot find by itself.
func (s *step) sayAccepted(i int, to avantan.SiteID) {
	id := s.state.Slices[i].ID
	if s.doubt(i) == 0 {
		s.send(to, Message{Kind: AcceptOk, ID: id})
		return
	}
	m := Message{Kind: Undecided, ID: id}
	for k, site := range s.cfg.Members {
		if s.cares[i].lost.has(k) {
			m.Lost = append(m.Lost, site)
		}
	}
	slices.Sort(m.Lost)
	s.send(to, m)
}

// onUndecided counts a vote, and an answer of a member that cannot find the outcome. A
// member that does not know of all losses that this site knows may still find it.
func (s *step) onUndecided(m *Message) {
	i, found := s.state.find(m.ID)
	if !found || !s.state.Slices[i].hasInR(m.From) || s.state.Slices[i].Committed {
		return
	}
	s.cares[i].accepted |= s.one(m.From)
	s.accepted(i)
	if lost := s.lostIn(i); s.state.Slices[i].undecided() && s.cfg.setIn(m.Lost).covers(lost) {
		s.cares[i].undecided |= s.one(m.From)
		s.conclude(i)
	}
}

// conclude ends a slice if all of R that are left have accepted, this site included, and
// none can ever find the outcome. It reports whether it did.
func (s *step) conclude(i int) bool {
	c, of := &s.cares[i], s.cfg.setOf(s.state.Slices[i].Value)
	if s.doubt(i) == 0 || !(c.undecided | s.one(s.cfg.Self) | c.lost).covers(of) {
		return false
	}
	s.end(i)
	return true
}

// end ends an accepted slice without its outcome.
func (s *step) end(i int) {
	sl, c := &s.state.Slices[i], &s.cares[i]
	s.ledger.Conclude(sl.ID, sl.Value)
	sl.Committed, sl.Concluded = true, true
	s.out.Persist = true
	if c.begun {
		s.fail(FailedAborted)
	}
	c.tries, c.late = 0, false
	c.deadline = after(s.now, s.cfg.Patience)
	s.tell(i)
}

// onConcluded ends a slice as another member has.
func (s *step) onConcluded(m *Message) {
	i, found := s.state.find(m.ID)
	switch {
	case !found:
		if s.over(m.ID) {
			s.sayEnded(m)
		}
	case s.state.Slices[i].unvoted():
		s.violation(m.ID, "concluded without this site's vote")
	case !s.state.Slices[i].hasInR(m.From) || s.lostIn(i) == 0:
		// The roster of the loss is on its way to this site, and the message comes again.
	case s.state.Slices[i].Concluded:
		s.hasEnded(i, m)
	case s.state.Slices[i].Committed:
		s.violation(m.ID, "concluded, and committed here")
	default:
		s.cares[i].applied |= s.one(m.From)
		s.send(m.From, Message{Kind: Ended, ID: m.ID})
		s.end(i)
	}
}

// tell tells the members of R that have not ended the slice how it ended here, or forgets
// the slice and reports true. Where a site is written off, the leader may not answer, or
// may not know that all of R have ended: all members tell each other.
func (s *step) tell(i int) bool {
	sl, c := &s.state.Slices[i], &s.cares[i]
	if s.forget(i) {
		return true
	}
	switch {
	case sl.Concluded:
		s.sendR(sl.Value, Message{Kind: Concluded, ID: sl.ID}, c.applied)
	case sl.ID.Leader == s.cfg.Self || s.lost() != 0:
		s.sendR(sl.Value, Message{Kind: Commit, ID: sl.ID}, c.applied)
	default:
		s.send(sl.ID.Leader, Message{Kind: Applied, ID: sl.ID})
	}
	return false
}

// hasEnded notes that a member has ended a slice that has ended here, and says so too.
// Where no site is written off, the leader alone collects that.
func (s *step) hasEnded(i int, m *Message) {
	if s.lost() == 0 {
		return
	}
	s.cares[i].applied |= s.one(m.From)
	s.sayEnded(m)
	s.forget(i)
}

// sayEnded tells a member that an instance has ended here. A leader that says Commit hears
// it by Applied.
func (s *step) sayEnded(m *Message) {
	if s.lost() != 0 && (m.Kind != Commit || m.From != m.ID.Leader) {
		s.send(m.From, Message{Kind: Ended, ID: m.ID})
	}
}

// over reports whether an instance without a slice here has ended.
func (s *step) over(id ID) bool {
	if id.Leader == s.cfg.Self {
		return s.lead == nil || s.lead.id != id
	}
	return id.Counter <= s.state.floor(id.Leader)
}

// onEnded notes that a member asks about an instance no more.
func (s *step) onEnded(m *Message) {
	if i, found := s.state.find(m.ID); found && s.state.Slices[i].Committed && s.state.Slices[i].hasInR(m.From) {
		s.cares[i].applied |= s.one(m.From)
		s.forget(i)
	}
}

// forget drops a slice that all of R have ended, and reports whether it did. Members that
// are written off ask no more: this site does not hear them. But others may hear them, so
// only a leader that knows of all of R lets the others forget.
func (s *step) forget(i int) bool {
	sl := &s.state.Slices[i]
	of, ended := s.cfg.setOf(sl.Value), s.cares[i].applied|s.one(s.cfg.Self)
	if !ended.covers(of &^ s.lostIn(i)) {
		return false
	}
	if ended.covers(of) && sl.ID.Leader == s.cfg.Self {
		s.sendR(sl.Value, Message{Kind: Settled, ID: sl.ID}, 0)
	}
	s.remove(i)
	return true
}
