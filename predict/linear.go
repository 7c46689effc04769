package predict

import (
	"math"
	"slices"
)

// linear regresses the next bin on lags and, in season, on the time of day and week:
//
//	y(t+1) = b0 + Σ bᵢ·y(t-lᵢ) + Σ waves
//
// It keeps the newest 8192 bins (64 KB) and is fitted anew each time it has seen an
// eighth more. With p features a fit costs n·p²/2 multiplications for the moments, and a
// forecast p a bin. Until the first fit, and if a fit gives numbers that are not finite,
// it is the random walk.
//
// Least absolute deviations are found by iteratively reweighted least squares. Each row
// weighs 1/max(|its residual|, ε), ε a two-hundredth of the mean residual, until the
// coefficients rest or 25 rounds are done (Schlossmacher 1973).
type linear struct {
	history history
	fitted  fitted
	// terms makes the set of terms that so many bins allow.
	terms func(seen int) terms
	lad   bool
	// now and beta are the terms and coefficients of the fit made after made bins; row is
	// room for the terms.
	made int
	now  terms
	beta []float64
	row  []float64
}

// terms are the features of a bin.
type terms struct {
	// lags count bins back from the forecast bin: 1 is the newest bin.
	lags []int
	// day is the number of bins in a day. dayWaves and weekWaves are the numbers of
	// harmonics of the day and the week.
	day, dayWaves, weekWaves int
}

func (t terms) len() int { return len(t.lags) + 2*t.dayWaves + 2*t.weekWaves }

const (
	firstFit   = 50
	ladRounds  = 25
	modelRidge = 1e-6
)

func newAR(_ Options, lad bool) *linear {
	lags := make([]int, 15)
	for i := range lags {
		lags[i] = i + 1
	}
	return &linear{history: newHistory(maxHistory), lad: lad, terms: func(int) terms { return terms{lags: lags} }}
}

// newSeason adds a day's terms after two days, and a week's after two weeks.
func newSeason(o Options, lad bool) *linear {
	day, week := o.Day, 7*o.Day
	return &linear{history: newHistory(maxHistory), lad: lad, terms: func(seen int) terms {
		t := terms{lags: []int{1, 2, 3, 4, 5, 6, 12}, day: day}
		kept := min(seen, maxHistory)
		if day < 8 || kept < 2*day {
			return t
		}
		t.lags, t.dayWaves = append(t.lags, day-1, day, day+1), 4
		if kept >= 2*week {
			t.lags, t.weekWaves = append(t.lags, week-1, week, week+1), 3
		}
		return t
	}}
}

func (m *linear) observe(net float64) {
	m.history.push(net)
	if m.fitted.due(m.history.seen, firstFit) {
		m.fit()
	}
}

// features fills in the terms of a bin; value returns the bin lag bins before. It reports
// false if such a bin is missing.
func (t terms) features(row []float64, bin int, value func(lag int) float64) bool {
	n := 0
	for _, lag := range t.lags {
		row[n] = value(lag)
		if math.IsNaN(row[n]) {
			return false
		}
		n++
	}
	for _, w := range [...]struct{ period, count int }{{t.day, t.dayWaves}, {7 * t.day, t.weekWaves}} {
		if w.count == 0 {
			continue
		}
		sin, cos := math.Sincos(2 * math.Pi * float64(bin%w.period) / float64(w.period))
		s, c := sin, cos
		for range w.count {
			row[n], row[n+1] = s, c
			s, c = s*cos+c*sin, c*cos-s*sin
			n += 2
		}
	}
	return true
}

func (m *linear) fit() {
	t := m.terms(m.history.seen)
	p := t.len()
	h := &m.history
	var rows []float64
	row := make([]float64, p+1)
	for k := h.len() - 1; k >= 0; k-- {
		row[p] = h.ago(k)
		if math.IsNaN(row[p]) || !t.features(row, h.seen-1-k, func(lag int) float64 { return h.ago(k + lag) }) {
			continue
		}
		rows = append(rows, row...)
	}
	if len(rows) < 2*(p+1)*(p+1) {
		return
	}
	mo := newMoments(p)
	for r := range slices.Chunk(rows, p+1) {
		mo.add(r, 1)
	}
	beta, ok := mo.regress(modelRidge)
	if ok && m.lad {
		beta, ok = deviations(mo, rows, beta)
	}
	if ok {
		m.take(h.seen, beta)
	}
}

// deviations takes least squares to least absolute deviations.
func deviations(mo *moments, rows, beta []float64) ([]float64, bool) {
	p := mo.p
	residual := func(r []float64) float64 { return math.Abs(r[p] - dot(beta, r[:p])) }
	for range ladRounds {
		sum := 0.
		for r := range slices.Chunk(rows, p+1) {
			sum += residual(r)
		}
		mean := sum * float64(p+1) / float64(len(rows))
		if !(mean > 0) {
			break
		}
		mo.reset()
		for r := range slices.Chunk(rows, p+1) {
			mo.add(r, mean/max(residual(r), mean/200))
		}
		next, ok := mo.regress(modelRidge)
		if !ok {
			return nil, false
		}
		moved, size := 0., 0.
		for i := range next {
			moved += math.Abs(next[i] - beta[i])
			size += math.Abs(next[i])
		}
		beta = next
		if moved < 1e-4*size {
			break
		}
	}
	return beta, true
}

func (m *linear) path(next []float64) {
	h := &m.history
	last := lastOf(h)
	for i := range next {
		next[i] = last
		if m.beta == nil {
			continue
		}
		known := func(lag int) float64 {
			if lag <= i {
				return next[i-lag]
			}
			if v := h.ago(lag - 1 - i); !math.IsNaN(v) {
				return v
			}
			return last
		}
		m.now.features(m.row, h.seen+i, known)
		next[i] = dot(m.beta, m.row)
	}
}

// lastOf returns the newest bin that is not missing, NaN if all are.
func lastOf(h *history) float64 {
	for k := range h.len() {
		if v := h.ago(k); !math.IsNaN(v) {
			return v
		}
	}
	return math.NaN()
}

func (m *linear) state(c *codec) {
	m.history.state(c)
	c.integer(&m.fitted.at, 0, m.history.seen)
	c.integer(&m.made, 0, m.history.seen)
	if c.reading && m.made > 0 {
		m.take(m.made, make([]float64, m.terms(m.made).len()+1))
	}
	c.array(m.beta)
}

// take makes the coefficients of a fit current.
func (m *linear) take(seen int, beta []float64) {
	m.made, m.now, m.beta, m.row = seen, m.terms(seen), beta, make([]float64, len(beta)-1)
}
