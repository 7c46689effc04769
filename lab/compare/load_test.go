package compare

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// loadOf returns a load of a single entity.
func loadOf(callers, batch int) *Load {
	return &Load{
		Callers: callers, Batch: batch, Entities: []string{"acme/vm"}, Draws: []uint32{0}, Prefix: "test",
		Warmup: time.Second, Time: 4 * time.Second,
		Usage: func() (Usage, error) { return Usage{}, nil },
	}
}

// ready returns a fake with an entity, and its driver.
func ready(t *testing.T, f *fake) (fakeRunning, Driver) {
	t.Helper()
	f.kind = Durable
	f.left, f.ids = map[string]int64{"acme/vm": tokens}, map[string]bool{}
	return fakeRunning{fakeControl{f}}, fakeDriver{f}
}

func TestDriveCountsWhatWasMeasuredAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{takes: 10 * time.Millisecond}
		books, d := ready(t, f)
		l := loadOf(8, 5)
		used := []Usage{{Server: time.Second, Client: 2 * time.Second}, {Server: 5 * time.Second, Client: 4 * time.Second}}
		l.Usage = func() (Usage, error) {
			u := used[0]
			used = used[1:]
			return u, nil
		}
		s, err := drive(t.Context(), d, l)
		if err != nil {
			t.Fatal(err)
		}
		// 100 calls a second and caller, of 5 operations each; a call of each caller may
		// fall to either side of both ends.
		if want := int64(4 * 100 * 8 * 5); s.Operations < want-40 || s.Operations > want+40 || s.Seconds != 4 {
			t.Errorf("%d operations in %v s, want %d in 4", s.Operations, s.Seconds, want)
		}
		if math.Abs(s.Rate-4000) > 10 || math.Abs(s.ServerCPU-250) > 1 || math.Abs(s.ClientCPU-125) > 1 {
			t.Errorf("rate %v, server %v, client %v µs; want 4000, 250, 125", s.Rate, s.ServerCPU, s.ClientCPU)
		}
		if s.P50 < 9900 || s.P999 > 10_200 {
			t.Errorf("latencies %v, %v µs, want 10,000", s.P50, s.P999)
		}
		left, err := books.Left(t.Context(), l.Entities)
		if err != nil {
			t.Fatal(err)
		}
		if s.granted[0] <= s.Operations || left[0] != tokens-s.granted[0] {
			t.Errorf("%d granted in all, %d measured, %d gone", s.granted[0], s.Operations, tokens-left[0])
		}
	})
}

// TestOpenLoop: calls are due at the offered rate, whatever the latency. If the system is
// slower, latencies count from when a call was due, and grow.
func TestOpenLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			what              string
			callers, batch    int
			rate              float64
			leastP50, mostP50 float64
		}{
			{"as fast as offered", 64, 1, 1000, 9_900, 10_200},
			{"batches as fast as offered", 16, 10, 1000, 9_900, 10_200},
			{"slower than offered", 5, 1, 500, 1_000_000, 2_500_000},
		} {
			f := &fake{takes: 10 * time.Millisecond}
			_, d := ready(t, f)
			l := loadOf(c.callers, c.batch)
			l.Offered = 1000
			s, err := drive(t.Context(), d, l)
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(s.Rate-c.rate) > 20 || s.P50 < c.leastP50 || s.P50 > c.mostP50 {
				t.Errorf("%s: %v a second, median %v µs", c.what, s.Rate, s.P50)
			}
		}
	})
}

func TestDriveFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone, stop := context.WithCancelCause(t.Context())
		stop(errFake)
		for name, c := range map[string]struct {
			ctx  context.Context
			fake *fake
			left int64
			want error
		}{
			"a call fails":     {t.Context(), &fake{takes: time.Millisecond, err: errFake, failAfter: 100}, tokens, errFake},
			"no tokens left":   {t.Context(), &fake{takes: time.Millisecond}, 100, errRefused},
			"no answer at all": {t.Context(), &fake{takes: time.Hour}, tokens, errStuck},
			"cancelled":        {gone, &fake{takes: time.Millisecond}, tokens, errFake},
		} {
			_, d := ready(t, c.fake)
			c.fake.left["acme/vm"] = c.left
			if _, err := drive(c.ctx, d, loadOf(4, 1)); !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want %v", name, err, c.want)
			}
		}
	})
}

func TestDriveUsageFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, d := ready(t, &fake{takes: time.Millisecond})
		l := loadOf(1, 1)
		l.Usage = func() (Usage, error) { return Usage{}, errFake }
		if _, err := drive(t.Context(), d, l); !errors.Is(err, errFake) {
			t.Errorf("%v, want %v", err, errFake)
		}
	})
}

func TestIDsAreTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{takes: 10 * time.Millisecond}
		_, d := ready(t, f)
		s, err := drive(t.Context(), d, loadOf(7, 3))
		if err != nil {
			t.Fatal(err)
		}
		if got := int64(len(f.ids)); got != s.granted[0] {
			t.Errorf("%d ids for %d operations", got, s.granted[0])
		}
	})
}

func TestZipfDraws(t *testing.T) {
	counts := make(map[uint32]int)
	for _, at := range Zipf.draws(seed) {
		counts[at]++
	}
	most := 0
	for _, n := range counts {
		most = max(most, n)
	}
	// The most popular entity has 1 / sum of n^-0.99 of all draws.
	sum := 0.0
	for i := 1; i <= zipfEntities; i++ {
		sum += math.Pow(float64(i), -zipfExponent)
	}
	if want := drawn / sum; math.Abs(float64(most)-want) > .05*want {
		t.Errorf("the most popular was drawn %d times, want about %.0f", most, want)
	}
	if len(counts) < 9000 {
		t.Errorf("%d entities were drawn, want most of %d", len(counts), zipfEntities)
	}
	even := Even.draws(seed)
	if names := Even.entities(); int(slices.Max(even)) != len(names)-1 || len(names) != evenEntities {
		t.Errorf("%d of %d entities", slices.Max(even), len(names))
	}
	if got := Hot.draws(seed); len(got) != 1 || len(Hot.entities()) != 1 || len(Zipf.entities()) != zipfEntities {
		t.Errorf("hot draws %v", got)
	}
}
