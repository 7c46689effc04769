package workload

import "math/bits"

// edges counts pairs of vertices. It is a hash table with linear probing and without
// tombstones, for pairs come and go all the time.
type edges struct {
	slots   []edge
	shift   uint // turns a hash into the index of a slot
	count   int
	touched uint32 // keeps the compiler from removing touch
}

// edge is a pair of vertices, the lower vertex in the upper half; 0 is no pair.
type edge struct {
	pair   uint64
	weight uint32
}

const minEdgeSlots = 1 << 8

func newEdges() edges {
	var t edges
	t.resize(minEdgeSlots)
	return t
}

// resize makes n slots, a power of two, and puts the present pairs in.
func (t *edges) resize(n int) {
	old := t.slots
	t.slots = make([]edge, n)
	t.shift = uint(64 - bits.TrailingZeros(uint(n)))
	for _, e := range old {
		if e.pair != 0 {
			t.slots[t.find(e.pair)] = e
		}
	}
}

func pair(v, w Vertex) uint64 {
	if v > w {
		v, w = w, v
	}
	return uint64(v)<<32 | uint64(w)
}

func (t *edges) home(p uint64) int { return int(p * 0x9e3779b97f4a7c15 >> t.shift) }

// touch reads the slots of all pairs of a request. Memory brings them all at the same
// time, where counting pair by pair waits for each in turn.
func (t *edges) touch(vs []Vertex) {
	sum := uint32(0)
	for i, v := range vs {
		for _, w := range vs[i+1 : min(i+1+reach, len(vs))] {
			sum += t.slots[t.home(pair(v, w))].weight
		}
	}
	t.touched = sum
}

// find returns the slot of p, or the free slot for p.
func (t *edges) find(p uint64) int {
	mask := len(t.slots) - 1
	i := t.home(p)
	for t.slots[i&mask].pair != p && t.slots[i&mask].pair != 0 {
		i++
	}
	return i & mask
}

// add counts the pair of v and w once more, up to a weight of 1<<31-1.
func (t *edges) add(v, w Vertex) {
	p := pair(v, w)
	i := t.find(p)
	if t.slots[i].pair == p {
		if t.slots[i].weight < 1<<31-1 {
			t.slots[i].weight++
		}
		return
	}
	t.count++
	if t.count*4 > len(t.slots)*3 {
		t.resize(len(t.slots) * 2)
		i = t.find(p)
	}
	t.slots[i] = edge{p, 1}
}

// sub takes one count of the pair of v and w back.
func (t *edges) sub(v, w Vertex) {
	i := t.find(pair(v, w))
	if t.slots[i].weight > 1 {
		t.slots[i].weight--
		return
	}
	t.drop(i)
}

// drop empties slot i and closes the gap that it leaves.
func (t *edges) drop(i int) {
	t.count--
	mask := len(t.slots) - 1
	for j := (i + 1) & mask; t.slots[j].pair != 0; j = (j + 1) & mask {
		// A pair found from its home across the gap moves into the gap.
		if (j-t.home(t.slots[j].pair))&mask >= (j-i)&mask {
			t.slots[i] = t.slots[j]
			i = j
		}
	}
	t.slots[i] = edge{}
}
