package avantan

import (
	"errors"
	"fmt"
)

// ErrUnacceptable is matched by the error of an Output that refused to accept,
// build or apply a value because Ledger.CanApply did.
var ErrUnacceptable = errors.New("avantan: value cannot be applied here")

// ViolationError says that the sites do not agree on something that the
// protocol guarantees: a disk was rolled back, a site runs twice, or there is a
// bug. Nothing was applied; the sequence needs an operator.
type ViolationError struct {
	Instance Instance
	Reason   string
}

// Error implements error.
func (e *ViolationError) Error() string {
	return fmt.Sprintf("avantan: instance %d: invariant violated: %s", e.Instance, e.Reason)
}

// Proposal is what a caller wants of an instance it begins.
type Proposal struct {
	// Policy names the reallocation policy; empty means Config.Policy.
	Policy string
	// Change is decided along with the redistribution, if the value built here
	// is the one decided; empty for none. A change whose value lost is for the
	// caller to propose again.
	Change []byte
	// Press is passed on to those asked for tokens; above PressHold means it.
	Press Press
}

// Input is the one thing that Step is to handle: the first of its fields that
// is set. An Input with none set is a wake: what is due by now is done.
type Input struct {
	// Begin asks for an instance, led by this site unless one is under way.
	Begin *Proposal
	// Receive is a message that has arrived. The Machine may keep what it points
	// to; the caller must not change it afterwards.
	Receive *Message
	// Refresh asks the member named for what was missed; for a site that has
	// been out of touch.
	Refresh SiteID
}

// Failure says why an instance that the caller began came to nothing.
type Failure uint8

const (
	// FailedNot is the zero Failure.
	FailedNot Failure = iota
	// FailedNoQuorum means that no majority answered within the window. Nothing
	// was built and no offer of this site was moved for it. A further Begin
	// waits for the end of a back-off by itself.
	FailedNoQuorum
	// FailedUnacceptable means that this site's own ledger would not apply the
	// value; Output.Err says why.
	FailedUnacceptable
)

// Decided is an instance that was applied, with its value.
type Decided struct {
	Instance Instance
	Value    *Value
}

// Output is what a Step asks of the caller.
type Output struct {
	// Persist says that State and ledger have changed in a way that must be
	// durable, in one transaction, before any of Messages leaves.
	Persist bool
	// Messages are to be sent in this order. Any of them may be lost.
	Messages []Message
	// Applied are the instances whose values the ledger was told to apply, in
	// order. Instances skipped by a catch-up are not among them.
	Applied []Decided
	// Failed says that the instance begun by the caller was given up.
	Failed Failure
	// Err reports what was refused or is wrong, for the log and the metrics. It
	// matches ErrMessage, ErrUnacceptable or a ViolationError, or is what
	// Ledger.Install returned. Whatever else the Output holds stands.
	Err error
}

// Machine is one site's part in one sequence of instances of
// Avantan[(n+1)/2] (Samya, section 4.3.1). It is not safe for concurrent use.
// An idle one holds its State and little else.
type Machine struct {
	cfg    *Config
	ledger Ledger
	state  State

	// All below is lost in a crash, and only time-outs and messages depend on it.

	lead *lead
	tell *tell
	// early holds what peers have applied that is not applied here yet.
	early []ack
	// pending is a caller's proposal that waits for retryAt.
	pending *Proposal
	// deadline is when an open instance is looked after next; 0 for never.
	deadline Tick
	// retryAt is the end of the back-off.
	retryAt Tick
	// askAt is when to ask askFrom for a decision that others have applied; 0
	// for never.
	askAt   Tick
	askFrom SiteID
	// seen is the highest ballot number that this instance was refused for.
	seen uint64
	// fails counts the failed attempts at this instance.
	fails uint8
	// asked is set once the leaders have been asked for their Status.
	asked bool
	// restored is set until the first Step of a Machine that starts within an
	// instance.
	restored bool
}

// New returns the Machine of a sequence. cfg must be valid. st is the zero
// State for a new sequence, or what was last durable of an older one.
func New(cfg *Config, ledger Ledger, st State) *Machine {
	return &Machine{cfg: cfg, ledger: ledger, state: st, restored: st.atStake()}
}

// State returns what must be durable, for encoding. The caller must not change
// or retain it; Clone it to keep it.
func (m *Machine) State() *State { return &m.state }

// Open reports whether an instance is under way here: Begin would join it.
func (m *Machine) Open() bool {
	return m.lead != nil || m.state.atStake() || m.deadline != 0
}

// Waits reports whether a Begin waits for the end of a back-off.
func (m *Machine) Waits() bool { return m.pending != nil }

