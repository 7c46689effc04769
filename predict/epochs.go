package predict

import (
	"math"
)

// point is a model of the net demand alone. All models but None, RandomWalk and MeanRate
// are points, made a Model by epochs.
type point interface {
	// observe takes in the next bin's net demand, NaN for a missing bin.
	observe(net float64)
	// path fills in forecasts of the next len(next) bins. It is called after the first
	// bin that is not missing. Numbers that are not finite are replaced, and counted.
	path(next []float64)
	// state names all fields kept beside the options.
	state(c *codec)
}

// minRecent is the least number of bins kept, for a model that takes over.
const minRecent = 16

// epochs makes a Model of a point model. It adds bins up to epochs, and turns the path of
// forecasts into a forecast of the peak. From past peaks it learns how far off that
// forecast is (see tracker). With f the forecasts of the next bins:
//
//	Expected = Σ f
//	p        = max over k of (f(1) + … + f(k-1) + max(0, f(k)) + e)
//
// where e is an exponential mean of how far the running sum rises within a bin above its
// end. Median and High are p + θσ, with the two θ of the tracker. Next is the same for an
// epoch of one bin, by a tracker of its own, and at most High. Beside the point model it
// keeps 16 bytes a bin of the epoch and 0.4 KB.
type epochs struct {
	name    string
	options Options
	model   point
	// bins are the newest bins; pending the forecasts of the epochs that are not over.
	// Both are rings, filled up to count.
	bins    []smallBin
	pending []told
	count   int
	tracker tracker
	// nextBin tracks the peaks of single bins; soon is the forecast of the next bin.
	// Neither is used where the epoch is a single bin.
	nextBin tracker
	soon    told
	rise    float64
	// low and high are the range of the bins seen, slowly forgotten.
	low, high float64
	trained   bool
	outliers  outliers
	// expected and peak forecast the next epoch, first the peak of its first bin.
	expected, peak, first float64
	fell                  uint64
}

type smallBin struct{ net, peak float32 }

// told is the forecast of an epoch: p and High.
type told struct{ p, high float32 }

func (t *told) state(c *codec) {
	c.small(&t.p)
	c.small(&t.high)
	c.failed = c.failed || math.IsNaN(float64(t.high))
}

func newEpochs(name string, o Options, model point) *epochs {
	return &epochs{
		name: name, options: o, model: model,
		bins: make([]smallBin, max(o.Horizon, minRecent)), pending: make([]told, o.Horizon),
		tracker: untrained(o.Quantile), nextBin: untrained(o.Quantile), soon: unknown,
	}
}

// unknown stands for a forecast that was not made.
var unknown = told{float32(math.NaN()), 0}

func (e *epochs) Observe(bin Bin) {
	bin, ok := bin.sane()
	if ok {
		bin = e.outliers.bound(bin)
	} else {
		bin = Missing
	}
	e.bins[e.count%len(e.bins)] = smallBin{float32(bin.Net), float32(bin.Peak)}
	e.count++
	e.settle()
	if p := float64(e.soon.p); ok && len(e.pending) > 1 && !math.IsNaN(p) {
		e.nextBin.observe(p, float64(e.soon.high), float64(float32(bin.Peak)), e.options.Quantile)
	}
	if ok {
		e.rise += 1. / 16 * (bin.Peak - max(0, bin.Net) - e.rise)
		if !e.trained {
			e.low, e.high = bin.Net, bin.Net
		}
		e.low, e.high = min(bin.Net, e.low*.999), max(bin.Net, e.high*.999)
		e.trained = true
	}
	e.model.observe(bin.Net)
	next := unknown
	if e.trained {
		e.look()
		_, high := e.tracker.quantiles(e.peak)
		next = told{float32(e.peak), float32(high)}
		_, soon := e.nextBin.quantiles(e.first)
		e.soon = told{float32(e.first), float32(min(soon, high))}
	}
	e.pending[e.count%len(e.pending)] = next
}

