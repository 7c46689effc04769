package judge

import (
	"github.com/samya-db/samya/lab/plot"
	"github.com/samya-db/samya/predict"
)

// Plot is a picture of demand and forecasts.
type Plot struct {
	Title string
	// Step is the length of a bin in seconds.
	Step int64
	// First is the first bin of the picture; it ends with the last bin.
	First   int
	Horizon int
	Bins    []predict.Bin
	// Forecasts are the forecasts made after each bin.
	Forecasts []predict.Forecast
}

// Figure returns the net demand and the expected demand of each epoch where it
// begins. A band shows the tokens to hold, from the median to the high quantile of
// the peak. Dots are stalled epochs, with a peak above the band.
func (p *Plot) Figure() *plot.Figure {
	net := plot.Series{Name: "net demand", Gaps: true}
	expected := plot.Series{Name: "expected", Strong: true}
	stalled := plot.Series{Name: "stalled", Dots: true}
	band := &plot.Band{Name: "peak: median to high quantile"}
	first, last := max(p.First, 1), len(p.Bins)-p.Horizon
	unit, seconds := unitOf(int64(last-first) * p.Step)
	for at := first; at <= last; at++ {
		demand, peak := Epoch(p.Bins[at : at+p.Horizon])
		told, x := p.Forecasts[at-1], float64(int64(at-first)*p.Step)/seconds
		net.Points = append(net.Points, plot.Point{X: x, Y: demand})
		expected.Points = append(expected.Points, plot.Point{X: x, Y: told.Expected})
		band.Points = append(band.Points, plot.Breadth{X: x, Low: told.Median, High: told.High})
		if peak > told.High {
			stalled.Points = append(stalled.Points, plot.Point{X: x, Y: peak})
		}
	}
	return &plot.Figure{Width: 825, Height: 345, Panels: []plot.Panel{&plot.Lines{
		Title: p.Title, X: plot.Axis{Label: unit}, Y: plot.Axis{Label: "tokens", Zero: true},
		Series: []plot.Series{net, expected, stalled}, Band: band,
	}}}
}

// unitOf returns a unit for the axis of a span of time, and its seconds.
func unitOf(span int64) (name string, seconds float64) {
	switch {
	case span > 4*86400:
		return "days", 86400
	case span < 2*3600:
		return "minutes", 60
	}
	return "hours", 3600
}
