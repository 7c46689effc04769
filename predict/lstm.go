package predict

import "math"

// lstm is the model LSTM, a layer of sixteen cells (Hochreiter and Schmidhuber 1997; with
// forget gates, Gers et al. 2000), beside a linear path around it:
//
//	i, f, o = sigmoid(W·[x h 1]),  g = tanh(W·[x h 1])
//	c ← f∘c + i∘g,  h ← o∘tanh(c),  y(t+1) = v·[h x 1]
//
// x is the newest bin, the bins a day and a week before the next bin, and the next bin's
// time of day. Demand is standardised. It learns by truncated backpropagation over 32
// bins and Adam (Kingma and Ba 2015), towards least absolute deviations, from the newest
// 8192 bins (64 KB). It goes through them three times each time it has seen an eighth
// more: up to a second of work. A forecast costs two microseconds a bin. It is for a few
// hot entities: it wins clearly only where seasons rule, and fails after a level shift
// until it has learnt anew. Until 300 bins, and if a number is not finite, it is the
// random walk.
type lstm struct {
	history history
	fitted  fitted
	day     int
	mean    float64
	scale   float64
	weights []float64
	h, c    [lstmCells]float64
	trained bool
}

const (
	lstmCells  = 16
	lstmInputs = 5
	lstmWide   = lstmInputs + lstmCells + 1
	lstmOut    = 4 * lstmCells * lstmWide
	lstmCount  = lstmOut + lstmCells + lstmInputs + 1
	lstmFirst  = 300
	lstmWindow = 32
	lstmPasses = 3
	lstmRate   = .004
)

func newLSTM(o Options) *lstm {
	m := &lstm{history: newHistory(maxHistory), day: o.Day, weights: make([]float64, lstmCount)}
	// Small weights from a fixed linear congruential sequence (Knuth).
	state := uint64(1)
	for i := range lstmOut {
		state = state*6364136223846793005 + 1442695040888963407
		m.weights[i] = (float64(state>>11)/(1<<53) - .5) * .4
	}
	for k := range lstmCells {
		m.weights[(lstmCells+k)*lstmWide+lstmWide-1] = 1 // remember at first
	}
	m.weights[lstmOut+lstmCells] = 1 // the random walk
	return m
}

// lstmStep keeps the numbers of a step, to go back through it.
type lstmStep struct {
	in         [lstmWide]float64 // x, h before, 1
	gate       [4][lstmCells]float64
	c, before  [lstmCells]float64
	squashed   [lstmCells]float64
	h          [lstmCells]float64
	out, error float64
}

// step runs the cells over an input, and returns the forecast.
func (s *lstmStep) step(weights []float64, x *[lstmInputs]float64, h, c *[lstmCells]float64) float64 {
	copy(s.in[:], x[:])
	copy(s.in[lstmInputs:], h[:])
	s.in[lstmWide-1] = 1
	s.before = *c
	for g := range s.gate {
		for k := range lstmCells {
			row := weights[(g*lstmCells+k)*lstmWide:][:lstmWide]
			sum := 0.
			for i, v := range s.in {
				sum += row[i] * v
			}
			if g == 3 {
				s.gate[g][k] = math.Tanh(sum)
			} else {
				s.gate[g][k] = 1 / (1 + math.Exp(-sum))
			}
		}
	}
	v := weights[lstmOut:]
	s.out = v[lstmCells+lstmInputs]
	for k := range lstmCells {
		s.c[k] = s.gate[1][k]*c[k] + s.gate[0][k]*s.gate[3][k]
		s.squashed[k] = math.Tanh(s.c[k])
		s.h[k] = s.gate[2][k] * s.squashed[k]
		s.out += v[k] * s.h[k]
	}
	for i, u := range x {
		s.out += v[lstmCells+i] * u
	}
	return s.out
}

// back adds the gradient of Σ error·out over the steps to grad.
func back(weights []float64, steps []lstmStep, grad []float64) {
	var dh, dc [lstmCells]float64
	v, dv := weights[lstmOut:], grad[lstmOut:]
	for t := len(steps) - 1; t >= 0; t-- {
		s := &steps[t]
		dv[lstmCells+lstmInputs] += s.error
		for i := range lstmInputs {
			dv[lstmCells+i] += s.error * s.in[i]
		}
		var dgate [4][lstmCells]float64
		for k := range lstmCells {
			dv[k] += s.error * s.h[k]
			d := dh[k] + s.error*v[k]
			i, f, o, g := s.gate[0][k], s.gate[1][k], s.gate[2][k], s.gate[3][k]
			dck := dc[k] + d*o*(1-s.squashed[k]*s.squashed[k])
			dgate[0][k] = dck * g * i * (1 - i)
			dgate[1][k] = dck * s.before[k] * f * (1 - f)
			dgate[2][k] = d * s.squashed[k] * o * (1 - o)
			dgate[3][k] = dck * i * (1 - g*g)
			dc[k] = dck * f
		}
		dh = [lstmCells]float64{}
		for g := range dgate {
			for k, d := range dgate[g] {
				at := (g*lstmCells + k) * lstmWide
				row, drow := weights[at:at+lstmWide], grad[at:at+lstmWide]
				for i, v := range s.in {
					drow[i] += d * v
				}
				for j := range dh {
					dh[j] += d * row[lstmInputs+j]
				}
			}
		}
	}
}

