package handoff

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/samya-db/samya/avantan"
)

// Validate reports a State that no Machine can have produced, so that a caller finds a
// damaged or foreign record before acting upon it.
func (s *State) Validate() error {
	switch {
	case len(s.Given) > avantan.MaxMembers || len(s.Taken) > avantan.MaxMembers:
		return fmt.Errorf("handoff: state: %d Given and %d Taken, must be at most %d each",
			len(s.Given), len(s.Taken), avantan.MaxMembers)
	case !increasing(s.Given, func(g Given) avantan.SiteID { return g.Heir }):
		return errors.New("handoff: state: Given must be sorted, each heir once")
	case !increasing(s.Taken, func(t Taken) avantan.SiteID { return t.Leaver }):
		return errors.New("handoff: state: Taken must be sorted, each leaver once")
	}
	for _, g := range s.Given {
		if g.Heir == "" || g.Number == 0 || g.Number > avantan.MaxNumber {
			return fmt.Errorf("handoff: state: given %+v is out of range", g)
		}
	}
	for _, t := range s.Taken {
		if t.Leaver == "" || t.Number == 0 || t.Number > avantan.MaxNumber {
			return fmt.Errorf("handoff: state: taken %+v is out of range", t)
		}
	}
	b := s.Open
	if b == nil {
		return nil
	}
	if b.Number == 0 || b.Number != s.given(b.Heir) {
		return fmt.Errorf("handoff: state: bequest %d to %q is not the last one given", b.Number, b.Heir)
	}
	why := b.Estate.fault()
	if b.Estate.empty() {
		why = "it is empty"
	}
	if why != "" {
		return fmt.Errorf("handoff: state: bequest %d to %q: %s", b.Number, b.Heir, why)
	}
	return nil
}

// increasing reports whether the sites of a list are strictly increasing.
func increasing[E any](list []E, site func(E) avantan.SiteID) bool {
	for i := 1; i < len(list); i++ {
		if cmp.Compare(site(list[i-1]), site(list[i])) >= 0 {
			return false
		}
	}
	return true
}

// Clone returns a copy that shares nothing but the Data of items, which nobody changes.
func (s *State) Clone() State {
	c := State{Given: slices.Clone(s.Given), Taken: slices.Clone(s.Taken)}
	if s.Open != nil {
		b := *s.Open
		b.Estate.Items = slices.Clone(b.Estate.Items)
		c.Open = &b
	}
	return c
}

// Moving returns by how much this site's open bequest may raise Σ net above the tokens
// that are out: tokens that both sites count, or a net below zero that neither counts.
// Moving is 0 if no bequest is open.
func (s *State) Moving() avantan.Tokens {
	if s.Open == nil {
		return 0
	}
	e := &s.Open.Estate
	if e.Net < 0 {
		return max(-e.Net, e.held())
	}
	return e.Net + e.held()
}

// findGiven returns where an heir is, or belongs.
func (s *State) findGiven(heir avantan.SiteID) (int, bool) {
	return slices.BinarySearchFunc(s.Given, heir, func(g Given, h avantan.SiteID) int { return cmp.Compare(g.Heir, h) })
}

// findTaken returns where a leaver is, or belongs.
func (s *State) findTaken(leaver avantan.SiteID) (int, bool) {
	return slices.BinarySearchFunc(s.Taken, leaver, func(t Taken, l avantan.SiteID) int { return cmp.Compare(t.Leaver, l) })
}

// given returns the number of the last bequest to an heir; 0 for none.
func (s *State) given(heir avantan.SiteID) uint64 {
	if i, found := s.findGiven(heir); found {
		return s.Given[i].Number
	}
	return 0
}

// taken returns the last bequest taken of a leaver; the zero Taken for none.
func (s *State) taken(leaver avantan.SiteID) Taken {
	if i, found := s.findTaken(leaver); found {
		return s.Taken[i]
	}
	return Taken{}
}
