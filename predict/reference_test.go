package predict

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sajari/regression"

	"github.com/samya-db/samya/internal/race"
)

func near(a, b, relative float64) bool {
	return math.Abs(a-b) <= relative*max(1, math.Abs(a), math.Abs(b))
}

// train shows a point model a series.
func train(m point, series []float64) {
	for _, v := range series {
		m.observe(v)
	}
}

func ahead(m point, bins int) []float64 {
	next := make([]float64, bins)
	m.path(next)
	return next
}

func nets(bins []Bin) []float64 {
	series := make([]float64, len(bins))
	for i, b := range bins {
		series[i] = b.Net
	}
	return series
}

// TestSimple compares the simple models with arithmetic that is spelled out.
func TestSimple(t *testing.T) {
	nan := math.NaN()
	for name, tc := range map[string]struct {
		model  point
		series []float64
		want   []float64
	}{
		"constant":             {new(constant), []float64{1, 2, nan, 6}, []float64{3, 3}},
		"smoothing":            {newSmoothing(.25), []float64{8, 16, nan, 4}, []float64{.75*(.75*8+.25*16) + .25*4, 8.5}},
		"seasonal, no day":     {newSeasonalNaive(Options{}), []float64{1, 2, 3}, []float64{3, 3}},
		"seasonal, a day":      {newSeasonalNaive(Options{Day: 3}), []float64{1, 2, 3, 4, nan, 6}, []float64{4, 6, 6, 4}},
		"seasonal, a week":     {newSeasonalNaive(Options{Day: 1}), []float64{1, 2, 3, 4, 5, 6, 7, 8}, []float64{2, 3}},
		"seasonal, gap":        {newSeasonalNaive(Options{Day: 1}), []float64{1, nan, 3, 4, 5, 6, 7, 8}, []float64{8, 3}},
		"Holt, no season":      {newHoltWinters(Options{}), []float64{10, 20}, holt(10, 20)},
		"Winters, learning":    {newHoltWinters(Options{Day: 2}), []float64{1, 5, 2}, []float64{2, 2}},
		"random walk at first": {newAR(Options{}, false), []float64{4, 7, nan}, []float64{7, 7}},
	} {
		t.Run(name, func(t *testing.T) {
			train(tc.model, tc.series)
			got := ahead(tc.model, len(tc.want))
			for i, w := range tc.want {
				if !near(got[i], w, 1e-12) {
					t.Fatalf("got %v, want %v", got, tc.want)
				}
			}
		})
	}
}

// holt is the forecast after two bins: level 10 + .3·10, trend .01·10, damped.
func holt(first, second float64) []float64 {
	e := second - first
	level, trend := first+.3*e, .01*e
	return []float64{level + .9*trend, level + .9*trend + .81*trend}
}

