package predict

import (
	"math"
	"slices"

	"github.com/sajari/regression"
)

// moments are the weighted means and centred second moments of rows of features and an
// outcome: all the data that a linear regression needs. They take p²/2 numbers for p
// features, whatever the number of rows.
type moments struct {
	// p is the number of features; the outcome stands behind them.
	p      int
	weight float64
	mean   []float64
	// second is the upper triangle of the centred second moments, row by row.
	second []float64
	delta  []float64
}

func newMoments(p int) *moments {
	return &moments{p: p, mean: make([]float64, p+1), second: make([]float64, (p+1)*(p+2)/2), delta: make([]float64, p+1)}
}

// reset forgets all rows.
func (m *moments) reset() {
	m.weight = 0
	clear(m.mean)
	clear(m.second)
}

// add takes in a row, the outcome last, with a weight (Welford's update, West 1979).
// Features and outcome must be finite.
func (m *moments) add(row []float64, w float64) {
	m.weight += w
	if !(m.weight > 0) {
		return
	}
	share := w / m.weight
	for i, v := range row {
		m.delta[i] = v - m.mean[i]
		m.mean[i] += m.delta[i] * share
	}
	keep, rest := w*(1-share), m.second
	for i, d := range m.delta {
		d *= keep
		right := m.delta[i:]
		// The compiler sees equal lengths, and checks no index in the loop.
		line := rest[:len(right)]
		rest = rest[len(right):]
		for j, e := range right {
			line[j] += d * e
		}
	}
}

// at returns the second moment of columns i ≤ j.
func (m *moments) at(i, j int) float64 { return m.second[i*(m.p+1)-i*(i-1)/2+j-i] }

// factor returns the Cholesky factor R of the features' moments with a relative ridge,
// row by row. It returns z with Rᵀz = the moments with the outcome. It leaves out
// features that do not vary, or depend on earlier features: their row is the identity's,
// with z zero. Without this, a constant series gives coefficients without bounds.
func (m *moments) factor(ridge float64, r, z []float64) {
	p := m.p
	clear(r[:p*p])
	for i := range p {
		own := m.at(i, i)
		left := own * (1 + ridge)
		for k := range i {
			left -= r[k*p+i] * r[k*p+i]
		}
		tiny := 1e-10*own + 1e-18*m.weight*m.mean[i]*m.mean[i]
		if !(left > tiny) {
			r[i*p+i], z[i] = 1, 0
			for k := range i {
				r[k*p+i] = 0
			}
			continue
		}
		d := math.Sqrt(left)
		r[i*p+i] = d
		for j := i + 1; j < p; j++ {
			s := m.at(i, j)
			for k := range i {
				s -= r[k*p+i] * r[k*p+j]
			}
			r[i*p+j] = s / d
		}
		s := m.at(i, p)
		for k := range i {
			s -= r[k*p+i] * z[k]
		}
		z[i] = s / d
	}
}

// intercept returns the intercept of the plane through the means.
func (m *moments) intercept(beta []float64) float64 {
	a := m.mean[m.p]
	for i, b := range beta {
		a -= b * m.mean[i]
	}
	return a
}

// solve sets beta to the coefficients that R and z give, by substitution. r and z are
// room for p² and p numbers.
func (m *moments) solve(ridge float64, beta, r, z []float64) {
	p := m.p
	m.factor(ridge, r, z)
	for i := p - 1; i >= 0; i-- {
		s := z[i]
		for j := i + 1; j < p; j++ {
			s -= r[i*p+j] * beta[j]
		}
		beta[i] = s / r[i*p+i]
	}
}

// regress returns the intercept and the coefficients of the least squares by
// github.com/sajari/regression. That library takes time and memory by the square of the
// rows. So it is trained on 2p+1 rows that have the same moments as all the data: (Rᵢ,
// zᵢ), (-Rᵢ, -zᵢ), with means of zero, and a row of zeros, since it refuses two rows.
// These rows give the coefficients of all rows; the intercept follows from the means.
// regress reports false if a number is not finite.
func (m *moments) regress(ridge float64) ([]float64, bool) {
	p := m.p
	r, z := make([]float64, p*p), make([]float64, p)
	m.factor(ridge, r, z)
	var fit regression.Regression
	fit.Train(regression.DataPoint(0, make([]float64, p)))
	for i := range p {
		row := r[i*p : (i+1)*p]
		minus := make([]float64, p)
		for j, v := range row {
			minus[j] = -v
		}
		fit.Train(regression.DataPoint(z[i], slices.Clone(row)), regression.DataPoint(-z[i], minus))
	}
	if err := fit.Run(); err != nil {
		return nil, false
	}
	beta := make([]float64, p+1)
	for i := range p {
		beta[i+1] = fit.Coeff(i + 1)
	}
	beta[0] = m.intercept(beta[1:])
	for _, b := range beta {
		if math.IsNaN(b) || math.IsInf(b, 0) {
			return nil, false
		}
	}
	return beta, true
}

// dot returns the plane's value: an intercept, then coefficients.
func dot(beta, x []float64) float64 {
	sum := beta[0]
	for i, b := range beta[1:] {
		sum += b * x[i]
	}
	return sum
}
