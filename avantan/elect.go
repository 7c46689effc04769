package avantan

import (
	"cmp"
	"slices"
)

// lead is a leader's side of an instance at one ballot.
type lead struct {
	ballot   Ballot
	proposal Proposal
	// own says that the caller began the instance; otherwise this site finishes
	// another's.
	own bool
	// answers are the members that have promised, this site included.
	answers siteSet
	// contributions came with the promises.
	contributions []Contribution
	// adopted is the value accepted at the highest ballot among the promises.
	adoptedAt Ballot
	adopted   *Value
	// value is set once the accept phase has begun.
	value *Value
	// oks are the members that have accepted value at ballot.
	oks siteSet
	// learners are the sites without a vote that have still to say that they have not
	// applied the instance.
	learners []SiteID
	// refused is set once a member has promised a higher ballot.
	refused bool
}

// begin starts an instance for the caller, unless an instance is under way.
func (s *step) begin(p Proposal) {
	switch {
	case !s.votes():
		s.out.Failed = FailedOutside
	case s.Open():
	case s.now < s.retryAt:
		s.pending = &p
	default:
		s.elect(p, true)
	}
}

// elect begins the first phase at a new ballot: Election-GetValue. The ballot
// is this site's own promise, durable before anyone hears of it, so that a
// restart cannot use it again.
func (s *step) elect(p Proposal, own bool) {
	s.pending = nil
	number := max(s.state.Promised.Number, s.seen, s.epoch()<<epochShift)
	if number >= MaxNumber || s.instance() > MaxNumber {
		s.violation("ballots or instances are used up")
		s.deadline = 0
		return
	}
	if p.Policy == "" {
		p.Policy = s.cfg.Policy
	}
	p.Press = p.Press.Known()
	b := Ballot{Number: number + 1, Site: s.cfg.Self}
	s.state.Promised = b
	s.out.Persist = true
	s.lead = &lead{ballot: b, proposal: p, own: own}
	self, _ := s.view().index(s.cfg.Self)
	s.lead.answers.add(self)
	s.lead.adoptedAt, s.lead.adopted = s.vote()
	s.deadline = after(s.now, s.cfg.Window)
	s.lead.learners = s.learners()
	s.broadcast(s.view(), s.election())
	s.broadcast(s.lead.learners, s.election())
	s.collected()
}

// election is the message of the first phase under way.
func (s *step) election() Message {
	return Message{Kind: Election, Instance: s.instance(), Ballot: s.lead.ballot, Press: s.lead.proposal.Press}
}

// onElection answers a leader's Election-GetValue with a promise and an offer
// (ElectionOk-Value), or refuses because of a higher promise.
func (s *step) onElection(m *Message) {
	switch m.Ballot.Compare(s.state.Promised) {
	case -1:
		s.refuse(m)
		return
	case 0:
		if s.state.AcceptedAt == m.Ballot {
			// Repeated: the leader is past its first phase.
			s.send(m.From, Message{Kind: AcceptOk, Instance: m.Instance, Ballot: m.Ballot})
			return
		}
	}
	if s.lead != nil && s.lead.value == nil {
		// Join the higher ballot rather than compete with it.
		s.standDown()
	}
	s.state.Promised = m.Ballot
	s.out.Persist = true
	if s.state.Pledge == nil {
		// An offer already exposed is fixed: another leader may have built a
		// value with it.
		s.pledge(m.Press)
	}
	ok := Message{Kind: ElectionOk, Instance: m.Instance, Ballot: m.Ballot}
	ok.AcceptedAt, ok.Value = s.vote()
	if s.offers() {
		s.state.expose(m.Ballot)
		ok.Contribution = new(*s.state.Pledge)
	}
	s.waitForLeader()
	s.send(m.From, ok)
}

// pledge sets an offer aside, if the leader asks for one and the ledger makes one. The
// caller exposes it.
func (s *step) pledge(press Press) {
	if press == PressNone {
		return
	}
	c, takesPart := s.ledger.Pledge(s.instance(), press)
	if !takesPart {
		return
	}
	if c.Site != s.cfg.Self || c.Validate() != nil {
		s.ledger.TakeBack(s.instance(), c)
		s.violation("the ledger pledged a malformed contribution %+v", c)
		return
	}
	s.state.Pledge = &c
}

func (s *step) refuse(m *Message) {
	s.send(m.From, Message{
		Kind: Refuse, Instance: m.Instance, Ballot: m.Ballot,
		Promised: s.state.Promised, Applied: s.state.Applied,
	})
}

