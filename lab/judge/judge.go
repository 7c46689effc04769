// Package judge measures how well models forecast a series. A model makes each
// forecast in order from the bins before it alone, as in a site. The package does
// not choose a model.
package judge

import (
	"fmt"
	"math"

	"github.com/samya-db/samya/predict"
)

// Options are the options of a judgement.
type Options struct {
	// Split is the share of the bins before the first forecast that counts for the
	// mean absolute error, above 0 and below 1.
	Split float64
	// Model are the options of the models: horizon, quantile and season.
	Model predict.Options
	// Clock returns seconds of processor or real time, from any origin. If it is
	// nil, all times are zero.
	Clock func() float64
	// Keep keeps every forecast in Result.Forecasts.
	Keep bool
}

// WarmUp is the share of the bins before the first forecast that counts for stalls
// and costs.
const WarmUp = .2

// Result is the performance of a model on a series at a horizon.
type Result struct {
	Series  string `json:"series"`
	Model   string `json:"model"`
	Horizon int    `json:"horizon"`
	// MAE is the mean absolute error of Expected against the net demand of the
	// epoch, in tokens, over the bins after the split. The ratios compare it with
	// two models without knowledge.
	MAE           float64 `json:"mae"`
	RatioWalk     float64 `json:"mae_ratio_random_walk"`
	RatioConstant float64 `json:"mae_ratio_constant"`
	// StallRate is the share of epochs with a peak above High, over all but the
	// first fifth of the bins.
	StallRate float64 `json:"stall_rate"`
	// Cost is the newsvendor cost of holding High, in units of the mean peak: excess
	// tokens plus missing tokens times τ/(1-τ).
	Cost float64 `json:"newsvendor_cost"`
	// PointCost and PointStallRate are the same figures for holding Expected, as the
	// paper does (Section 4.2).
	PointCost      float64 `json:"point_newsvendor_cost"`
	PointStallRate float64 `json:"point_stall_rate"`
	// FitSeconds is the time of all observations, fits included.
	FitSeconds float64 `json:"fit_seconds"`
	// ForecastNS is the mean time of observing a bin and forecasting, fits
	// included, in nanoseconds.
	ForecastNS float64 `json:"forecast_ns"`
	// Fallbacks counts forecasts replaced because they were not finite.
	Fallbacks uint64 `json:"fallbacks"`
	// Forecasts are the forecasts made after each bin.
	Forecasts []predict.Forecast `json:"-"`
}

// Epoch returns the net demand and the peak of an epoch; NaN if a bin is missing,
// or holds a number that models take for missing.
func Epoch(bins []predict.Bin) (net, peak float64) {
	for _, b := range bins {
		if !(max(math.Abs(b.Net), math.Abs(b.Peak)) <= predict.MaxTokens) {
			return math.NaN(), math.NaN()
		}
		peak = max(peak, net+b.Peak)
		net += b.Net
	}
	return net, peak
}

// Run judges a model. It leaves the ratios to Compare.
func Run(name string, bins []predict.Bin, o Options) (Result, error) {
	m, err := predict.ByName(name, o.Model)
	if err != nil {
		return Result{}, fmt.Errorf("judge: %w", err)
	}
	r := Result{Model: name, Horizon: max(1, o.Model.Horizon)}
	forecasts := make([]predict.Forecast, len(bins))
	clock := o.Clock
	if clock == nil {
		clock = func() float64 { return 0 }
	}
	began := clock()
	for i, b := range bins {
		m.Observe(b)
		forecasts[i] = m.Forecast()
	}
	r.FitSeconds = clock() - began
	r.ForecastNS = r.FitSeconds * 1e9 / float64(max(1, len(bins)))
	r.Fallbacks = predict.Fallbacks(m)
	if o.Keep {
		r.Forecasts = forecasts
	}
	tau := o.Model.Quantile
	if tau == 0 {
		tau = .95
	}
	r.score(bins, forecasts, o.Split, tau/(1-tau))
	return r, nil
}

// score computes the figures of the forecasts.
func (r *Result) score(bins []predict.Bin, forecasts []predict.Forecast, split, stallCost float64) {
	h := r.Horizon
	var errors, epochs, peaks, tested float64
	for i := range len(bins) - h {
		net, peak := Epoch(bins[i+1 : i+1+h])
		if math.IsNaN(net) {
			continue
		}
		f := forecasts[i]
		if float64(i+1) >= split*float64(len(bins)) {
			errors += math.Abs(net - f.Expected)
			tested++
		}
		if float64(i+1) < WarmUp*float64(len(bins)) {
			continue
		}
		epochs++
		peaks += peak
		for _, held := range [...]struct {
			tokens       float64
			stalls, cost *float64
		}{{f.High, &r.StallRate, &r.Cost}, {max(0, f.Expected), &r.PointStallRate, &r.PointCost}} {
			if missing := peak - held.tokens; missing > 0 {
				*held.stalls++
				*held.cost += missing * stallCost
			} else {
				*held.cost -= missing
			}
		}
	}
	r.MAE = ratio(errors, tested)
	r.Cost, r.PointCost = ratio(r.Cost, peaks), ratio(r.PointCost, peaks)
	r.StallRate, r.PointStallRate = ratio(r.StallRate, epochs), ratio(r.PointStallRate, epochs)
}

// ratio returns a/b, or 0 if b is 0.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// Compare judges models, and compares them with the random walk and a constant.
func Compare(names []string, bins []predict.Bin, o Options) ([]Result, error) {
	walk, err := Run(predict.RandomWalk, bins, o)
	if err != nil {
		return nil, err
	}
	constant, err := Run(predict.Constant, bins, o)
	if err != nil {
		return nil, err
	}
	results := make([]Result, len(names))
	for i, name := range names {
		if results[i], err = Run(name, bins, o); err != nil {
			return nil, err
		}
		results[i].RatioWalk = ratio(results[i].MAE, walk.MAE)
		results[i].RatioConstant = ratio(results[i].MAE, constant.MAE)
	}
	return results, nil
}
