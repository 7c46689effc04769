package sched

import (
	"context"
	"testing"

	"github.com/samya-db/samya/internal/race"
)

// none is a job that does nothing.
type none struct{}

func (none) Run(*Request[int]) {}
func (none) End(error)         {}

// TestOfPinsNothing: a request of given entries keeps no new keys away, as a
// request of keys that was tried often does.
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
		free := s.dir.fixed.TryLock()
		if free {
			s.dir.fixed.Unlock()
		}
		if free == c.pins {
			t.Errorf("new keys are free to come: %t", free)
		}
		s.unpin(&r)
	}
}

// TestOfAllocatesNothing: a request of given entries that is used again runs without an
// allocation.
func TestOfAllocatesNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	for _, m := range []Mode{Callers, Workers} {
		s, err := New(Options[int]{Partitions: 2, Mode: m})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		var entries []*Entry[int]
		for i, key := range []string{"a", "b", "c"} {
			e, err := s.Insert(key, i%2, 0)
			if err != nil {
				t.Fatal(err)
			}
			entries = append(entries, e)
		}
		var r Request[int]
		for n := 1; n <= 3; n++ {
			if got := testing.AllocsPerRun(1000, func() {
				r.Of(entries[:n], Alone, none{})
				if err := s.Do(context.Background(), &r); err != nil {
					t.Fatal(err)
				}
			}); got > 0 {
				t.Errorf("%d entries, mode %d: %v allocations", n, m, got)
			}
		}
	}
}
