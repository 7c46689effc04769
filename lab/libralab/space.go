package libralab

import (
	"math"
	"math/rand/v2"
	"sort"
)

// flow is the requests of keys: reads and writes a second, and bytes a second at the disk.
type flow struct{ reads, writes, bytes float64 }

func (f flow) plus(g flow, sign float64) flow {
	return flow{f.reads + sign*g.reads, f.writes + sign*g.writes, f.bytes + sign*g.bytes}
}

// space is the requests of all keys between two shifts of the hot spots. Keys are numbers
// from 0. A cell is neighbouring keys that are wanted alike.
type space struct {
	starts []int  // the first keys of the cells, and the number of keys at the end
	sums   []flow // requests of all keys before each start
	// scan is the keys that a read covers from its first key on; 1 but for scans.
	scan int
}

// add appends a cell of the next keys.
func (s *space) add(keys int, f flow) {
	if len(s.starts) == 0 {
		s.starts, s.sums = append(s.starts, 0), append(s.sums, flow{})
	}
	last := len(s.starts) - 1
	s.starts = append(s.starts, s.starts[last]+keys)
	s.sums = append(s.sums, s.sums[last].plus(f, 1))
}

// keys is the number of keys.
func (s *space) keys() int { return s.starts[len(s.starts)-1] }

// total is the requests of all keys.
func (s *space) total() flow { return s.sums[len(s.sums)-1] }

// cell returns the cell with a key.
func (s *space) cell(key int) int {
	return sort.Search(len(s.starts)-1, func(i int) bool { return s.starts[i+1] > key })
}

// before returns the requests of all keys below a key.
func (s *space) before(key int) flow {
	if key >= s.keys() {
		return s.total()
	}
	i := s.cell(key)
	share := float64(key-s.starts[i]) / float64(s.starts[i+1]-s.starts[i])
	return s.sums[i].plus(s.sums[i+1].plus(s.sums[i], -1), share)
}

// between returns the requests of the keys from low, below high.
func (s *space) between(low, high int) flow { return s.before(high).plus(s.before(low), -1) }

// poisson draws a count with a mean.
func poisson(rnd *rand.Rand, mean float64) int {
	if mean > 30 {
		return max(0, int(math.Round(mean+math.Sqrt(mean)*rnd.NormFloat64())))
	}
	n, p := 0, math.Exp(-mean)
	for f := rnd.Float64(); f > p; n++ {
		f *= rnd.Float64()
	}
	return n
}
