package predict

import "math"

// constant is the model Constant: y(t+k) = the mean of all bins so far. A series without
// memory allows no better model. It keeps 16 bytes.
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
