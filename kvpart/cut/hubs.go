package cut

import (
	"cmp"
	"slices"
)

// findHubs lists the vertices that alone outweigh a part.
func (j *job) findHubs() {
	d := j.l.dims
	sum := j.l.weights()
	for v := range int32(j.n) {
		for i := range d {
			mean := float64(sum[i]) / float64(j.k)
			if float64(j.l.vw[int(v)*d+i]) > mean*(1+j.o.Imbalance)*(1+epsilon) {
				j.hubs = append(j.hubs, v)
				break
			}
		}
	}
}

// placeHubs puts each hub into a part of its own, if possible the part it starts in, and
// returns the parts left. With two dimensions there may be more hubs than parts less 1:
// the hubs then share parts by weight.
func (j *job) placeHubs() (open []int32) {
	j.findHubs()
	d := j.l.dims
	taken := make([]bool, j.k)
	it := items{d, j.l.vw}
	b := newBins(j.k, j.l.weights(), nil)
	byWeight := slices.Clone(j.hubs)
	slices.SortFunc(byWeight, func(x, y int32) int {
		return cmp.Or(cmp.Compare(slices.Max(it.of(y)), slices.Max(it.of(x))), cmp.Compare(x, y))
	})
	room := j.k - 1
	for _, v := range byWeight {
		var p int
		if j.o.Start != nil && j.o.Start[v] >= 0 && !taken[j.o.Start[v]] && room > 0 {
			p = int(j.o.Start[v])
		} else if room > 0 {
			p = slices.Index(taken, false)
		} else {
			p = b.lowestWithin(it.of(v), taken)
		}
		if !taken[p] {
			taken[p] = true
			room--
		}
		b.put(p, it.of(v))
		j.part[v] = int32(p)
	}
	for p := range int32(j.k) {
		if !taken[p] {
			open = append(open, p)
		}
	}
	return open
}

// lowestWithin is lowestWith, restricted to the taken bins.
func (b *bins) lowestWithin(w []int64, taken []bool) int {
	best, least := -1, 0.
	for p := range b.k {
		if !taken[p] {
			continue
		}
		b.put(p, w)
		h := b.height(p)
		b.take(p, w)
		if best < 0 || h < least {
			best, least = p, h
		}
	}
	return best
}

// withoutHubs returns the graph of the other vertices, and their numbers.
func (j *job) withoutHubs() (*level, []int32) {
	s := j.s
	side, ids := s.filled(j.n, 0), s.ints.take(j.n)
	for v := range ids {
		ids[v] = int32(v)
	}
	for _, v := range j.hubs {
		side[v] = 1
	}
	return s.extract(j.l, ids, side, 0)
}

// startOf returns the parts in which the vertices ids start, as indices of open; -1 for
// none of open.
func (j *job) startOf(ids, open []int32) []int32 {
	if j.o.Start == nil {
		return nil
	}
	at := make([]int32, j.k)
	for p := range at {
		at[p] = -1
	}
	for i, p := range open {
		at[p] = int32(i)
	}
	start := make([]int32, len(ids))
	for i, v := range ids {
		start[i] = -1
		if p := j.o.Start[v]; p >= 0 {
			start[i] = at[p]
		}
	}
	return start
}
