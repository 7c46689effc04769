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
		t := Taken{Leaver: m.From, Number: m.Number, Accepted: s.take(m.From, &m.Estate)}
		i, found := s.state.findTaken(m.From)
		if !found {
			s.state.Taken = slices.Insert(s.state.Taken, i, Taken{})
		}
		s.state.Taken[i] = t
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

// take books an estate, and returns how much of its net was accepted.
func (s *step) take(leaver avantan.SiteID, e *Estate) avantan.Tokens {
	before := s.ledger.Usable()
	if e.Left > 0 {
		s.ledger.Credit(leaver, e.Left)
	}
	if e.Owed > 0 {
		s.ledger.Debit(leaver, e.Owed)
	}
	if e.Net < 0 {
		s.ledger.Shift(e.Net)
	}
	for _, item := range e.Items {
		s.ledger.TakeItem(leaver, item)
	}
	accepted := acceptable(e.Net, before, s.ledger.Usable())
	if accepted > 0 {
		s.ledger.Shift(accepted)
	}
	return accepted
}

// acceptable returns how many tokens out a site charges that could grant before, and now
// could grant usable: no more than leave zero, unless the site has nothing of its own to
// grant. A site that was left at zero so accepts the rest with the next bequest, whatever
// that brings: the number of bequests does not depend on how many tokens are out.
func acceptable(net, before, usable avantan.Tokens) avantan.Tokens {
	switch {
	case net <= 0:
		return 0
	case before > 0 && usable > 0:
		return min(net, usable)
	}
	return net
}
