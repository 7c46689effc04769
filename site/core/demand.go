package core

import (
	"math"

	"github.com/samya-db/samya/predict"
)

// demand follows the clients' demand for an entity here.
type demand struct {
	// model is nil before the first bin with an acquire has closed, and after a long time
	// without an acquire.
	model *model
	// bin is the number of the bin being filled; net is its running sum, peak the highest
	// value of net.
	bin       Tick
	net, peak float64
	// rate is the number of tokens acquired a second as of rateTick.
	rate     float64
	rateTick Tick
	// counting is set while the bin being filled is worth a model. unstored is set while
	// closed bins are in no stored state, idles while the entity waits for an idle check.
	counting, unstored, idles bool
	// pace is the rate of the last moments, as of rateTick too: it shows a burst while
	// most of it is still to come, and its end.
	pace float32
}

// model is the forecasting model of an entity.
type model struct {
	predict.Durable
	// choice is the number of the choice of models that made it.
	choice uint64
	// fell is the number of failed forecasts reported in events.
	fell uint64
	// told is its forecast after the last closed bin.
	told predict.Forecast
}

const (
	rateMemory = 250.0 // milliseconds
	// paceMemory is a fifth of rateMemory, so that one exponential serves both.
	paceMemory = rateMemory / 5
	// gapBins bounds the empty bins told to the model after a pause. Further bins count
	// as missing, as many bins would take long.
	gapBins = 16
)

// begin begins to count.
func (d *demand) begin(now, bin Tick) {
	*d = demand{bin: now / bin, rateTick: now, counting: true, idles: d.idles}
}

func (d *demand) rateAt(now Tick) float64 {
	if d.rate == 0 || now <= d.rateTick {
		return d.rate
	}
	return d.rate * math.Exp(-float64(now-d.rateTick)/rateMemory)
}

func (d *demand) paceAt(now Tick) float64 {
	if d.pace == 0 || now <= d.rateTick {
		return float64(d.pace)
	}
	return float64(d.pace) * math.Exp(-float64(now-d.rateTick)/paceMemory)
}

// acquired counts an acquire in the bin being filled.
func (d *demand) acquired(now Tick, tokens Tokens) {
	if now > d.rateTick {
		faded := math.Exp(-float64(now-d.rateTick) / rateMemory)
		d.rate *= faded
		d.pace *= float32(faded * faded * faded * faded * faded)
	}
	d.rate += float64(tokens) * 1000 / rateMemory
	d.pace += float32(tokens) * 1000 / paceMemory
	d.rateTick = now
	d.net += float64(tokens)
	d.peak = max(d.peak, d.net)
}

// released counts a release in the bin being filled.
func (d *demand) released(tokens Tokens) { d.net -= float64(tokens) }

// roll closes the bins before the current bin, and reports whether there were any. The
// demand in a bin counts up to the entity's limit: more can never be held, and refused
// requests come again.
func (d *demand) roll(current Tick, limit Tokens) bool {
	if current == d.bin || d.model == nil {
		d.bin = current
		return false
	}
	most := float64(limit)
	d.model.Observe(predict.Bin{Net: min(max(d.net, -most), most), Peak: min(d.peak, most)})
	empty := min(current-d.bin-1, gapBins)
	for range empty {
		d.model.Observe(predict.Bin{})
	}
	predict.Skip(d.model.Durable, int(current-d.bin-1-empty)) //nolint:gosec // bins since the start
	d.model.told = d.model.Forecast()
	d.bin, d.net, d.peak = current, 0, 0
	return true
}
