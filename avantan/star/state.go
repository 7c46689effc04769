package star

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
	case s.Reserved > maxReserved:
		return fmt.Errorf("star: state: Reserved %d is too large", s.Reserved)
	case len(s.Slices) > MaxSlices:
		return fmt.Errorf("star: state: %d Slices, must be at most %d", len(s.Slices), MaxSlices)
	case len(s.Floors) > avantan.MaxMembers:
		return fmt.Errorf("star: state: %d Floors, must be at most %d", len(s.Floors), avantan.MaxMembers)
	case !increasing(s.Slices, func(a, b *Slice) int { return a.ID.Compare(b.ID) }):
		return errors.New("star: state: Slices must be sorted, each instance once")
	case !increasing(s.Floors, func(a, b *ID) int { return compareSites(a.Leader, b.Leader) }):
		return errors.New("star: state: Floors must be sorted, each leader once")
	}
	for _, f := range s.Floors {
		if f.Leader == "" || f.Counter == 0 || f.Counter > avantan.MaxNumber {
			return fmt.Errorf("star: state: floor %v is no instance", f)
		}
	}
	unvoted := 0
	for i := range s.Slices {
		sl := &s.Slices[i]
		if err := s.validateSlice(sl); err != nil {
			return fmt.Errorf("star: state: slice %v: %w", sl.ID, err)
		}
		if sl.unvoted() {
			unvoted++
		}
	}
	if unvoted > 1 {
		return fmt.Errorf("star: state: %d Slices without a vote, must be at most one", unvoted)
	}
	return nil
}

func (s *State) validateSlice(sl *Slice) error {
	own := sl.ID.Leader == sl.Pledge.Site
	if sl.ID.Leader == "" || sl.ID.Counter == 0 || sl.ID.Counter > avantan.MaxNumber {
		return errors.New("it is no instance")
	}
	if err := sl.Pledge.Validate(); err != nil {
		return err
	}
	if sl.Concluded && !sl.Committed {
		return errors.New("it is concluded and has not ended")
	}
	if sl.Value == nil {
		switch {
		case sl.Committed:
			return errors.New("it is committed without a value")
		case own:
			return errors.New("its leader takes part without a value")
		}
	} else {
		if err := validateValue(sl.Value); err != nil {
			return err
		}
		if c, in := sl.Value.Of(sl.Pledge.Site); !in || c != sl.Pledge {
			return errors.New("the value does not hold the pledge")
		}
		if _, in := sl.Value.Of(sl.ID.Leader); !in {
			return errors.New("the value does not hold the leader")
		}
	}
	switch {
	case own && sl.ID.Counter > s.Reserved:
		return errors.New("its counter is above Reserved")
	case !own && sl.ID.Counter > s.floor(sl.ID.Leader):
		return errors.New("it is above its leader's floor")
	}
	return nil
}

// Clone returns a deep copy.
func (s *State) Clone() State {
	c := *s
	c.Slices, c.Floors = slices.Clone(s.Slices), slices.Clone(s.Floors)
	for i := range c.Slices {
		if v := c.Slices[i].Value; v != nil {
			c.Slices[i].Value = v.Clone()
		}
	}
	return c
}

// find returns where the slice of an instance is, or belongs.
func (s *State) find(id ID) (int, bool) {
	return slices.BinarySearchFunc(s.Slices, id, func(sl Slice, id ID) int { return sl.ID.Compare(id) })
}

// unvoted returns the index of the slice that this site has yet to vote on.
func (s *State) unvoted() (int, bool) {
	i := slices.IndexFunc(s.Slices, func(sl Slice) bool { return sl.unvoted() })
	return i, i >= 0
}

// floor returns the last counter of a leader that this site pledged to.
func (s *State) floor(leader avantan.SiteID) uint64 {
	if i, found := s.findFloor(leader); found {
		return s.Floors[i].Counter
	}
	return 0
}

// raise lifts a leader's floor to an instance.
func (s *State) raise(id ID) {
	i, found := s.findFloor(id.Leader)
	if !found {
		s.Floors = slices.Insert(s.Floors, i, id)
	}
	s.Floors[i].Counter = max(s.Floors[i].Counter, id.Counter)
}

func (s *State) findFloor(leader avantan.SiteID) (int, bool) {
	return slices.BinarySearchFunc(s.Floors, leader, func(f ID, l avantan.SiteID) int { return cmp.Compare(f.Leader, l) })
}

func compareSites(a, b avantan.SiteID) int { return cmp.Compare(a, b) }
