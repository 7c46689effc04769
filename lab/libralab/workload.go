package libralab

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/samya-db/samya/lab/ycsb"
)

// The key space: ranges of keys, each with its own size of values.
const (
	ranges    = 3000 // of Mixgraph
	rangeKeys = 1 << 15
	allKeys   = ranges * rangeKeys
)

// The sizes of values: a generalised Pareto distribution, in bytes.
const (
	paretoShape = .923
	paretoScale = 226.409
	mostSize    = 10_240
	leastSize   = 10
)

// paretoSize returns the size of values at a quantile u of 0 to 1.
func paretoSize(u float64) float64 {
	size := float64(mostSize)
	if u < 1 {
		size = paretoScale * (math.Pow(1-u, -paretoShape) - 1) / paretoShape
	}
	return min(max(size, leastSize), mostSize)
}

// The sizes of values of hot ranges: half of them are large, half are small. So the nodes
// that are busiest are not the nodes with the busiest disks.
const (
	largeFrom, largeTo = 3 << 10, 10 << 10
	smallFrom, smallTo = 10, 100
)

// How requests use the disk. A write is stored by each replica; reads of half of the bytes
// find them in memory.
const (
	replicas  = 3
	readMiss  = .5
	scanKeys  = 50 // mean of YCSB's 1 to 100
	scanReads = 10 // the reads that need the processor as long as a scan
)

// Workload is requests of keys over time. It depends on its seed alone.
type Workload struct {
	mix   ycsb.Mix
	skew  float64 // the factor a of Mixgraph; 0 for YCSB
	rate  float64 // requests a second, of a node
	sizes []float64
	seed  uint64
}

// The factors of Mixgraph's hottest range: as published, and as the public code of the
// paper runs it.
const (
	Published = 14.18
	Run       = 1.418
)

const nodeRate = 20_000

// Mixgraph returns Facebook's workload of writes: 3,000 ranges of keys. The x-th
// hottest has requests in proportion to a·e^(bx) + c·e^(dx). The skew is a, Published or
// Run: the hottest range has 78 % of the requests, or 33 %.
func Mixgraph(skew float64, seed uint64) *Workload {
	w := &Workload{mix: ycsb.Mix{Update: 1}, skew: skew, rate: nodeRate, seed: seed}
	w.draw()
	return w
}

// YCSB returns a core workload, A to F, of 98 million records in unrelated order.
func YCSB(letter string, seed uint64) (*Workload, error) {
	mix, err := ycsb.MixOf(letter)
	if err != nil {
		return nil, fmt.Errorf("workload: %w", err)
	}
	w := &Workload{mix: mix, rate: nodeRate, seed: seed}
	w.draw()
	return w, nil
}

// random returns the source of a purpose.
func (w *Workload) random(purpose uint64) *rand.Rand { return rand.New(rand.NewPCG(w.seed, purpose)) }

// The purposes of random numbers. Shifts of the hot spots follow.
const (
	forSizes = iota + 1
	forPlaces
	forNoise
	forSamples
	forSpaces = 1 << 20
)

func (w *Workload) draw() {
	rnd := w.random(forSizes)
	w.sizes = make([]float64, ranges)
	for i := range w.sizes {
		w.sizes[i] = paretoSize(rnd.Float64())
	}
}

// stored returns the bytes of the keys from low, below high.
func (w *Workload) stored(low, high int) float64 {
	sum := 0.
	for r := low / rangeKeys; r*rangeKeys < high; r++ {
		sum += w.sizes[r] * float64(min(high, (r+1)*rangeKeys)-max(low, r*rangeKeys))
	}
	return sum
}

// space returns the requests after a number of shifts, of a cluster of nodes.
func (w *Workload) space(shifts, nodes int) *space {
	rnd := w.random(uint64(forSpaces + shifts))
	s := &space{scan: 1}
	if w.mix.Scan > 0 {
		s.scan = scanKeys
	}
	if w.skew > 0 {
		w.mixgraph(s, rnd, nodes)
	} else {
		w.ycsb(s, rnd, nodes)
	}
	return s
}

// flow returns the requests of a cell with a share of all.
func (w *Workload) flow(share, size float64, nodes int) flow {
	n := share * w.rate * float64(nodes)
	reads, writes := w.mix.Read+w.mix.Modify, w.mix.Update+w.mix.Insert+w.mix.Modify
	return flow{
		reads:  n * (reads + scanReads*w.mix.Scan),
		writes: n * writes,
		bytes:  n * size * (replicas*writes + readMiss*(reads+scanKeys*w.mix.Scan)),
	}
}

// weights returns the shares of Mixgraph's ranges, the hottest first.
func weights(skew float64) []float64 {
	all := make([]float64, ranges)
	sum := 0.
	for i := range all {
		x := float64(i + 1)
		all[i] = skew*math.Exp(-2.917*x) + .0164*math.Exp(-.08082*x)
		if all[i] < 1e-16 {
			all[i] = 0
		}
		sum += all[i]
	}
	for i := range all {
		all[i] /= sum
	}
	return all
}

