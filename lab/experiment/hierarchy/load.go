package hierarchy

import (
	"encoding/binary"
	"math/rand/v2"
	"sync"

	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/input"
)

// chunk is the number of requests between two looks at the clock.
const chunk = 64

// slot makes requests in turn: an acquire of a leaf, then its release.
type slot struct {
	acquire input.Acquire
	release input.Release
	leaf    int
	held    bool
	of      *generator
}

// next makes the slot's next request.
func (s *slot) next(call input.Call) input.Input {
	g := s.of
	if s.held {
		s.release = input.Release{Call: call, Entity: g.tree.leaves[s.leaf], Tokens: 1}
		g.identify(&s.release.Request)
		return &s.release
	}
	s.leaf = g.draw.draw(g.rnd)
	s.acquire = input.Acquire{Call: call, Entity: g.tree.leaves[s.leaf], Tokens: 1}
	g.identify(&s.acquire.Request)
	return &s.acquire
}

// generator makes requests, with at most a request per slot under way.
type generator struct {
	tree  *tree
	draw  *drawer
	rnd   *rand.Rand
	ids   uint64
	slots []slot
	// handed counts the requests handed over.
	handed int64

	mu sync.Mutex
	// free are the slots with an answered request.
	free []*slot
	// more holds a token when free is not empty.
	more chan struct{}
	// taken is spare memory for free.
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

// identify gives a request its own id.
func (g *generator) identify(key *attempt.Key) {
	g.ids++
	binary.BigEndian.PutUint64(key[:], mix(g.ids))
}

// mix turns a count into a number that looks like a hash, as request keys do.
func mix(n uint64) uint64 {
	n = (n ^ n>>30) * 0xbf58476d1ce4e5b9
	n = (n ^ n>>27) * 0x94d049bb133111eb
	return n ^ n>>31
}

// take returns the free slots. The caller hands them over or gives them back.
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

// out adds the tokens acquired and not released, by leaf.
func (g *generator) out(by []int) {
	for i := range g.slots {
		if s := &g.slots[i]; s.held {
			by[s.leaf]++
		}
	}
}
