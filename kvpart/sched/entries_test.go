package sched_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/samya-db/samya/kvpart/sched"
)

// do runs fn on keys.
func do(t *testing.T, s *sched.Scheduler[int64], a sched.Access, fn func(r *sched.Request[int64]), keys ...string) error {
	t.Helper()
	p := newProbe(fn)
	if len(keys) == 1 {
		p.req.One(keys[0], a, p)
	} else {
		p.req.Several(keys, a, p)
	}
	return s.Do(t.Context(), &p.req)
}

func present(r *sched.Request[int64]) {
	for _, e := range r.Entries() {
		e.Present = true
	}
}

func absent(r *sched.Request[int64]) {
	for _, e := range r.Entries() {
		if e != nil {
			e.Present = false
		}
	}
}

// Vacant entries go, whoever left them; the others stay.
func TestVacantEntriesGo(t *testing.T) {
	modes(t, func(t *testing.T, m sched.Mode) {
		t.Helper()
		s := newScheduler(t, sched.Options[int64]{Partitions: 4, Mode: m})
		if err := do(t, s, sched.Create, present, "kept"); err != nil {
			t.Fatal(err)
		}
		const n = 1000
		for i := range n {
			key := fmt.Sprint("k", i)
			if err := do(t, s, sched.Create, present, key); err != nil {
				t.Fatal(err)
			}
			if err := do(t, s, sched.Alone, absent, key, "other"); err != nil {
				t.Fatal(err)
			}
			if err := do(t, s, sched.Create, nothing, key, "never"); err != nil {
				t.Fatal(err)
			}
		}
		if got := s.Keys(); got > n/2 {
			t.Errorf("%d entries, of which one is kept", got)
		}
		s.Sweep()
		s.Sweep() // entries busy in the first sweep are free
		if got := s.Entries(nil, "", 10); len(got) != 1 || got[0].Key() != "kept" {
			t.Errorf("%d entries are left, want one", len(got))
		}
	})
}

