package handoff

import (
	"fmt"
	"slices"

	"github.com/samya-db/samya/avantan"
)

// maxTries bounds the count of repetitions; the back-off reaches its maximum earlier.
const maxTries = 63

// begin opens a bequest of all that the site holds now.
func (s *step) begin(heir avantan.SiteID) {
	number := s.state.given(heir) + 1
	if s.out.Err = s.check(heir, number); s.out.Err != nil {
		return
	}
	items, held := s.ledger.Items(s.cfg.MaxItems)
	left, net := s.ledger.Holds()
	e := Estate{Left: max(left, 0), Owed: max(-left, 0), Net: net - held, Items: append([]Item(nil), bounded(items, s.cfg.MaxItems)...)}
	if e.empty() {
		s.out.Empty = true
		return
	}
	if e.Net < 0 {
		s.ledger.Count(-e.Net)
	}
	if e.Left > 0 {
		s.ledger.Debit(heir, e.Left)
	}
	i, found := s.state.findGiven(heir)
	if !found {
		s.state.Given = slices.Insert(s.state.Given, i, Given{Heir: heir})
	}
	s.state.Given[i].Number = number
	s.state.Open = &Bequest{Heir: heir, Number: number, Estate: e}
	s.out.Persist = true
	s.tries = 0
	s.bequeath()
}

// check refuses a bequest that cannot begin.
func (s *step) check(heir avantan.SiteID, number uint64) error {
	switch {
	case s.Open():
		return errOpen
	case heir == s.cfg.Self:
		return fmt.Errorf("%w: %q is this site", errHeir, heir)
	case number > avantan.MaxNumber:
		return fmt.Errorf("%w: all numbers of %q are used", errHeir, heir)
	case number == 1 && len(s.state.Given) == avantan.MaxMembers:
		return fmt.Errorf("%w: %q would be one of more than %d heirs", errHeir, heir, avantan.MaxMembers)
	}
	return nil
}

// bounded returns the first items that fit a bequest.
func bounded(items []Item, limit int) []Item {
	bytes := 0
	for i := range items {
		bytes += len(items[i].Data)
		if i == limit || bytes > maxBytes {
			return items[:i]
		}
	}
	return items
}

// acknowledges returns the open bequest if a message acknowledges it, else nil.
func (s *step) acknowledges(m *Message) *Bequest {
	if b := s.state.Open; b != nil && b.Heir == m.From && b.Number == m.Taken {
		return b
	}
	return nil
}

// acknowledged closes the open bequest if its heir has taken it: the heir counts the tokens
// out from then on.
func (s *step) acknowledged(m *Message) {
	b := s.acknowledges(m)
	if b == nil {
		return
	}
	if b.Estate.Owed > 0 {
		s.ledger.Credit(b.Heir, b.Estate.Owed)
	}
	if b.Estate.Net > 0 {
		s.ledger.Count(-b.Estate.Net)
	}
	for _, item := range b.Estate.Items {
		s.ledger.DropItem(b.Heir, item)
	}
	s.state.Open = nil
	s.out.Closed, s.out.Persist = true, true
}

// repeat sends the open bequest again if it was not acknowledged in time.
func (s *step) repeat() {
	if s.Open() && s.now >= s.deadline {
		s.tries = min(s.tries+1, maxTries)
		s.bequeath()
	}
}

func (s *step) bequeath() {
	b := s.state.Open
	s.deadline = after(s.now, s.cfg.backoff(s.tries))
	s.send(b.Heir, Message{Kind: Bequeath, Number: b.Number, Estate: b.Estate})
}