// TestHoltWinters follows the formulas bin by bin in plain variables.
func TestHoltWinters(t *testing.T) {
	series := []float64{10, 30, 12, 28, 11, 33, 9, 35, 40}
	m := newHoltWinters(Options{Day: 2})
	train(m, series)
	level, trend := 10., 0.
	season := [2]float64{}
	for i, y := range series {
		switch {
		case i == 0:
		case i < 4:
			sum := 0.
			for _, v := range series[:i+1] {
				sum += v
			}
			level = sum / float64(i+1)
			season[i%2] = .5*season[i%2] + .5*(y-level)
		default:
			e := y - (level + .9*trend + season[i%2])
			level, trend = level+.9*trend+.3*e, .9*trend+.01*e
			season[i%2] += .2 * e
		}
	}
	got := ahead(m, 2)
	want := []float64{level + .9*trend + season[1], level + (.9+.81)*trend + season[0]}
	if !near(got[0], want[0], 1e-12) || !near(got[1], want[1], 1e-12) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestRegress compares the regression by moments with the library trained on
// all rows: the coefficients agree to 1e-7.
func TestRegress(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const rows, p = 120, 5
	mo := newMoments(p)
	var all regression.Regression
	for range rows {
		row := make([]float64, p+1)
		for i := range p {
			row[i] = 1000 + float64(1+i*i)*r.NormFloat64() + float64(i)
		}
		row[1] += row[0] // dependent, but not wholly
		row[p] = 7 + 2*row[1] - row[2] + .5*row[4] + r.NormFloat64()
		mo.add(row, 1)
		all.Train(regression.DataPoint(row[p], row[:p:p]))
	}
	if err := all.Run(); err != nil {
		t.Fatal(err)
	}
	got, ok := mo.regress(0)
	if !ok {
		t.Fatal("not finite")
	}
	for i := range p + 1 {
		if !near(got[i], all.Coeff(i), 1e-7) {
			t.Errorf("coefficient %d: %v, want %v", i, got[i], all.Coeff(i))
		}
	}
	// The plain substitution gives the same.
	beta := make([]float64, p)
	mo.solve(0, beta, make([]float64, p*p), make([]float64, p))
	for i, b := range beta {
		if !near(b, got[i+1], 1e-9) {
			t.Errorf("substitution: coefficient %d: %v, want %v", i, b, got[i+1])
		}
	}
}

// TestConstantSeries: a series that never varies has no coefficients to find,
// and all models forecast it exactly.
func TestConstantSeries(t *testing.T) {
	for _, name := range Names() {
		m := mustModel(t, name, Options{Day: 24, Horizon: 3})
		for range 600 {
			m.Observe(Bin{Net: 42, Peak: 42})
		}
		if f := m.Forecast(); name != None && (!near(f.Expected, 126, 1e-4) || !near(f.High, 126, .02) || f.High < 126) {
			t.Errorf("%s: %+v, want 126, and High not below", name, f)
		}
	}
}

// TestAR finds the coefficients that made the series.
func TestAR(t *testing.T) {
	race.OneGoroutine(t)
	r := rand.New(rand.NewPCG(3, 4))
	series := []float64{0, 0}
	for range 6000 {
		n := len(series)
		series = append(series, 5+.6*series[n-1]-.3*series[n-2]+r.NormFloat64())
	}
	for name, m := range map[string]*linear{"least squares": newAR(Options{}, false), "absolute deviations": newAR(Options{}, true)} {
		train(m, series)
		for i, want := range []float64{5, .6, -.3, 0} {
			if tolerance := .1; math.Abs(m.beta[i]-want) > tolerance*max(1, want) {
				t.Errorf("%s: coefficient %d is %v, want %v", name, i, m.beta[i], want)
			}
		}
	}
}

// TestDeviations compares with the best of all lines through two points: the line with
// the least absolute deviations is among them.
func TestDeviations(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 20 {
		const n = 60
		var rows []float64
		mo := newMoments(1)
		for range n {
			x := 10 * r.Float64()
			y := 3 + 2*x + r.NormFloat64()
			if r.IntN(6) == 0 {
				y *= 10
			}
			rows = append(rows, x, y)
			mo.add([]float64{x, y}, 1)
		}
		sum := func(a, b float64) float64 {
			s := 0.
			for row := range slices.Chunk(rows, 2) {
				s += math.Abs(row[1] - a - b*row[0])
			}
			return s
		}
		best := math.Inf(1)
		for i := range n {
			for j := range i {
				b := (rows[2*i+1] - rows[2*j+1]) / (rows[2*i] - rows[2*j])
				best = min(best, sum(rows[2*i+1]-b*rows[2*i], b))
			}
		}
		least, _ := mo.regress(0)
		beta, ok := deviations(mo, rows, slices.Clone(least))
		if !ok || sum(beta[0], beta[1]) > 1.01*best {
			t.Errorf("sum of deviations %v, best %v", sum(beta[0], beta[1]), best)
		}
		if sum(least[0], least[1]) < 1.02*best {
			t.Error("least squares do as well: the test tells nothing")
		}
	}
}

// TestRLS compares the recursion with the weighted, regularised least squares
// that it solves, computed at once.
func TestRLS(t *testing.T) {
	series := nets(demand(7, 200))
	series = slices.DeleteFunc(series, math.IsNaN)
	m := newRLS()
	train(m, series)
	scale := 0.
	for _, v := range series[:rlsScale] {
		scale += math.Abs(v) / rlsScale
	}
	const p = rlsTerms
	var a [p][p + 1]float64
	fade := math.Pow(rlsForget, float64(len(series)-rlsScale))
	for i := range p {
		a[i][i] = fade / rlsStart
	}
	a[1][p] = fade / rlsStart // the random walk, from which it starts
	for i := rlsScale; i < len(series); i++ {
		x := [p]float64{1}
		for j := 1; j < p; j++ {
			x[j] = series[i-j] / scale
		}
		w := math.Pow(rlsForget, float64(len(series)-1-i))
		for j := range p {
			for k := range p {
				a[j][k] += w * x[j] * x[k]
			}
			a[j][p] += w * x[j] * series[i] / scale
		}
	}
	for i := range p { // Gauss and Jordan
		for j := range p {
			if j != i {
				f := a[j][i] / a[i][i]
				for k := i; k <= p; k++ {
					a[j][k] -= f * a[i][k]
				}
			}
		}
	}
	for i := range p {
		if want := a[i][p] / a[i][i]; !near(m.b[i], want, 1e-6) {
			t.Errorf("coefficient %d: %v, want %v", i, m.b[i], want)
		}
	}
}

// TestFading compares with moments in double precision, rebuilt from all rows.
func TestFading(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 9))
	const p, rows, fade = 3, 500, .99
	f := newFading(p)
	mo := newMoments(p)
	for i := range rows {
		row := []float64{100 + r.NormFloat64(), 3 * r.NormFloat64(), r.Float64(), 0}
		row[p] = 1 + row[0] - 2*row[1] + 4*row[2]
		w := .5 + r.Float64()
		f.observe(row, w, fade)
		mo.add(row, w*math.Pow(fade, float64(rows-1-i)))
	}
	f.solve()
	beta := make([]float64, p)
	mo.solve(fadeRidge, beta, make([]float64, p*p), make([]float64, p))
	for i, want := range beta {
		if !near(float64(f.beta[i+1]), want, 1e-3) {
			t.Errorf("coefficient %d: %v, want %v", i, f.beta[i+1], want)
		}
	}
	if got, want := f.at([]float64{100, 0, .5}), 103.; !near(got, want, 1e-3) {
		t.Errorf("forecast %v, want %v", got, want)
	}
}