func TestRange(t *testing.T) {
	modes(t, func(t *testing.T, m sched.Mode) {
		t.Helper()
		s := newScheduler(t, sched.Options[int64]{Partitions: 3, Mode: m, Place: sched.RoundRobin})
		for i := range 9 {
			if err := s.Restore(fmt.Sprint(i), sched.Unplaced, int64(i)); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range []struct {
			from  string
			limit int
			want  []int64
		}{
			{"", 2, []int64{0, 1}},
			{"4", 3, []int64{4, 5, 6}},
			{"45", 2, []int64{5, 6}},
			{"7", 9, []int64{7, 8}},
			{"9", 9, nil},
			{"1", 0, nil},
		} {
			var got []int64
			p := newProbe(func(r *sched.Request[int64]) {
				for _, e := range r.Entries() {
					got = append(got, e.Value)
				}
			})
			p.req.Range(c.from, c.limit, sched.Share, p)
			if err := s.Do(t.Context(), &p.req); err != nil || p.ran != 1 || !slices.Equal(got, c.want) {
				t.Errorf("%d from %q: %v, %v, want %v", c.limit, c.from, got, err, c.want)
			}
		}
	})
}

func TestPlacement(t *testing.T) {
	for _, c := range []struct {
		place sched.Placement
		want  []int // of a and b in a single request, then c, then d and e
	}{
		{sched.RoundRobin, []int{0, 1, 2, 0, 1}},
		{sched.Together, []int{0, 0, 1, 2, 2}},
	} {
		s := newScheduler(t, sched.Options[int64]{Partitions: 3, Place: c.place})
		for _, keys := range [][]string{{"a", "b"}, {"c"}, {"d", "e"}} {
			if err := do(t, s, sched.Create, present, keys...); err != nil {
				t.Fatal(err)
			}
		}
		var got []int
		for _, e := range s.Entries(nil, "", 10) {
			got = append(got, s.Partition(e))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("placement %d: %v, want %v", c.place, got, c.want)
		}
	}
	besideNeighbours(t)
	const keys, parts = 8000, 8
	s := newScheduler(t, sched.Options[int64]{Partitions: parts})
	var each [parts]int
	for i := range keys {
		if err := s.Restore(fmt.Sprintf("user%06d", i), sched.Unplaced, 0); err != nil {
			t.Fatal(err)
		}
		each[s.Partition(s.Entry(fmt.Sprintf("user%06d", i)))]++
	}
	for p, n := range each {
		if n < keys/parts*8/10 || n > keys/parts*12/10 {
			t.Errorf("by hash: %d keys at %d, mean %d", n, p, keys/parts)
		}
	}
}

// besideNeighbours: from the first switch on, a new key goes where both its neighbours are.
func besideNeighbours(t *testing.T) {
	t.Helper()
	s := newScheduler(t, sched.Options[int64]{Partitions: 3, Place: sched.Beside})
	at := func(key string) int {
		t.Helper()
		if err := do(t, s, sched.Create, present, key); err != nil {
			t.Fatal(err)
		}
		return s.Partition(s.Entry(key))
	}
	if got := []int{at("a"), at("c"), at("e"), at("g"), at("f")}; !slices.Equal(got, []int{0, 1, 2, 0, 1}) {
		t.Errorf("before a switch: %v", got)
	}
	for key, p := range map[string]int{"a": 2, "c": 2, "e": 1} {
		if _, err := s.Assign(s.Entry(key), p); err != nil {
			t.Fatal(err)
		}
	}
	s.Switch(nil)
	// Between 2 and 2; between 2 and 1; behind the last; between 2 and the key before.
	if got := []int{at("b"), at("d"), at("h"), at("bb")}; !slices.Equal(got, []int{2, 2, 0, 2}) {
		t.Errorf("after a switch: %v", got)
	}
	if e, err := s.Insert("ab", sched.Unplaced, 1); err != nil || s.Partition(e) != 2 {
		t.Errorf("an insert between: at %d, %v", s.Partition(e), err)
	}
}

// TestWithinRanges: a new key goes to the partition of the next key below, so that each
// partition's ranges stay whole.
func TestWithinRanges(t *testing.T) {
	s := newScheduler(t, sched.Options[int64]{Partitions: 3, Place: sched.Within})
	at := func(key string) int {
		t.Helper()
		if err := do(t, s, sched.Create, present, key); err != nil {
			t.Fatal(err)
		}
		return s.Partition(s.Entry(key))
	}
	if got := []int{at("d"), at("b"), at("f")}; !slices.Equal(got, []int{0, 0, 0}) {
		t.Errorf("before a switch: %v", got)
	}
	for key, p := range map[string]int{"b": 2, "f": 1} {
		if _, err := s.Assign(s.Entry(key), p); err != nil {
			t.Fatal(err)
		}
	}
	s.Switch(nil)
	// Above b; above d; behind the last; before the first.
	if got := []int{at("c"), at("e"), at("g"), at("a")}; !slices.Equal(got, []int{2, 0, 1, 2}) {
		t.Errorf("after a switch: %v", got)
	}
}

// An entry assigned nowhere is placed as if new by the first request after the switch.
func TestUnplaced(t *testing.T) {
	modes(t, func(t *testing.T, m sched.Mode) {
		t.Helper()
		s := newScheduler(t, sched.Options[int64]{Partitions: 3, Mode: m, Place: sched.Together})
		if err := do(t, s, sched.Create, present, "a"); err != nil {
			t.Fatal(err)
		}
		if err := do(t, s, sched.Create, present, "b"); err != nil {
			t.Fatal(err)
		}
		for _, e := range s.Entries(nil, "", 10) {
			if moves, err := s.Assign(e, sched.Unplaced); err != nil || !moves {
				t.Fatal(moves, err)
			}
		}
		s.Switch(nil)
		if p := s.Partition(s.Entry("a")); p != sched.Unplaced {
			t.Errorf("a is at %d", p)
		}
		if err := do(t, s, sched.Alone, present, "a", "b"); err != nil {
			t.Fatal(err)
		}
		if a, b := s.Partition(s.Entry("a")), s.Partition(s.Entry("b")); a != 2 || b != 2 {
			t.Errorf("a is at %d and b at %d, want 2", a, b)
		}
	})
}

func TestOptions(t *testing.T) {
	for _, o := range []sched.Options[int64]{
		{},
		{Partitions: 1025},
		{Partitions: 1, Mode: sched.Threads + 1},
		{Partitions: 1, Queue: -1},
		{Partitions: 1, Queue: sched.MaxQueue + 1},
		{Partitions: 1, Place: sched.Within + 1},
	} {
		if _, err := sched.New(o); !errors.Is(err, sched.ErrOptions) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	s := newScheduler(t, sched.Options[int64]{Partitions: 2})
	for _, p := range []int{-2, 2} {
		if err := s.Restore("a", p, 0); !errors.Is(err, sched.ErrOptions) {
			t.Errorf("restored at %d: %v", p, err)
		}
	}
	if err := s.Restore("a", 1, 0); err != nil {
		t.Fatal(err)
	}
	if err := s.Restore("a", 1, 0); !errors.Is(err, sched.ErrOptions) {
		t.Errorf("restored twice: %v", err)
	}
	if _, err := s.Assign(s.Entry("a"), 2); !errors.Is(err, sched.ErrOptions) {
		t.Errorf("assigned out of range: %v", err)
	}
	c := newCounter(1)
	c.req.One("a", sched.Share, c)
	if err := s.Start(t.Context(), &c.req); !errors.Is(err, sched.ErrOptions) {
		t.Errorf("a start without workers: %v", err)
	}
}
