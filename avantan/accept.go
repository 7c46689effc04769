package avantan

import (
	"fmt"
	"slices"
)

// build begins the second phase. It takes the value accepted at the highest ballot
// among the promises, since that value may have been decided. Otherwise it concatenates
// the contributions, its own included. The value, the flag, the own offer and the own
// accept are one transaction, ahead of Accept-Value.
//
// This site's promise is still the ballot: a site stands down from a first phase as
// soon as it promises another ballot.
func (s *step) build() {
	l := s.lead
	v := l.adopted
	fresh := v == nil
	pledged := s.state.Pledge != nil
	if fresh {
		if !pledged {
			s.pledge(l.proposal.Press)
		}
		contributions := l.contributions
		if s.offers() {
			contributions = append(contributions, *s.state.Pledge)
		}
		v = &Value{Contributions: sorted(contributions), Policy: l.proposal.Policy, Change: l.proposal.Change}
	}
	if err := s.acceptable(v); err != nil {
		s.report(err)
		if !pledged && s.state.Pledge != nil {
			s.ledger.TakeBack(s.instance(), *s.state.Pledge)
			s.state.Pledge = nil
		}
		s.standDown()
		s.backOff()
		if l.own {
			s.out.Failed = FailedUnacceptable
		}
		return
	}
	if fresh {
		s.state.Built = true
		if s.offers() {
			s.state.expose(l.ballot)
		}
	}
	l.value = v
	s.state.AcceptedAt, s.state.Accepted = l.ballot, v
	s.out.Persist = true
	s.waitFor(s.cfg.Patience)
	self, _ := s.view().index(s.cfg.Self)
	l.oks.add(self)
	s.out.Messages = slices.Grow(s.out.Messages, len(s.view())-1)
	for _, site := range s.view() {
		if site != s.cfg.Self {
			s.sendAccept(site)
		}
	}
	s.accepted()
}

// acceptable returns an error if this site must not accept the value.
func (s *step) acceptable(v *Value) error {
	if !v.names(s.view().Has) {
		return fmt.Errorf("%w: instance %d: a site in the value is no voter", errUnacceptable, s.instance())
	}
	if err := s.ledger.CanApply(v); err != nil {
		return fmt.Errorf("%w: instance %d: %w", errUnacceptable, s.instance(), err)
	}
	return s.matches(v)
}

// matches returns an error if the value holds a contribution of this site that is not
// its pledge. Such a value would consume an offer that was never set aside, or was
// taken back.
func (s *step) matches(v *Value) error {
	c, in := v.Of(s.cfg.Self)
	if in && (s.state.Pledge == nil || *s.state.Pledge != c) {
		return &violationError{Instance: s.instance(), Reason: "a value holds a contribution that is not pledged here"}
	}
	return nil
}

func (s *step) sendAccept(to SiteID) {
	s.send(to, Message{Kind: Accept, Instance: s.instance(), Ballot: s.lead.ballot, Value: s.lead.value})
}

// onAccept accepts a leader's value unless a higher ballot was promised.
func (s *step) onAccept(m *Message) {
	if _, in := m.Value.Of(s.cfg.Self); !in && s.state.leftOut(m.Ballot) {
		s.out.Persist = true
		s.freeOffer()
	}
	if m.Ballot.Compare(s.state.Promised) < 0 {
		s.refuse(m)
		return
	}
	if s.state.AcceptedAt == m.Ballot {
		if !s.state.Accepted.Equal(m.Value) {
			s.violation("two values at ballot %v", m.Ballot)
			return
		}
	} else {
		if err := s.acceptable(m.Value); err != nil {
			s.report(err)
			return
		}
		if s.lead != nil && s.lead.value == nil {
			s.standDown()
		}
		// The promise rises with the accept. Otherwise a repeated Accept-Value of a
		// lower ballot could overwrite a decided value.
		s.state.Promised = m.Ballot
		s.state.AcceptedAt, s.state.Accepted = m.Ballot, m.Value
		s.out.Persist = true
	}
	s.waitForLeader()
	s.send(m.From, Message{Kind: AcceptOk, Instance: m.Instance, Ballot: m.Ballot})
}

// onAcceptOk counts an accept, even if this site has promised a higher ballot since.
// The accepts of a majority at one ballot decide, this site's own among them, whatever
// each site promised afterwards.
func (s *step) onAcceptOk(m *Message) {
	l := s.lead
	if l == nil || l.ballot != m.Ballot || l.value == nil {
		return
	}
	i, _ := s.view().index(m.From)
	l.oks.add(i)
	s.accepted()
}

// accepted decides once a majority has accepted.
func (s *step) accepted() {
	if s.lead.oks.len() >= s.quorum() {
		s.decide(s.lead.value)
	}
}
