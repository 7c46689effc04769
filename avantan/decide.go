package avantan

import "slices"

// retells is how often a decision is repeated to sites that do not
// acknowledge it. They catch up by themselves: an exposed one by its time-out,
// any other by the next message of a later instance, or by Refresh.
const retells = 3

// tell is a decision that this site announces.
type tell struct {
	instance Instance
	value    *Value
	// to are the voters before and after the decision, missing those among them that
	// have not acknowledged it.
	to      View
	missing siteSet
	at      Tick
	tries   uint8
}

// ack is the last instance that a peer is known to have applied.
type ack struct {
	peer    SiteID
	applied Instance
}

// decide applies a value that a majority has accepted and announces it, to the voters
// before and after it. Safety does not rest on the announcement: whoever misses it catches
// up. But until then a site that votes no more keeps what it holds.
func (s *step) decide(v *Value) {
	t, before := s.instance(), s.view()
	if !s.apply(v) {
		return
	}
	to := before.and(s.view())
	s.broadcast(to, Message{Kind: Decision, Instance: t, Value: v})
	told := &tell{instance: t, value: v, to: to, at: after(s.now, s.cfg.Patience)}
	for i, site := range to {
		if site != s.cfg.Self {
			told.missing.add(i)
		}
	}
	if told.missing != 0 {
		s.tell = told
	}
}

// onDecision applies a decision of the present instance.
//
// All members keep the decision for each other member in its R, so a site in R
// acknowledges to all. Any other site acknowledges to the announcer only. A site
// acknowledges once a decision: at most n*n small messages for a decision that moves
// tokens between n sites. A lost acknowledgement leaves a single table entry for its
// sender, until the next message from that peer says as much.
func (s *step) onDecision(m *Message) {
	_, in := m.Value.Of(s.cfg.Self)
	before := s.view()
	if !s.apply(m.Value) {
		return
	}
	ok := Message{Kind: Applied, Applied: s.state.Applied}
	if in {
		s.broadcast(before.and(s.view()), ok)
	} else {
		s.send(m.From, ok)
	}
}

// apply settles the present instance with a decided value and moves on to the
// next. It reports false, having changed nothing, if that cannot be.
func (s *step) apply(v *Value) bool {
	if err := s.acceptable(v); err != nil {
		s.report(err)
		return false
	}
	t := s.instance()
	if _, in := v.Of(s.cfg.Self); !in {
		s.unpledge(t, s.doubtful())
	}
	s.ledger.Apply(t, v)
	s.state.settle(t)
	for _, c := range v.Contributions {
		if c.Site != s.cfg.Self {
			s.state.keep(Kept{Peer: c.Site, Instance: t, Value: *v})
		}
	}
	s.out.Persist = true
	s.out.Applied = append(s.out.Applied, Decided{Instance: t, Value: v})
	s.reset()
	return true
}

// reset forgets the volatile state of an instance that is now applied.
func (s *step) reset() {
	s.lead, s.tell, s.pending = nil, nil, nil
	s.deadline, s.retryAt, s.askAt = 0, 0, 0
	s.seen, s.fails, s.asked = 0, 0, false
}

// onApplied notes an acknowledgement, which learn has already done. If it is
// ahead of this site, the decision should arrive soon; if not, it is asked for.
func (s *step) onApplied(m *Message) {
	if m.Applied > s.state.Applied && s.askAt == 0 {
		s.askAt, s.askFrom = after(s.now, s.cfg.Patience), m.From
	}
}

// learn notes the last instance a peer has applied. If the peer is ahead, this site
// remembers the acknowledgement until it has applied the same instance itself, and
// would otherwise keep its decision.
func (s *step) learn(peer SiteID, applied Instance) {
	if t := s.tell; t != nil && applied >= t.instance {
		if i, told := t.to.index(peer); told {
			t.missing.remove(i)
		}
		if t.missing == 0 {
			s.tell = nil
		}
	}
	if applied <= s.state.Applied {
		// The table on disk may hold the entry for longer; that does no harm.
		s.state.drop(peer, applied)
		return
	}
	i := slices.IndexFunc(s.early, func(a ack) bool { return a.peer == peer })
	if i < 0 {
		s.early = append(s.early, ack{peer, applied})
	} else {
		s.early[i].applied = max(s.early[i].applied, applied)
	}
}

// forget drops table entries that early acknowledgements cover.
func (s *step) forget() {
	s.early = slices.DeleteFunc(s.early, func(a ack) bool {
		s.state.drop(a.peer, a.applied)
		return a.applied <= s.state.Applied
	})
	if len(s.early) == 0 {
		s.early = nil
	}
}

// retell repeats the decision to the sites that have not acknowledged it.
func (s *step) retell() {
	t := s.tell
	for i, site := range t.to {
		if t.missing.has(i) {
			s.send(site, Message{Kind: Decision, Instance: t.instance, Value: t.value})
		}
	}
	if t.tries++; t.tries >= retells {
		s.tell = nil
		return
	}
	t.at = after(s.now, s.cfg.Patience<<t.tries)
}
