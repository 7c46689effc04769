package cut

import (
	"cmp"
	"math"
	"slices"
)

// items are the things packed whole: dims weights each.
type items struct {
	dims int
	w    []int64
}

func (it items) len() int { return len(it.w) / it.dims }

// bins are the parts that items are packed into.
type bins struct {
	k, dims int
	load    []int64 // dims a bin
	count   []int
	maxw    []int64 // bound on load
	scale   []float64
}

// newBins makes k empty bins for items that weigh sum together.
func newBins(k int, sum, maxw []int64) *bins {
	b := &bins{
		k: k, dims: len(sum), maxw: maxw,
		load: make([]int64, k*len(sum)), count: make([]int, k), scale: make([]float64, len(sum)),
	}
	for d, x := range sum {
		if x > 0 {
			b.scale[d] = 1 / float64(x)
		}
	}
	return b
}

// height returns p's share of the total weight, in the dimension of its largest share.
func (b *bins) height(p int) float64 {
	most := 0.
	for d := range b.dims {
		most = max(most, float64(b.load[p*b.dims+d])*b.scale[d])
	}
	return most
}

func (b *bins) put(p int, w []int64) {
	for d, x := range w {
		b.load[p*b.dims+d] += x
	}
	b.count[p]++
}

func (b *bins) take(p int, w []int64) {
	for d, x := range w {
		b.load[p*b.dims+d] -= x
	}
	b.count[p]--
}

// fits reports whether p has room for weight w.
func (b *bins) fits(p int, w []int64) bool {
	for d, x := range w {
		if x > 0 && b.load[p*b.dims+d]+x > b.maxw[p*b.dims+d] {
			return false
		}
	}
	return true
}

// over reports whether p weighs more than it may.
func (b *bins) over(p int) bool {
	for i := p * b.dims; i < (p+1)*b.dims; i++ {
		if b.load[i] > b.maxw[i] {
			return true
		}
	}
	return false
}

func (b *bins) anyOver() bool {
	for p := range b.k {
		if b.over(p) {
			return true
		}
	}
	return false
}

// heaviestFirst lists the items that use selects (all if nil), the heaviest first.
func (it items) heaviestFirst(scale []float64, use func(i int) bool) []int32 {
	n := it.len()
	list := make([]int32, 0, n)
	for i := range n {
		if use == nil || use(i) {
			list = append(list, int32(i))
		}
	}
	size := func(i int32) float64 {
		most := 0.
		for d, x := range it.of(i) {
			most = max(most, float64(x)*scale[d])
		}
		return most
	}
	if it.dims == 1 {
		slices.SortFunc(list, func(a, b int32) int {
			return cmp.Or(cmp.Compare(it.w[b], it.w[a]), cmp.Compare(a, b))
		})
		return list
	}
	slices.SortFunc(list, func(a, b int32) int {
		return cmp.Or(cmp.Compare(size(b), size(a)), cmp.Compare(a, b))
	})
	return list
}

func (it items) of(i int32) []int64 { return it.w[int(i)*it.dims : int(i+1)*it.dims] }

// packAll puts the items of list, in order, each into the bin that is lowest with it.
// Among equal bins it takes the bin with fewest items.
func (s *solver) packAll(b *bins, it items, list, part []int32) {
	q := binHeap{b: b}
	q.init()
	for _, i := range list {
		p := q.ps[0]
		if b.dims > 1 && b.k <= 64 {
			p = b.lowestWith(it.of(i))
		}
		if !s.spend(16) {
			return
		}
		part[i] = int32(p)
		b.put(p, it.of(i))
		if b.dims == 1 || b.k > 64 {
			q.sink(0)
		}
	}
}

// lowestWith returns the bin that is lowest once it has w as well.
func (b *bins) lowestWith(w []int64) int {
	best, least, sum := 0, math.Inf(1), math.Inf(1)
	for p := range b.k {
		most, all := 0., 0.
		for d, x := range w {
			f := float64(b.load[p*b.dims+d]+x) * b.scale[d]
			most = max(most, f)
			all += f
		}
		if most < least || most == least && (all < sum || all == sum && b.count[p] < b.count[best]) {
			best, least, sum = p, most, all
		}
	}
	return best
}

// binHeap has the lowest bin first.
type binHeap struct {
	b  *bins
	ps []int
}

func (q *binHeap) init() {
	q.ps = make([]int, q.b.k)
	for p := range q.ps {
		q.ps[p] = p
	}
	for i := len(q.ps)/2 - 1; i >= 0; i-- {
		q.sink(i)
	}
}

