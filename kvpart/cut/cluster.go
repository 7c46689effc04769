package cut

// clusterRounds is how often each vertex chooses its cluster.
const clusterRounds = 3

// cluster groups vertices for contraction. Each vertex joins the group among its
// neighbours to which its edges weigh most, and may change its mind. Groups follow dense
// regions, in graphs that matchings do not shrink well. No group weighs more than heavy,
// nor spans two parts of keep (which may be nil). cluster sets l.up and returns the
// number of groups.
func (s *solver) cluster(l *level, keep []int32, heavy []int64) int {
	l.up = s.ints.take(l.n)
	h := s.mark()
	defer s.release(h)
	d := l.dims
	group := l.up
	weight := s.wides.take(len(l.vw))
	copy(weight, l.vw)
	for v := range group {
		group[v] = int32(v)
	}
	score := s.filled(l.n, 0)
	met := s.ints.take(l.n)
	order := s.order(l.n)
	for range clusterRounds {
		changed := 0
		for _, v := range order {
			lo, hi := l.row(v)
			if !s.spend(int(hi-lo) + 1) {
				return 0
			}
			m := 0
			for e := lo; e < hi; e++ {
				u := l.adj[e]
				if keep != nil && keep[u] != keep[v] {
					continue
				}
				x := group[u]
				if score[x] == 0 {
					met[m] = x
					m++
				}
				score[x] += l.ew[e]
			}
			own := group[v]
			best, most := own, score[own]
			for _, x := range met[:m] {
				w := score[x]
				score[x] = 0
				if x == own || w < most {
					continue
				}
				if w == most && s.rng.Uint64()&1 == 0 {
					continue
				}
				fits := weight[int(x)*d]+l.vw[int(v)*d] <= heavy[0]
				if d == 2 {
					fits = fits && weight[int(x)*2+1]+l.vw[int(v)*2+1] <= heavy[1]
				}
				if fits {
					best, most = x, w
				}
			}
			if best != own {
				for i := range d {
					weight[int(own)*d+i] -= l.vw[int(v)*d+i]
					weight[int(best)*d+i] += l.vw[int(v)*d+i]
				}
				group[v] = best
				changed++
			}
		}
		if changed < l.n/4 {
			break
		}
	}
	// Groups are numbered by their first vertex.
	id := s.filled(l.n, -1)
	nc := int32(0)
	for v, x := range group {
		if id[x] < 0 {
			id[x] = nc
			nc++
		}
		group[v] = id[x]
	}
	return int(nc)
}
