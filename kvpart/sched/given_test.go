package sched_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/samya-db/samya/kvpart/sched"
)

type entry = sched.Entry[int64]

// insert adds a key that must not be there.
func insert(tb testing.TB, s *sched.Scheduler[int64], key string, partition int) *entry {
	tb.Helper()
	e, err := s.Insert(key, partition, 0)
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

// hand hands r over as the mode does and waits for its end.
func hand(ctx context.Context, s *sched.Scheduler[int64], p *probe, start bool) error {
	if !start {
		return s.Do(ctx, &p.req)
	}
	if err := s.Start(ctx, &p.req); err != nil {
		return err
	}
	return <-p.ended
}

func TestOf(t *testing.T) {
	modes(t, func(t *testing.T, m sched.Mode) {
		t.Helper()
		s := newScheduler(t, sched.Options[int64]{Partitions: 3, Mode: m})
		a, b, c := insert(t, s, "a", 0), insert(t, s, "b", 2), insert(t, s, "c", 2)
		gone := insert(t, s, "gone", 1)
		s.Remove(gone)
		for _, start := range []bool{false, true} {
			if start && m == sched.Callers {
				continue
			}
			for _, x := range []struct {
				entries []*entry
				access  sched.Access
				parts   []int32
				err     error
			}{
				{[]*entry{a}, sched.Alone, []int32{0}, nil},
				{[]*entry{c}, sched.Share, []int32{2}, nil},
				{[]*entry{c, a}, sched.Share, []int32{0, 2}, nil},
				{[]*entry{c, b}, sched.Alone, []int32{2}, nil},
				{[]*entry{c, a, c, b, a}, sched.Create, []int32{0, 2}, nil},
				{[]*entry{gone}, sched.Share, nil, sched.ErrNoEntry},
				{[]*entry{gone}, sched.Create, nil, sched.ErrNoEntry},
				{[]*entry{a, gone, b}, sched.Alone, nil, sched.ErrNoEntry},
			} {
				p := newProbe(func(r *sched.Request[int64]) {
					if !slices.Equal(r.Entries(), x.entries) || !slices.Equal(r.Partitions(), x.parts) {
						t.Errorf("%v on %v, want %v on %v", r.Entries(), r.Partitions(), x.entries, x.parts)
					}
					if r.Access() != min(x.access, sched.Alone) {
						t.Errorf("access %d of one of %d", r.Access(), x.access)
					}
				})
				p.req.Of(x.entries, x.access, p)
				err := hand(t.Context(), s, p, start)
				if !errors.Is(err, x.err) || (err == nil) != (p.ran == 1) {
					t.Errorf("%d entries: ran %d times, %v, want %v", len(x.entries), p.ran, err, x.err)
				}
			}
		}
		if s.Entry("gone") != nil || s.Keys() != 3 {
			t.Errorf("%d keys, want 3", s.Keys())
		}
	})
}

// A request that is set up otherwise after Of does not write to the slice of Of.
func TestOfKeepsTheSlice(t *testing.T) {
	modes(t, func(t *testing.T, m sched.Mode) {
		t.Helper()
		s := newScheduler(t, sched.Options[int64]{Partitions: 2, Mode: m})
		a, b := insert(t, s, "a", 0), insert(t, s, "b", 1)
		mine := []*entry{a, a, a}
		p := newProbe(nothing)
		for _, set := range []func(){
			func() { p.req.One("b", sched.Share, p) },
			func() { p.req.Several([]string{"b", "a"}, sched.Share, p) },
			func() { p.req.Range("b", 2, sched.Share, p) },
			func() { p.req.Of([]*entry{b}, sched.Share, p) },
		} {
			p.req.Of(mine, sched.Alone, p)
			if err := s.Do(t.Context(), &p.req); err != nil {
				t.Fatal(err)
			}
			set()
			if err := s.Do(t.Context(), &p.req); err != nil || p.req.Entries()[0] != b {
				t.Fatal(p.req.Entries(), err)
			}
			if mine[0] != a {
				t.Fatal("the slice was written to")
			}
		}
	})
}

func TestInsert(t *testing.T) {
	s := newScheduler(t, sched.Options[int64]{Partitions: 3, Place: sched.RoundRobin})
	for i := range 4 {
		if e := insert(t, s, fmt.Sprint(i), sched.Unplaced); s.Partition(e) != i%3 {
			t.Errorf("entry %d is at %d", i, s.Partition(e))
		}
	}
	a, err := s.Insert("a", 2, 7)
	if err != nil || a != s.Entry("a") || s.Partition(a) != 2 || a.Value != 7 || !a.Present || a.Gone() {
		t.Fatal(a, err)
	}
	for _, x := range []struct {
		key       string
		partition int
	}{{"a", 0}, {"b", 3}, {"b", -2}} {
		if e, err := s.Insert(x.key, x.partition, 0); e != nil || !errors.Is(err, sched.ErrOptions) {
			t.Errorf("%s at %d: %v, %v", x.key, x.partition, e, err)
		}
	}
	s.Remove(a)
	if !a.Gone() || s.Entry("a") != nil || slices.Contains(s.Entries(nil, "", 10), a) {
		t.Error("a is there")
	}
	b := insert(t, s, "a", 1)
	s.Remove(a) // it is gone, and its successor stays
	if b.Gone() || s.Entry("a") != b || s.Keys() != 5 {
		t.Error("the second a is not there")
	}
	if err := do(t, s, sched.Alone, func(r *sched.Request[int64]) { r.Entries()[0].Value = 9 }, "a"); err != nil || b.Value != 9 {
		t.Error(b.Value, err)
	}
}

// An entry that was left vacant and then removed does not take its successor with it.
func TestRemoveAndSweep(t *testing.T) {
	modes(t, func(t *testing.T, m sched.Mode) {
		t.Helper()
		s := newScheduler(t, sched.Options[int64]{Partitions: 2, Mode: m})
		a := insert(t, s, "a", 0)
		p := newProbe(absent)
		p.req.Of([]*entry{a, a}, sched.Alone, p)
		if err := s.Do(t.Context(), &p.req); err != nil {
			t.Fatal(err)
		}
		s.Remove(a)
		b := insert(t, s, "a", 0)
		s.Sweep()
		if s.Entry("a") != b || b.Gone() || s.Keys() != 1 {
			t.Error("the second a is not there")
		}
		p.req.Of([]*entry{b}, sched.Alone, p)
		if err := s.Do(t.Context(), &p.req); err != nil {
			t.Fatal(err)
		}
		s.Sweep()
		s.Sweep() // a worker may not have been done with it
		if s.Keys() != 0 || !b.Gone() {
			t.Error("the second a is there, and vacant")
		}
		if err := s.Do(t.Context(), &p.req); !errors.Is(err, sched.ErrNoEntry) {
			t.Errorf("after the sweep: %v", err)
		}
	})
}

// A Classer also says where requests of given entries run.
func TestOfWithAClasser(t *testing.T) {
	modes(t, func(t *testing.T, m sched.Mode) {
		t.Helper()
		s := newScheduler(t, sched.Options[int64]{Partitions: 3, Mode: m, Classer: &classes{partitions: 3}})
		p := newProbe(nothing)
		p.req.Of([]*entry{insert(t, s, "a", 0)}, sched.Alone, p)
		if err := s.Do(t.Context(), &p.req); err != nil || len(p.req.Partitions()) != 3 {
			t.Errorf("on %v, %v", p.req.Partitions(), err)
		}
	})
}

// Requests on an entry run in the order in which they were handed over, wherever it
// moves. Requests on an entry removed before are refused, and no others.
func TestGivenEntriesInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.IntRange(1, 3).Draw(t, "partitions")
		s, err := sched.New(sched.Options[int64]{Partitions: parts, Mode: sched.Manual})
		if err != nil {
			t.Fatal(err)
		}
		var there []*entry
		var all []*entry
		want, got := map[*entry][]int{}, map[*entry][]int{}
		steps := rapid.IntRange(1, 60).Draw(t, "steps")
		for n := range steps {
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0:
				key := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "key")
				e, err := s.Insert(key, rapid.IntRange(-1, parts-1).Draw(t, "at"), 0)
				taken := slices.ContainsFunc(there, func(e *entry) bool { return e.Key() == key })
				if (err != nil) != taken {
					t.Fatalf("insert %s: %v", key, err)
				}
				if err == nil {
					there, all = append(there, e), append(all, e)
				}
			case 1:
				if len(all) > 0 {
					e := rapid.SampledFrom(all).Draw(t, "entry")
					s.Remove(e)
					there = slices.DeleteFunc(there, func(x *entry) bool { return x == e })
				}
			case 2:
				if len(all) > 0 && s.Settled() {
					e := rapid.SampledFrom(all).Draw(t, "entry")
					if _, err := s.Assign(e, rapid.IntRange(-1, parts-1).Draw(t, "to")); err != nil {
						t.Fatal(err)
					}
				}
			case 3:
				if s.Settled() {
					s.Switch(nil)
				}
			case 4, 5, 6:
				s.Step(rapid.IntRange(0, parts-1).Draw(t, "worker"))
			default:
				if len(all) == 0 {
					continue
				}
				entries := rapid.SliceOfN(rapid.SampledFrom(all), 1, 3).Draw(t, "entries")
				p := newProbe(func(r *sched.Request[int64]) {
					for _, e := range r.Entries() {
						got[e] = append(got[e], n)
					}
				})
				p.req.Of(entries, sched.Access(rapid.IntRange(0, 1).Draw(t, "access")), p)
				err := s.TryStart(&p.req)
				gone := slices.ContainsFunc(entries, func(e *entry) bool { return !slices.Contains(there, e) })
				if gone != errors.Is(err, sched.ErrNoEntry) || !gone && err != nil {
					t.Fatalf("one gone: %t, but %v", gone, err)
				}
				if err == nil {
					for _, e := range entries {
						want[e] = append(want[e], n)
					}
				}
			}
		}
		for range 200 {
			for p := range parts {
				s.Step(p)
			}
		}
		for _, e := range all {
			if !slices.Equal(got[e], want[e]) {
				t.Fatalf("%s: ran %v, handed over %v", e.Key(), got[e], want[e])
			}
			if e.Gone() == slices.Contains(there, e) {
				t.Fatalf("%s: gone is %t", e.Key(), e.Gone())
			}
		}
		if s.Keys() != len(there) {
			t.Fatalf("%d keys, want %d", s.Keys(), len(there))
		}
	})
}

// The observer is told of each request of given entries once, as of other requests.
func TestOfIsObserved(t *testing.T) {
	modes(t, func(t *testing.T, m sched.Mode) {
		t.Helper()
		o := &observer{sizes: map[int]int{}}
		s := newScheduler(t, sched.Options[int64]{Partitions: 2, Mode: m, Observer: o})
		entries := []*entry{insert(t, s, "a", 0), insert(t, s, "b", 1), insert(t, s, "c", 1)}
		p := newProbe(nothing)
		for n := 1; n <= 3; n++ {
			for range n {
				p.req.Of(entries[:n], sched.Alone, p)
				if err := hand(t.Context(), s, p, m != sched.Callers && n > 1); err != nil {
					t.Fatal(err)
				}
				p.req.Of(entries[:n], sched.Alone, p)
				p.req.Unseen()
				if err := hand(t.Context(), s, p, m != sched.Callers && n > 1); err != nil {
					t.Fatal(err)
				}
			}
		}
		if o.sizes[1] != 1 || o.sizes[2] != 2 || o.sizes[3] != 3 {
			t.Errorf("told %v", o.sizes)
		}
	})
}
