package kvpart

import (
	"math/rand/v2"

	"github.com/samya-db/samya/kvpart/control"
)

// Shuffle assigns all keys by chance, and switches.
func (s *Store) Shuffle(rng *rand.Rand) error {
	return s.Reassign(func(string) int { return rng.IntN(s.sched.Partitions()+1) - 1 })
}

// MoveFirst moves the first n keys to the partition after theirs.
func (s *Store) MoveFirst(n int) error {
	b := &balance{Scheduler: s.sched, store: s}
	for _, e := range s.sched.Entries(nil, "", n) {
		if _, err := b.Assign(e, (s.sched.Partition(e)+1)%s.sched.Partitions()); err != nil {
			return err
		}
	}
	return b.Switch()
}

// Engines returns how many keys the engines of the present generation hold.
func (s *Store) Engines() []int64 {
	var n []int64
	for _, h := range s.homes.present.Load().homes {
		n = append(n, h.keys.Load())
	}
	return n
}

// Misplaced returns how many values are not in the engine of their partition.
func (s *Store) Misplaced() int {
	n := 0
	for _, e := range s.sched.Entries(nil, "", 1<<20) {
		p := s.sched.Partition(e)
		if e.Present && (p < 0 || e.Value.home != s.homes.present.Load().home(int32(p))) {
			n++
		}
	}
	return n
}

// ControlPolicy returns the policy that a controller gets.
func ControlPolicy(o *Options) control.Policy { return o.Policy.control() }
