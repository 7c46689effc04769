package core

import (
	"fmt"
	"math"

	"github.com/samya-db/samya/predict"
)

// demand follows what clients ask of one entity here.
type demand struct {
	// model is nil until the first acquire.
	model predict.Model
	// told is its forecast after the last bin that is closed.
	told predict.Forecast
	// bin is the number of the bin being filled; net and peak its running sum
	// and the highest value of that.
	bin       Tick
	net, peak float64
	// rate is tokens acquired a second as of rateTick.
	rate     float64
	rateTick Tick
}

const (
	rateMemory = 250.0 // milliseconds
	// gapBins bounds how many empty bins are told to the model after a pause.
	gapBins = 16
)

func (d *demand) rateAt(now Tick) float64 {
	if d.rate == 0 || now <= d.rateTick {
		return d.rate
	}
	return d.rate * math.Exp(-float64(now-d.rateTick)/rateMemory)
}

// demanded counts an acquire, granted or not, in an entity's demand.
func (c *Core) demanded(e *entity, tokens Tokens) {
	if e.demand.model == nil {
		model, err := c.mods.forecast()
		if err != nil {
			panic(fmt.Sprintf("core: a model whose name was checked: %v", err))
		}
		e.demand = demand{model: model, bin: c.now.Tick / c.cfg.Bin}
	}
	e.demand.acquired(c.now.Tick, c.cfg.Bin, tokens)
	if len(c.cfg.Members) > 1 {
		e.demandUntil = c.now.Tick + busyFor
		c.isBusy(e)
	}
}

func (d *demand) acquired(now, binLength Tick, tokens Tokens) {
	d.roll(now, binLength)
	d.rate = d.rateAt(now) + float64(tokens)*1000/rateMemory
	d.rateTick = now
	d.net += float64(tokens)
	d.peak = max(d.peak, d.net)
}

func (d *demand) released(now, binLength Tick, tokens Tokens) {
	d.roll(now, binLength)
	d.net -= float64(tokens)
}

// roll closes the bins that have passed.
func (d *demand) roll(now, binLength Tick) {
	current := now / binLength
	if current == d.bin || d.model == nil {
		d.bin = current
		return
	}
	d.model.Observe(predict.Bin{Net: d.net, Peak: d.peak})
	for range min(current-d.bin-1, gapBins) {
		d.model.Observe(predict.Bin{})
	}
	d.told = d.model.Forecast()
	d.bin, d.net, d.peak = current, 0, 0
}

// forecast is of the horizon of a redistribution; it is computed once a bin.
func (d *demand) forecast(now, binLength Tick) predict.Forecast {
	d.roll(now, binLength)
	return d.told
}
