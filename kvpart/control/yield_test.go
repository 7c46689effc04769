package control

import (
	"context"
	"testing"
	"time"

	"github.com/samya-db/samya/kvpart/cut"
)

// TestGivingWay cuts for 100 ms that could give way each 100 us. The cut does so each
// time where giving way takes no time, and gets a share of the time where others want all
// of it.
func TestGivingWay(t *testing.T) {
	const work, slice = 100 * time.Millisecond, 100 * time.Microsecond
	for name, c := range map[string]struct {
		wait       time.Duration // how long others take
		least      int           // times that it gives way
		most       time.Duration // how long it takes
		mostYields int
	}{
		"nobody waits":      {0, 1000, 101 * time.Millisecond, 1100},
		"others are quick":  {50 * time.Microsecond, 900, 160 * time.Millisecond, 1100},
		"others take turns": {40 * time.Millisecond, 9, 600 * time.Millisecond, 15},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{t: t, keys: newKeys(2, 100), seed: 1}
			yields := 0
			w.build(Options[*key]{Policy: all, Cut: func(ctx context.Context, g *cut.Graph, o cut.Options) (*cut.Result, error) {
				for range work / slice {
					w.now += slice
					o.Yield()
				}
				return components(ctx, g, o)
			}})
			w.c.opt.Yield = func() {
				yields++
				w.now += c.wait
			}
			w.pairs(5000)()
			w.now += time.Second
			w.c.Step()
			began := w.now
			if !w.c.Cut() {
				t.Fatal("no cut began")
			}
			if took := w.now - began; took > c.most {
				t.Errorf("it took %v", took)
			}
			if yields < c.least || yields > c.mostYields {
				t.Errorf("it gave way %d times", yields)
			}
		})
	}
}

// TestCutsArePaced cuts for 100 ms of processor time. The first cut runs at once; cuts
// after a map was applied run at a pace, if the policy bounds their share.
func TestCutsArePaced(t *testing.T) {
	const work, slice = 100 * time.Millisecond, 100 * time.Microsecond
	for name, c := range map[string]struct {
		share float64
		later time.Duration // how long a cut takes after the first
	}{
		"little":   {.05, work * 10 / (leastPace * 10)},
		"more":     {.25, 2 * work},
		"no bound": {1, work},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{t: t, keys: newKeys(2, 100), seed: 1}
			policy := all
			policy.Share = c.share
			w.build(Options[*key]{Policy: policy, Cut: func(ctx context.Context, g *cut.Graph, o cut.Options) (*cut.Result, error) {
				for range work / slice {
					w.now += slice
					w.cpu += slice
					o.Yield()
				}
				return components(ctx, g, o)
			}})
			for i, want := range []time.Duration{work, c.later, c.later} {
				w.pairs(5000)()
				w.now += time.Minute
				w.c.Step()
				began := w.now
				if !w.c.Cut() {
					t.Fatalf("cut %d did not begin", i)
				}
				if took := w.now - began; took < want-5*time.Millisecond || took > want+5*time.Millisecond {
					t.Errorf("cut %d took %v, want %v", i, took, want)
				}
				w.c.Step()
			}
		})
	}
}
