package predict

import "math"

var _ Durable = (*meanRate)(nil)

// meanRate is the model MeanRate. With w the weight of the newest bin:
//
//	deviation ← (1-w)·deviation + w·|peak - mean peak|
//	mean      ← (1-w)·mean      + w·bin
//	High      = mean peak + 2·deviation = Next
//
// It is the estimator of TCP's retransmission timer (RFC 6298, section 2), which also
// starts from half the first value as the deviation. For a normal distribution, two mean
// deviations are 1.6 standard deviations: the 95 % quantile. Over more than one bin,
// means add up. Deviations add up as if they were independent, with the root of their
// number. It keeps 48 bytes.
type meanRate struct {
	weight    float64
	net, peak float64
	deviation float64
	outliers  outliers
	horizon   int32
	trained   bool
}

func newMeanRate(o Options) *meanRate {
	return &meanRate{weight: o.Weight, horizon: int32(o.Horizon)} //nolint:gosec // at most MaxHorizon
}

func (m *meanRate) stateOptions() Options {
	return Options{Weight: m.weight, Horizon: int(m.horizon)}
}

func (m *meanRate) Observe(bin Bin) {
	bin, ok := bin.sane()
	if ok {
		bin = m.outliers.bound(bin)
	}
	w := m.weight
	switch {
	case !ok:
	case !m.trained:
		m.net, m.peak, m.deviation, m.trained = bin.Net, bin.Peak, bin.Peak/2, true
	default:
		m.deviation += w * (math.Abs(bin.Peak-m.peak) - m.deviation)
		m.net += w * (bin.Net - m.net)
		m.peak += w * (bin.Peak - m.peak)
	}
}

func (m *meanRate) Forecast() Forecast {
	h := int(m.horizon)
	// Rounding may leave a mean of numbers ≥ 0 a hair below zero.
	peak, deviation := max(0, m.peak), 2*max(0, m.deviation)
	median := repeatedPeak(Bin{Net: m.net, Peak: peak}, h)
	return Forecast{
		Expected: float64(h) * m.net,
		Median:   median,
		High:     median + deviation*math.Sqrt(float64(h)),
		Next:     peak + deviation,
	}
}

func (m *meanRate) recent() []Bin {
	if !m.trained {
		return nil
	}
	bin, _ := Bin{Net: m.net, Peak: m.peak}.sane()
	return []Bin{bin}
}

func (m *meanRate) fallbacks() uint64 { return 0 }

func (m *meanRate) state(c *codec) {
	for _, f := range [...]*float64{&m.net, &m.peak, &m.deviation} {
		c.float(f)
		if c.reading {
			*f = min(max(*f, -mostTokens), 2*mostTokens)
		}
	}
	m.outliers.state(c)
	c.flag(&m.trained)
}

func (m *meanRate) MarshalBinary() ([]byte, error) {
	return marshal(MeanRate, m.stateOptions(), m.state), nil
}

func (m *meanRate) UnmarshalBinary(data []byte) error {
	err := unmarshal(MeanRate, m.stateOptions(), data, m.state)
	if err != nil {
		*m = meanRate{weight: m.weight, horizon: m.horizon}
	}
	return err
}
