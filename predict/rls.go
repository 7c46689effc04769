package predict

import "math"

// rls is the model "rls", autoregression of order 8 by recursive least squares (Haykin,
// Adaptive Filter Theory, chapter 10). With x = (1, y(t), …, y(t-7)):
//
//	k = P·x / (λ + xᵀ·P·x),  e = y - bᵀ·x,  b ← b + k·e,  P ← (P - k·xᵀ·P) / λ
//
// λ = .999. It works on demand divided by the mean size of the first 16 bins, so that P
// starts as 100 times the identity whatever the unit. Where x stays the same, λ makes P
// grow without bound. Beyond 1e6, or if a number is not finite, P starts anew; the
// coefficients are kept unless a coefficient is beyond 1e3. Until 50 bins have been seen
// it is the random walk. It keeps 0.8 KB; a step costs some 250 multiplications.
type rls struct {
	b     [rlsTerms]float64
	p     [rlsTerms][rlsTerms]float64
	x     [rlsTerms]float64
	scale float64
	seen  int
}

const (
	rlsTerms  = 9
	rlsForget = .999
	rlsStart  = 100
	rlsMost   = 1e6
	rlsScale  = 16
)

func newRLS() *rls {
	m := &rls{}
	m.restart()
	m.x[0], m.b[1] = 1, 1
	return m
}

func (m *rls) restart() {
	m.p = [rlsTerms][rlsTerms]float64{}
	for i := range m.p {
		m.p[i][i] = rlsStart
	}
}

func (m *rls) observe(net float64) {
	if math.IsNaN(net) {
		return
	}
	m.seen++
	if m.seen <= rlsScale {
		m.scale += (math.Abs(net) - m.scale) / float64(m.seen)
		m.push(net)
		return
	}
	if m.seen == rlsScale+1 {
		m.scale = max(m.scale, 1e-9)
		for i := range m.x[1:] {
			m.x[1+i] /= m.scale
		}
	}
	net /= m.scale
	var k [rlsTerms]float64
	gain, e := rlsForget, net
	for i := range k {
		for j, x := range m.x {
			k[i] += m.p[i][j] * x
		}
		gain += k[i] * m.x[i]
		e -= m.b[i] * m.x[i]
	}
	most := 0.
	for i := range k {
		m.b[i] += k[i] / gain * e
		for j := range k {
			m.p[i][j] = (m.p[i][j] - k[i]*k[j]/gain) / rlsForget
		}
		most = max(most, math.Abs(m.p[i][i]), math.Abs(m.b[i])/1e3)
	}
	if !(most < rlsMost) || !(gain > 0) {
		m.restart()
		for _, b := range m.b {
			if !(math.Abs(b) < 1e3) {
				m.b = [rlsTerms]float64{1: 1}
				break
			}
		}
	}
	m.push(net)
}

// push makes a bin the newest lag.
func (m *rls) push(net float64) {
	copy(m.x[2:], m.x[1:])
	m.x[1] = net
}

func (m *rls) path(next []float64) {
	x, scale := m.x, m.scale
	if m.seen <= rlsScale {
		scale = 1
	}
	for i := range next {
		f := x[1]
		if m.seen >= firstFit {
			f = 0
			for j, b := range m.b {
				f += b * x[j]
			}
		}
		copy(x[2:], x[1:])
		x[1] = f
		next[i] = f * scale
	}
}

func (m *rls) state(c *codec) {
	c.array(m.b[:])
	c.array(m.x[1:])
	for i := range m.p {
		c.array(m.p[i][:])
	}
	c.float(&m.scale)
	c.integer(&m.seen, 0, math.MaxInt)
}