// TestProfile compares with means computed from all bins of each part.
func TestProfile(t *testing.T) {
	p := newProfile(6, 3, .25)
	days := [][]float64{{1, 3, 10, 10, 5, 7}, {5, 3, math.NaN(), 30, 5, 7}, {8, 8, 40, 0, 1, 2}}
	want := []float64{0, 0, 0}
	for d, day := range days {
		for i, v := range day {
			p.observe(d*6+i, v)
		}
		for part := range want {
			a, b := day[2*part], day[2*part+1]
			mean := (a + b) / 2
			if math.IsNaN(a) {
				mean = b
			}
			want[part] += max(.25, 1/float64(d+1)) * (mean - want[part])
		}
	}
	for part, w := range want {
		if got := p.at(18 + 2*part); !near(got, w, 1./128) {
			t.Errorf("part %d: %v, want %v", part, got, w)
		}
	}
}

// TestWeights spells the hedge out for two experts that differ.
func TestWeights(t *testing.T) {
	m := newAuto(Options{})
	for i := range m.loss[0] {
		m.loss[0][i], m.loss[1][i] = 10, 20
	}
	m.loss[0][bySmooth], m.loss[1][byMean] = 9.5, 19
	var w [autoExperts]float64
	m.weights(&w)
	// 40·.5/10 = 2: the others weigh e⁻² of the best; 20·1/20 = 1: e⁻¹.
	long, short := 1+(autoExperts-1)*math.Exp(-2), 1+(autoExperts-1)*math.Exp(-1)
	for expert, want := range map[int]float64{
		bySmooth: (1/long + math.Exp(-1)/short) / 2, byMean: (math.Exp(-2)/long + 1/short) / 2,
		byWalk: (math.Exp(-2)/long + math.Exp(-1)/short) / 2,
	} {
		if !near(w[expert], want, 1e-6) {
			t.Errorf("expert %d weighs %v, want %v", expert, w[expert], want)
		}
	}
}

// TestAutoFollows: the hedge finds the expert that is right, and another expert after the
// series changes.
func TestAutoFollows(t *testing.T) {
	m := mustModel(t, Auto, Options{Day: 24})
	miss := func(i int, net float64) float64 {
		f := m.Forecast().Expected
		m.Observe(Bin{Net: net, Peak: net})
		_ = i
		return math.Abs(f - net)
	}
	var season, noise float64
	r := rand.New(rand.NewPCG(10, 11))
	for i := range 2400 {
		if e := miss(i, float64(100*(i*i%24))); i > 2000 {
			season += e / 400
		}
	}
	for i := range 2400 {
		if e := miss(i, 1000+100*r.NormFloat64()); i > 2000 {
			noise += e / 400
		}
	}
	// The season is exact; the mean error of the noise is 80 around its mean.
	if season > 20 || noise > 90 {
		t.Errorf("mean errors %v and %v", season, noise)
	}
}

