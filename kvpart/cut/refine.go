package cut

// epsilon is the tolerated error in float sums of excess.
const epsilon = 1e-9

// key returns the fall of the cut if v goes to the part that attracts it most, room or
// not.
func (st *state) key(v int32) int64 {
	most := int32(0)
	for _, c := range st.linksOf(v) {
		most = max(most, c.weight)
	}
	return int64(most) - int64(st.inner[v])
}

// best returns the part with room for v that attracts it most, and the fall of the cut;
// -1 if no part has room. Among equal parts it takes the part with most room.
func (st *state) best(v int32) (to int32, gain int64) {
	to = -1
	most := int32(-1)
	for _, c := range st.linksOf(v) {
		if c.weight < most || !st.fits(v, c.part) {
			continue
		}
		if c.weight > most || st.room(c.part) > st.room(to) {
			to, most = c.part, c.weight
		}
	}
	return to, int64(most) - int64(st.inner[v])
}

func (st *state) room(p int32) int64 {
	i := int(p) * st.dims
	return st.maxw[i] - st.pw[i]
}

// climb moves single vertices, starting from seeds and going on over their neighbours.
// The vertex that lowers the cut most goes first, even if none lowers it. climb ends
// after patience moves without a new best partition, and returns to the best. It moves
// each vertex at most once a round. It reports whether the partition is better.
func (st *state) climb(seeds []int32, patience int) bool {
	q := &st.queue
	for _, v := range seeds {
		if st.moved[v] != st.round && st.size[v] > 0 {
			q.set(v, st.key(v))
		}
	}
	st.log = st.log[:0]
	better := false
	bestLog, bestOver, gained := 0, st.over, int64(0)
	since := 0
	var sum, squares float64 // of the gains since the best partition
	for !q.empty() && since < patience {
		v, key := q.pop()
		to, gain := st.best(v)
		if to < 0 {
			continue
		}
		if gain < key && !q.empty() && q.items[0].key > gain {
			q.set(v, gain)
			continue
		}
		if !st.s.spend(4 * (st.l.degree(v) + 1)) {
			break
		}
		from := st.part[v]
		st.log = append(st.log, step{v, from})
		got := st.move(v, to)
		gained += got
		sum += float64(got)
		squares += float64(got * got)
		st.moved[v] = st.round
		since++
		if st.over < bestOver-epsilon || st.over < bestOver+epsilon && gained > 0 {
			better = true
			bestLog, bestOver, gained, since = len(st.log), st.over, 0, 0
			sum, squares = 0, 0
		} else if n := float64(since); sum < 0 && sum*sum/n > squares/n-sum*sum/(n*n)+st.doubt {
			// Almost certainly no better partition is ahead, if gains go on as before
			// (Osipov and Sanders, "n-level graph partitioning", 2010).
			break
		}
		lo, hi := st.l.row(v)
		for _, u := range st.l.adj[lo:hi] {
			if st.moved[u] == st.round {
				continue
			}
			if st.size[u] > 0 {
				q.set(u, st.key(u))
			} else {
				q.remove(u)
			}
		}
	}
	q.reset()
	for i := len(st.log) - 1; i >= bestLog; i-- {
		st.move(st.log[i].v, st.log[i].from)
	}
	return better
}

// together climbs from all vertices of the border at once, up to rounds times.
func (st *state) together(rounds, patience int) {
	for range rounds {
		st.round++
		if !st.climb(st.border, patience) {
			return
		}
	}
}

// apart climbs from each vertex of the border by itself, up to rounds times.
func (st *state) apart(rounds, patience int) {
	for range rounds {
		st.round++
		h := st.s.mark()
		seeds := st.s.ints.take(len(st.border))
		copy(seeds, st.border)
		st.s.shuffle(seeds)
		before := st.cut
		for i := range seeds {
			if st.moved[seeds[i]] == st.round {
				continue
			}
			if !st.s.spend(8) {
				break
			}
			// A vertex leads nowhere if its own part attracts it more than twice as much
			// as any other part.
			if st.key(seeds[i]) < -int64(st.inner[seeds[i]])/2 {
				continue
			}
			st.climb(seeds[i:i+1], patience)
		}
		st.s.release(h)
		if before-st.cut <= before/1000 {
			return
		}
	}
}
