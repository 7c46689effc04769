package control

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/samya-db/samya/kvpart/cut"
)

// all is a policy that applies each map, and cuts as often as it can.
var all = Policy{Gain: -1, Share: 1, Sample: 1, Window: 4000}

// pairs uses keys two by two: 2i and 2i+1 together.
func (w *world) pairs(n int) func() {
	return func() {
		for range n {
			i := int(w.rand()>>8) % (len(w.keys.sorted) / 2)
			w.use(2*i, 2*i+1)
		}
	}
}

// apart counts the pairs split over two partitions.
func (w *world) apart() int {
	n := 0
	for i := 0; i+1 < len(w.keys.sorted); i += 2 {
		if w.keys.sorted[i].at != w.keys.sorted[i+1].at {
			n++
		}
	}
	return n
}

// accounted fails unless each map was applied or skipped.
func (w *world) accounted() Stats {
	w.t.Helper()
	s := w.c.Stats()
	if s.Computed != s.Applied+s.Skipped {
		w.t.Errorf("%d maps, %d applied and %d skipped", s.Computed, s.Applied, s.Skipped)
	}
	if int(s.Applied) != w.keys.switches {
		w.t.Errorf("%d maps applied, %d switches", s.Applied, w.keys.switches)
	}
	return s
}

// TestPairsComeTogether is the whole way: keys used together end in the same partition,
// whatever the policy.
func TestPairsComeTogether(t *testing.T) {
	for name, p := range map[string]Policy{
		"every map":          all,
		"maps that pay":      {Window: 10_000},
		"without a window":   {},
		"base":               {Kind: Base, Operations: 5000, Window: 10_000},
		"a sample":           {Window: 10_000, Sample: .25},
		"replacing the map":  {Window: 10_000, Replace: true},
		"a least interval":   {Window: 10_000, Every: time.Second},
		"little of the time": {Window: 10_000, Share: .001},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 4, 1000, p)
			if n := w.apart(); n != 500 {
				t.Fatalf("%d pairs apart at first, want all 500", n)
			}
			w.pass(10*time.Second, 10*time.Millisecond, w.pairs(100))
			s := w.accounted()
			// A pair that is seldom used may be left: it is not worth a cut.
			if n := w.apart(); n > 5 {
				t.Errorf("%d pairs apart; %+v", n, s)
			}
			if p.Kind == Base && w.keys.held != int(s.Computed) {
				t.Errorf("%d maps computed, %d while requests were held", s.Computed, w.keys.held)
			}
			if p.Kind == Async && w.keys.held != 0 {
				t.Errorf("requests were held %d times", w.keys.held)
			}
		})
	}
}

// TestIdleSystemSwitches has no request after the cut began: its map is applied
// all the same.
func TestIdleSystemSwitches(t *testing.T) {
	w := newWorld(t, 2, 100, all)
	w.pairs(5000)()
	w.c.Step()
	if !w.c.Cut() {
		t.Fatal("no cut began")
	}
	w.now += time.Second
	w.c.Step()
	if s := w.accounted(); s.Applied != 1 || w.apart() != 0 {
		t.Errorf("%d pairs apart; %+v", w.apart(), s)
	}
}

// TestNoMapIsLost lets the controller step at the instant when the cutter hands a map
// over. All is there for the next cycle to begin at once. Each map is applied, and cycles
// go on.
func TestNoMapIsLost(t *testing.T) {
	w := newWorld(t, 2, 100, all)
	w.c.handoff.nudge = func() { w.c.Step() }
	w.pairs(5000)()
	w.now += time.Second
	w.c.Step()
	for i := range 20 {
		w.pairs(5000)()
		w.now += time.Second
		if !w.c.Cut() {
			t.Fatalf("no cycle began in round %d: %+v", i, w.c.Stats())
		}
		if s := w.accounted(); s.Computed != w.cuts || s.Applied != w.cuts {
			t.Fatalf("%d cuts; %+v", w.cuts, s)
		}
	}
}

