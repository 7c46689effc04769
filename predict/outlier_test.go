package predict

import (
	"math"
	"slices"
	"testing"

	"github.com/samya-db/samya/internal/race"
)

// impossible are numbers that no entity can have.
var impossible = []float64{1e300, -1e300, math.MaxFloat64, 2 * MaxTokens, math.Inf(-1), math.NaN()}

// withOdd shows a model the bins with bin at replaced by odd. It returns the forecasts
// after this bin and the mean absolute error of their second half.
func withOdd(t *testing.T, name string, o Options, bins []Bin, at int, odd Bin) (told []Forecast, mae float64) {
	t.Helper()
	m := mustModel(t, name, o)
	n := 0.
	for i, bin := range bins {
		if i == at {
			bin = odd
		}
		if i > at {
			f := m.Forecast()
			told = append(told, f)
			if end := i + o.Horizon; i > (at+len(bins))/2 && end <= len(bins) {
				net := 0.
				for _, b := range bins[i:end] {
					net += b.Net
				}
				if !math.IsNaN(net) {
					mae += math.Abs(f.Expected - net)
					n++
				}
			}
		}
		m.Observe(bin)
	}
	return told, mae / n
}

// TestOutlier: a number that no entity can have leaves no trace but a missing bin. Some
// hundred bins after the largest number that an entity can have, the forecasts of every
// model are about as good as without it.
func TestOutlier(t *testing.T) {
	race.OneGoroutine(t)
	const at, bins, few = 250, 1800, 600
	all := demand(7, 3*bins)[:bins] // before its level shifts
	horizons(t, func(t *testing.T, name string, o Options) {
		t.Helper()
		series, impossible, largest := all, impossible, []float64{MaxTokens, -MaxTokens, -1}
		if name == LSTM || name == SeasonLAD || name == ARLAD { // take long
			series, impossible, largest = all[:few], impossible[:1], largest[:1]
		}
		bound := 1.5
		if name == Season {
			bound = 4 // least squares over four weeks do not forget a real number
		}
		want, mae := withOdd(t, name, o, series, at, Missing)
		for _, odd := range impossible {
			if got, _ := withOdd(t, name, o, series, at, Bin{Net: odd, Peak: max(0, odd)}); !slices.Equal(got, want) {
				t.Errorf("%g leaves a trace", odd)
			}
		}
		for _, odd := range largest {
			_, got := withOdd(t, name, o, series, at, Bin{Net: odd, Peak: max(0, odd)})
			if t.Logf("%g: mean error %.1f, without %.1f", odd, got, mae); got > bound*mae {
				t.Errorf("the mean error after %g is %v, without %v", odd, got, mae)
			}
		}
	})
}

// TestOutlierBound spells out the bound on a bin.
func TestOutlierBound(t *testing.T) {
	var o outliers
	for i, step := range []struct{ in, want Bin }{
		{Bin{3, 5}, Bin{3, 5}},
		{Bin{-1e6, 0}, Bin{-160, 0}},
		{Bin{5000, 30_000}, Bin{5000, 5120}},
		{Bin{MaxTokens, MaxTokens}, Bin{32 * 5120, 32 * 5120}},
		{Bin{-7, 7}, Bin{-7, 7}},
	} {
		if got := o.bound(step.in); got != step.want {
			t.Errorf("bin %d: %v counts for %v, want %v", i, step.in, got, step.want)
		}
	}
	o = outliers{}
	o.bound(Bin{})
	if got := o.bound(Bin{Net: 100, Peak: 100}); got.Net != 32 {
		t.Errorf("after nothing 100 counts for %v", got)
	}
}
