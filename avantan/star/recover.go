package star

import (
	"slices"

	"github.com/samya-db/samya/avantan"
)

// wake does what is due.
func (s *step) wake() {
	s.lookForLost()
	if s.lead != nil && s.now >= s.lead.deadline {
		s.settleForLess()
	}
	// From the end, since timeOut may remove the slice.
	for i := range slices.Backward(s.cares) {
		if s.now >= s.cares[i].deadline {
			s.timeOut(i)
		}
	}
}

// timeOut looks after an instance that has not gone on.
func (s *step) timeOut(i int) {
	sl, c := &s.state.Slices[i], &s.cares[i]
	switch {
	case sl.unvoted():
		id := sl.ID
		s.abort(i)
		s.send(id.Leader, Message{Kind: Abort, ID: id})
		return
	case sl.undecided():
		if s.conclude(i, false) {
			return
		}
		s.ask(i)
		if c.late = s.now >= c.lateAt; !c.late {
			c.deadline = min(after(s.now, s.cfg.Window), c.lateAt)
			return
		}
	default:
		if s.tell(i) {
			return
		}
	}
	c.tries = min(c.tries+1, maxDoublings)
	c.deadline = after(s.now, max(s.cfg.Patience, s.backoff(c.tries)))
}

// ask sends the value to the members of R that this site needs to hear from. Each
// answers with a vote or with the outcome; a member that has yet to vote does so first.
// A leader leaves out the members that have accepted. Any other site asks them too,
// since they may have learned the outcome since. Where a member's vote will never be known,
// all are asked that have not said Undecided.
func (s *step) ask(i int) {
	sl := &s.state.Slices[i]
	var except siteSet
	switch _, doubt := s.lostIn(i); {
	case doubt != 0:
		except = s.cares[i].undecided
	case sl.ID.Leader == s.cfg.Self:
		except = s.cares[i].accepted
	}
	s.sendR(sl.Value, Message{Kind: Accept, ID: sl.ID, Value: sl.Value}, except)
}

// resume goes on after a restart. A leader with a durable value repeats it, since all
// others may have accepted it. The leader discards all its other counters. It sends no
// Discard to members of an R that goes on, since a Discard would also end an instance
// they have not voted on.
func (s *step) resume() {
	var going siteSet
	for i := range s.cares {
		sl := &s.state.Slices[i]
		switch {
		case sl.unvoted():
			s.cares[i].deadline = after(s.now, s.cfg.Patience)
		case sl.Committed:
			s.cares[i].applied = s.one(s.cfg.Self)
			s.cares[i].deadline = after(s.now, s.backoff(0))
		default:
			s.cares[i] = s.voted(sl.ID)
			if sl.ID.Leader == s.cfg.Self {
				going |= s.cfg.setOf(sl.Value)
				s.ask(i)
			}
		}
	}
	if s.state.Reserved > 0 {
		s.sendAll(Message{Kind: Discard, ID: ID{s.cfg.Self, min(s.state.Reserved, avantan.MaxNumber)}}, going)
	}
}
