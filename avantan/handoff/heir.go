package handoff

import (
	"fmt"
	"slices"

	"github.com/samya-db/samya/avantan"
)

// onBequeath takes a bequest if new. The answer acknowledges the last bequest taken, new
// or not, durable once the answer leaves.
func (s *step) onBequeath(m *Message) {
	last := s.state.taken(m.From).Number
	if m.Number < last {
		// A later bequest shows that the leaver has the answer.
		return
	}
	if m.Number > last {
		if s.out.Err = s.fits(m); s.out.Err != nil {
			return
		}
		s.take(m.From, &m.Estate)
		i, found := s.state.findTaken(m.From)
		if !found {
			s.state.Taken = slices.Insert(s.state.Taken, i, Taken{})
		}
		s.state.Taken[i] = Taken{Leaver: m.From, Number: m.Number}
		s.out.Persist = true
	}
	s.send(m.From, Message{Kind: Ack})
}

// fits refuses a bequest that cannot be taken now.
func (s *step) fits(m *Message) error {
	if m.Number == 1 && len(s.state.Taken) == avantan.MaxMembers {
		return fmt.Errorf("%w: from %s, one of more than %d leavers", errUnacceptable, m.From, avantan.MaxMembers)
	}
	if err := s.ledger.Fits(m.From, &m.Estate); err != nil {
		return fmt.Errorf("%w: number %d from %s: %w", errUnacceptable, m.Number, m.From, err)
	}
	return nil
}

// take books an estate.
func (s *step) take(leaver avantan.SiteID, e *Estate) {
	if e.Left > 0 {
		s.ledger.Credit(leaver, e.Left)
	}
	if e.Owed > 0 {
		s.ledger.Debit(leaver, e.Owed)
	}
	if e.Net != 0 {
		s.ledger.Count(e.Net)
	}
	for _, item := range e.Items {
		s.ledger.TakeItem(leaver, item)
	}
}
