package avantan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Validate reports a State that no Machine can have produced, so that a caller finds a
// damaged or foreign record before acting upon it.
func (s *State) Validate() error {
	byLeader := func(a, b Ballot) int { return cmp.Or(cmp.Compare(a.Site, b.Site), cmp.Compare(a.Number, b.Number)) }
	switch {
	case s.Applied > MaxNumber:
		return fmt.Errorf("avantan: state: Applied %d is too large", s.Applied)
	case (s.Accepted == nil) != s.AcceptedAt.IsZero():
		return errors.New("avantan: state: Accepted and AcceptedAt go together")
	case s.Promised.Compare(s.AcceptedAt) < 0:
		return fmt.Errorf("avantan: state: Promised %v is below AcceptedAt %v", s.Promised, s.AcceptedAt)
	case (s.Pledge == nil) != (len(s.Exposures) == 0):
		return errors.New("avantan: state: Pledge and Exposures go together")
	case !slices.IsSortedFunc(s.Exposures, byLeader):
		return errors.New("avantan: state: Exposures are out of order")
	case !increasing(s.Kept, func(k Kept) SiteID { return k.Peer }):
		return errors.New("avantan: state: Kept must be sorted, each peer once")
	}
	for _, b := range s.Exposures {
		if b.Compare(s.Promised) > 0 {
			return fmt.Errorf("avantan: state: exposed to %v above Promised %v", b, s.Promised)
		}
	}
	for i := range s.Kept {
		if k := &s.Kept[i]; k.Instance == 0 || k.Instance > s.Applied {
			return fmt.Errorf("avantan: state: Kept instance %d is not within Applied %d", k.Instance, s.Applied)
		}
	}
	return nil
}

// IsZero reports whether s is the zero State: this site has not taken part in the
// sequence yet.
func (s *State) IsZero() bool {
	return s.Applied == 0 && s.Promised.IsZero() && s.AcceptedAt.IsZero() && s.Accepted == nil && !s.Built &&
		s.Pledge == nil && len(s.Exposures) == 0 && len(s.Kept) == 0
}

// Clone returns a deep copy.
func (s *State) Clone() State {
	c := *s
	if s.Accepted != nil {
		c.Accepted = s.Accepted.Clone()
	}
	if s.Pledge != nil {
		c.Pledge = new(*s.Pledge)
	}
	c.Exposures = slices.Clone(s.Exposures)
	c.Kept = slices.Clone(s.Kept)
	for i := range c.Kept {
		c.Kept[i].Value = *c.Kept[i].Value.Clone()
	}
	return c
}

// expose records that the pledge is exposed to ballot b. A leader's first and last
// ballot are enough to know when it has given up all its ballots, and that several are
// open.
func (s *State) expose(b Ballot) {
	first := slices.IndexFunc(s.Exposures, func(e Ballot) bool { return e.Site >= b.Site })
	if first < 0 {
		first = len(s.Exposures)
	}
	n := 0
	for first+n < len(s.Exposures) && s.Exposures[first+n].Site == b.Site {
		n++
	}
	switch {
	case n == 0:
		s.Exposures = slices.Insert(s.Exposures, first, b)
	case s.Exposures[first+n-1].Number >= b.Number:
	case n == 1:
		s.Exposures = slices.Insert(s.Exposures, first+1, b)
	default:
		s.Exposures[first+1] = b
	}
}

// abandoned ends the exposure to a leader that says it has built no value at its
// ballots up to b. If the leader got the pledge at a later ballot too, nothing changes:
// the State does not remember ballots between the first and the last.
func (s *State) abandoned(b Ballot) bool {
	later := slices.ContainsFunc(s.Exposures, func(e Ballot) bool { return e.Site == b.Site && e.Number > b.Number })
	return !later && s.endExposures(b.Site)
}

// leftOut ends the exposure to ballot b after its value turned out to be without this
// site. It has no effect if the pledge is exposed to another ballot of the same leader.
// At an earlier ballot the leader may have built a value that was accepted somewhere
// and is proposed again.
func (s *State) leftOut(b Ballot) bool {
	other := slices.ContainsFunc(s.Exposures, func(e Ballot) bool { return e.Site == b.Site && e != b })
	return !other && s.endExposures(b.Site)
}

func (s *State) endExposures(leader SiteID) bool {
	before := len(s.Exposures)
	s.Exposures = slices.DeleteFunc(s.Exposures, func(e Ballot) bool { return e.Site == leader })
	return len(s.Exposures) < before
}

// atStake reports whether this site cannot let go of instance Applied+1: its offer may
// be in a value, or it has accepted a value that may be decided.
func (s *State) atStake() bool { return s.Pledge != nil || s.Accepted != nil }

// keep puts a decision in the retention table, in place of an earlier decision.
func (s *State) keep(k Kept) {
	i, found := slices.BinarySearchFunc(s.Kept, k.Peer, func(e Kept, p SiteID) int { return cmp.Compare(e.Peer, p) })
	if found {
		s.Kept[i] = k
		return
	}
	s.Kept = slices.Insert(s.Kept, i, k)
}

// drop removes the peer's entry if the peer has applied it.
func (s *State) drop(peer SiteID, applied Instance) {
	s.Kept = slices.DeleteFunc(s.Kept, func(k Kept) bool { return k.Peer == peer && k.Instance <= applied })
	if len(s.Kept) == 0 {
		s.Kept = nil
	}
}

// settle moves on to the instance after t.
func (s *State) settle(t Instance) {
	*s = State{Applied: t, Kept: s.Kept}
}
