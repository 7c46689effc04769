package avantan

import (
	"errors"
	"fmt"
	"slices"
)

// errUnacceptable is matched by Output.Err if Ledger.CanApply rejected a value and the
// Machine did not accept, build or apply it.
var errUnacceptable = errors.New("avantan: value cannot be applied here")

// violationError says that the sites disagree on something that the protocol
// guarantees: a disk was rolled back, a site runs twice, or there is a bug. Nothing was
// applied; the sequence needs an operator.
type violationError struct {
	Instance Instance
	Reason   string
}

// Error implements error.
func (e *violationError) Error() string {
	return fmt.Sprintf("avantan: instance %d: invariant violated: %s", e.Instance, e.Reason)
}

// Proposal is a caller's request for an instance.
type Proposal struct {
	// Policy names the reallocation policy; empty means Config.Policy.
	Policy string
	// Change is decided along with the redistribution, if the instance decides the
	// value built here; empty for none. If another value wins, the caller proposes the
	// change again.
	Change []byte
	// Press is passed on to the members asked for tokens; an unknown one means PressHold.
	Press Press
}

// Input is a single event for Step: the first of its fields that is set. An Input with
// no field set is a wake: the Machine does whatever is due by now.
type Input struct {
	// Begin asks for an instance, led by this site unless one is under way.
	Begin *Proposal
	// Receive is a message that has arrived. The Machine may keep the memory it points
	// to; the caller must not change it afterwards.
	Receive *Message
	// Refresh asks the named site for missed decisions, after this site was out of
	// touch.
	Refresh SiteID
}

// Failure says why an instance that the caller began came to nothing.
type Failure uint8

const (
	// FailedNot is the zero Failure.
	FailedNot Failure = iota
	// FailedNoQuorum means that no majority answered within the window. Nothing was
	// built, and the instance moved no offer of this site. A further Begin waits for
	// the end of a back-off by itself.
	FailedNoQuorum
	// FailedOutside means that this site is no voter of the next instance.
	FailedOutside
	// FailedUnacceptable means that this site's own ledger would not apply the
	// value; Output.Err says why.
	FailedUnacceptable
)

// Decided is an instance that was applied, with its value.
type Decided struct {
	Instance Instance
	Value    *Value
}

// Output is the list of tasks that a Step leaves to the caller.
type Output struct {
	// Persist says that State and ledger have changed, and that the change must be
	// durable, in one transaction, before any of Messages leaves.
	Persist bool
	// Messages are to be sent in this order. Any message may be lost.
	Messages []Message
	// Applied are the instances whose values the Machine told the ledger to apply, in
	// order. It omits instances skipped by a catch-up.
	Applied []Decided
	// Failed says that the instance begun by the caller was given up.
	Failed Failure
	// Err reports refused input or a fault, for the log and the metrics: a malformed
	// message, a value that cannot be applied here, a violated invariant, or an error of
	// Ledger.Install. The rest of the Output stands.
	Err error
}

// Machine is the part of a single site in a single sequence of instances of
// Avantan[(n+1)/2] (Samya, section 4.3.1). It is not safe for concurrent use. An idle
// Machine holds its State and little else.
type Machine struct {
	cfg    *Config
	ledger Ledger
	state  State

	// A crash loses all fields below; only time-outs and messages depend on them.

	lead *lead
	tell *tell
	// early holds acknowledgements of peers that are ahead of this site.
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

// New returns the Machine of a sequence. cfg must be valid. st is the zero State for a
// new sequence, and the last durable State for an older sequence.
func New(cfg *Config, ledger Ledger, st State) *Machine {
	return &Machine{cfg: cfg, ledger: ledger, state: st, restored: st.atStake()}
}

// State returns the state that must be durable, for encoding. The caller must not
// change or retain it; Clone it to keep it.
func (m *Machine) State() *State { return &m.state }

// Open reports whether an instance is under way here: Begin would join it.
func (m *Machine) Open() bool {
	return m.lead != nil || m.state.atStake() || m.deadline != 0
}

// Waits reports whether a Begin waits for the end of a back-off.
func (m *Machine) Waits() bool { return m.pending != nil }

// WakeAt returns when the Machine next wants a wake, and false if it wants none. The
// time may change with every Step, in both directions. A late wake costs time only; an
// early wake has no effect.
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

// Step handles one input at the given time and returns its consequences.
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
		if m.cfg.known(in.Refresh) && in.Refresh != m.cfg.Self {
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

// instance is the only instance that this site can take part in.
func (s *step) instance() Instance { return s.state.Applied + 1 }

func (s *step) send(to SiteID, m Message) {
	m.From, m.To = s.cfg.Self, to
	s.out.Messages = append(s.out.Messages, m)
}

func (s *step) broadcast(to View, m Message) {
	s.out.Messages = slices.Grow(s.out.Messages, max(0, len(to)-1))
	for _, site := range to {
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
	s.report(&violationError{Instance: s.instance(), Reason: fmt.Sprintf(format, args...)})
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
		// The sender waits for an answer that will not come any more.
		s.catchUp(m.From, m.SenderApplied())
	case Decision:
		s.send(m.From, Message{Kind: Applied, Applied: s.state.Applied})
	}
}

// onFuture handles a message about an instance that this site cannot take part in yet,
// since it must first apply the instances in between. It does not keep the message: a
// decision kept for later could be applied without these instances and their offers.
func (s *step) onFuture(m *Message) {
	s.send(m.From, Message{Kind: CatchUpAsk, Applied: s.state.Applied})
}

func (s *step) onPresent(m *Message) {
	if m.Kind == Decision {
		s.onDecision(m)
		return
	}
	if s.learned(m) {
		return
	}
	if err := s.checkVote(m); err != nil {
		s.report(err)
		return
	}
	if !s.current(m) {
		return
	}
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
	case Abandon:
		s.onAbandon(m)
	case Status:
		s.onStatus(m)
	}
}

// check refuses malformed messages and messages that name strangers.
func (s *step) check(m *Message) error {
	if err := m.Validate(); err != nil {
		return err
	}
	if m.To != s.cfg.Self {
		return m.malformed("To is another site")
	}
	if s.cfg.lost(m.From) {
		return m.malformed("the sender is lost for good")
	}
	if !m.names(s.cfg.known) {
		return fmt.Errorf("%w: %v from %q to %q: %w", errMessage, m.Kind, m.From, m.To, ErrStranger)
	}
	for i := range m.Kept {
		if !s.cfg.known(m.Kept[i].Peer) || !m.Kept[i].Value.names(s.cfg.known) {
			return fmt.Errorf("%w: %v from %q to %q: Kept: %w", errMessage, m.Kind, m.From, m.To, ErrStranger)
		}
	}
	return nil
}

// checkVote refuses messages of the present instance that name sites outside of its
// view. Sender and receiver have applied the same instances, so know the same view.
func (s *step) checkVote(m *Message) error {
	if !s.votes() {
		return m.malformed("the receiver is no voter")
	}
	if !m.names(s.view().Has) {
		return m.malformed("a site is no voter")
	}
	return nil
}

// names reports whether all sites that the message names, outside of Kept, are in a set.
func (m *Message) names(in func(SiteID) bool) bool {
	return in(m.From) && (m.Promised.IsZero() || in(m.Promised.Site)) &&
		(m.AcceptedAt.IsZero() || in(m.AcceptedAt.Site)) && (m.Value == nil || m.Value.names(in))
}

// names reports whether all sites in the value are in a set.
func (v *Value) names(in func(SiteID) bool) bool {
	for _, c := range v.Contributions {
		if !in(c.Site) {
			return false
		}
	}
	return true
}
