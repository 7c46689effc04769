package control

import (
	"context"
	"testing"
	"time"

	"github.com/samya-db/samya/kvpart/cut"
)

// TestStretch offers a map that cuts nothing at a balance of 1.04. The map is applied if
// Stretch tolerates it, and its balance is then no reason to cut.
func TestStretch(t *testing.T) {
	for _, c := range []struct {
		stretch, asked float64
		want           bool
	}{{0, .05, true}, {.045, .045, true}, {.03, .03, false}, {-1, -1, false}} {
		w := &world{t: t, keys: newKeys(2, 100), seed: 1}
		var asked float64
		w.build(Options[*key]{
			Policy: Policy{Share: 1, Sample: 1, Stretch: c.stretch},
			Cut: func(_ context.Context, g *cut.Graph, o cut.Options) (*cut.Result, error) {
				asked = o.Stretch
				r := &cut.Result{Parts: make([]int32, len(g.Offsets)-1)}
				for v := range r.Parts {
					if v >= 52 {
						r.Parts[v] = 1
					}
				}
				return r, nil
			},
		})
		// So many requests that chance moves a balance by less than a hundredth.
		for i := range 150_000 {
			w.use(2*i%100, (2*i+1)%100)
			if i%1000 == 0 {
				w.c.Step()
			}
		}
		w.pass(time.Second, 200*time.Millisecond, func() {})
		s := w.c.Stats()
		if s.Computed == 0 || s.Applied > 0 != c.want || asked != c.asked {
			t.Errorf("stretch %v, %v asked: %+v, want it applied: %v", c.stretch, asked, s, c.want)
		}
		p := Policy{Stretch: c.stretch}
		if err := p.check(); err != nil {
			t.Fatal(err)
		}
		for balance, want := range map[float64]bool{1.04: !c.want, 1.06: true, 1.02: false} {
			q := newPolicy(p, 0)
			if q.judge(outcome{balance: balance}); q.need != want {
				t.Errorf("stretch %v: a balance of %v asks for a cut: %v, want %v", c.stretch, balance, q.need, want)
			}
		}
	}
}
