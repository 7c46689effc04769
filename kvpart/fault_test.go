package kvpart_test

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/samya-db/samya/kvpart"
	"github.com/samya-db/samya/kvpart/engine"
	"github.com/samya-db/samya/kvpart/engine/enginetest"
)

var errFault = errors.New("injected")

// TestFaults has engines fail at random while keys move from generation to generation:
// failed requests changed nothing, and the writes of others are there, also after opening
// again.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, backend := range []string{"btree", "bbolt"} {
		for _, strategy := range []kvpart.Strategy{kvpart.Soft, kvpart.Hard, kvpart.HardThreaded} {
			t.Run(string(strategy)+"/"+backend, func(t *testing.T) {
				t.Parallel()
				faults(t, strategy, backend)
			})
		}
	}
}

func faults(t *testing.T, strategy kvpart.Strategy, backend string) {
	t.Helper()
	f, err := engine.Lookup(backend)
	if err != nil {
		t.Fatal(err)
	}
	var failing atomic.Bool
	var calls atomic.Uint64
	faulty := enginetest.Faulty(f, func(op enginetest.Op, _ string) error {
		// A third of writes fails, in no pattern that a test could be in step with.
		x := calls.Add(1) * 0x9e3779b97f4a7c15 >> 32
		writes := op == enginetest.OpPut || op == enginetest.OpDelete || op == enginetest.OpApply
		if failing.Load() && writes && x%3 == 0 {
			return errFault
		}
		return nil
	})
	o := kvpart.Options{Strategy: strategy, Partitions: 3, Backend: backend, Engine: &faulty, Generations: 3}
	if f.Durable {
		o.Dirs = []string{tempDir(t)}
	}
	s := open(t, o)
	// Close tells of failures behind the callers' backs.
	defer func() {
		if err := s.Close(); err != nil && !errors.Is(err, errFault) {
			t.Error(err)
		}
	}()
	rng := rand.New(rand.NewPCG(1, 2))
	failed := 0
	draw := newGenerators()
	rapid.Check(t, func(t *rapid.T) {
		failing.Store(false)
		want := make(map[string]string)
		m := model{store: s}
		m.wipe(t)
		check := func(err error, next map[string]string) {
			switch {
			case err == nil:
				want = next
			case errors.Is(err, errFault):
				failed++
			default:
				t.Fatal(err)
			}
		}
		actions := map[string]func(*rapid.T){
			"write": func(t *rapid.T) {
				k, v, next := draw.key.Draw(t, "key"), draw.value.Draw(t, "value"), maps.Clone(want)
				next[k] = v
				check(s.Write(context.Background(), k, []byte(v)), next)
			},
			"delete": func(t *rapid.T) {
				k, next := draw.key.Draw(t, "key"), maps.Clone(want)
				delete(next, k)
				check(s.Delete(context.Background(), k), next)
			},
			"execute": func(t *rapid.T) {
				all, next := draw.some.Draw(t, "keys"), maps.Clone(want)
				check(s.Execute(context.Background(), all, func(tx kvpart.Tx) error {
					for i, k := range all {
						if i%2 == 0 {
							next[k] = k
							if err := tx.Put(k, []byte(k)); err != nil {
								return err
							}
						} else {
							delete(next, k)
							if err := tx.Delete(k); err != nil {
								return err
							}
						}
					}
					return nil
				}), next)
			},
			"switch": func(t *rapid.T) { need(t, s.Shuffle(rng)) },
			"": func(t *rapid.T) {
				failing.Store(false)
				need(t, holds(s, want))
				failing.Store(true)
			},
		}
		if f.Durable {
			actions["reopen"] = func(t *rapid.T) {
				if rapid.IntRange(0, 5).Draw(t, "rarely") > 0 {
					return
				}
				if err := s.Close(); err != nil && !errors.Is(err, errFault) {
					t.Fatal(err)
				}
				failing.Store(false)
				var err error
				s, err = kvpart.Open(o)
				need(t, err)
			}
		}
		t.Repeat(actions)
	})
	if failed < 100 {
		t.Errorf("%d requests failed", failed)
	}
}
