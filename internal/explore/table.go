package explore

// table maps 64-bit keys to 32-bit values: open addressing, linear probing, at
// most two thirds full. It exists because most of a search's time and memory
// goes into such look-ups. Zero is no key.
type table struct {
	keys   []uint64
	values []uint32
	n      int
}

// mix spreads the bits of a key (the finalizer of splitmix64).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func (t *table) get(key uint64) (uint32, bool) {
	if t.n == 0 {
		return 0, false
	}
	mask := uint64(len(t.keys) - 1)
	for i := mix(key) & mask; ; i = (i + 1) & mask {
		switch t.keys[i] {
		case key:
			return t.values[i], true
		case 0:
			return 0, false
		}
	}
}

// put adds a key that is not there yet.
func (t *table) put(key uint64, value uint32) {
	if 3*t.n >= 2*len(t.keys) {
		old := *t
		size := max(1<<10, 2*len(old.keys))
		t.keys, t.values = make([]uint64, size), make([]uint32, size)
		for i, k := range old.keys {
			if k != 0 {
				t.place(k, old.values[i])
			}
		}
	}
	t.place(key, value)
	t.n++
}

func (t *table) place(key uint64, value uint32) {
	mask := uint64(len(t.keys) - 1)
	i := mix(key) & mask
	for t.keys[i] != 0 {
		i = (i + 1) & mask
	}
	t.keys[i], t.values[i] = key, value
}

// global is a state of the whole system: a record for each site, and what has
// been used of the budgets, eight bits each.
type global struct {
	site [Sites]uint32
	used uint32
}

func (g *global) hash() uint64 {
	return mix(mix(uint64(g.site[0])<<32|uint64(g.site[1])) ^ (uint64(g.site[2])<<32 | uint64(g.used)))
}

// visited holds the states found, in the order they were found in, which makes
// it the queue of a breadth-first search, and finds them again. States are
// compared whole: no two are ever taken for one.
type visited struct {
	states []global
	// parent is the index of the state that each was first reached from.
	parent []uint32
	slots  []uint32 // index+1; 0 is empty
}

// add returns false if the state is known.
func (v *visited) add(g global, parent uint32) bool {
	if 3*len(v.states) >= 2*len(v.slots) {
		v.slots = make([]uint32, max(1<<12, 2*len(v.slots)))
		for i := range v.states {
			v.place(&v.states[i], uint32(i)+1)
		}
	}
	mask := uint64(len(v.slots) - 1)
	i := g.hash() & mask
	for ; v.slots[i] != 0; i = (i + 1) & mask {
		if v.states[v.slots[i]-1] == g {
			return false
		}
	}
	v.states = append(v.states, g)
	v.parent = append(v.parent, parent)
	v.slots[i] = uint32(len(v.states))
	return true
}

func (v *visited) place(g *global, slot uint32) {
	mask := uint64(len(v.slots) - 1)
	i := g.hash() & mask
	for v.slots[i] != 0 {
		i = (i + 1) & mask
	}
	v.slots[i] = slot
}
