package control

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/samya-db/samya/kvpart/cut"
)

// key is an entry of a fake scheduler.
type key struct {
	name string
	slot atomic.Int32
	at   int
	next int
	gone bool
}

func (k *key) Key() string { return k.name }

// keys is a fake scheduler: keys and their partitions.
type keys struct {
	mu       sync.Mutex
	k        int
	sorted   []*key
	switches int
	held     int
	holding  bool
	fail     error // of Switch
}

func newKeys(k, n int) *keys {
	s := &keys{k: k}
	for i := range n {
		s.sorted = append(s.sorted, &key{name: fmt.Sprintf("%06d", i), at: i % k, next: i % k})
	}
	return s
}

func (s *keys) Partitions() int { return s.k }

func (s *keys) Look(e *key) (int, bool, *atomic.Int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return e.at, e.gone, &e.slot
}

func (s *keys) Entries(dst []*key, from string, limit int) []*key {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, _ := slices.BinarySearchFunc(s.sorted, from, func(e *key, from string) int { return cmp.Compare(e.name, from) })
	return append(dst, s.sorted[i:min(i+limit, len(s.sorted))]...)
}

func (s *keys) Assign(e *key, p int) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p < unplaced || p >= s.k {
		return false, fmt.Errorf("partition %d of %d", p, s.k)
	}
	e.next = p
	return e.next != e.at, nil
}

func (s *keys) Switch() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return s.fail
	}
	s.switches++
	for _, e := range s.sorted {
		e.at = e.next
	}
	return nil
}

func (s *keys) Hold(fn func()) {
	s.held++
	s.holding = true
	fn()
	s.holding = false
}

// remove takes key i out for good.
func (s *keys) remove(i int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sorted[i].gone = true
	s.sorted = slices.Delete(s.sorted, i, i+1)
}

// world is a controller over fake keys in simulated time. Processor time passes
// only as the test says.
type world struct {
	t    *testing.T
	keys *keys
	c    *Controller[*key]
	now  time.Duration
	cpu  time.Duration
	seed uint64
	// cutTime is the time and processor time of a cut.
	cutTime time.Duration
	failed  error
	cuts    int64
}

func newWorld(t *testing.T, k, n int, p Policy) *world {
	t.Helper()
	w := &world{t: t, keys: newKeys(k, n), seed: 1}
	return w.build(Options[*key]{Policy: p})
}

// build makes the controller from o, with the world's scheduler and clocks, and with
// components if o has no Cut.
func (w *world) build(o Options[*key]) *world {
	w.t.Helper()
	o.Scheduler = w.keys
	o.Now = func() time.Duration { return w.now }
	o.CPU = func() time.Duration { return w.cpu }
	o.Rand = w.rand
	o.Yield = func() {}
	o.Rest = func(_ context.Context, d time.Duration) { w.now += d }
	o.Failed = func(err error) { w.failed = err }
	if o.Cut == nil {
		o.Cut = components
	}
	inner := o.Cut
	o.Cut = func(ctx context.Context, g *cut.Graph, co cut.Options) (*cut.Result, error) {
		w.cuts++
		w.now += w.cutTime
		w.cpu += w.cutTime
		return inner(ctx, g, co)
	}
	c, err := New(o)
	if err != nil {
		w.t.Fatal(err)
	}
	w.c = c
	return w
}

func (w *world) rand() uint64 {
	w.seed = w.seed*6364136223846793005 + 1442695040888963407
	return w.seed ^ w.seed>>29
}

// use observes a request for keys.
func (w *world) use(is ...int) {
	es := make([]*key, len(is))
	for i, at := range is {
		es[i] = w.keys.sorted[at]
	}
	w.c.Observe(es)
}

// pass lets d pass in steps of step, each after some requests.
func (w *world) pass(d, step time.Duration, requests func()) {
	for end := w.now + d; w.now < end; {
		w.now += step
		requests()
		w.c.Step()
		w.c.Cut()
	}
}

// components cuts a graph by whole components, each into the lightest part so far. Many
// small components are cut as well as can be.
func components(_ context.Context, g *cut.Graph, o cut.Options) (*cut.Result, error) {
	n := len(g.Offsets) - 1
	r := &cut.Result{Parts: make([]int32, n)}
	for v := range r.Parts {
		r.Parts[v] = -1
	}
	load := make([]int64, o.Parts)
	var members []int32
	for v := range n {
		if r.Parts[v] >= 0 {
			continue
		}
		p := int32(slices.Index(load, slices.Min(load)))
		members = append(members[:0], int32(v))
		r.Parts[v] = p
		for i := 0; i < len(members); i++ {
			u := members[i]
			load[p] += g.VertexWeights[u]
			for _, x := range g.Neighbors[g.Offsets[u]:g.Offsets[u+1]] {
				if r.Parts[x] < 0 {
					r.Parts[x] = p
					members = append(members, x)
				}
			}
		}
	}
	return r, nil
}
