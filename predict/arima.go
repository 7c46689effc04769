package predict

import "math"

// arima is the model ARIMA(p,d,q) (Box and Jenkins 1970). With w the series, differenced
// d times, and e its one-step errors:
//
//	w(t+1) = c + Σ φᵢ·w(t+1-i) + Σ θⱼ·e(t+1-j)
//
// It is estimated by Hannan and Rissanen's regression on lags and on the errors of a long
// autoregression (Biometrika 69, 1982), and once more on the errors of the result. The
// order, p ≤ 5, d ≤ 1, q ≤ 2, has the least AIC, n·ln(Σe²/n) + 2(p+q+1), among orders
// that pass the stability check: the roots of both polynomials lie outside the unit
// circle. If no order passes, and before the first fit, it is the random walk. A missing
// bin is taken as forecast: its error is zero. It keeps 2048 bins (16 KB). A fit costs
// some ten milliseconds, a forecast eight multiplications a bin.
type arima struct {
	history history
	fitted  fitted
	order   arimaOrder
	// beta is c, φ, θ. w holds the newest values, differenced, and e the newest errors,
	// the newest first. last is the newest bin.
	beta  [1 + arimaP + arimaQ]float64
	w     [arimaP]float64
	e     [arimaQ]float64
	last  float64
	known bool
}

// arimaOrder is p, d and q; ok says that there is a fit.
type arimaOrder struct {
	p, d, q int
	ok      bool
}

const (
	arimaP     = 5
	arimaQ     = 2
	arimaKept  = 2048
	arimaFirst = 100
	arimaLong  = 20
)

func newARIMA(Options) *arima { return &arima{history: newHistory(arimaKept)} }

// next returns the forecast of w for the next bin.
func (m *arima) next(w *[arimaP]float64, e *[arimaQ]float64) float64 {
	f := m.beta[0]
	for i := range m.order.p {
		f += m.beta[1+i] * w[i]
	}
	for j := range m.order.q {
		f += m.beta[1+m.order.p+j] * e[j]
	}
	return f
}

func (m *arima) observe(net float64) {
	f := m.next(&m.w, &m.e)
	if math.IsNaN(net) && m.known {
		net = f
		if m.order.d == 1 {
			net += m.last
		}
		if !m.order.ok {
			net = m.last
		}
	}
	m.history.push(net)
	if math.IsNaN(net) {
		return
	}
	m.take(net, f)
	if m.fitted.due(m.history.seen, arimaFirst) {
		m.fit()
	}
}

// take makes a bin the newest, given the forecast of its w.
func (m *arima) take(net, f float64) {
	w := net
	if m.order.d == 1 {
		w -= m.last
	}
	copy(m.e[1:], m.e[:])
	m.e[0] = w - f
	copy(m.w[1:], m.w[:])
	m.w[0] = w
	m.last, m.known = net, true
}

func (m *arima) path(next []float64) {
	w, e, last := m.w, m.e, m.last
	for i := range next {
		next[i] = last
		if !m.order.ok {
			continue
		}
		f := m.next(&w, &e)
		if m.order.d == 1 {
			last += f
		} else {
			last = f
		}
		next[i] = last
		copy(w[1:], w[:])
		w[0] = f
		copy(e[1:], e[:])
		e[0] = 0
	}
}

