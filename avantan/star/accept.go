package star

import (
	"fmt"

	"github.com/samya-db/samya/avantan"
)

// build fixes R and begins the second phase. The own offer and the value are one
// transaction, ahead of Accept-Value. That transaction is this site's accept: from here
// on it has no veto.
func (s *step) build() {
	l := s.lead
	own, takesPart := s.pledge(l.id, l.proposal.Press)
	if !takesPart {
		s.standDown()
		s.fail(FailedUnacceptable)
		return
	}
	v := &avantan.Value{Contributions: sorted(append(l.contributions, own)), Policy: l.proposal.Policy}
	if err := s.ledger.CanApply(v); err != nil {
		s.ledger.TakeBack(l.id, own)
		s.unacceptable(l.id, err)
		s.standDown()
		s.fail(FailedUnacceptable)
		return
	}
	s.lead = nil
	c := s.voted(l.id)
	c.begun = true
	s.insert(Slice{ID: l.id, Pledge: own, Value: v}, c)
	if s.state.Reserved-(s.next-1) < block/2 {
		// The transaction is needed anyway: the next elections need none.
		s.reserve()
	}
	s.sendR(v, Message{Kind: Accept, ID: l.id, Value: v}, 0)
	s.sendAll(Message{Kind: Discard, ID: l.id}, s.cfg.setOf(v))
}

func (s *step) unacceptable(id ID, err error) {
	s.report(fmt.Errorf("%w: instance %v: %w", errUnacceptable, id, err))
}

// onAccept answers a value with this site's vote, or with the outcome of the instance.
// The sender has accepted the value: it is the leader, or a member of R that asks.
func (s *step) onAccept(m *Message) {
	i, found := s.state.find(m.ID)
	if !found {
		s.acceptWithoutSlice(m)
		return
	}
	sl := &s.state.Slices[i]
	if sl.unvoted() && !s.vote(i, m.Value) {
		// The answer "no vote yet" would tell the sender nothing: the vote could still
		// follow.
		s.abort(i)
		s.send(m.From, Message{Kind: Abort, ID: m.ID})
		if m.From != m.ID.Leader {
			s.send(m.ID.Leader, Message{Kind: Abort, ID: m.ID})
		}
		return
	}
	switch {
	case !sl.Value.Equal(m.Value):
		s.violation(m.ID, "two values")
	case sl.Concluded:
		s.send(m.From, Message{Kind: Concluded, ID: m.ID})
	case sl.Committed && m.From == m.ID.Leader:
		s.send(m.From, Message{Kind: Applied, ID: m.ID})
	case sl.Committed:
		s.send(m.From, Message{Kind: Commit, ID: m.ID})
	default:
		s.cares[i].accepted |= s.one(m.From)
		s.accepted(i)
		if sl.undecided() {
			lost, doubt := s.lostIn(i)
			s.send(m.From, s.cfg.accepted(m.ID, lost, doubt))
		}
	}
}

// acceptWithoutSlice answers a value that this site has no slice for. The value holds a
// pledge of this site, and the pledge is gone. Either it was taken back, so that the
// instance is aborted, or all of R that are left have ended it, the sender included.
func (s *step) acceptWithoutSlice(m *Message) {
	if m.ID.Leader == s.cfg.Self {
		if s.lead != nil && s.lead.id == m.ID {
			s.violation(m.ID, "a value that was not built yet")
			return
		}
	} else if m.ID.Counter > s.state.floor(m.ID.Leader) {
		s.violation(m.ID, "a value holds a contribution that was never pledged here")
		s.voteAborted(m.ID)
		s.state.raise(m.ID)
		s.out.Persist = true
	}
	s.send(m.From, Message{Kind: Abort, ID: m.ID})
}

// vote accepts a value, durably and for ever, if it can be applied here. The
// leader has accepted it before it sent it to anybody.
func (s *step) vote(i int, v *avantan.Value) bool {
	sl := &s.state.Slices[i]
	if s.cfg.setOf(v)&s.lost != 0 {
		// Its vote may never be known; this vote makes it matter no more.
		return false
	}
	if c, _ := v.Of(s.cfg.Self); c != sl.Pledge {
		s.violation(sl.ID, "a value holds a contribution that is not pledged here")
		return false
	}
	if err := s.ledger.CanApply(v); err != nil {
		s.unacceptable(sl.ID, err)
		return false
	}
	sl.Value = v
	s.out.Persist = true
	s.cares[i] = s.voted(sl.ID)
	return true
}

// voted returns the initial knowledge about an instance that this site just accepted.
// Its leader accepted first, and repeats the value before the patience of the other
// sites ends. The others ask after that, not all at once.
func (s *step) voted(id ID) care {
	c := care{accepted: s.one(s.cfg.Self) | s.one(id.Leader), lateAt: after(s.now, s.cfg.Patience)}
	if id.Leader == s.cfg.Self {
		c.deadline = after(s.now, s.cfg.Window)
	} else {
		c.deadline = after(c.lateAt, avantan.Tick(s.cfg.Rand.Uint64N(uint64(s.cfg.Backoff)+1)))
	}
	return c
}

// onAcceptOk counts a vote.
func (s *step) onAcceptOk(m *Message) {
	i, found := s.state.find(m.ID)
	if !found || !s.state.Slices[i].hasInR(m.From) || s.state.Slices[i].Committed {
		return
	}
	s.cares[i].accepted |= s.one(m.From)
	s.accepted(i)
}

// accepted commits once all of R have accepted. With two in R the cohort's own
// vote is the last.
func (s *step) accepted(i int) {
	sl := &s.state.Slices[i]
	if !s.cares[i].accepted.covers(s.cfg.setOf(sl.Value)) {
		return
	}
	id, v := sl.ID, sl.Value
	s.commit(i)
	if id.Leader != s.cfg.Self {
		// The leader is told by the acknowledgement.
		s.sendR(v, Message{Kind: Commit, ID: id}, s.one(id.Leader))
	}
}
