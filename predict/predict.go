// Package predict forecasts the demand for one entity's tokens at one site, so
// that a site can ask for tokens before it runs short and keep what it is about
// to need: the prediction module of Samya (Maiyya et al., section 4.2). It
// refuses to decide anything: it turns what was observed into numbers, and what
// to do about them is the caller's.
//
// Time is cut into bins of a length that the caller chooses. In each bin the
// caller sums up demand, tokens acquired less tokens released, in the order it
// arrived; what it could not serve counts as well. A [Model] sees one [Bin]
// after the other and forecasts the next.
package predict

import (
	"errors"
	"fmt"
	"math"
)

// The names of the models.
const (
	// None forecasts no demand, ever: sites redistribute only when they run
	// short.
	None = "none"
	// RandomWalk forecasts that the next bin repeats the last one. It is what
	// any other model has to beat.
	RandomWalk = "random-walk"
	// MeanRate forecasts by an exponential mean and mean deviation.
	MeanRate = "mean-rate"
)

// Bin is the demand observed in one bin, in tokens.
type Bin struct {
	// Net is the sum of the demand: acquired less released.
	Net float64
	// Peak is the highest value of the running sum within the bin, which starts
	// at zero: the tokens that had to be at hand for nobody to wait. It is never
	// below zero or Net; a Model raises one that is.
	Peak float64
}

// Forecast is the demand expected in the next bin, in tokens. All its numbers
// are finite.
type Forecast struct {
	// Expected is the expectation of the bin's net demand. It is negative where
	// more is released than acquired.
	Expected float64
	// Median is the median of the bin's peak, never negative.
	Median float64
	// High is a high quantile of the bin's peak, never below Median. About one
	// bin in twenty should exceed it.
	High float64
}

// Model forecasts one series of bins. It keeps at most 64 bytes: a site has one
// for each of its entities. A Model is used by one goroutine at a time, and the
// same bins always give the same forecast.
type Model interface {
	// Observe takes in the next bin. A bin that holds a number that is not
	// finite is ignored; larger numbers than there can be tokens are clamped.
	Observe(bin Bin)
	// Forecast returns the forecast of the next bin; the zero Forecast before
	// the first observation.
	Forecast() Forecast
}

// Options tunes models. The zero value stands for the defaults.
type Options struct {
	// Weight is the weight of the newest bin in exponential means, above 0 and at
	// most 1; 0 stands for 1/8, which half forgets a bin after five others.
	Weight float64
}

var (
	// ErrUnknownModel says that no model has the name asked for.
	ErrUnknownModel = errors.New("unknown forecasting model")
	// ErrOption says that an option is out of its range.
	ErrOption = errors.New("option out of range")
)

// models are sorted by name.
var models = []struct {
	name string
	make func(Options) Model
}{
	{MeanRate, newMeanRate},
	{None, func(Options) Model { return none{} }},
	{RandomWalk, func(Options) Model { return new(randomWalk) }},
}

// ByName returns a new model of that name. It fails with ErrUnknownModel or
// ErrOption.
func ByName(name string, options Options) (Model, error) {
	if options.Weight == 0 {
		options.Weight = 1. / 8
	}
	if !(options.Weight > 0 && options.Weight <= 1) {
		return nil, fmt.Errorf("%w: weight %v, must be above 0 and at most 1", ErrOption, options.Weight)
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

// mostTokens is above any number of tokens, and so far below the largest
// float64 that sums and small multiples of it stay finite.
const mostTokens = 1 << 63

// sane returns the bin within the bounds that Bin promises, or reports false if
// it holds a number that is not finite.
func (b Bin) sane() (Bin, bool) {
	for _, n := range [...]float64{b.Net, b.Peak} {
		if math.IsNaN(n) || math.IsInf(n, 0) {
			return Bin{}, false
		}
	}
	b.Net = min(max(b.Net, -mostTokens), mostTokens)
	b.Peak = min(max(b.Peak, b.Net, 0), mostTokens)
	return b, true
}
