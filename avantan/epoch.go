package avantan

import (
	"fmt"
	"slices"
)

// With a majority of a view lost for good, no instance can be decided any more. An
// operator may then name the voters whose machines are destroyed ([Config.Lost]), and the
// others, the survivors, go on:
//
//   - All survivors make a quorum, in both phases. So whatever any of them has applied is
//     found.
//     Survivors without a vote may have applied an instance as well. So they are asked
//     before a value is built.
//   - Each instance has an epoch, the number of its lost voters, in the upper bits of the
//     numbers of its ballots. Votes and accepted values of another epoch do not count: the
//     lost majority may have decided another value.
//   - A pledge that was exposed in another epoch may be in a value that the lost sites have
//     decided, and whose tokens they have granted. It is in no further value. Once the
//     instance is settled without it, it is forfeit.
//
// As soon as an instance changes the view to one without lost sites, the epoch of the
// instances after it is 0 again.

// epochShift is the number of the lower bits of a ballot's number that count ballots.
const epochShift = 56

// epoch is the epoch of a ballot.
func (b Ballot) epoch() uint64 { return b.Number >> epochShift }

// lost reports whether a voter is lost for good.
func (c *Config) lost(site SiteID) bool { return c.Lost != nil && c.Lost(site) }

// epoch is the epoch of the present instance here.
func (m *Machine) epoch() (lost uint64) {
	if m.cfg.Lost == nil {
		return 0
	}
	for _, site := range m.ledger.View() {
		if m.cfg.Lost(site) {
			lost++
		}
	}
	return lost
}

// quorum is the number of voters that settle a phase: a majority, or all survivors.
func (m *Machine) quorum() int {
	view := m.ledger.View()
	if lost := m.epoch(); lost > 0 {
		return len(view) - int(lost) //nolint:gosec // at most 64 sites
	}
	return view.quorum()
}

// current reports whether a message of the present instance is about its epoch. The
// outcome of older ballots is told in any epoch.
func (m *Machine) current(msg *Message) bool {
	switch msg.Kind {
	case Abandon, Status:
		return true
	}
	return msg.Ballot.epoch() == m.epoch() && (msg.AcceptedAt.IsZero() || msg.AcceptedAt.epoch() == m.epoch())
}

// vote is the value accepted here in this epoch, nil for none.
func (m *Machine) vote() (Ballot, *Value) {
	if m.state.AcceptedAt.epoch() != m.epoch() {
		return Ballot{}, nil
	}
	return m.state.AcceptedAt, m.state.Accepted
}

// offers reports whether the pledge may be in a new value.
func (m *Machine) offers() bool { return m.state.Pledge != nil && !m.doubtful() }

// doubtful reports whether the pledge may be in a value of an earlier epoch.
func (m *Machine) doubtful() bool {
	for _, b := range m.state.Exposures {
		if b.epoch() != m.epoch() {
			return true
		}
	}
	return false
}

// unpledge ends the pledge, if there is any, of instance t, which is settled without it.
func (s *step) unpledge(t Instance, doubtful bool) {
	switch {
	case s.state.Pledge == nil:
	case doubtful:
		s.ledger.Forfeit(t, *s.state.Pledge)
	default:
		s.ledger.TakeBack(t, *s.state.Pledge)
	}
}

// learners are the survivors without a vote; none as long as no voter is lost.
func (m *Machine) learners() (sites []SiteID) {
	if m.epoch() == 0 || m.cfg.Serving == nil {
		return nil
	}
	for site := range m.cfg.Serving() {
		if !m.ledger.View().Has(site) {
			sites = append(sites, site)
		}
	}
	return sites
}

// learned handles the messages between a leader and a survivor without a vote, and
// reports whether m is one. The survivor has not applied the instance, and from now on
// hears of it from survivors only.
func (s *step) learned(m *Message) bool {
	if s.epoch() == 0 || !s.current(m) {
		return false
	}
	switch {
	case m.Kind == Election && !s.votes():
		s.send(m.From, Message{Kind: ElectionOk, Instance: m.Instance, Ballot: m.Ballot})
	case m.Kind == ElectionOk && !s.view().Has(m.From) && s.lead != nil && s.lead.ballot == m.Ballot:
		s.lead.learners = slices.DeleteFunc(s.lead.learners, func(site SiteID) bool { return site == m.From })
		if s.lead.value == nil {
			s.collected()
		}
	default:
		return false
	}
	return true
}

// Recover returns the Machine that takes the place of m once Config.Lost names further
// sites: whatever only time-outs and messages depend on is forgotten, as by a crash. The
// sites must be durable before any message of the new Machine leaves.
//
// It fails if no voter of the present instance is left.
func (m *Machine) Recover() (*Machine, error) {
	s := step{Machine: m}
	if s.quorum() == 0 {
		return nil, fmt.Errorf("avantan: instance %d: no voter of %v is left", s.instance(), s.view())
	}
	return New(m.cfg, m.ledger, m.state), nil
}
