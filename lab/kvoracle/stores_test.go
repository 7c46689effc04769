package kvoracle_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/samya-db/samya/kvpart"
	"github.com/samya-db/samya/lab/kvoracle"
)

// judge fails the test if a subject breaks an invariant.
func judge(t *testing.T, s kvoracle.Subject, rounds int) kvoracle.Report {
	t.Helper()
	r, err := kvoracle.Judge(t.Context(), s, t.TempDir(), rounds)
	if err != nil {
		if v, ok := errors.AsType[*kvoracle.Violation](err); ok {
			t.Fatalf("%v: violated %s: %.20000s", s, v.Invariant, v.Detail)
		}
		t.Fatalf("%v: %v", s, err)
	}
	if r.Undecided > 0 {
		t.Errorf("%v: %d histories were not decided", s, r.Undecided)
	}
	return r
}

// TestOracle judges all strategies on the backends in memory, by each policy, with
// few and many partitions, short and long queues, and contexts that end.
func TestOracle(t *testing.T) {
	partitions, queues := []int{4, 2, 7, 1}, []int{1 << 16, 1, 8, 2}
	places := []kvpart.Placement{kvpart.RoundRobin, kvpart.Together, kvpart.Hash}
	balances := []kvpart.Balance{kvpart.BalanceLibra, kvpart.BalanceBoth, kvpart.BalanceGraph}
	seed := uint64(0)
	for _, policy := range []kvpart.PolicyKind{kvoracle.Shuffled, kvpart.Base, kvpart.Async} {
		for _, strategy := range kvpart.Strategies() {
			for _, backend := range []string{"btree", "hash"} {
				if policy != kvoracle.Shuffled && (strategy == kvpart.Bare || backend == "hash") {
					continue
				}
				s := kvoracle.Subject{
					Strategy: strategy, Backend: backend, Policy: policy,
					Partitions: partitions[seed%4], Queue: queues[seed/2%4], Place: places[seed%3],
				}
				if seed%2 == 0 && policy == kvpart.Async {
					s.Place = kvpart.Beside
				}
				if policy != kvoracle.Shuffled {
					s.Balance = balances[seed%3]
				}
				s.Schedule(seed)
				seed++
				s.Load = kvoracle.Options{Seed: seed, Ops: 80, Deadlines: .1}
				t.Run(fmt.Sprintf("%s/%s/%s", policy, strategy, backend), func(t *testing.T) {
					r := judge(t, s, 2)
					// On a busy machine a short run may end before the first assignment.
					for more := 0; strategy != kvpart.Bare && policy == kvoracle.Shuffled && r.Switches == 0 && more < 10; more++ {
						r = judge(t, s, 20)
					}
					if strategy != kvpart.Bare && policy == kvoracle.Shuffled && r.Switches == 0 {
						t.Errorf("%v: keys were never assigned anew", s)
					}
				})
			}
		}
	}
}

// TestOracleOnDisk judges durable backends: images of their directories, taken under
// load, are opened as after a crash; the store itself is closed under load and
// opened again.
func TestOracleOnDisk(t *testing.T) {
	for i, strategy := range []kvpart.Strategy{kvpart.Soft, kvpart.Hard, kvpart.HardThreaded} {
		for _, backend := range []string{"bbolt", "pebble"} {
			s := kvoracle.Subject{Strategy: strategy, Backend: backend, Policy: kvoracle.Shuffled, Partitions: 3, Crash: true}
			s.Load = kvoracle.Options{Seed: uint64(i) + 1, Clients: 4, Ops: 40, Deadlines: .05}
			t.Run(fmt.Sprintf("%s/%s", strategy, backend), func(t *testing.T) {
				if r := judge(t, s, 1); r.Images == 0 {
					t.Error("no image was opened")
				}
			})
		}
	}
}

// judgeFollowing judges a store, until a value has followed its key.
func judgeFollowing(t *testing.T, s kvoracle.Subject) {
	t.Helper()
	r := judge(t, s, 2)
	// On a busy machine a short run may end before the first move.
	for more := 0; r.Followed == 0 && more < 10; more++ {
		r = judge(t, s, 10)
	}
	if r.Followed == 0 {
		t.Errorf("%v: no value followed its key", s)
	}
	t.Logf("%d switches, %d values followed, %d images", r.Switches, r.Followed, r.Images)
}

// TestOracleFollows judges stores whose values follow their keys to other disks while
// ranges of keys move, over crashes, and with writes that fail.
func TestOracleFollows(t *testing.T) {
	seed := uint64(0)
	for _, strategy := range []kvpart.Strategy{kvpart.Hard, kvpart.HardThreaded} {
		for _, backend := range []string{"btree", "bbolt", "pebble"} {
			for _, policy := range []kvpart.PolicyKind{kvoracle.Ranged, kvoracle.Shuffled} {
				for _, failing := range []float64{0, .05} {
					seed++
					s := kvoracle.Subject{
						Strategy: strategy, Backend: backend, Policy: policy, Partitions: 3, Follow: true,
						Failing: failing, Crash: backend != "btree",
					}
					s.Schedule(seed)
					s.Load = kvoracle.Options{Seed: seed, Clients: 4, Ops: 60, Deadlines: .05}
					t.Run(fmt.Sprintf("%s/%s/%s/%v", strategy, backend, policy, failing), func(t *testing.T) {
						judgeFollowing(t, s)
					})
				}
			}
		}
	}
}

