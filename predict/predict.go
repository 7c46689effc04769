// Package predict forecasts the demand for an entity's tokens at a site. So the site can
// ask for tokens before it runs short, and keep the tokens it is about to need. It is the
// prediction module of Samya (Maiyya et al., section 4.2). It decides nothing: it turns
// observations into numbers, and the caller acts on them.
//
// Time is cut into bins of a length that the caller chooses. In each bin the caller sums
// up demand, tokens acquired less tokens released, in the order it arrived. Demand it
// could not serve counts as well. A [Model] sees each [Bin] in turn and forecasts the
// next.
package predict

import (
	"cmp"
	"encoding"
	"errors"
	"fmt"
	"math"
)

// The names of the models.
const (
	// Auto weighs cheap models by their recent errors: nobody has to choose.
	Auto = "auto"
	// ARLAD is autoregression by least absolute deviations.
	ARLAD = "ar-lad"
	// ARIMA is Box and Jenkins' model, its order selected by AIC.
	ARIMA = "arima"
	// Constant forecasts the mean of all observations.
	Constant = "constant"
	// HoltWinters is exponential smoothing of level, trend and a daily season.
	HoltWinters = "holt-winters"
	// LSTM is a small recurrent neural network: for a few hot entities.
	LSTM = "lstm"
	// MeanRate forecasts by an exponential mean and mean deviation.
	MeanRate = "mean-rate"
	// None forecasts no demand, ever: sites redistribute only when they run short.
	None = "none"
	// RandomWalk forecasts that the next bin repeats the last. Any other model has to
	// beat it.
	RandomWalk = "random-walk"
	// Season regresses on lags and seasons by least squares.
	Season = "season"
	// SeasonLAD regresses on lags and seasons by least absolute deviations.
	SeasonLAD = "season-lad"
)

// The names that no other package writes out: users name these models in the
// configuration.
const (
	// nameAR is autoregression by least squares.
	nameAR = "ar"
	// nameRLS is autoregression by recursive least squares.
	nameRLS = "rls"
	// nameSeasonalNaive repeats the bin of a week or a day ago.
	nameSeasonalNaive = "seasonal-naive"
	// nameSmoothing is simple exponential smoothing.
	nameSmoothing = "smoothing"
)

// Bin is the demand observed in a bin, in tokens.
type Bin struct {
	// Net is the sum of the demand: acquired less released.
	Net float64
	// Peak is the highest value of the running sum within the bin, which starts at zero.
	// This many tokens had to be at hand for nobody to wait. It is never below zero or
	// Net; a Model raises a lower Peak.
	Peak float64
}

// Missing is a bin without an observation, for example because the site was down: time
// has passed, and a model learns nothing. A bin without demand is the zero Bin instead.
var Missing = Bin{Net: math.NaN(), Peak: math.NaN()}

// Forecast is the demand expected in the next epoch, in tokens. All its numbers are
// finite.
type Forecast struct {
	// Expected is the point forecast of the epoch's net demand. It is negative where more
	// is released than acquired. Models of least squares aim at the mean; models of least
	// absolute deviations, and Auto, at the median.
	Expected float64
	// Median is the median of the peak: the highest value of the running sum of demand
	// over the epoch. It is never negative.
	Median float64
	// High is a high quantile of the peak, never below Median: with Options.Quantile .95,
	// about one epoch in twenty should exceed it.
	High float64
	// Next is the high quantile of the peak within the next bin alone. It is never
	// negative and never above High, but may be below Median.
	Next float64
}

// Clamp returns the forecast within the bounds of an entity's limit: the peaks within 0
// and limit, the net demand within -limit and limit.
func (f Forecast) Clamp(limit float64) Forecast {
	clamp := func(x, low float64) float64 { return min(max(x, low), limit) }
	return Forecast{clamp(f.Expected, -limit), clamp(f.Median, 0), clamp(f.High, 0), clamp(f.Next, 0)}
}

// Model forecasts a series of bins. A Model is used by one goroutine at a time. The same
// bins always give the same forecast. The models of this package keep a bounded state,
// documented with each, and are a [Durable] as well.
type Model interface {
	// Observe takes in the next bin. A bin with a number that is not finite, or beyond
	// MaxTokens, counts as Missing. A bin that exceeds all before it more than 32 times
	// counts as 32 times the largest of these.
	Observe(bin Bin)
	// Forecast returns the forecast of the next epoch; the zero Forecast before the first
	// observation. It changes nothing.
	Forecast() Forecast
}

// Durable is a Model with a state that can be stored and taken up again.
type Durable interface {
	Model
	encoding.BinaryMarshaler
	// UnmarshalBinary replaces the state by a result of MarshalBinary of the same model
	// and options. It fails for any other data, and then the model is as good as new.
	encoding.BinaryUnmarshaler
	// recent returns the newest bins it keeps, oldest first.
	recent() []Bin
	// stateOptions returns the options that its state depends on.
	stateOptions() Options
	// fallbacks counts forecasts that were not finite.
	fallbacks() uint64
}

// Options tunes models. The zero value stands for the defaults. A stored state must be
// taken up with the options it was stored with.
type Options struct {
	// Weight is the weight of the newest bin in the exponential means of MeanRate and
	// Smoothing, above 0 and at most 1. 0 stands for 1/8, which half forgets a bin after
	// five others.
	Weight float64
	// Horizon is the length of the epoch in bins, within 1 and MaxHorizon; 0 stands for
	// 1.
	Horizon int
	// Quantile is the quantile of Forecast.High and Next, from .5 and below 1; 0 stands
	// for .95. It is c_stall / (c_stall + c_hoard), the cost of a missing token against
	// the cost of an idle token. MeanRate and RandomWalk ignore it.
	Quantile float64
	// Day is the number of bins in a day, at most 86400; with 0 models look for no
	// seasons. A week is seven days.
	Day int
}

