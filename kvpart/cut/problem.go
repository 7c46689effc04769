package cut

import "math"

// problem is a graph without hubs to cut, with the intended and the largest weight of
// each part.
type problem struct {
	l    *level
	k    int
	room []int64 // intended weight of each part, dims a part
	maxw []int64 // largest weight of each part, dims a part
}

// limit sets the intended and the largest weights of parts. Where vertices are too heavy
// to be packed within the bounds, the bounds become the weights that packing takes.
func (p *problem) limit(s *solver, imbalance float64) {
	d := p.l.dims
	sum := p.l.weights()
	p.room = make([]int64, p.k*d)
	p.maxw = make([]int64, p.k*d)
	coarse := d > 1
	for i := range d {
		mean := float64(sum[i]) / float64(p.k)
		slack := int64(mean * imbalance)
		for v := i; v < len(p.l.vw) && !coarse; v += d {
			coarse = p.l.vw[v] > slack
		}
		for q := range p.k {
			p.room[q*d+i] = int64(math.Ceil(mean))
			p.maxw[q*d+i] = max(int64(math.Ceil(mean)), int64(mean*(1+imbalance)))
		}
	}
	if !coarse {
		return
	}
	h := s.mark()
	defer s.release(h)
	b := newBins(p.k, sum, p.maxw)
	it := items{d, p.l.vw}
	part := s.ints.take(p.l.n)
	s.packAll(b, it, it.heaviestFirst(b.scale, nil), part)
	if b.anyOver() {
		s.swap(b, it, part)
	}
	for i := range d {
		most := int64(0)
		for q := range p.k {
			most = max(most, b.load[q*d+i])
		}
		for q := range p.k {
			p.maxw[q*d+i] = max(p.maxw[q*d+i], most)
		}
	}
}

// heavy returns the largest weight of a contracted vertex, by dimension.
func (p *problem) heavy() []int64 {
	heavy := p.l.weights()
	for i := range heavy {
		heavy[i] = max(1, heavy[i]/int64(20*p.k))
	}
	return heavy
}

// looser returns p with parts that may weigh more.
func (p *problem) looser(s *solver, imbalance float64) *problem {
	q := &problem{l: p.l, k: p.k}
	q.limit(s, imbalance)
	return q
}

// over returns the total excess of the parts; see state.excess.
func (p *problem) over(part []int32) float64 {
	d := p.l.dims
	st := &state{k: p.k, dims: d, maxw: p.maxw, pw: make([]int64, p.k*d)}
	for v, q := range part {
		for i := range d {
			st.pw[int(q)*d+i] += p.l.vw[v*d+i]
		}
	}
	st.weigh()
	return st.over
}