// input returns the features of a bin; value returns the standardised bin lag bins
// before.
func (m *lstm) input(bin int, value func(lag int) float64) [lstmInputs]float64 {
	x := [lstmInputs]float64{value(1)}
	if m.day > 0 {
		x[1], x[2] = value(m.day), value(7*m.day)
		x[3], x[4] = math.Sincos(2 * math.Pi * float64(bin%m.day) / float64(m.day))
	}
	return x
}

// ago returns the standardised bin k before the newest; the mean if it is not known.
func (m *lstm) ago(k int) float64 {
	if v := m.history.ago(k); !math.IsNaN(v) && m.scale > 0 {
		return min(max((v-m.mean)/m.scale, -50), 50)
	}
	return 0
}

func (m *lstm) observe(net float64) {
	if m.trained {
		x := m.input(m.history.seen, func(lag int) float64 { return m.ago(lag - 1) })
		var s lstmStep
		s.step(m.weights, &x, &m.h, &m.c)
		m.h, m.c = s.h, s.c
	}
	m.history.push(net)
	if m.fitted.due(m.history.seen, lstmFirst) {
		m.fit()
	}
}

// standardise sets mean and scale from the kept bins.
func (m *lstm) standardise() {
	var count, sum, deviations float64
	for k := range m.history.len() {
		if v := m.history.ago(k); !math.IsNaN(v) {
			count++
			sum += v
		}
	}
	m.mean = sum / max(1, count)
	for k := range m.history.len() {
		if v := m.history.ago(k); !math.IsNaN(v) {
			deviations += math.Abs(v - m.mean)
		}
	}
	m.scale = deviations / max(1, count)
}

func (m *lstm) fit() {
	m.standardise()
	if !(m.scale > 0) {
		m.trained = false
		return
	}
	kept := m.history.len()
	first := m.history.seen - kept
	weights := append([]float64(nil), m.weights...)
	grad, mean, square := make([]float64, lstmCount), make([]float64, lstmCount), make([]float64, lstmCount)
	steps := make([]lstmStep, 0, lstmWindow)
	var h, c [lstmCells]float64
	updates := 0.
	for pass := range lstmPasses {
		rate := lstmRate / float64(1+pass)
		h, c = [lstmCells]float64{}, [lstmCells]float64{}
		for i := 1; i < kept; i++ {
			x := m.input(first+i, func(lag int) float64 { return m.ago(kept - 1 - i + lag) })
			steps = append(steps, lstmStep{})
			s := &steps[len(steps)-1]
			f := s.step(weights, &x, &h, &c)
			h, c = s.h, s.c
			if !math.IsNaN(m.history.ago(kept - 1 - i)) {
				// The absolute error's derivative, rounded off near zero.
				s.error = math.Tanh(10 * (f - m.ago(kept-1-i)))
			}
			if len(steps) == lstmWindow || i == kept-1 {
				clear(grad)
				back(weights, steps, grad)
				updates++
				adam(weights, grad, mean, square, rate, updates)
				steps = steps[:0]
			}
		}
	}
	for _, w := range weights {
		if math.IsNaN(w) || math.IsInf(w, 0) {
			m.trained = false
			return
		}
	}
	m.weights, m.h, m.c, m.trained = weights, h, c, true
}

// adam moves the weights against the gradient, summed over a window.
func adam(weights, grad, mean, square []float64, rate, updates float64) {
	const b1, b2 = .9, .999
	c1, c2 := 1-math.Pow(b1, updates), 1-math.Pow(b2, updates)
	for i, g := range grad {
		g = min(max(g/lstmWindow, -1), 1)
		mean[i] += (1 - b1) * (g - mean[i])
		square[i] += (1 - b2) * (g*g - square[i])
		weights[i] -= rate * mean[i] / c1 / (math.Sqrt(square[i]/c2) + 1e-8)
	}
}

func (m *lstm) path(next []float64) {
	last := lastOf(&m.history)
	h, c := m.h, m.c
	var s lstmStep
	for i := range next {
		next[i] = last
		if !m.trained {
			continue
		}
		x := m.input(m.history.seen+i, func(lag int) float64 {
			if lag <= i {
				return (next[i-lag] - m.mean) / m.scale
			}
			return m.ago(lag - 1 - i)
		})
		next[i] = m.mean + m.scale*s.step(m.weights, &x, &h, &c)
		h, c = s.h, s.c
	}
}

func (m *lstm) state(c *codec) {
	m.history.state(c)
	c.integer(&m.fitted.at, 0, m.history.seen)
	c.floats(&m.mean, &m.scale)
	c.flag(&m.trained)
	c.array(m.weights)
	c.array(m.h[:])
	c.array(m.c[:])
}
