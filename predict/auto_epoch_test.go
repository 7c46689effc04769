package predict

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/samya-db/samya/internal/race"
)

// TestEpochWeights spells the hedge over the ways out, for both memories.
func TestEpochWeights(t *testing.T) {
	m := newAuto(Options{Horizon: 12})
	for h := range m.epoch.loss {
		for i := range m.epoch.loss[h] {
			m.epoch.loss[h][i] = 100
		}
	}
	m.epoch.loss[0][waySlow], m.epoch.loss[1][wayMean] = 90, 95
	weights := func() (w [epochWays]float64) {
		m.weighWays(&w)
		return w
	}
	// 20·10/100 = 2 by the short memory, 40·5/100 = 2 by the long.
	all := 1 + (epochWays-1)*math.Exp(-2)
	check := func(when string, w [epochWays]float64, want map[int]float64) {
		t.Helper()
		for way, want := range want {
			if !near(w[way], want, 1e-6) {
				t.Errorf("%s: way %d weighs %v, want %v", when, way, w[way], want)
			}
		}
	}
	check("at rest", weights(), map[int]float64{
		waySlow: (1 + math.Exp(-2)) / all / 2, wayMean: (1 + math.Exp(-2)) / all / 2, wayStay: math.Exp(-2) / all,
	})
	// An epoch does not count yet after five bins. After six bins it counts against the
	// way that is already worse than it used to be: 1.5·(1-.98²)·(600-90).
	trial := epochTrial{left: 7, sum: 700}
	for i := range trial.told {
		trial.told[i] = 1400
	}
	trial.told[waySlow] = 200
	m.reg = newAutoRegressions() // so that epochs overlap
	m.epoch.trials, m.epoch.judged = []epochTrial{trial}, 1000
	check("five of twelve bins", weights(), map[int]float64{waySlow: (1 + math.Exp(-2)) / all / 2})
	m.epoch.trials[0].left = 6
	late := .9 + 1.5*(1-.98*.98)*(600-90)/100 // in units of the loss of staying
	short := (epochWays - 1) + math.Exp(-20*(late-1))
	check("six of twelve bins", weights(), map[int]float64{
		waySlow: (math.Exp(-20*(late-1))/short + math.Exp(-2)/all) / 2, wayStay: (1/short + math.Exp(-2)/all) / 2,
	})
}

// TestShortEpochWeights: up to six bins there is a single memory, and no regressions.
func TestShortEpochWeights(t *testing.T) {
	m := newAuto(Options{Horizon: 6})
	train(m, []float64{5, 5})
	for i := range m.epoch.loss[0] {
		m.epoch.loss[0][i] = 100
	}
	m.epoch.loss[0][waySlow], m.epoch.loss[1][wayMean] = 95, 1
	var w [epochWays]float64
	m.weighWays(&w)
	all := 1 + (wayStack-1)*math.Exp(-2) // 40·5/100 = 2
	for way, want := range map[int]float64{waySlow: 1 / all, wayMean: math.Exp(-2) / all, wayStack: 0, wayStackRoots: 0} {
		if !near(w[way], want, 1e-6) {
			t.Errorf("way %d weighs %v, want %v", way, w[way], want)
		}
	}
	// The first epoch is ten tokens too low for all ways, and replaces the losses set
	// above.
	for range 6 {
		m.observe(5 + 10./6)
	}
	for way, loss := range m.epoch.loss[0][:wayStack] {
		if !near(float64(loss), 10, 1e-5) {
			t.Errorf("way %d: loss %v after an epoch, want 10", way, loss)
		}
	}
}

// TestEpochTrials: a single epoch at a time is judged before there are regressions and
// over up to six bins, then up to six at a time. An epoch with a missing bin is never
// judged.
func TestEpochTrials(t *testing.T) {
	for _, tc := range []struct{ horizon, many, every int }{{2, 1, 2}, {6, 1, 6}, {7, 4, 2}, {12, 6, 2}, {20, 5, 4}, {288, 6, 48}} {
		m := newAuto(Options{Horizon: tc.horizon})
		most := 0
		for i := range 2000 {
			if m.observe(float64(10 + i%7)); m.reg == nil && len(m.epoch.trials) > 1 {
				t.Fatalf("horizon %d: %d epochs after %d bins", tc.horizon, len(m.epoch.trials), i)
			}
			most = max(most, len(m.epoch.trials))
		}
		if most != tc.many || m.every() != tc.every {
			t.Errorf("horizon %d: up to %d epochs, one every %d bins; want %d, %d", tc.horizon, most, m.every(), tc.many, tc.every)
		}
		judged := m.epoch.judged
		m.observe(math.NaN())
		if n := len(m.epoch.trials); n != 1 || int(m.epoch.trials[0].left) != tc.horizon {
			t.Errorf("horizon %d: %d epochs after a missing bin, want one that begins", tc.horizon, n)
		}
		for range tc.horizon - 1 {
			m.observe(5)
		}
		if m.epoch.judged != judged {
			t.Errorf("horizon %d: an epoch with a missing bin was judged", tc.horizon)
		}
		if m.observe(5); m.epoch.judged != judged+1 {
			t.Errorf("horizon %d: the epoch after a missing bin was not judged", tc.horizon)
		}
	}
}