// WakeAt returns when the Machine next wants a wake, and false if it does not.
// It may change with every Step, in both directions. A wake that comes late
// costs time only, one that comes early has no effect.
func (m *Machine) WakeAt() (Tick, bool) {
	if m.restored {
		return 0, true
	}
	var at Tick
	earliest := func(t Tick) {
		if t != 0 && (at == 0 || t < at) {
			at = t
		}
	}
	earliest(m.deadline)
	earliest(m.askAt)
	if m.pending != nil {
		earliest(m.retryAt)
	}
	if m.tell != nil {
		earliest(m.tell.at)
	}
	return at, at != 0
}

// Step handles one input at the given time and returns what follows from it.
func (m *Machine) Step(now Tick, in Input) Output {
	s := step{Machine: m, now: now}
	if m.restored {
		m.restored = false
		s.waitFor(m.backoff())
	}
	switch {
	case in.Begin != nil:
		s.begin(*in.Begin)
	case in.Receive != nil:
		s.receive(in.Receive)
	case in.Refresh != "":
		if _, member := m.cfg.index(in.Refresh); member && in.Refresh != m.cfg.Self {
			s.send(in.Refresh, Message{Kind: CatchUpAsk, Applied: m.state.Applied})
		}
	default:
		s.wake()
	}
	return s.out
}

// step is one call of Step.
type step struct {
	*Machine
	now Tick
	out Output
}

// instance is the one that this site can take part in.
func (s *step) instance() Instance { return s.state.Applied + 1 }

func (s *step) send(to SiteID, m Message) {
	m.From, m.To = s.cfg.Self, to
	s.out.Messages = append(s.out.Messages, m)
}

func (s *step) broadcast(m Message) {
	for _, site := range s.cfg.Members {
		if site != s.cfg.Self {
			s.send(site, m)
		}
	}
}

// report keeps the first error of a step.
func (s *step) report(err error) {
	if s.out.Err == nil {
		s.out.Err = err
	}
}

func (s *step) violation(format string, args ...any) {
	s.report(&ViolationError{Instance: s.instance(), Reason: fmt.Sprintf(format, args...)})
}

// receive checks a message and hands it to its kind's handler.
func (s *step) receive(m *Message) {
	if err := s.check(m); err != nil {
		s.report(err)
		return
	}
	s.learn(m.From, m.SenderApplied())
	switch {
	case m.Kind == Applied:
		s.onApplied(m)
	case m.Kind == CatchUpAsk:
		s.onCatchUpAsk(m)
	case m.Kind == CatchUp:
		s.onCatchUp(m)
	case m.Instance < s.instance():
		s.onPast(m)
	case m.Instance > s.instance():
		s.onFuture(m)
	default:
		s.onPresent(m)
	}
	s.forget()
}

// onPast handles a message about an instance that is applied here.
func (s *step) onPast(m *Message) {
	switch m.Kind {
	case Election, ElectionOk, Accept, Status:
		// Its sender waits for something that will not happen any more.
		s.catchUp(m.From, m.SenderApplied())
	case Decision:
		s.send(m.From, Message{Kind: Applied, Applied: s.state.Applied})
	}
}

// onFuture handles a message about an instance that this site cannot take part
// in before it has applied those in between. It is not kept: a decision kept
// for later could be applied without those, and without their offers.
func (s *step) onFuture(m *Message) {
	s.send(m.From, Message{Kind: CatchUpAsk, Applied: s.state.Applied})
}

func (s *step) onPresent(m *Message) {
	switch m.Kind {
	case Election:
		s.onElection(m)
	case ElectionOk:
		s.onElectionOk(m)
	case Refuse:
		s.onRefuse(m)
	case Accept:
		s.onAccept(m)
	case AcceptOk:
		s.onAcceptOk(m)
	case Decision:
		s.onDecision(m)
	case Abandon:
		s.onAbandon(m)
	case Status:
		s.onStatus(m)
	}
}

// check refuses what is malformed or names strangers.
func (s *step) check(m *Message) error {
	if err := m.Validate(); err != nil {
		return err
	}
	if m.To != s.cfg.Self {
		return m.malformed("To is another site")
	}
	if !s.member(m.From) || !m.Promised.IsZero() && !s.member(m.Promised.Site) ||
		!m.AcceptedAt.IsZero() && !s.member(m.AcceptedAt.Site) || m.Value != nil && !s.members(m.Value) {
		return m.malformed("a site is not a member")
	}
	for i := range m.Kept {
		if !s.member(m.Kept[i].Peer) || !s.members(&m.Kept[i].Value) {
			return m.malformed("a site in Kept is not a member")
		}
	}
	return nil
}

func (s *step) member(site SiteID) bool {
	_, member := s.cfg.index(site)
	return member
}

func (s *step) members(v *Value) bool {
	for _, c := range v.Contributions {
		if !s.member(c.Site) {
			return false
		}
	}
	return true
}
