package predict

import "math"

// constant is the model Constant: y(t+k) = the mean of all bins so far. It is
// what a series without memory allows. It keeps 16 bytes.
type constant struct{ mean, count float64 }

func (m *constant) observe(net float64) {
	if !math.IsNaN(net) {
		m.count++
		m.mean += (net - m.mean) / m.count
	}
}

func (m *constant) path(next []float64) {
	for i := range next {
		next[i] = m.mean
	}
}

func (m *constant) state(c *codec) { c.floats(&m.mean, &m.count) }

// smoothing is the model Smoothing, simple exponential smoothing (Brown 1956):
//
//	level ← level + w·(y - level),  y(t+k) = level
//
// It starts from the first bin and keeps 24 bytes. A level shift is followed
// after some 1/w bins.
type smoothing struct {
	weight, level float64
	trained       bool
}

func newSmoothing(weight float64) *smoothing { return &smoothing{weight: weight} }

func (m *smoothing) observe(net float64) {
	switch {
	case math.IsNaN(net):
	case !m.trained:
		m.level, m.trained = net, true
	default:
		m.level += m.weight * (net - m.level)
	}
}

func (m *smoothing) path(next []float64) {
	for i := range next {
		next[i] = m.level
	}
}

func (m *smoothing) state(c *codec) {
	c.float(&m.level)
	c.flag(&m.trained)
}

// seasonalNaive is the model SeasonalNaive:
//
//	y(t+k) = y(t+k-week), or y(t+k-day), or y(t)
//
// whichever is the first to be known. It keeps a week, up to 8192 bins (64 KB):
// at a minute a bin the day, at a second nothing but the random walk.
type seasonalNaive struct {
	day     int
	history history
}

func newSeasonalNaive(o Options) *seasonalNaive {
	most := 1
	for _, period := range [...]int{o.Day, 7 * o.Day} {
		if period <= maxHistory {
			most = max(most, period)
		}
	}
	return &seasonalNaive{day: o.Day, history: newHistory(most)}
}

func (m *seasonalNaive) observe(net float64) { m.history.push(net) }

func (m *seasonalNaive) path(next []float64) {
	last := lastOf(&m.history)
	for i := range next {
		next[i] = last
		for _, period := range [...]int{7 * m.day, m.day} {
			if period == 0 {
				continue
			}
			if v := m.history.ago((period - 1 - i%period)); !math.IsNaN(v) {
				next[i] = v
				break
			}
		}
	}
}

func (m *seasonalNaive) state(c *codec) { m.history.state(c) }

// holtWinters is the model HoltWinters, additive, with a damped trend (Winters
// 1960; Gardner and McKenzie 1985):
//
//	e = y - (level + φ·trend + season)
//	level ← level + φ·trend + α·e,  trend ← φ·trend + β·e,  season ← season + γ·e
//	y(t+k) = level + Σ φʲ·trend + season of that bin
//
// with α = .3, β = .01, γ = .2, φ = .9. The season is a day of at most 2016 bins
// (16 KB). In the first two days, the level is the mean so far, the season what
// is above it, and the forecast the random walk. Without a day, it is Holt's
// method.
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

// at is the season's part in a bin.
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
