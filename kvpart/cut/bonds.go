package cut

import "math"

// bonds tie vertices to their parts in a slice at: a move away costs as much as an edge
// of some weight (Schloegel, Karypis and Kumar, "A unified algorithm for load-balancing
// adaptive scientific simulations", 2000).
type bonds struct {
	s *solver
	p *problem
	// bound is p with bonds, and with edge weights multiplied by scale.
	bound *problem
	scale int64
	start []int32
}

// mostScale is the largest factor for edge weights, so that bonds may weigh less than an
// edge of weight 1.
const mostScale = 1 << 12

// bind returns bonds to the parts in at, for vertices that start in a part.
func (s *solver) bind(p *problem, at, start []int32) *bonds {
	sum := int64(0)
	for _, w := range p.l.ew {
		sum += int64(w)
	}
	b := &bonds{s: s, p: p, start: start, scale: max(1, min(mostScale, math.MaxInt32/2/max(1, sum)))}
	l := *p.l
	l.ew = make([]int32, len(p.l.ew))
	for i, w := range p.l.ew {
		l.ew[i] = w * int32(b.scale)
	}
	l.home, l.bond = at, make([]int32, l.n)
	bound := *p
	bound.l = &l
	b.bound = &bound
	return b
}

// weigh makes each bond as heavy as an edge of weight, as far as sums of bonds do not
// overflow.
func (b *bonds) weigh(weight float64) {
	l := b.bound.l
	bond := max(1, min(weight*float64(b.scale), float64(math.MaxInt32/4/l.n)))
	for v, q := range b.start {
		l.bond[v] = 0
		if q >= 0 {
			l.bond[v] = int32(bond)
		}
	}
}

// cycle refines part by a cycle through the levels. Vertices are contracted only within a
// part of part and, if other is not nil and there are at most 1024 parts, of other.
func (b *bonds) cycle(part, other []int32, w way) found {
	s, p := b.s, b.bound
	b.weigh(w.bond)
	h := s.mark()
	defer s.release(h)
	keep := s.ints.take(p.l.n)
	k := int32(p.k)
	for v := range keep {
		keep[v] = p.l.home[v]*k + part[v]
		if other != nil && k <= 1<<10 {
			keep[v] = keep[v]*k + other[v]
		}
	}
	levels := []*level{p.l}
	if !w.flat {
		small := coarsest(p.l.n, p.k)
		if w.deep {
			small = max(30*p.k, 200)
		}
		levels = s.coarsen(p.l, keep, p.heavy(), small)
	}
	f := found{part: append([]int32(nil), part...)}
	if s.err != nil {
		return f
	}
	st := s.descend(p, levels, part, func(st *state) {
		if w.spread {
			st.spread()
		}
		st.refine()
	})
	defer s.free(st)
	copy(f.part, st.part)
	f.cut, f.over = b.p.l.cut(f.part), st.over
	return f
}