// TestStackWithinTheWays: whatever was demanded, the regressions' forecasts of an epoch
// are within the forecasts of the other ways, and regressions are used once they are
// solved.
func TestStackWithinTheWays(t *testing.T) {
	race.OneGoroutine(t)
	used := 0
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 50))
		m := newAuto(Options{Day: 24, Horizon: 12})
		level := 1.
		for range 900 {
			if r.IntN(120) == 0 {
				level = math.Exp(3 * r.NormFloat64())
			}
			m.observe(math.Round(level * (100 + 20*r.NormFloat64())))
			for _, trial := range m.epoch.trials {
				low, high := trial.told[0], trial.told[0]
				for _, told := range trial.told[:wayStack] {
					low, high = min(low, told), max(high, told)
				}
				for _, told := range trial.told[wayStack:] {
					if told < low || told > high {
						t.Fatalf("seed %d: a regression tells %v, the other ways %v to %v", seed, told, low, high)
					}
					if told != trial.told[wayHedge] {
						used++
					}
				}
			}
		}
	}
	if used == 0 {
		t.Error("no regression was used")
	}
}

// TestStackFinds: no way from bin to bin forecasts these epochs, and the regression on
// epochs does. A pause as long as the bin is large follows each bin with demand.
func TestStackFinds(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 51))
	m := newAuto(Options{Horizon: 12})
	var stay, told, n float64
	var series []float64
	for len(series) < 6000 {
		size := r.IntN(10)
		series = append(series, float64(100*size))
		for range size {
			series = append(series, 0)
		}
	}
	for i, net := range series[:len(series)-12] {
		m.observe(net)
		if i < 3000 {
			continue
		}
		next := make([]float64, 12)
		m.path(next)
		sum, want := 0., 0.
		for k, v := range next {
			sum += v
			want += series[i+1+k]
		}
		told += math.Abs(sum - want)
		stay += math.Abs(12*m.mean - want)
		n++
	}
	if told > .9*stay {
		t.Errorf("mean error %.1f, of the mean alone %.1f", told/n, stay/n)
	}
}

// TestEpochFollowsShift: after a level rises or falls tenfold, or demand ends, the
// forecast of an epoch is right within two epochs.
func TestEpochFollowsShift(t *testing.T) {
	race.OneGoroutine(t)
	for name, factor := range map[string]float64{"up": 10, "down": .1, "off": 0} {
		for seed := range uint64(4) {
			r := rand.New(rand.NewPCG(seed, 52))
			m := mustModel(t, Auto, Options{Day: 96, Horizon: 12})
			level := 100.
			for i := range 3000 + 24 {
				if i == 3000 {
					level *= factor
				}
				net := math.Round(level * (1 + .1*r.NormFloat64()))
				m.Observe(Bin{Net: net, Peak: net})
			}
			if got, want := m.Forecast().Expected, 12*level; math.Abs(got-want) > .2*want+60 {
				t.Errorf("%s, seed %d: %v two epochs later, want about %v", name, seed, got, want)
			}
		}
	}
}

// TestWithin: a way that goes on from its own forecasts stays near the demand seen.
func TestWithin(t *testing.T) {
	m := newAuto(Options{Horizon: 12})
	m.low, m.high = 10, 110
	for f, want := range map[float64]float64{50: 50, -1e9: 0, 1e9: 120} {
		if got := m.within(f); got != want {
			t.Errorf("%v becomes %v, want %v", f, got, want)
		}
	}
	m.low = -10
	if got := m.within(-1e9); got != -22 {
		t.Errorf("below zero: %v, want -22", got)
	}
}