// TestTracker spells out the first steps.
func TestTracker(t *testing.T) {
	tr := untrained(.9)
	if median, high := tr.quantiles(10); median != 10 || !near(high, 10+5*math.Log(5), 1e-12) {
		t.Errorf("untrained: %v, %v", median, high)
	}
	tr.observe(10, 18, 14, .9) // σ = 4
	tr.observe(10, 18, 30, .9) // above both: θ + .05·.5, θ + .05·.9; σ = 4 + .02·(20-4)
	tr.observe(10, 18, 9, .9)  // below both: θ - .05·.5, θ - .05·.1; σ = 4.32 + .02·(1-4.32)
	want := tracker{sigma: 4.2536, middle: 0, high: math.Log(5) + .045 - .005}
	if !near(tr.sigma, want.sigma, 1e-12) || !near(tr.middle, want.middle, 1e-12) || !near(tr.high, want.high, 1e-12) {
		t.Errorf("got %+v, want %+v", tr, want)
	}
}

// TestEpochs spells out how a path becomes the forecast of an epoch.
func TestEpochs(t *testing.T) {
	m := newEpochs("fixed", Options{Horizon: 3, Quantile: .9}, fixed{-5, 20, -8})
	m.Observe(Bin{Net: -30, Peak: 16}) // the sum rises 16 above its end: e = 1
	m.Observe(Bin{Net: 60, Peak: 61})  // e = 1
	f := m.Forecast()
	// The sum is -5, 15, 7; its peak 15 + 1.
	if f.Expected != 7 || f.Median != 16 || !near(f.High, 16+8*math.Log(5), 2e-6) {
		t.Errorf("got %+v", f)
	}
	// The first bin's sum ends below zero, so that its peak is e alone. The peak of the
	// second bin, 61, was above its first forecast, 1, which gives σ = 60.
	if want := 1 + 60*math.Log(5); !near(m.nextBin.sigma, 60, 1e-12) || f.Next > f.High || !near(f.Next, min(want, f.High), 2e-6) {
		t.Errorf("next %v of %+v, want %v or at most High", f.Next, m.nextBin, want)
	}
}

// TestNext follows the forecasts of single bins with a tracker fed by hand.
func TestNext(t *testing.T) {
	const quantile = .9
	m := newEpochs("fixed", Options{Horizon: 3, Quantile: quantile}, fixed{20, 30, 10})
	want, rise := untrained(quantile), 0.
	told := math.NaN()
	for i, bin := range []Bin{{20, 22}, {26, 26}, {10, 18}, {20, 20}, {40, 41}, {20, 22}, {12, 12}} {
		if i > 0 {
			want.observe(20+rise, told, bin.Peak, quantile)
		}
		rise += (bin.Peak - bin.Net - rise) / 16
		m.Observe(bin)
		f := m.Forecast()
		_, told = want.quantiles(20 + rise)
		if f.Next >= f.High || !near(f.Next, told, 1e-5) {
			t.Fatalf("after bin %d: next %v of %+v, want %v", i, f.Next, f, told)
		}
	}
	one := newEpochs("fixed", Options{Horizon: 1, Quantile: quantile}, fixed{20})
	for _, peak := range []float64{21, 25, 30, 22} {
		one.Observe(Bin{Net: 20, Peak: peak})
		if f := one.Forecast(); f.Next != f.High {
			t.Errorf("an epoch of one bin: %+v", f)
		}
	}
}

type fixed []float64

func (fixed) observe(float64)       {}
func (f fixed) path(next []float64) { copy(next, f) }
func (fixed) state(*codec)          {}

// TestWays spells out how Auto goes on from the forecast of the next bin.
func TestWays(t *testing.T) {
	m := newAuto(Options{Day: 8, Horizon: 3})
	m.mean, m.smooth = 50, [...]float64{20, 30, 40}
	hedge := []float64{10, 11, 12}
	for way, want := range map[int][]float64{
		wayHedge: hedge, wayStay: {10, 10, 10}, wayMean: {10, 50, 50}, waySlow: {10, 20, 20}, waySmooth: {10, 30, 30},
		wayDay: {10, 10, 10}, // no season yet
	} {
		next := make([]float64, 3)
		m.way(way, next, hedge)
		if !slices.Equal(next, want) {
			t.Errorf("way %d: %v, want %v", way, next, want)
		}
	}
	m.season = newAutoSeason(8, 0)
	for i := range 24 {
		m.season.day.observe(i, float64(i%8*4))
	}
	m.seen = 24
	next := make([]float64, 3)
	m.way(wayDay+1, next, hedge)
	// The day's means are 0, 4, 8: ten above, then a fifth closer each bin.
	if want := []float64{10, 4 + 8, 8 + 6.4}; !near(next[1], want[1], 1e-6) || !near(next[2], want[2], 1e-6) {
		t.Errorf("to the day: %v, want %v", next, want)
	}
}
