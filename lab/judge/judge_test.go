package judge

import (
	"math"
	"testing"

	"github.com/samya-db/samya/internal/race"
	_ "github.com/samya-db/samya/internal/testheap"
	"github.com/samya-db/samya/lab/trace"
	"github.com/samya-db/samya/predict"
)

// TestScore spells out the scores of forecasts of two bins.
func TestScore(t *testing.T) {
	bins := []predict.Bin{{Net: 1, Peak: 1}, {Net: 2, Peak: 3}, {Net: -4}, {Net: 6, Peak: 6}, predict.Missing, {Net: 5, Peak: 5}, {Net: 5, Peak: 8}}
	forecasts := []predict.Forecast{
		{}, {Expected: 3, High: 4}, {Expected: 1, High: 10}, {}, {Expected: 7, High: 13}, {}, {},
	}
	r := Result{Horizon: 2}
	r.score(bins, forecasts, .4, 9)
	// Epochs that count: after bin 1 (net 2, peak 2), and after bin 4 (net 10, peak 13).
	// The epochs after bins 2 and 3 have a missing bin; the epoch after bin 0 is warm-up.
	if r.MAE != 3 {
		t.Errorf("only the epoch after bin 4 is after the split, with an error of 3: %v", r.MAE)
	}
	// High: 2 too many, and none. Expected: 1 too many, and 6 missing.
	if r.StallRate != 0 || r.PointStallRate != .5 || r.Cost != 2./15 || r.PointCost != (1+9*6)/15. {
		t.Errorf("stalls %v and %v, costs %v and %v", r.StallRate, r.PointStallRate, r.Cost, r.PointCost)
	}
}

