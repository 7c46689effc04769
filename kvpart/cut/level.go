package cut

import "math/rand/v2"

// level is a graph of the hierarchy.
type level struct {
	n    int
	off  []int32
	adj  []int32
	ew   []int32
	dims int
	vw   []int64 // dims a vertex
	up   []int32 // the vertex of the next coarser level that holds each vertex
	// home is the part to which a vertex is bound. bond is the weight of the bond, as of
	// an edge to a vertex that stays there. Both are nil in a level without bonds.
	home, bond []int32
}

func (l *level) degree(v int32) int { return int(l.off[v+1] - l.off[v]) }

// row returns the range of v's neighbours in adj.
func (l *level) row(v int32) (from, to int32) { return l.off[v], l.off[v+1] }

// weights sums the weights of the vertices by dimension.
func (l *level) weights() []int64 {
	sum := make([]int64, l.dims)
	for i, w := range l.vw {
		sum[i%l.dims] += w
	}
	return sum
}

// cut returns the weight of the edges between parts.
func (l *level) cut(part []int32) int64 {
	sum := int64(0)
	for v := range int32(l.n) {
		for e, hi := l.row(v); e < hi; e++ {
			if u := l.adj[e]; u > v && part[u] != part[v] {
				sum += int64(l.ew[e])
			}
		}
	}
	return sum
}

// solver is the state that all steps of a partition share: memory, randomness, and the
// pace.
type solver struct {
	pace
	rng    *rand.Rand
	ints   arena[int32]
	wides  arena[int64]
	states []*state // for reuse
}

// height measures the memory taken.
type height struct{ ints, wides mark }

func (s *solver) mark() height     { return height{s.ints.at, s.wides.at} }
func (s *solver) release(h height) { s.ints.release(h.ints); s.wides.release(h.wides) }

// filled returns n elements, all of them x.
func (s *solver) filled(n int, x int32) []int32 {
	a := s.ints.take(n)
	for i := range a {
		a[i] = x
	}
	return a
}

// order returns the vertices from 0 to n-1 in random order. It shuffles blocks, and the
// vertices in each block: neighbours in memory stay near each other.
func (s *solver) order(n int) []int32 {
	const block = 64
	blocks := (n + block - 1) / block
	at := s.ints.take(blocks)
	for i := range at {
		at[i] = int32(i)
	}
	s.shuffle(at)
	perm := s.ints.take(n)
	k := 0
	for _, b := range at {
		from := k
		for v := int(b) * block; v < min(n, (int(b)+1)*block); v++ {
			perm[k] = int32(v)
			k++
		}
		s.shuffle(perm[from:k])
	}
	return perm
}

func (s *solver) shuffle(a []int32) {
	for i := len(a) - 1; i > 0; i-- {
		j := s.rng.Uint64N(uint64(i + 1))
		a[i], a[j] = a[j], a[i]
	}
}
