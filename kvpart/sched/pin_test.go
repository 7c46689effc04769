package sched

import "testing"

// none is a job that does nothing.
type none struct{}

func (none) Run(*Request[int]) {}
func (none) End(error)         {}

// TestOfPinsNothing: a request of given entries leaves the index alone, also where
// one of keys that was tried often holds it.
func TestOfPinsNothing(t *testing.T) {
	s, err := New(Options[int]{Partitions: 2})
	if err != nil {
		t.Fatal(err)
	}
	e, err := s.Insert("a", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	var r Request[int]
	for _, c := range []struct {
		pins bool
		set  func()
	}{
		{false, func() { r.Of([]*Entry[int]{e}, Alone, none{}) }},
		{false, func() { r.Of([]*Entry[int]{e, e}, Share, none{}) }},
		{true, func() { r.Several([]string{"a", "b"}, Share, none{}) }},
	} {
		c.set()
		if _, err := s.resolve(t.Context(), &r, true, true); err != nil {
			t.Fatal(err)
		}
		free := s.dir.index.TryLock()
		if free {
			s.dir.index.Unlock()
		}
		if free == c.pins {
			t.Errorf("the index is free: %t", free)
		}
		s.unpin(&r)
	}
}
