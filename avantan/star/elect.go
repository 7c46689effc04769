package star

import (
	"cmp"
	"math"
	"slices"

	"github.com/samya-db/samya/avantan"
)

// block is how many counters are reserved at a time.
const block = 32

// maxReserved bounds counters; counting never reaches it.
const maxReserved = avantan.MaxNumber + block

// lead is a leader's side of an instance while it collects offers.
type lead struct {
	id       ID
	proposal Proposal
	deadline avantan.Tick
	// answers are this site and the members that have offered or declined.
	answers siteSet
	// busy is set once a member answered Busy.
	busy bool
	// contributions came with the answers.
	contributions []avantan.Contribution
}

// waiting is an election that came while this site was not free.
type waiting struct {
	election *Message
	// until is the tick by which the leader has surely settled for the offers it has.
	until avantan.Tick
}

// begin starts an instance for the caller, now or later.
func (s *step) begin(p Proposal) {
	if s.lead == nil {
		s.pending = &p
	}
}

// goOn answers the waiting election and begins the pending proposal as soon as
// possible.
func (s *step) goOn() {
	if w := s.waiting; w != nil && s.free() {
		s.waiting = nil
		if s.now <= w.until && !s.cfg.lost(w.election.From) {
			s.onElection(w.election)
		}
	}
	if p := s.pending; p != nil && s.now >= s.retryAt && !s.Open() {
		s.pending = nil
		s.elect(*p)
	}
}

// free reports whether this site can pledge to an instance.
func (s *step) free() bool {
	_, unvoted := s.state.unvoted()
	return s.lead == nil && !unvoted && !s.full()
}

// full reports whether this site takes part in Config.MaxSlices instances.
func (s *step) full() bool { return len(s.state.Slices) >= s.cfg.MaxSlices }

// elect begins an instance: Election-GetValue. Its counter is reserved durably before
// anyone hears of it, so that a restart cannot use it again.
func (s *step) elect(p Proposal) {
	switch {
	case s.next > avantan.MaxNumber:
		s.violation(ID{s.cfg.Self, s.next}, "counters are used up")
		return
	case !slices.ContainsFunc(s.cfg.Members, func(m avantan.SiteID) bool { return m != s.cfg.Self && s.cfg.serves(m) }):
		s.fail(FailedNothing)
		return
	case s.full():
		s.fail(FailedFull)
		return
	}
	if p.Policy == "" {
		p.Policy = s.cfg.Policy
	}
	p.Press = min(p.Press, avantan.PressAll)
	if s.next > s.state.Reserved {
		s.reserve()
	}
	s.lead = &lead{
		id: ID{s.cfg.Self, s.next}, proposal: p, deadline: after(s.now, s.cfg.Window), answers: s.one(s.cfg.Self),
	}
	s.next++
	s.sendAll(Message{Kind: Election, ID: s.lead.id, Press: p.Press}, 0)
	s.collected()
}

// reserve makes the counters from next on usable.
func (s *step) reserve() {
	s.state.Reserved = s.next - 1 + block
	s.out.Persist = true
}

// onElection answers a leader's Election-GetValue with an offer
// (ElectionOk-Value), or says that it cannot now.
func (s *step) onElection(m *Message) {
	if i, found := s.state.find(m.ID); found {
		if sl := &s.state.Slices[i]; sl.unvoted() {
			s.send(m.From, Message{Kind: ElectionOk, ID: m.ID, Contribution: new(sl.Pledge)})
		}
		return
	}
	if m.ID.Counter <= s.state.floor(m.ID.Leader) {
		// A second pledge would be a second vote.
		return
	}
	// The leader runs one instance at a time. So it has built nothing more with an
	// older pledge, or has not got it accepted here.
	s.voteAborted(m.ID)
	if s.lead != nil && m.ID.outranks(s.lead.id) && !s.full() {
		s.yield()
	}
	if !s.free() {
		s.keepWaiting(m)
		s.send(m.From, Message{Kind: Busy, ID: m.ID})
		return
	}
	c, takesPart := s.pledge(m.ID, m.Press)
	if !takesPart {
		s.send(m.From, Message{Kind: ElectionOk, ID: m.ID})
		return
	}
	s.state.raise(m.ID)
	s.insert(Slice{ID: m.ID, Pledge: c}, care{deadline: after(s.now, s.cfg.Patience)})
	s.send(m.From, Message{Kind: ElectionOk, ID: m.ID, Contribution: &c})
}

// keepWaiting keeps an election for later. There is room for a single election; the
// leader that goes first has precedence.
func (s *step) keepWaiting(m *Message) {
	if w := s.waiting; w == nil || s.now > w.until || m.From == w.election.From || m.ID.outranks(w.election.ID) {
		s.waiting = &waiting{election: m, until: after(s.now, s.cfg.Window)}
	}
}

