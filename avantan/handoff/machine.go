package handoff

import (
	"errors"
	"fmt"
	"slices"

	"github.com/samya-db/samya/avantan"
)

var (
	// errHeir is matched by Output.Err if a bequest was not begun because its heir is
	// out of range. The input had no effect.
	errHeir = errors.New("handoff: unusable heir")
	// errOpen is matched by Output.Err if a bequest was not begun because another one
	// is open. The input had no effect.
	errOpen = errors.New("handoff: a bequest is open")
	// errUnacceptable is matched by Output.Err if a bequest does not fit here.
	errUnacceptable = errors.New("handoff: the bequest cannot be taken here")
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
	return fmt.Sprintf("handoff: with site %s: invariant violated: %s", e.Peer, e.Reason)
}

// Input is a single event for Step: the first of its fields that is set. An Input with
// no field set is a wake: the Machine does whatever is due by now.
type Input struct {
	// Begin asks for the next bequest, to this heir. One bequest is open at a time.
	Begin avantan.SiteID
	// Lost is a site that is out for good: written off, or gone after it handed over all.
	// An open bequest to the site is dropped, and the site's numbers are forgotten.
	Lost avantan.SiteID
	// Receive is a message that has arrived. The Machine keeps nothing of it.
	Receive *Message
}

// Output is the list of tasks that a Step leaves to the caller.
type Output struct {
	// Persist says that State and ledger have changed, and that the change must be
	// durable, in one transaction, before any of Messages leaves.
	Persist bool
	// Messages are to be sent in this order. Any message may be lost.
	Messages []Message
	// Empty says that no bequest was begun, as the site holds nothing.
	Empty bool
	// Closed says that the open bequest is over: acknowledged, or dropped with its heir.
	Closed bool
	// Err reports refused input or a fault, for the log and the metrics: a malformed
	// message, a bequest that cannot begin or be taken, or a violated invariant. The
	// rest of the Output stands.
	Err error
}

// Machine is the part of a single site in the handoffs of an entity. It is not safe for
// concurrent use. An idle Machine holds its State and little else.
type Machine struct {
	cfg    *Config
	ledger Ledger
	state  State

	// A crash loses the fields below; only time-outs depend on them.

	// deadline is when to send the open bequest again. Zero after a restart: an open
	// bequest is due at once.
	deadline avantan.Tick
	// tries counts the repetitions.
	tries uint8
}

// New returns the Machine of an entity. cfg must be valid. st is the zero State for a
// new entity, and the last durable State for an older entity.
func New(cfg *Config, ledger Ledger, st State) *Machine {
	return &Machine{cfg: cfg, ledger: ledger, state: st}
}

// State returns the state that must be durable, for encoding. The caller must not
// change or retain the result; Clone gives a copy to keep.
func (m *Machine) State() *State { return &m.state }

// Open reports whether a bequest is open, so that none can begin.
func (m *Machine) Open() bool { return m.state.Open != nil }

// WakeAt returns when the Machine next wants a wake, and false if it wants none. The
// time may change with every Step, in both directions. A late wake costs time only; an
// early wake has no effect.
func (m *Machine) WakeAt() (at avantan.Tick, found bool) {
	return m.deadline, m.Open()
}

// Step handles one input at the given time and returns its consequences.
func (m *Machine) Step(now avantan.Tick, in Input) Output {
	s := step{Machine: m, now: now}
	switch {
	case in.Begin != "":
		s.begin(in.Begin)
	case in.Lost != "":
		s.lost(in.Lost)
	case in.Receive != nil:
		s.receive(in.Receive)
	default:
		s.repeat()
	}
	return s.out
}

// step is one call of Step.
type step struct {
	*Machine
	now avantan.Tick
	out Output
}

// send sends a message with the last bequest taken of its receiver.
func (s *step) send(to avantan.SiteID, m Message) {
	m.From, m.To, m.Taken = s.cfg.Self, to, s.state.taken(to).Number
	s.out.Messages = append(s.out.Messages, m)
}

// receive checks a message and handles its parts.
func (s *step) receive(m *Message) {
	if s.out.Err = m.Validate(); s.out.Err != nil {
		return
	}
	if m.To != s.cfg.Self {
		s.out.Err = m.malformed("To is another site")
		return
	}
	if reason := s.disagree(m); reason != "" {
		s.out.Err = &violationError{Peer: m.From, Reason: reason}
		return
	}
	// A bequest acknowledges too: the heir may hand an item back before the leaver has
	// heard that it was taken.
	s.acknowledged(m)
	if m.Kind == Bequeath {
		s.onBequeath(m)
	}
}

// disagree says what in a message no correct site can have sent; empty for nothing.
func (s *step) disagree(m *Message) string {
	if last := s.state.given(m.From); m.Taken > last {
		return fmt.Sprintf("it has taken bequest %d, %d was the last one made", m.Taken, last)
	}
	if last := s.state.taken(m.From).Number; m.Number > last+1 {
		return fmt.Sprintf("it sends bequest %d, %d was the last to be taken", m.Number, last)
	}
	return ""
}

// lost forgets a site. Nothing is taken back: the site may have taken the bequest, and
// granted the tokens. An item may have ended there, so it does not end here as well: its
// tokens stay in the net.
func (s *step) lost(site avantan.SiteID) {
	if b := s.state.Open; b != nil && b.Heir == site {
		for _, item := range b.Estate.Items {
			s.ledger.LoseItem(site, item)
		}
		if b.Estate.Net > 0 {
			s.ledger.LoseNet(site, b.Estate.Net)
		}
		s.state.Open = nil
		s.out.Closed = true
	}
	if i, found := s.state.findGiven(site); found {
		s.state.Given = without(s.state.Given, i)
		s.out.Persist = true
	}
	if i, found := s.state.findTaken(site); found {
		s.state.Taken = without(s.state.Taken, i)
		s.out.Persist = true
	}
}

// without removes an element. A list without elements is nil, as after a restart.
func without[E any](list []E, i int) []E {
	if len(list) == 1 {
		return nil
	}
	return slices.Delete(list, i, i+1)
}

// after adds without wrapping round.
func after(now, wait avantan.Tick) avantan.Tick {
	if sum := now + wait; sum >= now {
		return sum
	}
	return ^avantan.Tick(0)
}
