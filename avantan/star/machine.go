package star

import (
	"errors"
	"fmt"
	"slices"

	"github.com/samya-db/samya/avantan"
)

// errUnacceptable is matched by Output.Err if Ledger.CanApply rejected a value and the
// Machine did not build or accept it.
var errUnacceptable = errors.New("star: value cannot be applied here")

// violationError says that the sites disagree on something that the protocol
// guarantees: a disk was rolled back, a site runs twice, or there is a bug. Nothing was
// applied; the sequence needs an operator.
type violationError struct {
	ID     ID
	Reason string
}

// Error implements error.
func (e *violationError) Error() string {
	return fmt.Sprintf("star: instance %v: invariant violated: %s", e.ID, e.Reason)
}

// Proposal is a caller's request for an instance.
type Proposal struct {
	// Policy names the reallocation policy; empty means Config.Policy.
	Policy string
	// Press is passed on to the members asked for tokens; above PressAll means
	// PressAll.
	Press avantan.Press
	// Short is how many tokens the site lacks beyond the tokens it puts in itself. The
	// leader fixes R as soon as the others' offers, less their own wants, cover Short.
	// With the largest Tokens, the leader waits for every reachable member.
	Short avantan.Tokens
}

// Input is a single event for Step: the first of its fields that is set. An Input with
// no field set is a wake: the Machine does whatever is due by now.
type Input struct {
	// Begin asks for an instance led by this site. While an instance is under way here,
	// Begin waits for its end, and is forgotten if that instance moves tokens.
	Begin *Proposal
	// Receive is a message that has arrived. The Machine may keep the memory it points
	// to; the caller must not change it afterwards.
	Receive *Message
}

// Failure says why an instance that the caller began came to nothing.
type Failure uint8

const (
	// FailedNot is the zero Failure.
	FailedNot Failure = iota
	// FailedNothing means that nobody who answered within the window offered anything.
	// Nothing was built. After this and all other failures, a further Begin waits for
	// the end of a back-off by itself.
	FailedNothing
	// FailedBusy means the same, but a member had yet to vote in another instance: a
	// further attempt is worthwhile.
	FailedBusy
	// FailedAborted means that this site built a value, and a member of its R refused
	// the value or had given the instance up. All offers go back, unless a member was written
	// off before its vote was known: then each member ends with the lower of offer and grant.
	FailedAborted
	// FailedUnacceptable means that this site's own ledger would not pledge, or would
	// not apply the value. Output.Err says why in the second case.
	FailedUnacceptable
	// FailedFull means that this site takes part in Config.MaxSlices instances, all of
	// them waiting for unreachable members.
	FailedFull
)

// Decided is an instance that was applied, with its value.
type Decided struct {
	ID    ID
	Value *avantan.Value
}

// Output is the list of tasks that a Step leaves to the caller.
type Output struct {
	// Persist says that State and ledger have changed, and that the change must be
	// durable, in one transaction, before any of Messages leaves.
	Persist bool
	// Messages are to be sent in this order. Any message may be lost.
	Messages []Message
	// Applied are the instances whose values the Machine told the ledger to apply.
	Applied []Decided
	// Failed says that the instance begun by the caller was given up.
	Failed Failure
	// Err reports refused input or a fault, for the log and the metrics: a malformed
	// message, a value that cannot be applied here, or a violated invariant. The rest of
	// the Output stands.
	Err error
}

// Machine is the part of a single site in a single sequence of instances of Avantan[*]
// (Samya, section 4.3.2). It is not safe for concurrent use. An idle Machine holds its
// State and little else.
type Machine struct {
	cfg    *Config
	ledger Ledger
	state  State

	// A crash loses all fields below; only time-outs and messages depend on them.

	// next is the counter of the next instance led here.
	next uint64
	// lead is the instance led here while it collects offers.
	lead *lead
	// cares belong to the slices, in the same order.
	cares []care
	// waiting is the election that is answered when this site is free.
	waiting *waiting
	// pending is a caller's proposal that waits for retryAt, or for the end of the
	// instance under way.
	pending *Proposal
	// retryAt is the end of the back-off.
	retryAt avantan.Tick
	// fails counts the failed attempts in a row.
	fails uint8
	// restored is set until the first Step of a Machine that has a past.
	restored bool
}

// care is the volatile knowledge about a slice.
type care struct {
	// accepted are the members known to have accepted.
	accepted siteSet
	// applied are the members known to have durably ended the instance. Unless a site is
	// written off, only the leader collects them.
	applied siteSet
	// lost are the members of R that were written off when this site last looked. undecided
	// are the members that have said Undecided and named at least these.
	lost, undecided siteSet
	// deadline is when the slice is looked after next.
	deadline avantan.Tick
	// tries counts the repetitions.
	tries uint8
	// lateAt is the tick until which a Begin waits for an accepted value; late is set
	// after that.
	lateAt avantan.Tick
	late   bool
	// begun is set if this site's caller began the instance, in this life.
	begun bool
}

// New returns the Machine of a sequence. cfg must be valid. st is the zero State for a
// new sequence, and the last durable State for an older sequence.
func New(cfg *Config, ledger Ledger, st State) *Machine {
	return &Machine{
		cfg: cfg, ledger: ledger, state: st, next: st.Reserved + 1, cares: make([]care, len(st.Slices)),
		restored: st.Reserved > 0 || len(st.Slices) > 0,
	}
}

// State returns the state that must be durable, for encoding. The caller must not
// change or retain it; Clone it to keep it.
func (m *Machine) State() *State { return &m.state }

