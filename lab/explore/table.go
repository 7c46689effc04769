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