// TestLoops runs the loops themselves, as often as they can: every cut is
// accounted for at the end, and they get there.
func TestLoops(t *testing.T) {
	const cycles = 50
	done := make(chan struct{})
	var cuts atomic.Int64
	s := newKeys(4, 100)
	began := time.Now()
	c, err := New(Options[*key]{
		Scheduler: s, Now: func() time.Duration { return time.Since(began) },
		Policy: Policy{Gain: -1, Share: 1, Sample: 1, Window: 50},
		Cut: func(ctx context.Context, g *cut.Graph, o cut.Options) (*cut.Result, error) {
			if cuts.Add(1) == cycles {
				close(done)
			}
			return components(ctx, g, o)
		},
		Failed: func(err error) { t.Error(err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	c.Start()
	var clients sync.WaitGroup
	for i := range 2 {
		clients.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				for j := range 20 {
					c.Observe([]*key{s.sorted[(i+j)%100], nil, s.sorted[(i*j)%100]})
				}
				runtime.Gosched()
			}
		})
	}
	clients.Wait()
	c.Close()
	// Close gave up the cut under way; a finished map is dealt with here.
	c.Step()
	for c.Cut() {
		c.Step()
	}
	if st := c.Stats(); st.Computed+st.Failed != cuts.Load() || st.Computed != st.Applied+st.Skipped || st.Applied != int64(s.switches) {
		t.Errorf("%d cuts, %d switches; %+v", cuts.Load(), s.switches, st)
	}
}

// TestFailuresAreTold lets cuts and switches fail: the controller tells it, the map
// stays, and the next cycle is as if nothing had been.
func TestFailuresAreTold(t *testing.T) {
	broken := errors.New("broken")
	t.Run("switch", func(t *testing.T) {
		w := newWorld(t, 2, 100, all)
		w.keys.fail = broken
		w.pass(time.Second, 10*time.Millisecond, w.pairs(1000))
		if s := w.accounted(); s.Failed == 0 || s.Applied != 0 || !errors.Is(w.failed, broken) {
			t.Errorf("failed: %v; %+v", w.failed, s)
		}
		w.keys.fail = nil
		w.pass(time.Second, 10*time.Millisecond, w.pairs(1000))
		if s := w.accounted(); s.Applied == 0 || w.apart() != 0 {
			t.Errorf("%d pairs apart; %+v", w.apart(), s)
		}
	})
	t.Run("cut", func(t *testing.T) {
		w := &world{t: t, keys: newKeys(2, 100), seed: 1}
		fail := true
		w.build(Options[*key]{Policy: all, Cut: func(ctx context.Context, g *cut.Graph, o cut.Options) (*cut.Result, error) {
			if fail {
				return nil, broken
			}
			return components(ctx, g, o)
		}})
		w.pass(time.Second, 10*time.Millisecond, w.pairs(1000))
		if s := w.accounted(); s.Failed == 0 || s.Computed != 0 || !errors.Is(w.failed, broken) {
			t.Errorf("failed: %v; %+v", w.failed, s)
		}
		fail = false
		w.pass(time.Second, 10*time.Millisecond, w.pairs(1000))
		if s := w.accounted(); s.Applied == 0 || w.apart() != 0 {
			t.Errorf("%d pairs apart; %+v", w.apart(), s)
		}
	})
}

// TestRemovedKeysLeave removes keys: they leave the graph and nothing holds them.
func TestRemovedKeysLeave(t *testing.T) {
	w := newWorld(t, 2, 1000, Policy{Share: 1, Sample: 1}) // without a window nothing else takes them out
	w.pass(time.Second, 10*time.Millisecond, w.pairs(100))
	if s := w.c.Stats(); s.Vertices != 1000 {
		t.Fatalf("%d vertices of 1000 keys", s.Vertices)
	}
	for range 500 {
		w.keys.remove(250)
	}
	w.pass(time.Second, 10*time.Millisecond, w.pairs(100))
	if s := w.c.Stats(); s.Vertices != 500 {
		t.Errorf("%d vertices of 500 keys that are left", s.Vertices)
	}
	for _, e := range w.c.tracker.owners {
		if e != nil && e.gone {
			t.Fatalf("removed key %s is held", e.name)
		}
	}
}

// TestKeysLeaveForAWhile has a key not count while it is used: it leaves the graph, and
// is back in it, as itself, once it counts.
func TestKeysLeaveForAWhile(t *testing.T) {
	w := newWorld(t, 2, 1000, Policy{Share: 1, Sample: 1})
	away := w.keys.sorted[250]
	for i, want := range []int{1000, 999, 1000} {
		w.keys.mu.Lock()
		away.gone = i == 1
		w.keys.mu.Unlock()
		w.pass(time.Second, 10*time.Millisecond, w.pairs(100))
		if s := w.c.Stats(); s.Vertices != want {
			t.Errorf("%d vertices, want %d", s.Vertices, want)
		}
		slot := away.slot.Load()
		if (slot == 0) != away.gone || slot > 0 && w.c.tracker.owners[slot-1] != away {
			t.Errorf("gone %v: the key has number %d", away.gone, slot)
		}
	}
}

// TestFill: keys between the keys of a partition follow them, and all others stay.
func TestFill(t *testing.T) {
	w := newWorld(t, 2, 600, all)
	for range 2000 {
		w.use(100, 110, 120)
		w.use(300, 310, 320)
		w.use(500)
	}
	w.now += time.Second
	w.c.Step()
	w.c.Cut()
	w.c.Step()
	at := func(i int) int { return w.keys.sorted[i].at }
	if w.accounted().Applied != 1 || at(100) == at(300) {
		t.Fatalf("the two ranges are on %d and %d; %+v", at(100), at(300), w.c.Stats())
	}
	for _, from := range []int{100, 300} {
		for i := from; i <= from+20; i++ {
			if at(i) != at(from) {
				t.Errorf("key %d is on %d, its range on %d", i, at(i), at(from))
			}
		}
	}
	for _, i := range []int{5, 99, 121, 200, 299, 501, 599} {
		if at(i) != i%2 {
			t.Errorf("key %d moved to %d", i, at(i))
		}
	}
}

// TestReplaceUnplaces leaves no key that the map lacks where it was.
func TestReplaceUnplaces(t *testing.T) {
	p := all
	p.Replace = true
	w := newWorld(t, 2, 600, p)
	for range 5000 {
		w.use(100, 110)
	}
	w.now += time.Second
	w.c.Step()
	w.c.Cut()
	w.c.Step()
	for i, e := range w.keys.sorted {
		if seen := i == 100 || i == 110; seen != (e.at >= 0) {
			t.Errorf("key %d is on %d", i, e.at)
		}
	}
}

// TestHubsAreTold uses a key with all others.
func TestHubsAreTold(t *testing.T) {
	w := &world{t: t, keys: newKeys(4, 100), seed: 1}
	w.build(Options[*key]{Policy: all, Cut: func(ctx context.Context, g *cut.Graph, o cut.Options) (*cut.Result, error) {
		r, err := components(ctx, g, o)
		for v := range int32(len(r.Parts)) {
			if g.Offsets[v+1]-g.Offsets[v] > 50 {
				r.Hubs = append(r.Hubs, v)
			}
		}
		return r, err
	}})
	for i := range 5000 {
		w.use(7, i%100)
	}
	w.now += time.Second
	w.c.Step()
	w.c.Cut()
	w.c.Step()
	if s := w.c.Stats(); len(s.Hubs) != 1 || s.Hubs[0] != "000007" {
		t.Errorf("hubs %q, want 000007", s.Hubs)
	}
}

// TestStop ends a cut under way.
func TestStop(t *testing.T) {
	began, opened := make(chan struct{}, 1), time.Now()
	s := newKeys(2, 100)
	c, err := New(Options[*key]{
		Scheduler: s, Now: func() time.Duration { return time.Since(opened) },
		Policy: Policy{Gain: -1, Share: 1, Sample: 1, Window: 100},
		Cut: func(ctx context.Context, _ *cut.Graph, _ cut.Options) (*cut.Result, error) {
			began <- struct{}{}
			<-ctx.Done()
			return nil, ctx.Err()
		},
		Failed: func(err error) { t.Error(err) },
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		c.Observe([]*key{s.sorted[i%100]})
	}
	c.Start()
	<-began
	c.Close()
	if st := c.Stats(); st.Computed != 0 || st.Failed != 0 {
		t.Errorf("a cut that was given up counts: %+v", st)
	}
}

// TestWindowPassesDuringACut fills the window with other requests while a map is made of
// the earlier requests, so that most of their keys leave the graph. Every key still goes
// where the map says.
func TestWindowPassesDuringACut(t *testing.T) {
	w := &world{t: t, keys: newKeys(4, 1000), seed: 1}
	var (
		parts  []int32
		owners []*key
	)
	w.build(Options[*key]{Policy: all, Cut: func(ctx context.Context, g *cut.Graph, o cut.Options) (*cut.Result, error) {
		r, err := components(ctx, g, o)
		parts, owners = r.Parts, slices.Clone(w.c.job.owners)
		return r, err
	}})
	use := func(every int) {
		for range 5000 {
			i := int(w.rand()>>8) % (len(w.keys.sorted) / every) * every
			w.use(i, i+1)
		}
		w.c.record()
	}
	use(2)
	w.now += time.Second
	w.c.Step()
	use(8)
	left := 0
	for _, e := range w.keys.sorted {
		if e.slot.Load() == 0 {
			left++
		}
	}
	if left != len(w.keys.sorted)/4*3 {
		t.Fatalf("%d of %d keys left the graph", left, len(w.keys.sorted))
	}
	w.c.Cut()
	w.c.Step()
	if w.accounted().Applied != 1 {
		t.Fatalf("%+v", w.c.Stats())
	}
	for i, e := range owners {
		if e.at != int(parts[i]) {
			t.Errorf("key %s is on %d, the map says %d", e.name, e.at, parts[i])
		}
	}
}

// TestWhereCutsBegin cuts from the present map, unless the map is of no use: at first,
// and where it parts most keys used together.
func TestWhereCutsBegin(t *testing.T) {
	w := &world{t: t, keys: newKeys(4, 1000), seed: 1}
	var warm []bool
	w.build(Options[*key]{Policy: all, Cut: func(ctx context.Context, g *cut.Graph, o cut.Options) (*cut.Result, error) {
		warm = append(warm, o.Start != nil)
		return components(ctx, g, o)
	}})
	cycle := func(distance int) {
		for range 5000 {
			i := int(w.rand()>>8) % 500
			i -= i / distance % 2 * distance
			w.use(i, i+distance)
		}
		w.now += time.Second
		w.c.Step()
		w.c.Cut()
		w.c.Step()
	}
	for _, distance := range []int{1, 1, 1, 250, 250} {
		cycle(distance)
	}
	if want := []bool{false, true, true, false, true}; !slices.Equal(warm, want) {
		t.Errorf("cuts begin from the present map: %v, want %v", warm, want)
	}
}