// onElectionOk collects a promise.
func (s *step) onElectionOk(m *Message) {
	if s.lead == nil || s.lead.ballot != m.Ballot {
		// The ballot was given up: the Abandon was lost or came first.
		s.sendAbandon(m.From, m.Ballot)
		return
	}
	l := s.lead
	if l.value != nil {
		s.sendAccept(m.From)
		return
	}
	i, _ := s.view().index(m.From)
	if l.answers.has(i) {
		return
	}
	l.answers.add(i)
	if m.Contribution != nil {
		l.contributions = append(l.contributions, *m.Contribution)
	}
	if m.AcceptedAt.Compare(l.adoptedAt) > 0 {
		l.adoptedAt, l.adopted = m.AcceptedAt, m.Value
	}
	s.collected()
}

// elected reports whether all have answered whom the second phase needs.
func (s *step) elected() bool {
	return s.lead.answers.len() >= s.quorum() && len(s.lead.learners) == 0
}

// collected ends the first phase early if no further promise is expected.
func (s *step) collected() {
	l := s.lead
	if s.elected() && (s.cfg.Wait == WaitQuorum || l.answers.covers(s.reachable())) {
		s.build()
	}
}

// onRefuse yields to a higher ballot. In the second phase it only notes that the
// leader's own ballot may no longer reach a majority.
func (s *step) onRefuse(m *Message) {
	s.seen = max(s.seen, m.Promised.Number)
	l := s.lead
	switch {
	case l == nil || l.ballot != m.Ballot:
	case l.value != nil:
		l.refused = true
	default:
		s.standDown()
		s.backOff()
		if l.own {
			s.pending = &l.proposal
		}
	}
}

// windowEnds settles for a majority or gives up.
func (s *step) windowEnds() {
	l := s.lead
	if s.elected() {
		s.build()
		return
	}
	s.standDown()
	s.backOff()
	if l.own {
		s.out.Failed = FailedNoQuorum
	}
}

// standDown ends a first phase that built nothing, and frees the members exposed to it.
func (s *step) standDown() {
	b := s.lead.ballot
	s.lead = nil
	s.deadline = 0
	for _, site := range s.view() {
		if site != s.cfg.Self {
			s.sendAbandon(site, b)
		}
	}
}

// sendAbandon tells a site that ballot b of this site, and all its lower ballots, built
// no value. It sends nothing if that is untrue or unknown. A site that built a fresh
// value at any ballot of the instance never says so, since the flag does not tell at
// which ballot.
func (s *step) sendAbandon(to SiteID, b Ballot) {
	live := s.lead != nil && b.Compare(s.lead.ballot) >= 0
	if s.state.Built || live || b.Compare(s.state.Promised) > 0 {
		return
	}
	s.send(to, Message{Kind: Abandon, Instance: s.instance(), Ballot: b})
}

// backOff puts off this site's next attempt. With something at stake the site tries
// again by itself; otherwise the caller has to ask.
func (s *step) backOff() {
	s.fails = min(s.fails+1, 63)
	wait := s.backoff()
	s.retryAt = after(s.now, wait)
	if s.state.atStake() {
		s.waitFor(wait)
		s.asked = true
	}
}

// backoff draws a wait from the upper half of the present back-off.
func (m *Machine) backoff() Tick {
	d := m.cfg.Backoff
	for range m.fails {
		if d >= m.cfg.MaxBackoff/2 {
			d = m.cfg.MaxBackoff
			break
		}
		d *= 2
	}
	return d - d/2 + Tick(m.cfg.Rand.Uint64N(uint64(d/2)+1))
}

// waitFor sets the deadline of an open instance.
func (s *step) waitFor(wait Tick) { s.deadline = after(s.now, wait) }

// waitForLeader gives the leader of an instance time to go on. The waits of
// several cohorts are spread out, lest they all try to finish it at once.
func (s *step) waitForLeader() {
	s.asked = false
	s.waitFor(s.cfg.Patience + Tick(s.cfg.Rand.Uint64N(uint64(s.cfg.Backoff)+1)))
}

// after adds without wrapping round.
func after(now, wait Tick) Tick {
	if sum := now + wait; sum >= now {
		return sum
	}
	return ^Tick(0)
}

// sorted returns the contributions in the order of the sites.
func sorted(list []Contribution) []Contribution {
	slices.SortFunc(list, func(a, b Contribution) int { return cmp.Compare(a.Site, b.Site) })
	return list
}
