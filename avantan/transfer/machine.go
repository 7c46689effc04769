package transfer

import (
	"errors"
	"fmt"

	"github.com/samya-db/samya/avantan"
)

var (
	// ErrProposal is matched by the error of an Output that refused to begin a
	// round: what it is to do is out of range. It had no effect.
	ErrProposal = errors.New("transfer: unusable proposal")
	// ErrOpen is matched by the error of an Output that refused to begin a round
	// because one is under way here. It had no effect.
	ErrOpen = errors.New("transfer: a round is under way")
	// ErrUnacceptable is matched by the error of an Output that did not take the
	// tokens of a transfer because Ledger.Credit did not.
	ErrUnacceptable = errors.New("transfer: the tokens cannot be credited here")
)

// ViolationError says that this site and another do not agree on something that
// the protocol guarantees: a disk was rolled back, a site runs twice, or there
// is a bug. The message had no effect; the entity needs an operator.
type ViolationError struct {
	// Peer is the other site, which need not be the one that is wrong.
	Peer   avantan.SiteID
	Reason string
}

// Error implements error.
func (e *ViolationError) Error() string {
	return fmt.Sprintf("transfer: with site %s: invariant violated: %s", e.Peer, e.Reason)
}

// Donor is a site that may be asked, and what it is thought to have left. That
// may be wrong: it only decides how the need is split. Nobody with nothing left
// is asked.
type Donor struct {
	Site avantan.SiteID
	Left avantan.Tokens
}

// Proposal is what a caller wants of a round.
type Proposal struct {
	// Need is how many tokens the site wants, at least 1.
	Need avantan.Tokens
	// Donors are other members, ordered by site, each once. What they have left
	// must add up to 63 bits.
	Donors []Donor
}

// Input is the one thing that Step is to handle: the first of its fields that
// is set. An Input with none set is a wake: what is due by now is done.
type Input struct {
	// Begin asks for a round. One at a time is under way here.
	Begin *Proposal
	// Receive is a message that has arrived. The Machine does not keep it.
	Receive *Message
}

// Result is what came of a round.
type Result struct {
	// Asked is how many tokens were asked for: all that was needed, or zero if
	// nobody was thought to have any.
	Asked avantan.Tokens
	// Got is how many tokens were credited during the round, by whomever they
	// were sent. What comes later is credited too, and counted nowhere.
	Got avantan.Tokens
	// Silent is the number of donors asked that had not answered at the end.
	Silent int
	// Satisfied is set if no less was got than was needed. Else the round is
	// short: all have answered, or the window is over.
	Satisfied bool
}

// Output is what a Step asks of the caller.
type Output struct {
	// Persist says that State and ledger have changed in a way that must be
	// durable, in one transaction, before any of Messages leaves.
	Persist bool
	// Messages are to be sent in this order. Any of them may be lost.
	Messages []Message
	// Ended is the round that the step has ended; nil for none.
	Ended *Result
	// Err reports what was refused or is wrong, for the log and the metrics. It
	// matches ErrMessage, ErrProposal, ErrOpen, ErrUnacceptable or is a
	// ViolationError. Whatever else the Output holds stands.
	Err error
}

// Machine is one site's part in the transfers of one entity. It is not safe for
// concurrent use. An idle one holds its State and little else.
type Machine struct {
	cfg    *Config
	ledger Ledger
	state  State

	// All below is lost in a crash, and only time-outs and messages depend on it.

	// next is the number of the next ask.
	next uint64
	// round is what is under way here as a receiver; nil for nothing.
	round *round
	// cares go with the debits, one each, in the same order.
	cares []care
}

// care is what a donor remembers of a debit between crashes.
type care struct {
	// deadline is when the transfer is sent again, unless it is acknowledged. Zero
	// after a restart: what is under way is due at once.
	deadline avantan.Tick
	// tries counts the repetitions.
	tries uint8
}

// New returns the Machine of an entity. cfg must be valid. st is the zero State
// for a new entity, or what was last durable of an older one.
func New(cfg *Config, ledger Ledger, st State) *Machine {
	return &Machine{cfg: cfg, ledger: ledger, state: st, next: st.Reserved + 1, cares: make([]care, len(st.Debits))}
}

// State returns what must be durable, for encoding. The caller must not change
// or retain it; Clone it to keep it.
func (m *Machine) State() *State { return &m.state }

// Open reports whether a round is under way, so that none can begin.
func (m *Machine) Open() bool { return m.round != nil }

// WakeAt returns when the Machine next wants a wake, and false if it does not.
// It may change with every Step, in both directions. A wake that comes late
// costs time only, one that comes early has no effect.
func (m *Machine) WakeAt() (at avantan.Tick, found bool) {
	if m.round != nil {
		at, found = m.round.deadline, true
	}
	for i, c := range m.cares {
		if m.state.Debits[i].Amount > 0 && (!found || c.deadline < at) {
			at, found = c.deadline, true
		}
	}
	return at, found
}

// Step handles one input at the given time and returns what follows from it.
func (m *Machine) Step(now avantan.Tick, in Input) Output {
	s := step{Machine: m, now: now}
	switch {
	case in.Begin != nil:
		s.begin(in.Begin)
	case in.Receive != nil:
		s.receive(in.Receive)
	default:
		s.repeat()
		if m.round != nil && now >= m.round.deadline {
			s.end()
		}
	}
	return s.out
}

// step is one call of Step.
type step struct {
	*Machine
	now avantan.Tick
	out Output
}

func (s *step) send(to avantan.SiteID, m Message) {
	m.From, m.To = s.cfg.Self, to
	s.out.Messages = append(s.out.Messages, m)
}

func (s *step) violation(peer avantan.SiteID, format string, args ...any) {
	s.out.Err = &ViolationError{Peer: peer, Reason: fmt.Sprintf(format, args...)}
}

// receive checks a message and hands it to its kind's handler.
func (s *step) receive(m *Message) {
	if s.out.Err = m.Validate(); s.out.Err != nil {
		return
	}
	if m.To != s.cfg.Self || !s.cfg.member(m.From) {
		s.out.Err = m.malformed("To is another site, or From is no member")
		return
	}
	switch m.Kind {
	case Ask:
		s.onAsk(m)
	case Transfer:
		s.onTransfer(m)
	case Refuse:
		s.onRefuse(m)
	case Ack:
		s.onAck(m)
	}
}

// after adds without wrapping round.
func after(now, wait avantan.Tick) avantan.Tick {
	if sum := now + wait; sum >= now {
		return sum
	}
	return ^avantan.Tick(0)
}
