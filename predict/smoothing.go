package predict

import "math"

// smoothing is the model "smoothing", simple exponential smoothing (Brown 1956):
//
//	level ← level + w·(y - level),  y(t+k) = level
//
// It starts from the first bin and keeps 24 bytes. It follows a level shift after some
// 1/w bins.
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
