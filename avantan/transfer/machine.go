package transfer

import (
	"errors"
	"fmt"

	"github.com/samya-db/samya/avantan"
)

var (
	// errProposal is matched by Output.Err if a round was not begun because its
	// Proposal is out of range. The Proposal had no effect.
	errProposal = errors.New("transfer: unusable proposal")
	// errOpen is matched by Output.Err if a round was not begun because another round
	// is under way here. The Proposal had no effect.
	errOpen = errors.New("transfer: a round is under way")
	// errUnacceptable is matched by Output.Err if Ledger.Credit refused the tokens of a
	// transfer.
	errUnacceptable = errors.New("transfer: the tokens cannot be credited here")
)

// violationError says that this site and another disagree on something that the
// protocol guarantees: a disk was rolled back, a site runs twice, or there is a bug.
// The message had no effect; the entity needs an operator.
type violationError struct {
	// Peer is the other site. The fault may be at either site.
	Peer   avantan.SiteID
	Reason string
}

// Error implements error.
func (e *violationError) Error() string {
	return fmt.Sprintf("transfer: with site %s: invariant violated: %s", e.Peer, e.Reason)
}

// Donor is a site that may be asked, and an estimate of its tokens. A wrong estimate
// only affects how the need is split. A donor without tokens is not asked.
type Donor struct {
	Site avantan.SiteID
	Left avantan.Tokens
}

// Proposal is a caller's request for a round.
type Proposal struct {
	// Need is how many tokens the site wants, at least 1.
	Need avantan.Tokens
	// Donors are other members, ordered by site, each once. The sum of their tokens
	// must fit 63 bits.
	Donors []Donor
}

// Input is a single event for Step: the first of its fields that is set. An Input with
// no field set is a wake: the Machine does whatever is due by now.
type Input struct {
	// Begin asks for a round. A single round is under way here at a time.
	Begin *Proposal
	// Receive is a message that has arrived. The Machine does not keep it.
	Receive *Message
}

// Result is the outcome of a round.
type Result struct {
	// Asked is the number of tokens asked for: the whole need, or zero if no donor was
	// thought to have any.
	Asked avantan.Tokens
	// Got is the number of tokens credited during the round, whoever sent them. Later
	// tokens are credited too, but not counted in any round.
	Got avantan.Tokens
	// Silent is the number of donors asked that had not answered at the end.
	Silent int
	// Satisfied is set if Got is no less than the need. Otherwise the round is short:
	// all donors have answered, or the window is over.
	Satisfied bool
}

// Output is the list of tasks that a Step leaves to the caller.
type Output struct {
	// Persist says that State and ledger have changed, and that the change must be
	// durable, in one transaction, before any of Messages leaves.
	Persist bool
	// Messages are to be sent in this order. Any message may be lost.
	Messages []Message
	// Ended is the result of the round that this step ended; nil for none.
	Ended *Result
	// Err reports refused input or a fault, for the log and the metrics: a malformed
	// message, a Proposal out of range or during a round, tokens that cannot be credited
	// here, or a violated invariant. The rest of the Output stands.
	Err error
}

// Machine is the part of a single site in the transfers of an entity. It is not safe
// for concurrent use. An idle Machine holds its State and little else.
type Machine struct {
	cfg    *Config
	ledger Ledger
	state  State

	// A crash loses all fields below; only time-outs and messages depend on them.

	// next is the number of the next ask.
	next uint64
	// round is the round under way here as a receiver; nil for none.
	round *round
	// cares belong to the debits, in the same order.
	cares []care
}

// care is the volatile knowledge of a donor about a debit.
type care struct {
	// deadline is when to send the transfer again, unless it is acknowledged. Zero
	// after a restart: a transfer under way is due at once.
	deadline avantan.Tick
	// tries counts the repetitions.
	tries uint8
}

// New returns the Machine of an entity. cfg must be valid. st is the zero State for a
// new entity, and the last durable State for an older entity.
func New(cfg *Config, ledger Ledger, st State) *Machine {
	return &Machine{cfg: cfg, ledger: ledger, state: st, next: st.Reserved + 1, cares: make([]care, len(st.Debits))}
}

// State returns the state that must be durable, for encoding. The caller must not
// change or retain it; Clone it to keep it.
func (m *Machine) State() *State { return &m.state }

// Open reports whether a round is under way, so that none can begin.
func (m *Machine) Open() bool { return m.round != nil }

// WakeAt returns when the Machine next wants a wake, and false if it wants none. The
// time may change with every Step, in both directions. A late wake costs time only; an
// early wake has no effect.
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

// Step handles one input at the given time and returns its consequences.
func (m *Machine) Step(now avantan.Tick, in Input) Output {
	s := step{Machine: m, now: now}
	switch {
	case in.Begin != nil:
		s.begin(in.Begin)
	case in.Receive != nil:
		s.receive(in.Receive)
	default:
		s.lookForLost()
		s.repeat()
		if m.round != nil && (len(m.round.waits) == 0 || now >= m.round.deadline) {
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
	s.out.Err = &violationError{Peer: peer, Reason: fmt.Sprintf(format, args...)}
}

// receive checks a message and hands it to its kind's handler. A message of a site that is
// written off is dropped: its tokens are retired, and it gets no more.
func (s *step) receive(m *Message) {
	if s.cfg.lost(m.From) {
		return
	}
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