// Open reports whether an instance is under way here that Begin would wait for. An
// instance that has waited for others past its time-out does not count.
func (m *Machine) Open() bool {
	if m.lead != nil {
		return true
	}
	for i := range m.state.Slices {
		if m.state.Slices[i].undecided() && !m.cares[i].late {
			return true
		}
	}
	return false
}

// Waits reports whether a Begin waits for the end of a back-off or of the instance
// under way.
func (m *Machine) Waits() bool { return m.pending != nil }

// WakeAt returns when the Machine next wants a wake, and false if it wants none. The
// time may change with every Step, in both directions. A late wake costs time only; an
// early wake has no effect.
func (m *Machine) WakeAt() (avantan.Tick, bool) {
	if m.restored {
		return 0, true
	}
	var at avantan.Tick
	found := false
	earliest := func(t avantan.Tick) {
		if !found || t < at {
			at, found = t, true
		}
	}
	if m.lead != nil {
		earliest(m.lead.deadline)
	}
	for i := range m.cares {
		earliest(m.cares[i].deadline)
	}
	if m.pending != nil && !m.Open() {
		earliest(m.retryAt)
	}
	return at, found
}

// Step handles one input at the given time and returns its consequences.
func (m *Machine) Step(now avantan.Tick, in Input) Output {
	s := step{Machine: m, now: now, lost: m.cfg.allLost()}
	if m.restored {
		m.restored = false
		s.resume()
	}
	switch {
	case in.Begin != nil:
		s.begin(*in.Begin)
	case in.Receive != nil:
		s.receive(in.Receive)
	default:
		s.wake()
	}
	s.goOn()
	return s.out
}

// step is one call of Step.
type step struct {
	*Machine
	now avantan.Tick
	out Output
	// lost are the members written off.
	lost siteSet
}

// send sends to a site, unless the site is written off.
func (s *step) send(to avantan.SiteID, m Message) {
	if s.cfg.lost(to) {
		return
	}
	m.From, m.To = s.cfg.Self, to
	s.out.Messages = append(s.out.Messages, m)
}

// sendAll sends to all members except this site and the members in except.
func (s *step) sendAll(m Message, except siteSet) {
	for i, site := range s.cfg.Members {
		if site != s.cfg.Self && !except.has(i) && s.cfg.serves(site) {
			s.send(site, m)
		}
	}
}

// sendR sends to all of R except this site and the members in except.
func (s *step) sendR(v *avantan.Value, m Message, except siteSet) {
	of := s.cfg.setOf(v)
	for i, site := range s.cfg.Members {
		if site != s.cfg.Self && of.has(i) && !except.has(i) {
			s.send(site, m)
		}
	}
}

// one is the set of a single member.
func (s *step) one(site avantan.SiteID) siteSet {
	var set siteSet
	if i, member := s.cfg.index(site); member {
		set.add(i)
	}
	return set
}

// report keeps the first error of a step.
func (s *step) report(err error) {
	if s.out.Err == nil {
		s.out.Err = err
	}
}

func (s *step) violation(id ID, format string, args ...any) {
	s.report(&violationError{ID: id, Reason: fmt.Sprintf(format, args...)})
}

// receive checks a message and hands it to its kind's handler. A message of a site that is
// written off is dropped: the others may have ended without its word.
func (s *step) receive(m *Message) {
	if s.cfg.lost(m.From) {
		return
	}
	if err := s.check(m); err != nil {
		s.report(err)
		return
	}
	switch m.Kind {
	case Election:
		s.onElection(m)
	case ElectionOk:
		s.onElectionOk(m)
	case Busy:
		s.onBusy(m)
	case Discard:
		s.onDiscard(m)
	case Accept:
		s.onAccept(m)
	case AcceptOk:
		s.onAcceptOk(m)
	case Abort:
		s.onAbort(m)
	case Commit:
		s.onCommit(m)
	case Applied:
		s.onApplied(m)
	case Settled:
		s.onSettled(m)
	case Undecided:
		s.onUndecided(m)
	case Concluded:
		s.onConcluded(m)
	case Ended:
		s.onEnded(m)
	}
}

// check refuses a message that is malformed, names strangers, or tells of an instance
// of this site that it has never begun.
func (s *step) check(m *Message) error {
	if err := m.Validate(); err != nil {
		return err
	}
	if m.To != s.cfg.Self {
		return m.malformed("To is another site")
	}
	if !s.member(m.From) || !s.member(m.ID.Leader) {
		return m.stranger("")
	}
	if m.Value != nil && slices.ContainsFunc(m.Value.Contributions, func(c avantan.Contribution) bool { return !s.member(c.Site) }) {
		return m.stranger("Value: ")
	}
	if m.ID.Leader == s.cfg.Self && m.ID.Counter >= s.next {
		return m.malformed("the instance has not been begun here")
	}
	return nil
}

func (s *step) member(site avantan.SiteID) bool {
	_, member := s.cfg.index(site)
	return member
}

// insert adds a slice with its care.
func (s *step) insert(sl Slice, c care) {
	i, _ := s.state.find(sl.ID)
	s.state.Slices = slices.Insert(s.state.Slices, i, sl)
	s.cares = slices.Insert(s.cares, i, c)
	s.out.Persist = true
}

// remove drops a slice with its care.
func (s *step) remove(i int) {
	s.state.Slices = slices.Delete(s.state.Slices, i, i+1)
	s.cares = slices.Delete(s.cares, i, i+1)
	if len(s.cares) == 0 {
		s.state.Slices, s.cares = nil, nil
	}
}
