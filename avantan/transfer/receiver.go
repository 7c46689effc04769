package transfer

import (
	"fmt"
	"math"
	"slices"

	"github.com/samya-db/samya/avantan"
)

// round is a receiver's side while it waits for answers.
type round struct {
	ask       uint64
	need, got avantan.Tokens
	// waits are the donors that have not answered, ordered by site.
	waits    []avantan.SiteID
	deadline avantan.Tick
}

// begin asks all donors at once. It sets nothing aside.
func (s *step) begin(p *Proposal) {
	if s.out.Err = s.check(p); s.out.Err != nil {
		return
	}
	donors := slices.DeleteFunc(slices.Clone(p.Donors), func(d Donor) bool { return s.cfg.lost(d.Site) })
	parts := divide(p.Need, donors)
	if parts == nil {
		s.out.Ended = &Result{}
		return
	}
	if s.next > s.state.Reserved {
		s.state.Reserved = s.next + block - 1
		s.out.Persist = true
	}
	s.round = &round{ask: s.next, need: p.Need, deadline: after(s.now, s.cfg.Window)}
	s.next++
	for i, d := range donors {
		if parts[i] > 0 {
			s.round.waits = append(s.round.waits, d.Site)
			s.send(d.Site, Message{Kind: Ask, Ask: s.round.ask, Seq: s.state.credited(d.Site), Amount: parts[i]})
		}
	}
}

// check refuses a round that cannot begin.
func (s *step) check(p *Proposal) error {
	switch {
	case s.round != nil:
		return errOpen
	case p.Need < 1:
		return fmt.Errorf("%w: Need %d must be at least 1", errProposal, p.Need)
	case !increasing(p.Donors, func(d Donor) avantan.SiteID { return d.Site }):
		return fmt.Errorf("%w: Donors must be sorted, each site once", errProposal)
	case s.next > avantan.MaxNumber:
		return fmt.Errorf("%w: all numbers of asks are used", errProposal)
	}
	var sum avantan.Tokens
	for _, d := range p.Donors {
		if d.Site == s.cfg.Self || !s.cfg.member(d.Site) {
			return fmt.Errorf("%w: Donors holds %q, which is no other member", errProposal, d.Site)
		}
		if d.Left > math.MaxInt64-sum {
			return fmt.Errorf("%w: what Donors have left does not fit 63 bits", errProposal)
		}
		sum += max(d.Left, 0)
	}
	return nil
}

// onTransfer credits a new transfer. It acknowledges the last credited transfer,
// durable once the answer leaves, whether the transfer is new or not.
func (s *step) onTransfer(m *Message) {
	last := s.state.credited(m.From)
	switch {
	case m.Ask >= s.next:
		s.violation(m.From, "it answers ask %d, which was never made", m.Ask)
		return
	case m.Seq > last+1:
		s.violation(m.From, "it sends transfer %d, %d was the last to be credited", m.Seq, last)
		return
	case m.Seq == last+1:
		if err := s.ledger.Credit(m.From, m.Amount); err != nil {
			s.out.Err = fmt.Errorf("%w: %d from %s: %w", errUnacceptable, m.Amount, m.From, err)
			return
		}
		last = m.Seq
		s.state.credit(m.From, last)
		s.out.Persist = true
		if s.round != nil {
			s.round.got += min(m.Amount, math.MaxInt64-s.round.got)
		}
	}
	s.send(m.From, Message{Kind: Ack, Seq: last})
	s.answered(m)
}

func (s *step) onRefuse(m *Message) {
	if m.Ask >= s.next {
		s.violation(m.From, "it answers ask %d, which was never made", m.Ask)
		return
	}
	s.answered(m)
}

// answered ends the round once the need is met or all donors have answered. An answer
// to an earlier ask does not count: the donor has yet to see this ask.
func (s *step) answered(m *Message) {
	if s.round == nil {
		return
	}
	if i, waits := slices.BinarySearch(s.round.waits, m.From); waits && m.Ask == s.round.ask {
		s.round.waits = slices.Delete(s.round.waits, i, i+1)
	}
	if s.round.got >= s.round.need || len(s.round.waits) == 0 {
		s.end()
	}
}

func (s *step) end() {
	r := s.round
	s.out.Ended = &Result{Asked: r.need, Got: r.got, Silent: len(r.waits), Satisfied: r.got >= r.need}
	s.round = nil
}