// pledge sets an offer aside, if the ledger makes one.
func (s *step) pledge(id ID, press avantan.Press) (avantan.Contribution, bool) {
	c, takesPart := s.ledger.Pledge(id, press)
	if !takesPart {
		return avantan.Contribution{}, false
	}
	if c.Site != s.cfg.Self || c.Validate() != nil {
		s.ledger.TakeBack(id, c)
		s.violation(id, "the ledger pledged a malformed contribution %+v", c)
		return avantan.Contribution{}, false
	}
	return c, true
}

// onElectionOk collects an offer, or answers with the outcome of the instance.
func (s *step) onElectionOk(m *Message) {
	l := s.lead
	if l == nil || l.id != m.ID {
		s.tooLate(m)
		return
	}
	l.answers |= s.one(m.From)
	if m.Contribution != nil && !l.holds(m.From) {
		l.contributions = append(l.contributions, *m.Contribution)
	}
	s.collected()
}

// tooLate answers an offer for an instance with a fixed R, or for a finished instance.
func (s *step) tooLate(m *Message) {
	if m.Contribution == nil {
		return
	}
	if i, found := s.state.find(m.ID); found {
		sl := &s.state.Slices[i]
		if _, in := sl.Value.Of(m.From); in {
			if sl.undecided() {
				s.send(m.From, Message{Kind: Accept, ID: m.ID, Value: sl.Value})
			}
			return
		}
	}
	s.send(m.From, Message{Kind: Discard, ID: m.ID})
}

// onBusy notes that nothing comes from a member for the time being. The member keeps
// this election, and is likely to be free before the window ends. Two leaders that meet
// each hold pledges that the other waits for, until one yields.
func (s *step) onBusy(m *Message) {
	if l := s.lead; l != nil && l.id == m.ID {
		l.busy = true
	}
}

// holds reports whether a member's offer was collected.
func (l *lead) holds(site avantan.SiteID) bool {
	return slices.ContainsFunc(l.contributions, func(c avantan.Contribution) bool { return c.Site == site })
}

// useful reports whether any contribution offers tokens.
func (l *lead) useful() bool {
	return slices.ContainsFunc(l.contributions, func(c avantan.Contribution) bool { return c.Offered > 0 })
}

// enough reports whether the offers, less the wants of their sites, cover the leader's
// shortage.
func (l *lead) enough() bool {
	var surplus avantan.Tokens
	for _, c := range l.contributions {
		surplus = plus(plus(surplus, c.Offered), -c.Wanted)
	}
	return surplus >= l.proposal.Short
}

// collected fixes R once the offers are enough, or no more offers are expected.
func (s *step) collected() {
	l := s.lead
	l.contributions = slices.DeleteFunc(l.contributions, func(c avantan.Contribution) bool { return !s.cfg.serves(c.Site) })
	switch {
	case l.useful() && l.enough():
		s.build()
	case l.answers.covers(s.cfg.reachable()):
		s.settleForLess()
	}
}

// settleForLess builds a value with the offers collected, or gives up.
func (s *step) settleForLess() {
	switch l := s.lead; {
	case l.useful():
		s.build()
	case l.busy:
		s.standDown()
		s.fail(FailedBusy)
	default:
		s.standDown()
		s.fail(FailedNothing)
	}
}

// yield gives up collecting in favour of another leader, and tries again later.
func (s *step) yield() {
	p := s.lead.proposal
	s.standDown()
	s.backOff()
	s.pending = &p
}

// standDown ends an instance that has built nothing.
func (s *step) standDown() {
	id := s.lead.id
	s.lead = nil
	s.sendAll(Message{Kind: Discard, ID: id}, 0)
}

// fail reports the failure to the caller, and puts off the next attempt.
func (s *step) fail(f Failure) {
	s.out.Failed = f
	s.backOff()
}

// backOff puts off this site's next attempt to lead.
func (s *step) backOff() {
	s.fails = min(s.fails+1, maxDoublings)
	s.retryAt = after(s.now, s.backoff(s.fails))
}

// maxDoublings bounds the counts of failures.
const maxDoublings = 63

// backoff draws a wait from the upper half of the back-off after n failures.
func (m *Machine) backoff(n uint8) avantan.Tick {
	d := m.cfg.Backoff
	for range n {
		if d >= m.cfg.MaxBackoff/2 {
			d = m.cfg.MaxBackoff
			break
		}
		d *= 2
	}
	return d - d/2 + avantan.Tick(m.cfg.Rand.Uint64N(uint64(d/2)+1))
}

// after adds without wrapping round.
func after(now, wait avantan.Tick) avantan.Tick {
	if sum := now + wait; sum >= now {
		return sum
	}
	return ^avantan.Tick(0)
}

// plus adds without wrapping round.
func plus(a, b avantan.Tokens) avantan.Tokens {
	switch {
	case b > 0 && a > math.MaxInt64-b:
		return math.MaxInt64
	case b < 0 && a < math.MinInt64-b:
		return math.MinInt64
	}
	return a + b
}

// sorted returns the contributions in the order of the sites.
func sorted(list []avantan.Contribution) []avantan.Contribution {
	slices.SortFunc(list, func(a, b avantan.Contribution) int { return cmp.Compare(a.Site, b.Site) })
	return list
}
