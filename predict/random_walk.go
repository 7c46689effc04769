package predict

var _ Durable = (*randomWalk)(nil)

// randomWalk is the model RandomWalk: y(t+k) = y(t). It keeps a single bin.
type randomWalk struct {
	last    Bin
	horizon int
}

func (m *randomWalk) Observe(bin Bin) {
	if bin, ok := bin.sane(); ok {
		m.last = bin
	}
}

func (m *randomWalk) Forecast() Forecast {
	peak := repeatedPeak(m.last, m.horizon)
	return Forecast{Expected: float64(m.horizon) * m.last.Net, Median: peak, High: peak, Next: m.last.Peak}
}

// repeatedPeak returns the peak of an epoch that repeats a bin.
func repeatedPeak(bin Bin, horizon int) float64 {
	return bin.Peak + max(0, float64(horizon-1)*bin.Net)
}

func (m *randomWalk) stateOptions() Options { return Options{Horizon: m.horizon} }

func (m *randomWalk) recent() []Bin { return []Bin{m.last} }

func (m *randomWalk) fallbacks() uint64 { return 0 }

func (m *randomWalk) state(c *codec) {
	c.floats(&m.last.Net, &m.last.Peak)
	if c.reading {
		m.last, _ = m.last.sane()
	}
}

func (m *randomWalk) MarshalBinary() ([]byte, error) {
	return marshal(RandomWalk, m.stateOptions(), m.state), nil
}

func (m *randomWalk) UnmarshalBinary(data []byte) error {
	err := unmarshal(RandomWalk, m.stateOptions(), data, m.state)
	if err != nil {
		*m = randomWalk{horizon: m.horizon}
	}
	return err
}
