package explore

// global is a state of the whole system: a full site for each site, and the used budgets.
type global struct {
	site [Sites]uint32
	used used
}

// group is the part that a state shares with the states it may stand for: the sites
// without their sent messages, and the budgets without crashes.
type group struct {
	core [Sites]uint32
	used used
}

func (g *group) hash() uint64 {
	return mix(mix(uint64(g.core[0])<<32|uint64(g.core[1])) ^ (uint64(g.core[2])<<32 | uint64(g.used)))
}

// visited holds the states found that no other stands for.
type visited struct {
	store  *store
	states []global
	// parent is the index of the state that each was first reached from.
	parent []uint32
	// next leads to the next state of the same group; index+1, 0 for none.
	next []uint32
	// gone marks states that another state, found later, stands for.
	gone   []bool
	slots  []uint32 // the first state of a group; index+1, 0 is empty
	groups int
}

func (v *visited) group(g *global) group {
	var k group
	for i, id := range g.site {
		k.core[i] = v.store.fulls[id].core
	}
	k.used = g.used &^ Crash.all()
	return k
}

// covers reports whether all that can happen in h can happen in g, a state of
// the same group: at least the same has been sent, and no more crashes are used up.
func (v *visited) covers(g, h *global) bool {
	if g.used.of(Crash) > h.used.of(Crash) {
		return false
	}
	for i := range g.site {
		if g.site[i] == h.site[i] {
			continue
		}
		a, b := &v.store.fulls[g.site[i]], &v.store.fulls[h.site[i]]
		for to := range a.out {
			if !v.store.holds(a.out[to], b.out[to]) {
				return false
			}
		}
	}
	return true
}

// add adds a state. It returns false if a known state stands for it.
func (v *visited) add(g global, parent uint32) bool {
	if 3*v.groups >= 2*len(v.slots) {
		v.grow()
	}
	k := v.group(&g)
	mask := uint64(len(v.slots) - 1)
	i := k.hash() & mask
	for ; v.slots[i] != 0; i = (i + 1) & mask {
		if v.group(&v.states[v.slots[i]-1]) == k {
			break
		}
	}
	for n := v.slots[i]; n != 0; n = v.next[n-1] {
		if v.covers(&v.states[n-1], &g) {
			return false
		}
	}
	// States that the new state stands for leave the chain.
	link := &v.slots[i]
	if *link == 0 {
		v.groups++
	}
	for *link != 0 {
		n := *link - 1
		if v.covers(&g, &v.states[n]) {
			v.gone[n] = true
			*link = v.next[n]
		} else {
			link = &v.next[n]
		}
	}
	first := v.slots[i]
	v.states = append(v.states, g)
	v.parent = append(v.parent, parent)
	v.next = append(v.next, first)
	v.gone = append(v.gone, false)
	v.slots[i] = uint32(len(v.states))
	return true
}

func (v *visited) grow() {
	old := v.slots
	v.slots = make([]uint32, max(1<<12, 2*len(old)))
	mask := uint64(len(v.slots) - 1)
	for _, n := range old {
		if n == 0 {
			continue
		}
		k := v.group(&v.states[n-1])
		i := k.hash() & mask
		for v.slots[i] != 0 {
			i = (i + 1) & mask
		}
		v.slots[i] = n
	}
}
