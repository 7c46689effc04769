package kvoracle

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/samya-db/samya/kvpart"
)

// shuffles reports whether the subject assigns keys itself.
func (s *Subject) shuffles() bool { return s.Policy == Shuffled || s.Policy == Ranged }

// shuffling is a store that assigns keys at random until it is closed.
type shuffling struct {
	*kvpart.Store
	mu     sync.Mutex
	closed bool
	times  int64
	stop   chan struct{}
}

// Close closes the store, and ends the shuffling.
func (s *shuffling) Close() error {
	s.mu.Lock()
	if !s.closed {
		close(s.stop)
	}
	s.closed = true
	s.mu.Unlock()
	return s.Store.Close()
}

// shuffle assigns keys at random until the store is closed.
func (r *run) shuffle() {
	s := &shuffling{Store: r.store, stop: make(chan struct{})}
	r.load.store = s
	rng := rand.New(rand.NewPCG(r.Load.Seed, 1))
	next := func() func(string) int {
		return func(string) int { return rng.IntN(r.Partitions+1) - 1 }
	}
	if r.Policy == Ranged {
		next = newRanges(rng, r.Partitions).next
	}
	go func() {
		tick := time.NewTicker(shuffleEvery)
		defer tick.Stop()
		for {
			select {
			case <-s.stop:
				return
			case <-tick.C:
			}
			s.mu.Lock()
			if s.closed {
				s.mu.Unlock()
				return
			}
			err := s.Reassign(next())
			s.times++
			s.mu.Unlock()
			if err != nil {
				r.load.violate(violated(Sound, "assign keys: %v", err))
				return
			}
		}
	}()
}

// shuffleEvery is the least interval between random assignments.
const shuffleEvery = 300 * time.Microsecond

// ranges assigns ranges of keys to partitions.
type ranges struct {
	rng        *rand.Rand
	partitions int
	// starts are the first keys of the ranges, ascending; all[i] is the partition from
	// starts[i] on.
	starts []string
	all    []int
	keys   []string // of the store, when it was last asked
}

// mostRanges bounds the ranges. At the bound all keys go to a single partition.
const mostRanges = 24

func newRanges(rng *rand.Rand, partitions int) *ranges {
	r := &ranges{rng: rng, partitions: partitions}
	r.join()
	return r
}

// join makes all keys a range.
func (r *ranges) join() {
	r.starts, r.all = []string{""}, []int{r.rng.IntN(r.partitions)}
}

// next moves a range, and returns the partition of each key.
func (r *ranges) next() func(key string) int {
	if len(r.starts) >= mostRanges {
		r.join()
	}
	if len(r.keys) > 0 {
		from, to := r.keys[r.rng.IntN(len(r.keys))], r.keys[r.rng.IntN(len(r.keys))]
		r.move(min(from, to), max(from, to), r.rng.IntN(r.partitions))
	}
	r.keys = r.keys[:0]
	return func(key string) int {
		r.keys = append(r.keys, key)
		return r.at(key)
	}
}

// at returns the partition of a key.
func (r *ranges) at(key string) int {
	i, found := slices.BinarySearch(r.starts, key)
	if !found {
		i--
	}
	return r.all[i]
}

// move makes the keys of a range, from one key up to another, belong to a partition.
func (r *ranges) move(from, to string, partition int) {
	if from == to {
		return
	}
	after := r.at(to)
	i, _ := slices.BinarySearch(r.starts, from)
	j, _ := slices.BinarySearch(r.starts, to)
	if j < len(r.starts) && r.starts[j] == to {
		j++
	}
	r.starts = slices.Replace(r.starts, i, j, strings.Clone(from), strings.Clone(to))
	r.all = slices.Replace(r.all, i, j, partition, after)
}
