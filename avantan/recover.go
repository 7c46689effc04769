package avantan

import "slices"

// wake does what is due.
func (s *step) wake() {
	if s.tell != nil && s.now >= s.tell.at {
		s.retell()
	}
	if s.askAt != 0 && s.now >= s.askAt {
		s.askAt = 0
		s.send(s.askFrom, Message{Kind: CatchUpAsk, Applied: s.state.Applied})
	}
	if s.deadline != 0 && s.now >= s.deadline {
		s.timeOut()
	}
	if s.pending != nil && s.now >= s.retryAt {
		p := *s.pending
		s.pending = nil
		s.begin(p)
	}
}

// timeOut looks after an instance that has not gone on.
func (s *step) timeOut() {
	switch l := s.lead; {
	case l != nil && l.value == nil:
		s.windowEnds()
	case l != nil && (l.refused || s.state.Promised != l.ballot):
		s.elect(l.proposal, false)
	case l != nil:
		s.repeatAccept()
	case !s.state.atStake():
		s.deadline = 0
		if leader := s.state.Promised.Site; leader != "" && leader != s.cfg.Self {
			// If the instance was given up, nothing is lost here; if it was decided,
			// its leader knows.
			s.send(leader, Message{Kind: CatchUpAsk, Applied: s.state.Applied})
		}
	case !s.asked && s.askStatus():
		s.asked = true
		s.waitFor(s.cfg.Patience + s.backoff())
	default:
		// The values accepted here do not tell whether a leader built another value.
		// Deciding any value ends all exposures.
		s.elect(Proposal{}, false)
	}
}

// repeatAccept sends the value again to the voters that have not accepted it.
func (s *step) repeatAccept() {
	for i, site := range s.view() {
		if !s.lead.oks.has(i) {
			s.sendAccept(site)
		}
	}
	s.fails = min(s.fails+1, 63)
	s.waitFor(max(s.cfg.Patience, s.backoff()))
}

// askStatus asks every other leader that this site's offer is exposed to for the
// outcome of its ballots, and reports whether there are any such leaders. With a value
// accepted here it asks nobody, since this site has to finish the instance anyway.
func (s *step) askStatus() bool {
	if s.state.Accepted != nil {
		return false
	}
	asked := false
	for i, b := range s.state.Exposures {
		last := i+1 == len(s.state.Exposures) || s.state.Exposures[i+1].Site != b.Site
		if last && b.Site != s.cfg.Self {
			s.send(b.Site, Message{Kind: Status, Instance: s.instance(), Ballot: b})
			asked = true
		}
	}
	return asked
}

// onStatus tells an exposed site the outcome of a ballot of this site: the value again,
// or that no value was built. It is silent where it does not know; the asker then
// finishes the instance itself.
func (s *step) onStatus(m *Message) {
	if s.lead != nil && s.lead.value != nil {
		s.sendAccept(m.From)
		return
	}
	s.sendAbandon(m.From, m.Ballot)
}

// onAbandon ends the exposure to a leader that has given up.
func (s *step) onAbandon(m *Message) {
	if s.state.abandoned(m.Ballot) {
		s.out.Persist = true
		s.freeOffer()
	}
	if s.lead == nil && !s.state.atStake() && s.state.Promised.Site == m.From {
		// Nothing is under way here any more.
		s.deadline = 0
	}
}

// freeOffer takes the offer back once it is exposed to no ballot.
func (s *step) freeOffer() {
	if s.state.Pledge == nil || len(s.state.Exposures) > 0 {
		return
	}
	s.ledger.TakeBack(s.instance(), *s.state.Pledge)
	s.state.Pledge, s.state.Exposures = nil, nil
}

// catchUp sends a site all that it can have missed since instance since. The site may
// have applied more.
func (s *step) catchUp(to SiteID, since Instance) {
	s.send(to, Message{
		Kind: CatchUp, Applied: s.state.Applied,
		Kept: slices.Clone(s.state.Kept), Snapshot: s.ledger.Snapshot(since),
	})
}

// onCatchUpAsk answers a site that is behind, or asks a site that is ahead.
func (s *step) onCatchUpAsk(m *Message) {
	switch {
	case m.Applied < s.state.Applied:
		s.catchUp(m.From, m.Applied)
		if s.lead != nil && s.lead.value == nil && (s.view().Has(m.From) || slices.Contains(s.lead.learners, m.From)) {
			// The site could not answer the election before.
			s.send(m.From, s.election())
		}
	case m.Applied > s.state.Applied:
		s.send(m.From, Message{Kind: CatchUpAsk, Applied: s.state.Applied})
	}
}

// onCatchUp brings this site up to the sender's last applied instance.
//
// Of all missed instances this site can be in R of the first only: a site is in R of
// an instance only after it has applied the instance before. This site has never
// acknowledged that decision, so the sender keeps it. Without an entry this site is
// therefore not in that R, and takes its pledge back. The ledger first applies the kept
// decision, then installs the snapshot, which holds the effects of all changes up to
// the last.
//
// The sender's table replaces this site's own. The sender has applied everything that
// this site has. If the sender keeps nothing for a peer, then the peer has acknowledged
// to the sender. An entry of the sender is never older than the entry here.
func (s *step) onCatchUp(m *Message) {
	if m.Applied <= s.state.Applied {
		return
	}
	before := s.view()
	if i := slices.IndexFunc(m.Kept, func(k Kept) bool { return k.Peer == s.cfg.Self }); i >= 0 {
		k := &m.Kept[i]
		if k.Instance > s.instance() {
			s.violation("decided with this site in instance %d", k.Instance)
			return
		}
		if k.Instance == s.instance() && !s.apply(&k.Value) {
			return
		}
	}
	if m.Applied > s.state.Applied && !s.install(m) {
		return
	}
	s.broadcast(before.and(s.view()), Message{Kind: Applied, Applied: s.state.Applied})
}

// install replaces this site's knowledge by the sender's snapshot.
func (s *step) install(m *Message) bool {
	t, doubtful := s.instance(), s.doubtful()
	if err := s.ledger.Install(m.Applied, m.Snapshot); err != nil {
		s.report(err)
		return false
	}
	s.unpledge(t, doubtful)
	s.state.Kept = slices.Clone(m.Kept)
	s.state.drop(s.cfg.Self, m.Applied)
	s.state.settle(m.Applied)
	s.out.Persist = true
	s.reset()
	return true
}