func (m *arima) fit() {
	var series []float64
	for k := m.history.len() - 1; k >= 0; k-- {
		if v := m.history.ago(k); !math.IsNaN(v) {
			series = append(series, v)
		}
	}
	if len(series) < arimaFirst {
		return
	}
	best, least := m.order, math.Inf(1)
	best.ok = false
	var beta [1 + arimaP + arimaQ]float64
	for d := range 2 {
		w := difference(series, d)
		long, ok := hannanRissanen(w, nil, arimaLong, 0)
		if !ok {
			continue
		}
		errors := residuals(w, long, arimaLong, 0)
		for p := range arimaP + 1 {
			for q := range arimaQ + 1 {
				b, ok := hannanRissanen(w, errors, p, q)
				if ok && q > 0 && stable(b[1+p:], 1) {
					b, ok = hannanRissanen(w, residuals(w, b, p, q), p, q)
				}
				if !ok || !stable(b[1:1+p], -1) || !stable(b[1+p:], 1) {
					continue
				}
				sum := 0.
				rest := residuals(w, b, p, q)[2*arimaLong:]
				for _, e := range rest {
					sum += e * e
				}
				n := float64(len(rest))
				if aic := n*math.Log(max(sum/n, 1e-12)) + 2*float64(p+q+1); aic < least {
					best, least = arimaOrder{p, d, q, true}, aic
					beta = [len(beta)]float64{}
					copy(beta[:], b)
				}
			}
		}
	}
	m.order, m.beta = best, beta
	m.w, m.e, m.last = [arimaP]float64{}, [arimaQ]float64{}, series[0]
	for _, v := range series[1:] {
		m.take(v, m.next(&m.w, &m.e))
	}
}

// difference returns the changes from bin to bin, the first of them zero. For d = 0 it
// returns the series.
func difference(series []float64, d int) []float64 {
	if d == 0 {
		return series
	}
	w := make([]float64, len(series))
	for i := 1; i < len(w); i++ {
		w[i] = series[i] - series[i-1]
	}
	return w
}

// hannanRissanen regresses w on p of its lags and q lags of the errors.
func hannanRissanen(w, errors []float64, p, q int) ([]float64, bool) {
	mo := newMoments(p + q)
	row := make([]float64, p+q+1)
	for t := 2 * arimaLong; t < len(w); t++ {
		for i := range p {
			row[i] = w[t-1-i]
		}
		for j := range q {
			row[p+j] = errors[t-1-j]
		}
		row[p+q] = w[t]
		mo.add(row, 1)
	}
	beta := make([]float64, p+q+1)
	mo.solve(1e-9, beta[1:], make([]float64, (p+q)*(p+q)), make([]float64, p+q))
	beta[0] = mo.intercept(beta[1:])
	for _, b := range beta {
		if math.IsNaN(b) || math.IsInf(b, 0) {
			return nil, false
		}
	}
	return beta, true
}

// residuals returns the one-step errors, zero before there are enough lags.
func residuals(w, beta []float64, p, q int) []float64 {
	e := make([]float64, len(w))
	for t := max(p, q); t < len(w); t++ {
		e[t] = w[t] - beta[0]
		for i := range p {
			e[t] -= beta[1+i] * w[t-1-i]
		}
		for j := range q {
			e[t] -= beta[1+p+j] * e[t-1-j]
		}
	}
	return e
}

// stable reports whether the roots of 1 + sign·Σ aᵢ·zⁱ lie outside the unit circle. It
// steps the order down: all reflection coefficients must be below 1 (Schur and Cohn). A
// little room is kept for rounding.
func stable(a []float64, sign float64) bool {
	poly := make([]float64, len(a))
	for i, v := range a {
		poly[i] = sign * v
	}
	for n := len(poly); n > 0; n-- {
		k := poly[n-1]
		if !(math.Abs(k) < .999) {
			return false
		}
		down := make([]float64, n-1)
		for i := range down {
			down[i] = (poly[i] - k*poly[n-2-i]) / (1 - k*k)
		}
		poly = down
	}
	return true
}

func (m *arima) state(c *codec) {
	m.history.state(c)
	c.integer(&m.fitted.at, 0, m.history.seen)
	c.integer(&m.order.p, 0, arimaP)
	c.integer(&m.order.d, 0, 1)
	c.integer(&m.order.q, 0, arimaQ)
	c.flag(&m.order.ok)
	c.array(m.beta[:])
	c.array(m.w[:])
	c.array(m.e[:])
	c.float(&m.last)
	c.flag(&m.known)
}