func (q *binHeap) less(i, j int) bool {
	a, c := q.ps[i], q.ps[j]
	x, y := q.b.height(a), q.b.height(c)
	if x != y {
		return x < y
	}
	if q.b.count[a] != q.b.count[c] {
		return q.b.count[a] < q.b.count[c]
	}
	return a < c
}

func (q *binHeap) sink(i int) {
	for {
		c := 2*i + 1
		if c >= len(q.ps) {
			return
		}
		if c+1 < len(q.ps) && q.less(c+1, c) {
			c++
		}
		if !q.less(c, i) {
			return
		}
		q.ps[i], q.ps[c] = q.ps[c], q.ps[i]
		i = c
	}
}

// repack moves as few items as it can out of overweight bins: the heaviest first that fit
// elsewhere.
func (s *solver) repack(b *bins, it items, part []int32) {
	if !b.anyOver() {
		return
	}
	for _, i := range it.heaviestFirst(b.scale, func(i int) bool { return b.over(int(part[i])) }) {
		from := int(part[i])
		if !b.over(from) {
			continue
		}
		if !s.spend(b.k + 1) {
			return
		}
		w := it.of(i)
		b.take(from, w)
		if to := b.lowestWith(w); to != from && b.fits(to, w) {
			part[i] = int32(to)
			b.put(to, w)
			continue
		}
		b.put(from, w)
	}
}

// swap evens out bins by exchanging items of the highest bin with items of the others, as
// long as that helps. It works only with few items, of a single dimension.
func (s *solver) swap(b *bins, it items, part []int32) {
	const most, rounds = 1 << 10, 100
	if b.dims != 1 || it.len() > most {
		return
	}
	lists := make([][]int32, b.k)
	for i, p := range part {
		lists[p] = append(lists[p], int32(i))
	}
	for range rounds {
		top := 0
		for p := range b.k {
			if b.load[p] > b.load[top] {
				top = p
			}
		}
		if b.load[top] <= b.maxw[top] || !s.spend(it.len()+1) {
			return
		}
		bi, bj, bp := -1, -1, -1
		least := b.load[top]
		try := func(i, j, p int, diff int64) {
			if diff <= 0 {
				return
			}
			if worst := max(b.load[top]-diff, b.load[p]+diff); worst < least {
				bi, bj, bp, least = i, j, p, worst
			}
		}
		for p := range b.k {
			if p == top {
				continue
			}
			for x, i := range lists[top] {
				if it.w[i] == 0 {
					continue
				}
				try(x, -1, p, it.w[i])
				if !s.spend(len(lists[p])) {
					return
				}
				for y, j := range lists[p] {
					try(x, y, p, it.w[i]-it.w[j])
				}
			}
		}
		if bi < 0 {
			return
		}
		i := lists[top][bi]
		lists[top] = slices.Delete(lists[top], bi, bi+1)
		b.take(top, it.of(i))
		if bj >= 0 {
			j := lists[bp][bj]
			lists[bp] = slices.Delete(lists[bp], bj, bj+1)
			b.take(bp, it.of(j))
			b.put(top, it.of(j))
			lists[top] = append(lists[top], j)
			part[j] = int32(top)
		}
		b.put(bp, it.of(i))
		lists[bp] = append(lists[bp], i)
		part[i] = int32(bp)
	}
}

// unswap returns items to their former bins, alone or two against each other, as long as
// no bin becomes overweight.
func (s *solver) unswap(b *bins, it items, part, was []int32) {
	const most = 1 << 10
	if it.len() > most || b.anyOver() {
		return
	}
	away := func(i int32) bool { return part[i] != was[i] }
	move := func(i, to int32) {
		b.take(int(part[i]), it.of(i))
		b.put(int(to), it.of(i))
		part[i] = to
	}
	for changed := true; changed; {
		changed = false
		for i := range int32(it.len()) {
			if !away(i) {
				continue
			}
			if !s.spend(it.len()) {
				return
			}
			from := part[i]
			move(i, was[i])
			if !b.over(int(was[i])) {
				changed = true
				continue
			}
			// Another item has to leave for i: an item that is away from home as well.
			other := int32(-1)
			for j := range int32(it.len()) {
				if j == i || part[j] != was[i] || !away(j) {
					continue
				}
				for _, to := range []int32{was[j], from} {
					move(j, to)
					if !b.over(int(was[i])) && !b.over(int(to)) {
						other = j
						break
					}
					move(j, was[i])
				}
				if other >= 0 {
					break
				}
			}
			if other < 0 {
				move(i, from)
				continue
			}
			changed = true
		}
	}
}
