package kvpart

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/samya-db/samya/kvpart/engine"
	"github.com/samya-db/samya/kvpart/engine/enginetest"
)

// onDisks returns options of a store with values that follow their keys, on a disk for each
// of two partitions.
func onDisks(t *testing.T, strategy Strategy, backend string) Options {
	t.Helper()
	o := Options{Strategy: strategy, Partitions: 2, Generations: 3, Backend: backend, Follow: true}
	if backend != "btree" {
		o.Dirs = []string{t.TempDir(), t.TempDir()}
	}
	return o
}

// fill writes n keys, and returns the values.
func fill(t *testing.T, s *Store, n int) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for i := range n {
		all[nth(i)] = fmt.Sprint("value ", i)
		if err := s.Write(t.Context(), nth(i), []byte(all[nth(i)])); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// TestValuesFollow moves few and many keys: without a request on them their values are in
// the engine of their partition, and former generations close.
func TestValuesFollow(t *testing.T) {
	for _, backend := range []string{"btree", "bbolt"} {
		for _, strategy := range []Strategy{Hard, HardThreaded} {
			t.Run(fmt.Sprint(backend, "/", strategy), func(t *testing.T) {
				o := onDisks(t, strategy, backend)
				s, u := alone(t, o)
				want := fill(t, s, 90)
				u.settle(t.Context())
				for n, assign := range []func(key string) int{
					moved, first, // few keys
					func(key string) int { return 1 - first(key) }, // all
					func(string) int { return 0 },
					func(string) int { return 1 },
					func(string) int { return -1 }, // to be placed anew
				} {
					before := s.Stats().Followed
					if err := s.Reassign(assign); err != nil {
						t.Fatal(err)
					}
					misplaced := s.Misplaced()
					u.settle(t.Context())
					if m := s.Misplaced(); m != 0 {
						t.Errorf("map %d: %d of %d values have not followed", n, m, misplaced)
					}
					st := s.Stats()
					if st.Followed < before+movedKeys || st.Generations != 1 {
						t.Errorf("map %d: %d values followed, %d generations are left", n, st.Followed-before, st.Generations)
					}
					same(t, s, want)
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				if len(o.Dirs) == 0 {
					return
				}
				s, _ = alone(t, o)
				same(t, s, want)
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

func same(t *testing.T, s *Store, want map[string]string) {
	t.Helper()
	got, err := contents(s)
	if err != nil || len(got) != len(want) {
		t.Fatalf("%d keys, want %d: %v", len(got), len(want), err)
	}
	for key, value := range want {
		if got[key] != value {
			t.Errorf("%s is %q, want %q", key, got[key], value)
		}
	}
}

// TestValuesStay: without the option a value stays where it is until it is written.
func TestValuesStay(t *testing.T) {
	o := onDisks(t, Hard, "bbolt")
	o.Follow = false
	s, u := alone(t, o)
	fill(t, s, manyKeys)
	if err := s.Reassign(moved); err != nil {
		t.Fatal(err)
	}
	u.settle(t.Context())
	if n := s.Misplaced(); n != movedKeys || s.Stats().Followed != 0 {
		t.Errorf("%d values are elsewhere, want %d", n, movedKeys)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestFollowedByItself: the upkeep needs no other kick than a switch.
func TestFollowedByItself(t *testing.T) {
	s, err := Open(onDisks(t, HardThreaded, "bbolt"))
	if err != nil {
		t.Fatal(err)
	}
	fill(t, s, manyKeys)
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	deadline := time.After(time.Minute)
	for n, assign := range []func(string) int{moved, first, moved} {
		if err := s.Reassign(assign); err != nil {
			t.Fatal(err)
		}
		for s.Stats().Followed < int64(n+1)*movedKeys {
			select {
			case <-poll.C:
			case <-deadline:
				t.Fatalf("map %d: %d values followed", n, s.Stats().Followed)
			}
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestNewMapDuringASearch: keys that move behind a search are found by the next.
func TestNewMapDuringASearch(t *testing.T) {
	s, u := alone(t, onDisks(t, Hard, "bbolt"))
	want := fill(t, s, 90)
	u.settle(t.Context())
	// Switch back after each number of steps that leaves a search under way.
	for n, switched := 0, true; switched; n++ {
		if err := s.Reassign(moved); err != nil {
			t.Fatal(err)
		}
		switched = false
		before := s.Stats().Followed
		for i := 0; u.step(t.Context()); i++ {
			if i != n {
				continue
			}
			if err := s.Reassign(first); err != nil {
				t.Fatal(err)
			}
			switched = true
		}
		if m := s.Misplaced(); m != 0 {
			t.Fatalf("a switch after %d steps: %d values have not followed", n+1, m)
		}
		if followed := s.Stats().Followed - before; n == 0 && followed != 0 {
			t.Errorf("%d values moved by a map that was over", followed)
		}
		if !switched && n < 3 {
			t.Errorf("searches end after %d steps", n)
		}
	}
	same(t, s, want)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestCopiesDoNotKeepValues: values follow even if there are always former copies to
// remove.
func TestCopiesDoNotKeepValues(t *testing.T) {
	s, u := alone(t, onDisks(t, Hard, "bbolt"))
	fill(t, s, manyKeys)
	u.settle(t.Context())
	if err := s.Reassign(moved); err != nil {
		t.Fatal(err)
	}
	for i := 0; s.Misplaced() > 0; i++ {
		if i == 20 {
			t.Fatalf("%d values have not followed after %d steps", s.Misplaced(), i)
		}
		for j := 1; j < manyKeys; j += 2 {
			s.homes.suspect(nth(j), s.homes.present.Load().homes[0])
		}
		u.step(t.Context())
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestFollowFails has each kind of use of an engine fail while values move: nothing is
// lost, Close tells, and the move is tried again later, not at once.
func TestFollowFails(t *testing.T) {
	for _, backend := range []string{"btree", "bbolt"} {
		f, err := engine.Lookup(backend)
		if err != nil {
			t.Fatal(err)
		}
		for _, op := range []enginetest.Op{enginetest.OpGet, enginetest.OpApply} {
			for _, skip := range []int{0, 1} {
				t.Run(fmt.Sprint(backend, "/", op, "/", skip), func(t *testing.T) {
					var failing atomic.Bool
					calls, failed := 0, 0
					faulty := enginetest.Faulty(f, func(did enginetest.Op, _ string) error {
						if !failing.Load() || did != op {
							return nil
						}
						if calls++; calls <= skip {
							return nil
						}
						failed++
						return errFails
					})
					o := onDisks(t, Hard, backend)
					o.Engine = &faulty
					s, u := alone(t, o)
					want := fill(t, s, manyKeys)
					for u.step(t.Context()) {
					}
					if err := s.Reassign(moved); err != nil {
						t.Fatal(err)
					}
					failing.Store(true)
					for u.step(t.Context()) {
					}
					if failed == 0 || failed > movedKeys {
						t.Errorf("%d uses failed", failed)
					}
					if wait := u.again(); wait == 0 || wait > retryLeast {
						t.Errorf("tries again after %v, want %v at most", wait, retryLeast)
					}
					before := failed
					u.step(t.Context())
					if failed != before {
						t.Error("tries again at once")
					}
					failing.Store(false)
					same(t, s, want)
					u.settle(t.Context())
					if n := s.Misplaced(); n != 0 || s.homes.count.Load() != 0 {
						t.Errorf("%d values have not followed, %d have suspects", n, s.homes.count.Load())
					}
					if wait := u.again(); wait != 0 {
						t.Errorf("all is done, and there is a next try after %v", wait)
					}
					same(t, s, want)
					if err := s.Close(); !errors.Is(err, errFails) {
						t.Errorf("Close says %v", err)
					}
				})
			}
		}
	}
}

// TestFailedEngineIsLeftAlone: a search tries an engine that failed no more.
func TestFailedEngineIsLeftAlone(t *testing.T) {
	f, err := engine.Lookup("bbolt")
	if err != nil {
		t.Fatal(err)
	}
	var failing atomic.Bool
	failed := 0
	faulty := enginetest.Faulty(f, func(did enginetest.Op, _ string) error {
		if !failing.Load() || did != enginetest.OpApply {
			return nil
		}
		failed++
		return errFails
	})
	o := onDisks(t, Hard, "bbolt")
	o.Engine = &faulty
	s, u := alone(t, o)
	for i := range 2*lookMost + 10 {
		if err := s.Load(t.Context(), fmt.Sprintf("k%04d", i), []byte("v")); err != nil {
			t.Fatal(err)
		}
	}
	u.settle(t.Context())
	if err := s.Reassign(func(key string) int { return 1 - s.sched.Partition(s.sched.Entry(key)) }); err != nil {
		t.Fatal(err)
	}
	failing.Store(true)
	for u.step(t.Context()) {
	}
	// The copies to each engine fail once, and so does the removal of suspects.
	if failed > 3 {
		t.Errorf("%d writes of 2 engines failed in a search", failed)
	}
	failing.Store(false)
	u.settle(t.Context())
	if n := s.Misplaced(); n != 0 {
		t.Errorf("%d values have not followed", n)
	}
	if err := s.Close(); !errors.Is(err, errFails) {
		t.Errorf("Close says %v", err)
	}
}

// TestPatience: tries become rarer as they fail, and no rarer than a bound.
func TestPatience(t *testing.T) {
	var p patience
	if p.left() != 0 {
		t.Error("the first try waits")
	}
	last := time.Duration(0)
	for range 20 {
		p.tell(true)
		if p.wait <= last && last != retryMost || p.wait > retryMost || p.left() <= 0 {
			t.Errorf("waits %v after %v", p.wait, last)
		}
		last = p.wait
	}
	if p.failed = time.Now().Add(-retryMost); p.left() != 0 {
		t.Error("waits for longer than the bound")
	}
	if p.tell(false); p.left() != 0 {
		t.Error("waits after a success")
	}
}

// TestCloseDuringAMove closes stores while their values move: nothing is lost, and
// nobody waits for ever.
func TestCloseDuringAMove(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, strategy := range []Strategy{Hard, HardThreaded} {
		o := onDisks(t, strategy, "bbolt")
		want := make(map[string]string)
		for round := range 20 {
			s, err := Open(o)
			if err != nil {
				t.Fatal(err)
			}
			if round == 0 {
				want = fill(t, s, 90)
			}
			same(t, s, want)
			if err := s.Shuffle(rng); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error)
			go func() {
				for i := 0; ; i = (i + 1) % 90 {
					if err := s.Write(context.Background(), nth(i), []byte(want[nth(i)])); err != nil {
						ended <- err
						return
					}
				}
			}()
			for before := s.Stats().Operations; s.Stats().Operations < before+int64(round); {
				if _, err := s.Read(t.Context(), nth(round), nil); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; !errors.Is(err, ErrClosed) {
				t.Errorf("a write after the end: %v", err)
			}
		}
	}
}
