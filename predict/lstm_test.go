package predict

import (
	"math"
	"testing"

	"github.com/samya-db/samya/internal/race"
)

// TestGradient compares backpropagation with differences: the gradient of
// Σ error·out over five steps by some of the weights of each kind.
func TestGradient(t *testing.T) {
	m := newLSTM(Options{Day: 8})
	errors := [...]float64{.5, -1, 2, .3, -.7}
	run := func() ([]lstmStep, float64) {
		var h, c [lstmCells]float64
		sum := 0.
		steps := make([]lstmStep, len(errors))
		for i := range steps {
			x := [lstmInputs]float64{math.Sin(float64(i)), .3, -.2, .1 * float64(i), 1}
			sum += errors[i] * steps[i].step(m.weights, &x, &h, &c)
			steps[i].error = errors[i]
			h, c = steps[i].h, steps[i].c
		}
		return steps, sum
	}
	for i := range m.weights[lstmOut:] {
		m.weights[lstmOut+i] += .1 * math.Cos(float64(i))
	}
	steps, _ := run()
	grad := make([]float64, lstmCount)
	back(m.weights, steps, grad)
	for i := 0; i < lstmCount; i += 7 {
		const d = 1e-5
		was := m.weights[i]
		m.weights[i] = was + d
		_, above := run()
		m.weights[i] = was - d
		_, below := run()
		m.weights[i] = was
		if want := (above - below) / (2 * d); !near(grad[i], want, 1e-6) {
			t.Errorf("weight %d: gradient %v, differences give %v", i, grad[i], want)
		}
	}
}

// TestLSTMLearns a pattern that no line through the last bin gives.
func TestLSTMLearns(t *testing.T) {
	race.OneGoroutine(t)
	pattern := []float64{10, 80, 20, 20, 90, 40, 10, 60}
	m := newLSTM(Options{})
	var miss, walk float64
	for i := range 3000 {
		net := pattern[i%len(pattern)]
		if i >= 2900 {
			miss += math.Abs(ahead(m, 1)[0] - net)
			walk += math.Abs(net - pattern[(i+len(pattern)-1)%len(pattern)])
		}
		m.observe(net)
	}
	if miss > .3*walk {
		t.Errorf("errors of %v, the random walk's are %v", miss, walk)
	}
}
