package predict

import "math"

// tracker learns quantiles of outcomes around a forecast, from whether the outcomes were
// above them. For a forecast p, an outcome y, and σ an exponential mean of |y-p|,
//
//	θ ← θ + 0.05·(1[y > p+θσ] - (1-τ))
//
// so that in the long run the share 1-τ of the outcomes is above p+θσ, whatever the
// series (Gibbs and Candès, Adaptive Conformal Inference Under Distribution Shift, 2021).
// It keeps 24 bytes and costs a few nanoseconds.
type tracker struct {
	sigma float64
	// middle and high are θ for the median and for the requested quantile.
	middle, high float64
}

const (
	trackStep   = .05
	trackMemory = .02
	// maxTheta bounds θ, which would otherwise run away while all outcomes and the
	// quantile are zero.
	maxTheta = 50
)

// untrained returns a tracker before the first outcome. Its θ is the quantile of a
// Laplace distribution in units of its mean deviation.
func untrained(quantile float64) tracker {
	return tracker{sigma: -1, high: -math.Log(2 * (1 - quantile))}
}

// observe takes in an outcome, its forecast, and the high quantile told with the
// forecast. θ and σ have moved since, and the told quantile has to hold.
func (t *tracker) observe(forecast, high, outcome, quantile float64) {
	miss := math.Abs(outcome - forecast)
	if t.sigma < 0 {
		t.sigma = miss
		return
	}
	t.middle = track(t.middle, .5, outcome > forecast+t.middle*t.sigma)
	t.high = track(t.high, quantile, outcome > high)
	t.sigma += trackMemory * (miss - t.sigma)
}

// track moves θ by whether the outcome was above.
func track(theta, quantile float64, above bool) float64 {
	step := quantile - 1
	if above {
		step = quantile
	}
	return min(max(theta+trackStep*step, -maxTheta), maxTheta)
}

// quantiles returns the median and the high quantile around a forecast. Before the first
// outcome σ is wide: half the forecast.
func (t *tracker) quantiles(forecast float64) (median, high float64) {
	sigma := t.sigma
	if sigma < 0 {
		sigma = math.Abs(forecast) / 2
	}
	median = max(0, forecast+t.middle*sigma)
	return median, max(median, forecast+t.high*sigma)
}

func (t *tracker) state(c *codec) {
	c.floats(&t.sigma, &t.middle, &t.high)
	if c.reading {
		t.sigma = min(max(t.sigma, -1), 2*mostTokens*MaxHorizon)
		t.middle = min(max(t.middle, -maxTheta), maxTheta)
		t.high = min(max(t.high, -maxTheta), maxTheta)
	}
}
