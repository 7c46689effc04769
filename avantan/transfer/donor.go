package transfer

import (
	"math"
	"slices"
)

// maxTries bounds the count of repetitions; the back-off reaches its maximum earlier.
const maxTries = 63

// onAsk gives tokens, or answers that there are none to give. An ask that finds a
// transfer under way gets that transfer: it was not credited when the ask left.
func (s *step) onAsk(m *Message) {
	i, found := s.state.findDebit(m.From)
	if m.Seq > 0 && (!found || m.Seq > s.state.Debits[i].Seq) {
		s.violation(m.From, "it has credited transfer %d, which was never made", m.Seq)
		return
	}
	if !found {
		s.state.Debits = slices.Insert(s.state.Debits, i, Debit{Receiver: m.From})
		s.cares = slices.Insert(s.cares, i, care{})
	}
	s.acknowledged(i, m.Seq)
	d := &s.state.Debits[i]
	if m.Ask <= d.Asked {
		return
	}
	d.Asked = m.Ask
	if d.Amount == 0 {
		left, target := s.ledger.Left()
		amount := share(m.Amount, left, target)
		if amount == 0 || amount > math.MaxInt64-s.state.InFlight() {
			s.send(m.From, Message{Kind: Refuse, Ask: m.Ask, Left: left})
			return
		}
		s.ledger.Debit(m.From, amount)
		d.Seq++
		d.Amount = amount
		s.out.Persist = true
	}
	s.cares[i].tries = 0
	s.transfer(i)
}

func (s *step) onAck(m *Message) {
	i, found := s.state.findDebit(m.From)
	if !found || m.Seq > s.state.Debits[i].Seq {
		s.violation(m.From, "it has credited transfer %d, which was never made", m.Seq)
		return
	}
	s.acknowledged(i, m.Seq)
}

// acknowledged frees a pair for the next transfer. The change need not be durable: if
// it is lost, the transfer is sent and acknowledged once more.
func (s *step) acknowledged(i int, seq uint64) {
	if d := &s.state.Debits[i]; seq == d.Seq {
		d.Amount = 0
	}
}

// lookForLost lets go of transfers to sites that are written off. Their tokens stay out of
// the books: such a site may have credited them, and granted them. A round stops to wait
// for such sites.
func (s *step) lookForLost() {
	if s.cfg.Lost == nil {
		return
	}
	for i := range s.state.Debits {
		if d := &s.state.Debits[i]; d.Amount > 0 && s.cfg.lost(d.Receiver) {
			d.Amount = 0
			s.out.Persist = true
		}
	}
	if s.round != nil {
		s.round.waits = slices.DeleteFunc(s.round.waits, s.cfg.lost)
	}
}

// repeat sends again every transfer that was not acknowledged in time.
func (s *step) repeat() {
	for i := range s.cares {
		if c := &s.cares[i]; s.state.Debits[i].Amount > 0 && s.now >= c.deadline {
			c.tries = min(c.tries+1, maxTries)
			s.transfer(i)
		}
	}
}

func (s *step) transfer(i int) {
	d, c := &s.state.Debits[i], &s.cares[i]
	c.deadline = after(s.now, s.cfg.backoff(c.tries))
	s.send(d.Receiver, Message{Kind: Transfer, Ask: d.Asked, Seq: d.Seq, Amount: d.Amount})
}
