package predict

import "math"

// seasonalNaive is the model "seasonal-naive":
//
//	y(t+k) = y(t+k-week), or y(t+k-day), or y(t)
//
// whichever is the first to be known. It keeps a week, up to 8192 bins (64 KB). At a
// minute a bin it keeps the day; at a second it is only the random walk.
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
