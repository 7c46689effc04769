package predict

import "math"

// fading is a linear regression over a stream, towards least absolute deviations. Each
// row weighs about 1/max(|its error when it came|, floor·scale), see weighMiss. All rows
// fade by a factor with each new row. It keeps centred moments in single precision, which
// fading and the ridge allow: 2p² + 12p bytes for p features.
type fading struct {
	p      int
	weight float64
	mean   []float32
	second []float32
	beta   []float32 // the intercept first
	solved bool
}

const (
	fadeRidge  = 1e-4
	fadeFloor  = .5
	mostTerms  = 12
	fadeMostSq = 1e38
)

func newFading(p int) *fading {
	return &fading{
		p: p, mean: make([]float32, p+1), second: make([]float32, (p+1)*(p+2)/2), beta: make([]float32, p+1),
	}
}

// observe takes in a row, the outcome last, with its weight.
func (f *fading) observe(row []float64, weight, fade float64) {
	f.weight = f.weight*fade + weight
	share := weight / f.weight
	var delta [mostTerms + 1]float64
	for i, v := range row {
		d := v - float64(f.mean[i])
		delta[i] = d
		f.mean[i] += float32(d * share)
	}
	keep := weight * (1 - share)
	k := 0
	for i := range row {
		d := delta[i] * keep
		for _, e := range delta[i:len(row)] {
			f.second[k] = float32(float64(f.second[k])*fade + d*e)
			k++
		}
	}
	if !(f.second[0] < fadeMostSq && f.second[k-1] < fadeMostSq && f.weight < fadeMostSq) {
		*f = *newFading(f.p)
	}
}

// solve computes the coefficients from the moments: see moments.solve.
func (f *fading) solve() {
	var second [(mostTerms + 1) * (mostTerms + 2) / 2]float64
	var mean, beta, z [mostTerms + 1]float64
	var r [mostTerms * mostTerms]float64
	for i, v := range f.second {
		second[i] = float64(v)
	}
	for i, v := range f.mean {
		mean[i] = float64(v)
	}
	m := moments{p: f.p, weight: f.weight, mean: mean[:f.p+1], second: second[:len(f.second)]}
	m.solve(fadeRidge, beta[1:f.p+1], r[:], z[:])
	beta[0] = m.intercept(beta[1 : f.p+1])
	for _, b := range beta {
		if !(math.Abs(b) < fadeMostSq) {
			return
		}
	}
	for i := range f.beta {
		f.beta[i] = float32(beta[i])
	}
	f.solved = true
}

// at returns the forecast for a row of features.
func (f *fading) at(row []float64) float64 {
	sum := float64(f.beta[0])
	for i, b := range f.beta[1:] {
		sum += float64(b) * row[i]
	}
	return sum
}

func (f *fading) state(c *codec) {
	c.float(&f.weight)
	for _, vs := range [...][]float32{f.mean, f.second, f.beta} {
		for i := range vs {
			c.single(&vs[i])
		}
	}
	c.flag(&f.solved)
}
