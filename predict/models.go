package predict

import "math"

var (
	_ Model = none{}
	_ Model = (*randomWalk)(nil)
	_ Model = (*meanRate)(nil)
)

// none is the model None.
type none struct{}

func (none) Observe(Bin) {}

func (none) Forecast() Forecast { return Forecast{} }

// randomWalk is the model RandomWalk.
type randomWalk struct{ last Bin }

func (m *randomWalk) Observe(bin Bin) {
	if bin, ok := bin.sane(); ok {
		m.last = bin
	}
}

func (m *randomWalk) Forecast() Forecast {
	return Forecast{Expected: m.last.Net, Median: m.last.Peak, High: m.last.Peak}
}

// meanRate is the model MeanRate. With w the weight of the newest bin:
//
//	deviation ← (1-w)·deviation + w·|peak - mean peak|
//	mean      ← (1-w)·mean      + w·bin
//	High      = mean peak + 2·deviation
//
// It is the estimator of TCP's retransmission timer (RFC 6298, section 2), which
// also starts from half the first value as the deviation. For a normal
// distribution, two mean deviations are 1.6 standard deviations: the 95 %
// quantile.
type meanRate struct {
	weight    float64
	net, peak float64
	deviation float64
	trained   bool
}

func newMeanRate(o Options) Model { return &meanRate{weight: o.Weight} }

func (m *meanRate) Observe(bin Bin) {
	bin, ok := bin.sane()
	switch {
	case !ok:
	case !m.trained:
		m.net, m.peak, m.deviation, m.trained = bin.Net, bin.Peak, bin.Peak/2, true
	default:
		m.deviation += m.weight * (math.Abs(bin.Peak-m.peak) - m.deviation)
		m.net += m.weight * (bin.Net - m.net)
		m.peak += m.weight * (bin.Peak - m.peak)
	}
}

func (m *meanRate) Forecast() Forecast {
	// Rounding may leave a mean of numbers ≥ 0 a hair below zero.
	median := max(0, m.peak)
	return Forecast{Expected: m.net, Median: median, High: median + 2*max(0, m.deviation)}
}
