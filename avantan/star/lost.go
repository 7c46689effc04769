package star

import "slices"

// How instances end that have a member in R that is written off. See the package comment.

// lostIn is the set of members of R that are written off, and the part of it in doubt:
// the members with a vote unknown here. Votes heard before the loss count as ever, and a
// leader has accepted. If the set has grown, answers that did not know of the set count no
// more, and the slice is looked after at once.
func (s *step) lostIn(i int) (lost, doubt siteSet) {
	c := &s.cares[i]
	if s.lost != 0 {
		lost = s.lost & s.cfg.setOf(s.state.Slices[i].Value)
	}
	if lost != c.lost {
		c.lost, c.undecided, c.deadline = lost, 0, min(c.deadline, s.now)
	}
	return lost, lost &^ c.accepted
}

// lookForLost lets go of everything that waits for a member written off.
func (s *step) lookForLost() {
	if s.lost == 0 {
		return
	}
	if s.lead != nil {
		s.lead.answers |= s.lost
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

// accepted is the answer to a member that asks: this site has accepted, and perhaps it
// waits for an outcome that it cannot find by itself.
func (c *Config) accepted(id ID, lost, doubt siteSet) Message {
	if doubt == 0 {
		return Message{Kind: AcceptOk, ID: id}
	}
	m := Message{Kind: Undecided, ID: id}
	for k, site := range c.Members {
		if lost.has(k) {
			m.Lost = append(m.Lost, site)
		}
	}
	slices.Sort(m.Lost)
	return m
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
	if lost, _ := s.lostIn(i); s.state.Slices[i].undecided() && s.cfg.setIn(m.Lost).covers(lost) {
		s.cares[i].undecided |= s.one(m.From)
		s.conclude(i, false)
	}
}

// conclude ends an accepted slice without its outcome, and reports whether it did: if all
// of R that are left have accepted, this site included, and none can ever find the outcome,
// or if another member has told of that.
func (s *step) conclude(i int, told bool) bool {
	sl, c := &s.state.Slices[i], &s.cares[i]
	lost, doubt := s.lostIn(i)
	said := c.undecided | s.one(s.cfg.Self)
	if !told && (doubt == 0 || !said.covers(s.cfg.setOf(sl.Value)&^lost)) {
		return false
	}
	s.ledger.Conclude(sl.ID, sl.Value)
	sl.Committed, sl.Concluded = true, true
	s.out.Persist = true
	if c.begun {
		s.fail(FailedAborted)
	}
	c.tries, c.late = 0, false
	c.deadline = after(s.now, s.cfg.Patience)
	s.tell(i)
	return true
}

// onConcluded ends a slice as another member has.
func (s *step) onConcluded(m *Message) {
	i, found := s.state.find(m.ID)
	switch {
	case !found:
		s.sayEnded(m)
	case s.state.Slices[i].unvoted():
		s.violation(m.ID, "concluded without this site's vote")
	case !s.state.Slices[i].hasInR(m.From) || s.lost&s.cfg.setOf(s.state.Slices[i].Value) == 0:
		// The roster of the loss is on its way to this site, and the message comes again.
	case s.state.Slices[i].Concluded:
		s.hasEnded(i, m)
	case s.state.Slices[i].Committed:
		s.violation(m.ID, "concluded, and committed here")
	default:
		s.cares[i].applied |= s.one(m.From)
		s.send(m.From, Message{Kind: Ended, ID: m.ID})
		s.conclude(i, true)
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
	case sl.ID.Leader == s.cfg.Self || s.lost != 0:
		s.sendR(sl.Value, Message{Kind: Commit, ID: sl.ID}, c.applied)
	default:
		s.send(sl.ID.Leader, Message{Kind: Applied, ID: sl.ID})
	}
	return false
}

// hasEnded notes that a member has ended a slice that has ended here, and says so too.
// Where no site is written off, the leader alone collects that.
func (s *step) hasEnded(i int, m *Message) {
	if s.lost == 0 {
		return
	}
	s.cares[i].applied |= s.one(m.From)
	s.sayEnded(m)
	s.forget(i)
}

// sayEnded tells a member that an instance has ended here, if this site ever had a part in
// it. A leader that says Commit hears it by Applied.
func (s *step) sayEnded(m *Message) {
	over := m.ID.Counter <= s.state.floor(m.ID.Leader)
	if m.ID.Leader == s.cfg.Self {
		over = s.lead == nil || s.lead.id != m.ID
	}
	if s.lost != 0 && over && (m.Kind != Commit || m.From != m.ID.Leader) {
		s.send(m.From, Message{Kind: Ended, ID: m.ID})
	}
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
	if lost, _ := s.lostIn(i); !ended.covers(of &^ lost) {
		return false
	}
	if ended.covers(of) && sl.ID.Leader == s.cfg.Self {
		s.sendR(sl.Value, Message{Kind: Settled, ID: sl.ID}, 0)
	}
	s.remove(i)
	return true
}