// TestOracleBalances judges stores that move ranges, or groups, of keys between engines on
// disks by their loads, over crashes.
func TestOracleBalances(t *testing.T) {
	seed := uint64(0)
	for _, strategy := range []kvpart.Strategy{kvpart.Hard, kvpart.HardThreaded} {
		for _, backend := range []string{"bbolt", "pebble"} {
			for _, balance := range []kvpart.Balance{kvpart.BalanceLibra, kvpart.BalanceBoth} {
				seed++
				s := kvoracle.Subject{
					Strategy: strategy, Backend: backend, Policy: kvpart.Async, Balance: balance, Partitions: 3, Crash: true,
				}
				s.Schedule(seed)
				s.Load = kvoracle.Options{Seed: seed, Clients: 4, Ops: 60, Deadlines: .05}
				t.Run(fmt.Sprintf("%s/%s/%s", strategy, backend, balance), func(t *testing.T) {
					judgeFollowing(t, s)
				})
			}
		}
	}
}

// TestOracleOnFailingDisk: a failed write is not there, and does not come back.
func TestOracleOnFailingDisk(t *testing.T) {
	for i, strategy := range kvpart.Strategies() {
		s := kvoracle.Subject{Strategy: strategy, Backend: "btree", Policy: kvoracle.Shuffled, Partitions: 3, Failing: .05}
		if strategy == kvpart.Hard {
			s.Backend, s.Crash = "pebble", true
		}
		s.Load = kvoracle.Options{Seed: uint64(i) + 1, Ops: 60}
		t.Run(string(strategy), func(t *testing.T) {
			if r := judge(t, s, 1); r.Refused < 10 {
				t.Errorf("%d requests failed", r.Refused)
			}
		})
	}
}

// TestOracleOf judges the subject that SAMYA_KV_SUBJECT describes, see
// kvoracle.ParseSubject, with SAMYA_KV_SEEDS seeds.
func TestOracleOf(t *testing.T) {
	text := os.Getenv(kvoracle.EnvSubject)
	if text == "" {
		t.Skip("SAMYA_KV_SUBJECT is not set")
	}
	s, err := kvoracle.ParseSubject(text)
	if err != nil {
		t.Fatal(err)
	}
	seeds := 1
	if n := os.Getenv(kvoracle.EnvSeeds); n != "" {
		if seeds, err = strconv.Atoi(n); err != nil {
			t.Fatal(err)
		}
	}
	if d := os.Getenv(kvoracle.EnvPatience); d != "" {
		if s.Load.Patience, err = time.ParseDuration(d); err != nil {
			t.Fatal(err)
		}
	}
	for range seeds {
		t.Logf("%v: %+v", s, judge(t, s, 3))
		s.Load.Seed++
	}
}

// TestOracleAtLength judges each strategy on each backend in memory, and the hard
// strategies on disks, for as long as SAMYA_KV_STRESS says, by all policies in turn, with 8
// clients. The first seed is random.
func TestOracleAtLength(t *testing.T) {
	text := os.Getenv("SAMYA_KV_STRESS")
	if text == "" {
		t.Skip("SAMYA_KV_STRESS is not set: make kv-stress")
	}
	length, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	// Three rounds take up to 20 s under the race detector: a short look takes a single
	// round of each seed.
	rounds := 3
	if length < time.Minute {
		rounds = 1
	}
	partitions, queues := []int{4, 2, 7, 1}, []int{1 << 16, 1, 8, 2}
	policies := []kvpart.PolicyKind{kvoracle.Shuffled, kvpart.Async, kvpart.Base, kvoracle.Ranged}
	for _, strategy := range kvpart.Strategies() {
		backends := []string{"btree", "hash"}
		if strategy == kvpart.Hard || strategy == kvpart.HardThreaded {
			backends = append(backends, "bbolt", "pebble")
		}
		for _, backend := range backends {
			t.Run(fmt.Sprintf("%s/%s", strategy, backend), func(t *testing.T) {
				var requests, switches int64
				began := time.Now()
				told := began
				from := rand.Uint64N(1 << 32)
				for seed := from; time.Since(began) < length; seed++ {
					s := kvoracle.Subject{
						Strategy: strategy, Backend: backend, Policy: policies[seed%4],
						Partitions: partitions[seed/4%4], Queue: queues[seed/2%4], Follow: seed%5 < 3,
					}
					s.Schedule(seed / 4)
					s.Load = kvoracle.Options{Seed: seed, Deadlines: float64(seed%4) * .05}
					if s.Policy == kvpart.Async || s.Policy == kvpart.Base {
						s.Balance = kvpart.Balances()[seed/8%3]
					}
					if backend == "bbolt" || backend == "pebble" {
						s.Crash, s.Failing, s.Load.Ops = seed%3 == 0, float64(seed/3%2)*.02, 60
						if s.Balance == kvpart.BalanceGraph {
							s.Policy, s.Balance = kvoracle.Ranged, ""
						}
					}
					r := judge(t, s, rounds)
					requests, switches = requests+r.Requests, switches+r.Switches
					if time.Since(told) > 10*time.Second {
						told = time.Now()
						fmt.Printf("%s: %v of %v, %d requests, %d switches\n", t.Name(), time.Since(began).Round(time.Second), length, requests, switches)
					}
				}
				fmt.Printf("%s: %d requests, %d switches of seeds from %d on, all in order\n", t.Name(), requests, switches, from)
			})
		}
	}
}
