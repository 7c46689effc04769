package predict

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/samya-db/samya/internal/race"
)

// TestARIMA forecasts like the models that made the series, within .35.
func TestARIMA(t *testing.T) {
	race.OneGoroutine(t)
	r := rand.New(rand.NewPCG(12, 13))
	for name, tc := range map[string]struct {
		phi, theta, c float64
		d             int
	}{
		"ARMA(1,1)":    {.7, .4, 3, 0},
		"IMA(1,1)":     {0, -.6, 0, 1},
		"AR(1)":        {.8, 0, 0, 0},
		"ARIMA(1,1,1)": {.5, .3, 0, 1},
	} {
		m := newARIMA(Options{})
		var w, e, y float64
		for range arimaKept {
			next := r.NormFloat64()
			w = tc.c + tc.phi*w + next + tc.theta*e
			e = next
			if tc.d == 1 {
				y += w
			} else {
				y = w
			}
			m.observe(y)
		}
		m.fit()
		if !m.order.ok {
			t.Errorf("%s: order %+v", name, m.order)
			continue
		}
		// The true model's forecast, from its own last error.
		want := tc.c + tc.phi*w + tc.theta*e
		if tc.d == 1 {
			want += y
		}
		if got := ahead(m, 1)[0]; math.Abs(got-want) > .35 {
			t.Errorf("%s: forecast %v, want %v (order %+v, %v)", name, got, want, m.order, m.beta)
		}
	}
}

// TestResiduals spells the errors of an ARMA(1,1) out.
func TestResiduals(t *testing.T) {
	got := residuals([]float64{1, 4, 2, 8}, []float64{1, .5, .25}, 1, 1)
	e1 := 4 - 1 - .5*1
	e2 := 2 - 1 - .5*4 - .25*e1
	e3 := 8 - 1 - .5*2 - .25*e2
	for i, want := range []float64{0, e1, e2, e3} {
		if !near(got[i], want, 1e-12) {
			t.Fatalf("error %d is %v, want %v", i, got[i], want)
		}
	}
}

// TestStable compares the check with the roots of polynomials of order two.
func TestStable(t *testing.T) {
	r := rand.New(rand.NewPCG(14, 15))
	seen := map[bool]int{}
	for range 2000 {
		a, b := 5*r.Float64()-2.5, 4*r.Float64()-2
		// 1 - a·z - b·z² = 0; the inverse roots solve x² - a·x - b = 0.
		largest := math.Sqrt(math.Abs(b))
		if d := a*a/4 + b; d >= 0 {
			largest = math.Abs(a)/2 + math.Sqrt(d)
		}
		if math.Abs(largest-1) < .01 {
			continue
		}
		want := largest < 1
		seen[want]++
		if got := stable([]float64{a, b}, -1); got != want {
			t.Fatalf("%v, %v: stable %v; its largest inverse root is %v", a, b, got, largest)
		}
	}
	if seen[true] < 100 || seen[false] < 100 {
		t.Errorf("seen %v", seen)
	}
}
