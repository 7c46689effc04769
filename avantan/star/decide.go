package star

import (
	"slices"

	"github.com/samya-db/samya/avantan"
)

// commit applies a value that all of R have accepted.
func (s *step) commit(i int) {
	sl, c := &s.state.Slices[i], &s.cares[i]
	s.ledger.Apply(sl.ID, sl.Value)
	sl.Committed = true
	s.out.Persist = true
	s.out.Applied = append(s.out.Applied, Decided{ID: sl.ID, Value: sl.Value})
	s.pending, s.fails, s.retryAt = nil, 0, 0
	c.applied |= s.one(s.cfg.Self)
	c.tries, c.late = 0, false
	c.deadline = after(s.now, s.cfg.Patience)
	if sl.ID.Leader == s.cfg.Self {
		s.sendR(sl.Value, Message{Kind: Commit, ID: sl.ID}, c.applied)
	} else {
		s.send(sl.ID.Leader, Message{Kind: Applied, ID: sl.ID})
	}
}

// onCommit applies a value that all of R are said to have accepted, and acknowledges.
// A leader learns of it by Applied.
func (s *step) onCommit(m *Message) {
	i, found := s.state.find(m.ID)
	switch {
	case m.ID.Leader == s.cfg.Self:
		s.onApplied(m)
	case !found && m.From == m.ID.Leader && m.ID.Counter <= s.state.floor(m.ID.Leader):
		// This site settled and forgot the instance, and the leader has lost that.
		s.send(m.From, Message{Kind: Applied, ID: m.ID})
	case !found:
		s.sayEnded(m)
	case s.state.Slices[i].unvoted():
		s.violation(m.ID, "committed without this site's vote")
	case !s.state.Slices[i].hasInR(m.From):
	case s.state.Slices[i].Concluded:
		s.violation(m.ID, "committed, and concluded here")
	case s.state.Slices[i].undecided():
		s.commit(i)
		s.hasEnded(i, m)
	default:
		s.send(m.ID.Leader, Message{Kind: Applied, ID: m.ID})
		s.hasEnded(i, m)
	}
}

// onApplied notes at the leader that a member has applied the value: by Applied, or by
// Commit where a site is written off. Once all members have durably applied it, the leader
// lets all of R forget the instance. No site is left then that could ask for the outcome.
func (s *step) onApplied(m *Message) {
	i, found := s.state.find(m.ID)
	if !found {
		switch {
		case s.lead != nil && s.lead.id == m.ID:
		case s.lost != 0:
			// A member that is written off may not have applied it.
			s.sayEnded(m)
		default:
			s.send(m.From, Message{Kind: Settled, ID: m.ID})
		}
		return
	}
	if !s.state.Slices[i].hasInR(m.From) {
		return
	}
	if s.state.Slices[i].Concluded {
		s.violation(m.ID, "committed, and concluded here")
		return
	}
	s.cares[i].applied |= s.one(m.From)
	if s.state.Slices[i].undecided() {
		s.commit(i)
	}
	if m.Kind == Commit {
		s.sayEnded(m)
	}
	s.forget(i)
}

// onSettled forgets an instance. The record on disk may last longer without harm.
func (s *step) onSettled(m *Message) {
	if i, found := s.state.find(m.ID); found && s.state.Slices[i].Committed {
		s.remove(i)
	}
}

// abort takes the offer back. If this site has not voted, the abort is its vote; if it
// has accepted, another site has voted to abort. The books and the removal of the slice
// are one transaction, durable before anybody hears of the abort or uses the tokens.
func (s *step) abort(i int) {
	sl, begun := s.state.Slices[i], s.cares[i].begun
	s.ledger.TakeBack(sl.ID, sl.Pledge)
	s.remove(i)
	s.out.Persist = true
	if begun {
		s.fail(FailedAborted)
	}
}

// voteAborted aborts this site's unvoted instance, if it is id or an earlier instance
// of the same leader, and reports whether it did.
func (s *step) voteAborted(id ID) bool {
	i, open := s.state.unvoted()
	if !open {
		return false
	}
	at := s.state.Slices[i].ID
	if at.Leader != id.Leader || at.Counter > id.Counter {
		return false
	}
	s.abort(i)
	return true
}

// onDiscard lets go of an instance that goes on without this site, or not at all. It
// has no effect on an instance this site has voted on: the message may be older than
// the vote.
func (s *step) onDiscard(m *Message) {
	s.voteAborted(m.ID)
	if w := s.waiting; w != nil && w.election.From == m.From && w.election.ID.Counter <= m.ID.Counter {
		s.waiting = nil
	}
}

// onAbort ends an instance that a member of R has voted against. A leader
// tells the others, and so does a site that has been asking them.
func (s *step) onAbort(m *Message) {
	if l := s.lead; l != nil && l.id == m.ID {
		s.withdrawn(m.From)
		return
	}
	i, found := s.state.find(m.ID)
	if !found || s.state.Slices[i].Committed {
		return
	}
	v, tell := s.state.Slices[i].Value, m.ID.Leader == s.cfg.Self || s.cares[i].late
	if v != nil && !s.state.Slices[i].hasInR(m.From) {
		return
	}
	s.abort(i)
	if v != nil && tell {
		s.sendR(v, Message{Kind: Abort, ID: m.ID}, s.one(m.From))
	}
}

// withdrawn drops the offer of a site that has waited for too long.
func (s *step) withdrawn(site avantan.SiteID) {
	l := s.lead
	l.contributions = slices.DeleteFunc(l.contributions, func(c avantan.Contribution) bool { return c.Site == site })
	l.answers |= s.one(site)
	s.collected()
}
