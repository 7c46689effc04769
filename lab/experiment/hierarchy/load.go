package hierarchy

import (
	"encoding/binary"
	"math/rand/v2"
	"sync"

	"github.com/samya-db/samya/site/core"
)

// chunk is how many requests are made between two looks at the clock.
const chunk = 64

// slot makes one request after the other: an acquire of a leaf, and its release.
type slot struct {
	acquire core.Acquire
	release core.Release
	leaf    int
	held    bool
	of      *generator
}

// next makes the slot's next request.
func (s *slot) next(call core.Call) core.Input {
	g := s.of
	if s.held {
		s.release = core.Release{Call: call, Entity: g.tree.leaves[s.leaf], Tokens: 1}
		g.identify(&s.release.Request)
		return &s.release
	}
	s.leaf = g.draw.draw(g.rnd)
	s.acquire = core.Acquire{Call: call, Entity: g.tree.leaves[s.leaf], Tokens: 1}
	g.identify(&s.acquire.Request)
	return &s.acquire
}

// generator makes requests, as many at a time as it has slots.
type generator struct {
	tree  *tree
	draw  *drawer
	rnd   *rand.Rand
	ids   uint64
	slots []slot
	// handed counts the requests that were handed over.
	handed int64

	mu sync.Mutex
	// free are the slots whose requests were answered.
	free []*slot
	// more holds one token when there are some.
	more chan struct{}
	// taken is the memory of free.
	taken []*slot
}

// newGenerator makes the n-th generator.
func newGenerator(t *tree, d *drawer, slots int, seed uint64, n int) *generator {
	g := &generator{
		tree: t, draw: d, rnd: rand.New(rand.NewPCG(seed, uint64(100+n))), ids: uint64(n) << 48, //nolint:gosec // a few
		slots: make([]slot, slots), more: make(chan struct{}, 1),
	}
	for i := range g.slots {
		g.slots[i].of = g
		g.free = append(g.free, &g.slots[i])
	}
	return g
}

// identify gives a request an id of its own.
func (g *generator) identify(key *core.RequestKey) {
	g.ids++
	binary.BigEndian.PutUint64(key[:], mix(g.ids))
}

// mix makes of a count what looks like a hash, as request keys are.
func mix(n uint64) uint64 {
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return n ^ n>>31
}

// take returns the slots that are free. They are handed over, or given back.
func (g *generator) take() []*slot {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.taken, g.free = g.free, g.taken[:0]
	return g.taken
}

// giveBack makes slots free.
func (g *generator) giveBack(slots []*slot) {
	if len(slots) == 0 {
		return
	}
	g.mu.Lock()
	g.free = append(g.free, slots...)
	g.mu.Unlock()
	g.wake()
}

func (g *generator) wake() {
	select {
	case g.more <- struct{}{}:
	default:
	}
}

// out adds what the slots have acquired and not released, by leaf.
func (g *generator) out(by []int) {
	for i := range g.slots {
		if s := &g.slots[i]; s.held {
			by[s.leaf]++
		}
	}
}