// settle judges the forecast of the epoch that has just ended.
func (e *epochs) settle() {
	h := len(e.pending)
	if e.count <= h {
		return
	}
	forecast := e.pending[e.count%h]
	var sum, peak float64
	for i := e.count - h; i < e.count; i++ {
		b := e.bins[i%len(e.bins)]
		peak = max(peak, sum+float64(b.peak))
		sum += float64(b.net)
	}
	if !math.IsNaN(sum) && !math.IsNaN(float64(forecast.p)) {
		e.tracker.observe(float64(forecast.p), float64(forecast.high), peak, e.options.Quantile)
	}
}

// look computes the forecast of the next epoch.
func (e *epochs) look() {
	var room [16]float64
	next := room[:]
	if h := e.options.Horizon; h <= len(room) {
		next = next[:h]
	} else {
		next = make([]float64, h)
	}
	e.model.path(next)
	span := e.high - e.low
	low, high := e.low-span, e.high+span
	if e.low >= 0 {
		low = 0
	}
	e.expected, e.peak = 0, 0
	for i, f := range next {
		if math.IsNaN(f) || math.IsInf(f, 0) {
			e.fell++
			f = e.last()
		}
		f = min(max(f, low), high)
		e.peak = max(e.peak, e.expected+max(0, f)+e.rise)
		e.expected += f
		if i == 0 {
			e.first = e.peak
		}
	}
}

// last returns the newest bin that is not missing, or 0.
func (e *epochs) last() float64 {
	for i := e.count - 1; i >= max(0, e.count-len(e.bins)); i-- {
		if net := float64(e.bins[i%len(e.bins)].net); !math.IsNaN(net) {
			return net
		}
	}
	return 0
}

func (e *epochs) Forecast() Forecast {
	median, high := e.tracker.quantiles(e.peak)
	next := high
	if len(e.pending) > 1 {
		_, soon := e.nextBin.quantiles(e.first)
		next = min(soon, high)
	}
	return Forecast{Expected: e.expected, Median: median, High: high * roundUp, Next: next * roundUp}
}

// roundUp keeps a quantile from falling short by rounding alone: it is learnt from single
// precision.
const roundUp = 1 + 1e-6

func (e *epochs) stateOptions() Options { return e.options }

func (e *epochs) recent() []Bin {
	var bins []Bin
	for i := max(0, e.count-len(e.bins)); i < e.count; i++ {
		b := e.bins[i%len(e.bins)]
		bins = append(bins, Bin{Net: float64(b.net), Peak: float64(b.peak)})
	}
	return bins
}

func (e *epochs) fallbacks() uint64 { return e.fell }

func (e *epochs) state(c *codec) {
	c.integer(&e.count, 0, math.MaxInt)
	for i := range e.bins {
		b := &e.bins[i]
		c.small(&b.net)
		c.small(&b.peak)
		// A bin is missing as a whole.
		c.failed = c.failed || math.IsNaN(float64(b.net)) != math.IsNaN(float64(b.peak))
	}
	for i := range e.pending {
		e.pending[i].state(c)
	}
	e.tracker.state(c)
	e.nextBin.state(c)
	e.soon.state(c)
	for _, f := range [...]*float64{&e.rise, &e.low, &e.high, &e.expected, &e.peak, &e.first} {
		c.value(f)
	}
	c.flag(&e.trained)
	e.outliers.state(c)
	c.word(&e.fell)
	if c.reading {
		for _, f := range [...]float64{e.rise, e.low, e.high, e.expected, e.peak, e.first} {
			c.failed = c.failed || math.IsNaN(f)
		}
	}
	e.model.state(c)
}

// MarshalBinary is part of Durable.
func (e *epochs) MarshalBinary() ([]byte, error) { return marshal(e.name, e.options, e.state), nil }

// UnmarshalBinary is part of Durable.
func (e *epochs) UnmarshalBinary(data []byte) error {
	fresh, err := ByName(e.name, e.options)
	if err != nil {
		return err
	}
	*e = *fresh.(*epochs) //nolint:forcetypeassert // made as e was
	if err := unmarshal(e.name, e.options, data, e.state); err != nil {
		fresh, _ := ByName(e.name, e.options) // as just now
		*e = *fresh.(*epochs)                 //nolint:forcetypeassert // made as e was
		return err
	}
	return nil
}
