package early

import "fmt"

// MaxSubsets bounds the shards of [Subsets].
const MaxSubsets = 8

// Subsets returns the classes and the mapping of a state in k shards with n threads each,
// like [Shards], but with classes of its own for each set of shards: requests of two sets
// without a common shard do not wait for each other. [SubsetClass] tells the class of a
// request. k is in 1 to [MaxSubsets], n at least 1.
func Subsets(k, n int) (*Classes, *Mapping, error) {
	if k < 1 || k > MaxSubsets {
		return nil, nil, fmt.Errorf("%w: %d shards, must be in 1 to %d", ErrMapping, k, MaxSubsets)
	}
	sets := 1 << k
	c, err := NewClasses(2 * (sets - 1))
	if err != nil {
		return nil, nil, fmt.Errorf("sets of %d shards: %w", k, err)
	}
	m := &Mapping{Threads: k * n, Of: make([]Assignment, c.Len())}
	for set := 1; set < sets; set++ {
		reads, writes := &m.Of[2*set-2], &m.Of[2*set-1]
		single := set&(set-1) == 0
		reads.Sequential, writes.Sequential = !single, true
		for i := range k {
			if set&(1<<i) == 0 {
				continue
			}
			for j := range n {
				if j == 0 || single {
					reads.Threads = append(reads.Threads, i*n+j)
				}
				writes.Threads = append(writes.Threads, i*n+j)
			}
		}
		for other := 1; other < sets; other++ {
			if set&other != 0 {
				c.Conflict(2*set-1, 2*other-2)
				c.Conflict(2*set-1, 2*other-1)
			}
		}
	}
	if err := c.Validate(m); err != nil {
		return nil, nil, fmt.Errorf("sets of %d shards of %d threads: %w", k, n, err)
	}
	return c, m, nil
}

// SubsetClass is the class, under [Subsets], of a request of the shards, at least one.
func SubsetClass(shards []int32, writes bool) int {
	set := 0
	for _, i := range shards {
		set |= 1 << i
	}
	class := 2*set - 2
	if writes {
		class++
	}
	return class
}
