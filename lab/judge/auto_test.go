package judge_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/samya-db/samya/internal/race"
	"github.com/samya-db/samya/lab/judge"
	"github.com/samya-db/samya/lab/trace"
	"github.com/samya-db/samya/predict"
)

// quick are the models compared with auto where series change: all but auto, none, and
// the slowest models.
func quick() []string {
	slow := []string{predict.Auto, predict.None, predict.LSTM, predict.ARLAD, predict.SeasonLAD}
	return slices.DeleteFunc(predict.Names(), func(n string) bool { return slices.Contains(slow, n) })
}

// behind returns the error of auto as a multiple of the least error of these models.
func behind(t *testing.T, bins []predict.Bin, day, horizon int, models ...string) (ratio float64, best string) {
	t.Helper()
	o := judge.Options{Split: .8, Model: predict.Options{Horizon: horizon, Day: day}}
	auto, err := judge.Run(predict.Auto, bins, o)
	if err != nil {
		t.Fatal(err)
	}
	least := math.Inf(1)
	for _, name := range models {
		r, err := judge.Run(name, bins, o)
		if err != nil {
			t.Fatal(err)
		}
		if r.MAE < least {
			least, best = r.MAE, name
		}
	}
	return auto.MAE / least, best
}

// TestAutoNearTheBest: auto is within 5 % of the best model by docs/forecasting.md, a bin
// ahead and over twelve bins, on the synthetic series. The same holds on the real series,
// if they lie beside the project or in SAMYA_FORECAST_DATA. Columns of 351 bins of ten
// seconds are too short for this bound over twelve: there it is 20 %.
func TestAutoNearTheBest(t *testing.T) {
	race.OneGoroutine(t)
	if testing.Short() {
		t.Skip("fits the best models on all series")
	}
	near := func(t *testing.T, s *trace.Series, one, twelve string, most float64) {
		t.Helper()
		for horizon, model := range map[int]string{1: one, 12: twelve} {
			t.Run(fmt.Sprintf("%s over %d", s.Name, horizon), func(t *testing.T) {
				t.Parallel()
				bound := 1.05
				if horizon > 1 {
					bound = most
				}
				ratio, best := behind(t, s.Bins, s.Day(), horizon, model)
				if t.Logf("%.3f of %s", ratio, best); ratio > bound {
					t.Errorf("the error is %.3f times that of %s, at most %v", ratio, best, bound)
				}
			})
		}
	}
	near(t, trace.NearPeriodic(1), predict.SeasonLAD, predict.SeasonLAD, 1.05)
	azure, err := trace.AzureLike(1, "single", 0)
	if err != nil {
		t.Fatal(err)
	}
	near(t, azure, predict.ARLAD, predict.ARIMA, 1.05)
	folder := os.Getenv("SAMYA_FORECAST_DATA")
	if folder == "" {
		folder = filepath.Join("..", "..", "..", "shared", "data")
	}
	for _, f := range []struct {
		name, column, one, twelve string
		most                      float64
	}{
		{"nab_elb_requests_5m.csv", "count", predict.SeasonLAD, predict.Season, 1.05},
		{"nab_nyc_taxi_30m.csv", "count", predict.Season, predict.SeasonLAD, 1.05},
		{"nab_tweets_aapl_5m.csv", "count", predict.SeasonLAD, predict.SeasonLAD, 1.05},
		{"nab_tweets_amzn_5m.csv", "count", predict.SeasonLAD, predict.SeasonLAD, 1.05},
		{"nab_tweets_goog_5m.csv", "count", predict.SeasonLAD, predict.MeanRate, 1.05},
		{"azure_llm_conv_10s.csv", "requests", predict.SeasonLAD, predict.HoltWinters, 1.05},
		{"azure_llm_conv_10s.csv", "context_tokens", predict.HoltWinters, predict.ARIMA, 1.2},
		{"azure_llm_conv_10s.csv", "generated_tokens", predict.ARIMA, predict.SeasonLAD, 1.2},
	} {
		s, err := trace.ReadFile(filepath.Join(folder, f.name), f.column)
		if errors.Is(err, fs.ErrNotExist) {
			t.Logf("%s is not there", f.name)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		s.Name += " " + f.column
		near(t, s, f.one, f.twelve, f.most)
	}
}

// regimes draws demand that changes its character every few hundred bins: a level with
// memory, a season with another phase, bursts, a random walk, or short waves.
func regimes(seed uint64, day, bins int) []predict.Bin {
	r := rand.New(rand.NewPCG(seed, 77))
	series := make([]predict.Bin, 0, bins)
	var hours [24]float64
	for i := range hours {
		hours[i] = r.ExpFloat64()
	}
	x := 0.
	for len(series) < bins {
		kind, length := r.IntN(5), 60+r.IntN(700)
		level := 20 * math.Exp(1.2*r.NormFloat64())
		memory, noise := r.Float64(), .1+.5*r.Float64()
		shift := r.IntN(day)
		for range length {
			i := len(series)
			var v float64
			switch kind {
			case 0:
				x = memory*x + level*noise*r.NormFloat64()
				v = level + x
			case 1:
				v = level * (.2 + hours[(i+shift)%day*24/day]) * math.Exp(noise*r.NormFloat64())
			case 2:
				v = level * .3 * math.Exp(.3*r.NormFloat64())
				if x *= .9; r.IntN(40) == 0 {
					x += level * 5 * r.ExpFloat64()
				}
				v += math.Abs(x)
			case 3:
				x += level * .1 * r.NormFloat64()
				v = level + x
			default:
				v = level * (1 + .8*math.Sin(2*math.Pi*float64(i)/float64(6+shift%20))) * math.Exp(.2*r.NormFloat64())
			}
			v = math.Round(max(0, v))
			series = append(series, predict.Bin{Net: v, Peak: v})
		}
	}
	return series[:bins]
}

// TestAutoWhereRegimesChange: over series that change their character, auto is within 5 %
// of the best model in hindsight on each, in the mean, and within 25 % always.
func TestAutoWhereRegimesChange(t *testing.T) {
	race.OneGoroutine(t)
	if testing.Short() {
		t.Skip("fits many models on many series")
	}
	const day, seeds = 96, 12
	for _, horizon := range []int{1, 12} {
		t.Run(fmt.Sprintf("over %d", horizon), func(t *testing.T) {
			t.Parallel()
			sum := 0.
			for seed := range uint64(seeds) {
				ratio, best := behind(t, regimes(300+seed, day, 3000), day, horizon, quick()...)
				t.Logf("seed %d: %.3f of %s", 300+seed, ratio, best)
				if ratio > 1.25 {
					t.Errorf("seed %d: the error is %.3f times that of %s", 300+seed, ratio, best)
				}
				sum += math.Log(ratio) / seeds
			}
			if mean := math.Exp(sum); mean > 1.05 {
				t.Errorf("in the mean %.3f times the best, want at most 1.05", mean)
			} else {
				t.Logf("in the mean %.3f times the best", mean)
			}
		})
	}
}