// The least shares of a hot range, which gets its place by the size of its values, and of a
// very hot range, which stands apart from others; and how many ranges apart.
const (
	hotShare, veryHotShare = .001, .01
	apart                  = 10
)

// places returns the range of each rank.
func (w *Workload) places(rnd *rand.Rand, shares []float64) []int {
	taken := make([]bool, ranges)
	place := make([]int, 0, ranges)
	var large, small []int
	for _, r := range rnd.Perm(ranges) {
		switch size := w.sizes[r]; {
		case size >= largeFrom && size <= largeTo:
			large = append(large, r)
		case size >= smallFrom && size <= smallTo:
			small = append(small, r)
		}
	}
	hot := 0
	for shares[hot] >= hotShare {
		hot++
	}
	isLarge := make([]bool, hot)
	for _, i := range rnd.Perm(hot)[:hot/2] {
		isLarge[i] = true
	}
	near := func(r int) bool {
		for _, other := range place {
			if max(r-other, other-r) < apart {
				return true
			}
		}
		return false
	}
	for i := range hot {
		pool := &small
		if isLarge[i] {
			pool = &large
		}
		at := 0
		for at+1 < len(*pool) && shares[i] >= veryHotShare && near((*pool)[at]) {
			at++
		}
		place = append(place, (*pool)[at])
		taken[(*pool)[at]] = true
		*pool = slices.Delete(*pool, at, at+1)
	}
	for _, r := range rnd.Perm(ranges) {
		if !taken[r] {
			place = append(place, r)
		}
	}
	return place
}

func (w *Workload) mixgraph(s *space, rnd *rand.Rand, nodes int) {
	shares := weights(w.skew)
	byRange := make([]float64, ranges)
	for rank, r := range w.places(rnd, shares) {
		byRange[r] = shares[rank]
	}
	for r, share := range byRange {
		for _, c := range inside(rnd, cells(share)) {
			s.add(rangeKeys/cells(share), w.flow(share*c, w.sizes[r], nodes))
		}
	}
}

// cells returns the number of cells of a range; the hottest need the most.
func cells(share float64) int {
	switch {
	case share >= .005:
		return 1024
	case share >= 1e-4:
		return 256
	case share > 1e-9:
		return 16
	}
	return 1
}

// inside returns the shares of n cells of a range: the k most wanted keys have
// .002312·k^.3467 of the requests, and lie anywhere.
func inside(rnd *rand.Rand, n int) []float64 {
	shares := make([]float64, n)
	if n == 1 {
		shares[0] = 1
		return shares
	}
	left := 1.
	for _, share := range ranked() {
		shares[rnd.IntN(n)] += share
		left -= share
	}
	for i := range shares {
		shares[i] += left / float64(n)
	}
	return shares
}

// ranked are the shares of the most wanted keys of a range that are placed singly.
var ranked = sync.OnceValue(func() []float64 {
	below := func(k int) float64 { return .002312 * math.Pow(float64(k), .3467) }
	shares := make([]float64, 2048)
	for k := range shares {
		shares[k] = below(k+1) - below(k)
	}
	return shares
})

// ycsbCells is the number of cells of a range, ycsbRanked the number of keys that are placed
// singly, and ycsbAlone the number of keys with a cell of their own.
const (
	ycsbCells  = 16
	ycsbRanked = 20_000
	ycsbAlone  = 256
)

// ycsb spreads Zipf's ranks over the key space. The hottest keys of the latest records
// change within a second, so that all keys are wanted alike.
func (w *Workload) ycsb(s *space, rnd *rand.Rand, nodes int) {
	shares, alone := make([]float64, ranges*ycsbCells), make(map[int]float64)
	left := 1.
	if w.mix.Distribution == ycsb.Zipfian {
		zeta := 0.
		for k := 1; k <= ycsbRanked; k++ {
			zeta += math.Pow(float64(k), -ycsb.Theta)
		}
		const e = 1 - ycsb.Theta
		zeta += (math.Pow(allKeys, e) - math.Pow(ycsbRanked, e)) / e
		for k := 1; k <= ycsbRanked; k++ {
			share := math.Pow(float64(k), -ycsb.Theta) / zeta
			left -= share
			if at := rnd.IntN(len(shares)); k <= ycsbAlone {
				alone[at] += share
			} else {
				shares[at] += share
			}
		}
	}
	for i, share := range shares {
		size, keys := w.sizes[i/ycsbCells], rangeKeys/ycsbCells
		if hot := alone[i]; hot > 0 {
			s.add(1, w.flow(hot, size, nodes))
			keys--
		}
		s.add(keys, w.flow(share+left/float64(len(shares)), size, nodes))
	}
}