func TestCompare(t *testing.T) {
	bins := make([]predict.Bin, 100)
	for i := range bins {
		bins[i].Net = float64(i % 2)
		bins[i].Peak = bins[i].Net
	}
	clock := 0.
	results, err := Compare([]string{predict.RandomWalk, predict.Constant}, bins, Options{
		Split: .8, Clock: func() float64 { clock++; return clock }, Keep: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	walk, constant := results[0], results[1]
	if walk.MAE != 1 || walk.RatioWalk != 1 || math.Abs(walk.RatioConstant-2) > .05 || walk.ForecastNS != 1e7 || walk.FitSeconds != 1 || len(walk.Forecasts) != 100 {
		t.Errorf("random walk: %+v", walk)
	}
	if math.Abs(constant.MAE-.5) > .01 || constant.RatioConstant != 1 {
		t.Errorf("constant: %+v", constant)
	}
	if _, err := Compare([]string{"oracle"}, bins, Options{Split: .8}); err == nil {
		t.Error("an unknown model is judged")
	}
}

// measured reads a real series that lies beside the project; without it the test is
// skipped.
func measured(t *testing.T, file string) *trace.Series {
	t.Helper()
	s, err := trace.ReadFile("../../../shared/data/"+file+".csv", "count")
	if err != nil {
		t.Skipf("no real series: %v", err)
	}
	return s
}

// rivals are auto and all models that auto has to match.
func rivals() []string {
	names := []string{predict.Auto}
	for _, name := range predict.Names() {
		if name != predict.Auto && name != predict.None {
			names = append(names, name)
		}
	}
	return names
}

// checkAuto holds auto against a bound and the best single model, a bin ahead.
func checkAuto(t *testing.T, s *trace.Series, bound float64) {
	t.Helper()
	results, err := Compare(rivals(), s.Bins, Options{Split: .8, Model: predict.Options{Day: s.Day()}})
	if err != nil {
		t.Fatal(err)
	}
	auto := results[0]
	t.Logf("%s: %.3f of the random walk, %.3f of a constant", s.Name, auto.RatioWalk, auto.RatioConstant)
	if auto.RatioWalk > bound {
		t.Errorf("%.3f of the random walk's error, at most %v", auto.RatioWalk, bound)
	}
	for _, r := range results[1:] {
		if auto.MAE > 1.05*r.MAE {
			t.Errorf("an error of %.2f, that of %s is %.2f", auto.MAE, r.Model, r.MAE)
		}
	}
}

// TestAutoOnRealSeries: nobody has to choose a model. The mentions are judged on
// their last 30 days.
func TestAutoOnRealSeries(t *testing.T) {
	race.OneGoroutine(t)
	const days = 30 * 288
	for file, bound := range map[string]float64{
		"nab_tweets_aapl_5m": .87, "nab_tweets_goog_5m": .82, "nab_tweets_amzn_5m": 1.02,
		"nab_elb_requests_5m": .74, "nab_nyc_taxi_30m": .55,
	} {
		t.Run(file, func(t *testing.T) {
			s := measured(t, file)
			if s.Step == 300 && len(s.Bins) > days {
				s.Bins = s.Bins[len(s.Bins)-days:]
			}
			checkAuto(t, s, bound)
		})
	}
}

// shifted has a level shift of ten times, gaps, and bursts of both signs.
func shifted() *trace.Series {
	s := trace.NearPeriodic(7)
	for i := range s.Bins {
		b := &s.Bins[i]
		if i > 5000 {
			b.Net *= 10
		}
		if i%700 < 20 {
			*b = predict.Missing
		}
		b.Peak = max(0, b.Net)
	}
	s.Name = "shifted"
	return s
}

func TestAutoOnSyntheticSeries(t *testing.T) {
	race.OneGoroutine(t)
	azure, err := trace.AzureLike(2, "single", 0)
	if err != nil {
		t.Fatal(err)
	}
	checkAuto(t, azure, .64)
	checkAuto(t, trace.NearPeriodic(2), .24)
	checkAuto(t, shifted(), .30)
}

// nextStalls is the share of bins with a peak above Next, after the warm-up.
func nextStalls(bins []predict.Bin, forecasts []predict.Forecast) float64 {
	var above, judged float64
	for i := len(bins) / 5; i+1 < len(bins); i++ {
		if math.IsNaN(bins[i+1].Peak) {
			continue
		}
		judged++
		if bins[i+1].Peak > forecasts[i].Next {
			above++
		}
	}
	return above / judged
}

// TestPeakQuantile: about 5 % of epochs of twelve bins stall, and about 5 % of bins
// exceed Next, the forecast of the bin alone. Holding the quantile costs less than
// holding the paper's forecast.
func TestPeakQuantile(t *testing.T) {
	check := func(t *testing.T, s *trace.Series) {
		t.Helper()
		r, err := Run(predict.Auto, s.Bins, Options{Split: .8, Model: predict.Options{Day: s.Day(), Horizon: 12}, Keep: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: stalls %.3f, cost %.2f; the net sum %.3f, %.2f", s.Name, r.StallRate, r.Cost, r.PointStallRate, r.PointCost)
		if r.StallRate < .03 || r.StallRate > .08 {
			t.Errorf("%s: %.3f of the epochs stall", s.Name, r.StallRate)
		}
		if next := nextStalls(s.Bins, r.Forecasts); next < .03 || next > .08 {
			t.Errorf("%s: %.3f of the bins are above what was told of the next one", s.Name, next)
		}
		if r.Cost >= r.PointCost {
			t.Errorf("%s: costs %.2f, the net sum alone %.2f", s.Name, r.Cost, r.PointCost)
		}
	}
	for _, seed := range []uint64{1, 2} {
		azure, err := trace.AzureLike(seed, "single", 0)
		if err != nil {
			t.Fatal(err)
		}
		check(t, azure)
		check(t, trace.NearPeriodic(seed))
	}
	check(t, shifted())
	for _, file := range []string{"nab_tweets_aapl_5m", "nab_tweets_goog_5m", "nab_tweets_amzn_5m", "nab_elb_requests_5m", "nab_nyc_taxi_30m"} {
		t.Run(file, func(t *testing.T) { check(t, measured(t, file)) })
	}
}