// MaxHorizon bounds Options.Horizon.
const MaxHorizon = 288

const maxDay = 86400

// complete fills in the defaults and checks the ranges. It fails with ErrOption.
func (o Options) complete() (Options, error) {
	o.Weight = cmp.Or(o.Weight, 1./8)
	o.Horizon = cmp.Or(o.Horizon, 1)
	o.Quantile = cmp.Or(o.Quantile, .95)
	switch {
	case !(o.Weight > 0 && o.Weight <= 1):
		return o, fmt.Errorf("%w: weight %v, must be above 0 and at most 1", ErrOption, o.Weight)
	case o.Horizon < 1 || o.Horizon > MaxHorizon:
		return o, fmt.Errorf("%w: horizon %d, must be within 1 and %d", ErrOption, o.Horizon, MaxHorizon)
	case !(o.Quantile >= .5 && o.Quantile < 1):
		return o, fmt.Errorf("%w: quantile %v, must be from .5 and below 1", ErrOption, o.Quantile)
	case o.Day < 0 || o.Day > maxDay:
		return o, fmt.Errorf("%w: %d bins a day, must be within 0 and %d", ErrOption, o.Day, maxDay)
	}
	return o, nil
}

var (
	// ErrUnknownModel says that no model has the requested name.
	ErrUnknownModel = errors.New("unknown forecasting model")
	// ErrOption says that an option is out of its range.
	ErrOption = errors.New("option out of range")
	// errState says that a stored state is damaged, or of another model, version or
	// options.
	errState = errors.New("not a state of this model")
)

// models are sorted by name.
var models = []struct {
	name string
	make func(Options) Durable
}{
	{nameAR, func(o Options) Durable { return newEpochs(nameAR, o, newAR(o, false)) }},
	{ARLAD, func(o Options) Durable { return newEpochs(ARLAD, o, newAR(o, true)) }},
	{ARIMA, func(o Options) Durable { return newEpochs(ARIMA, o, newARIMA(o)) }},
	{Auto, func(o Options) Durable { return newEpochs(Auto, o, newAuto(o)) }},
	{Constant, func(o Options) Durable { return newEpochs(Constant, o, new(constant)) }},
	{HoltWinters, func(o Options) Durable { return newEpochs(HoltWinters, o, newHoltWinters(o)) }},
	{LSTM, func(o Options) Durable { return newEpochs(LSTM, o, newLSTM(o)) }},
	{MeanRate, func(o Options) Durable { return newMeanRate(o) }},
	{None, func(Options) Durable { return none{} }},
	{RandomWalk, func(o Options) Durable { return &randomWalk{horizon: o.Horizon} }},
	{nameRLS, func(o Options) Durable { return newEpochs(nameRLS, o, newRLS()) }},
	{Season, func(o Options) Durable { return newEpochs(Season, o, newSeason(o, false)) }},
	{SeasonLAD, func(o Options) Durable { return newEpochs(SeasonLAD, o, newSeason(o, true)) }},
	{nameSeasonalNaive, func(o Options) Durable { return newEpochs(nameSeasonalNaive, o, newSeasonalNaive(o)) }},
	{nameSmoothing, func(o Options) Durable { return newEpochs(nameSmoothing, o, newSmoothing(o.Weight)) }},
}

// ByName returns a new model of that name. It fails with ErrUnknownModel or ErrOption.
func ByName(name string, options Options) (Durable, error) {
	options, err := options.complete()
	if err != nil {
		return nil, err
	}
	for _, m := range models {
		if m.name == name {
			return m.make(options), nil
		}
	}
	return nil, fmt.Errorf("%w %q, known are %q", ErrUnknownModel, name, Names())
}

// Names returns the names of all models, sorted.
func Names() []string {
	names := make([]string, len(models))
	for i, m := range models {
		names[i] = m.name
	}
	return names
}

// MaxTokens is the largest number of a bin that a Model takes in, and the most tokens
// that an entity can have. A bin with a number beyond it is Missing.
const MaxTokens = 1 << 53

// mostTokens bounds the numbers of a stored state. It is so far below the largest float64
// that sums and small multiples of it stay finite.
const mostTokens = 1 << 63

// sane returns the bin within the bounds that Bin promises. It reports false if the bin
// holds a number that is not finite or beyond MaxTokens.
func (b Bin) sane() (Bin, bool) {
	for _, n := range [...]float64{b.Net, b.Peak} {
		if !(math.Abs(n) <= MaxTokens) {
			return Bin{}, false
		}
	}
	b.Peak = max(b.Peak, b.Net, 0)
	return b, true
}

// mostGrowth bounds the growth of a bin over all bins before: it counts for at most
// mostGrowth times the largest of them, or mostGrowth tokens. A level that is higher
// still is reached a bin or two later, and a single wrong number does little harm.
const mostGrowth = 32

// outliers bounds bins by earlier bins.
type outliers struct {
	// most is the largest number of the bins so far; 0 before the first.
	most float64
}

// bound returns the bin within the bound and adds it to the earlier bins.
func (o *outliers) bound(b Bin) Bin {
	size := max(math.Abs(b.Net), b.Peak)
	if o.most > 0 {
		bound := mostGrowth * o.most
		b.Net, b.Peak = min(max(b.Net, -bound), bound), min(b.Peak, bound)
		size = min(size, bound)
	}
	o.most = max(o.most, size, 1)
	return b
}

func (o *outliers) state(c *codec) {
	c.float(&o.most)
	if c.reading {
		o.most = min(max(o.most, 0), mostTokens)
	}
}
