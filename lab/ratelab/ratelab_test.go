package ratelab

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestDemand: the demand of all regions is the whole, moves, and is drawn as it is offered.
func TestDemand(t *testing.T) {
	d := Default().Demand
	for at := time.Duration(0); at < 8*time.Minute; at += 777 * time.Millisecond {
		sum := 0.0
		for r := range Regions {
			sum += d.part(r, at)
		}
		if math.Abs(sum-1) > 1e-9 {
			t.Fatalf("at %v the regions have %v of the demand", at, sum)
		}
	}
	if d.part(0, 0) != d.Hot || d.part(1, d.Move) != d.Hot || d.part(0, 5*d.Move) != d.Hot {
		t.Error("demand does not move")
	}
	const perSecond = 200
	end := 8 * time.Minute
	all := d.draw(perSecond, end, rand.New(rand.NewPCG(1, 1)))
	busy, hot := 0, 0
	for i, a := range all {
		if i > 0 && a.due < all[i-1].due || a.due >= end {
			t.Fatalf("arrival %d: %+v", i, a)
		}
		if is, _, _ := d.busy(a.due); is {
			busy++
		}
		if a.region == int(a.due/d.Move)%len(Regions) {
			hot++
		}
	}
	if want := perSecond * d.BusyLoad * 360; math.Abs(float64(busy)-want) > 5*math.Sqrt(want) {
		t.Errorf("%d arrivals in busy phases, want %.0f", busy, want)
	}
	if want := perSecond * d.CalmLoad * 120; math.Abs(float64(len(all)-busy)-want) > 5*math.Sqrt(want) {
		t.Errorf("%d arrivals in calm phases, want %.0f", len(all)-busy, want)
	}
	if part := float64(hot) / float64(len(all)); part < .5 || part > d.Hot {
		t.Errorf("%.2f of the arrivals are in the hot region", part)
	}
}

// generous is a limiter that grants the limit in each second, and then each n-th request that
// it should refuse; 0: none.
type generous struct {
	every int

	mu      sync.Mutex
	second  int64
	used    int64
	refused int
}

func (g *generous) ask(ctx context.Context, _ int, q *Quota) (outcome, error) {
	select {
	case <-time.After(5 * time.Millisecond):
	case <-ctx.Done():
		return failed, ctx.Err()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if now := time.Now().Unix(); now != g.second {
		g.second, g.used = now, 0
	}
	if g.used < q.Limit {
		g.used++
		return granted, nil
	}
	if g.refused++; g.every > 0 && g.refused%g.every == 0 {
		return granted, nil
	}
	return refused, nil
}

func (*generous) check(context.Context) error { return nil }
func (*generous) close(context.Context) error { return nil }

// TestMeasure judges a limiter that keeps the limit, and limiters that do not.
func TestMeasure(t *testing.T) {
	for _, every := range []int{0, 5, 1} {
		synctest.Test(t, func(t *testing.T) {
			o := Default()
			o.Duration, o.Progress = 30*time.Second, func(string) {}
			o.Demand.Calm, o.Demand.Busy, o.Demand.Move = 5*time.Second, 10*time.Second, time.Second
			r := &Report{Demand: o.Demand}
			quota := []Quota{{"window", 100, time.Second}}
			if err := r.measure(t.Context(), &o, Samya, quota, func() (limiter, error) { return &generous{every: every}, nil }); err != nil {
				t.Fatal(err)
			}
			row := r.Rows[0]
			if (row.Over > 0) != (every > 0) || r.Over() != row.Over || (len(r.Missed()) > 0) != (every > 0) {
				t.Errorf("%d over: %+v", every, row)
			}
			if every == 0 && (row.Used < .999 || row.Used > 1 || row.Measured < 18 || row.Spare != 0 || row.GrantP50 != 5 || row.Waited != 0) {
				t.Errorf("%+v", row)
			}
			var b bytes.Buffer
			if err := r.WriteText(&b); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(b.String(), "MISSED") != (every > 0) {
				t.Error(b.String())
			}
		})
	}
}

// broken fails.
type broken struct{ generous }

var errBroken = errors.New("broken")

func (*broken) ask(context.Context, int, *Quota) (outcome, error) { return failed, errBroken }

func TestFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := Default()
		o.Progress = func(string) {}
		err := (&Report{}).measure(t.Context(), &o, Samya, o.quotas(), func() (limiter, error) { return &broken{}, nil })
		if !errors.Is(err, errBroken) {
			t.Error(err)
		}
	})
}
