package predict

import "math"

// holtWinters is the model HoltWinters, additive, with a damped trend (Winters 1960;
// Gardner and McKenzie 1985):
//
//	e = y - (level + φ·trend + season)
//	level ← level + φ·trend + α·e,  trend ← φ·trend + β·e,  season ← season + γ·e
//	y(t+k) = level + Σ φʲ·trend + season of that bin
//
// with α = .3, β = .01, γ = .2, φ = .9. The season is a day of at most 2016 bins (16 KB).
// In the first two days, the level is the mean so far, the season the excess over the
// level, and the forecast the random walk. Without a day, it is Holt's method.
type holtWinters struct {
	season             []float64
	level, trend, last float64
	seen               int
	trained            bool
}

const (
	hwLevel  = .3
	hwTrend  = .01
	hwSeason = .2
	hwDamp   = .9
	hwMost   = 2016
)

func newHoltWinters(o Options) *holtWinters {
	m := &holtWinters{}
	if o.Day <= hwMost {
		m.season = make([]float64, o.Day)
	}
	return m
}

// learning reports whether a bin is in the first two days.
func (m *holtWinters) learning(bin int) bool { return bin < 2*len(m.season) }

// at returns the season's part in a bin.
func (m *holtWinters) at(bin int) *float64 {
	if len(m.season) == 0 {
		return new(float64)
	}
	return &m.season[bin%len(m.season)]
}

func (m *holtWinters) observe(net float64) {
	bin, season := m.seen, m.at(m.seen)
	m.seen++
	if math.IsNaN(net) {
		return
	}
	m.last = net
	switch {
	case !m.trained:
		m.level, m.trained = net, true
	case m.learning(bin):
		m.level += (net - m.level) / float64(m.seen)
		*season += .5 * (net - m.level - *season)
	default:
		expected := m.level + hwDamp*m.trend
		e := net - expected - *season
		m.level = expected + hwLevel*e
		m.trend = hwDamp*m.trend + hwTrend*e
		*season += hwSeason * e
	}
}

func (m *holtWinters) path(next []float64) {
	sum, step := m.level, m.trend
	for i := range next {
		step *= hwDamp
		sum += step
		next[i] = sum + *m.at(m.seen + i)
		if m.learning(m.seen) {
			next[i] = m.last
		}
	}
}

func (m *holtWinters) state(c *codec) {
	c.array(m.season)
	c.floats(&m.level, &m.trend, &m.last)
	c.integer(&m.seen, 0, math.MaxInt)
	c.flag(&m.trained)
}
