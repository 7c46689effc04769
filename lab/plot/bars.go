package plot

import (
	"cmp"
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// BarSeries is a bar in each group, or NaN for no bar.
type BarSeries struct {
	Name   string
	Values []float64 // none negative
}

// Bars is a panel of groups of bars. Each group has a bar of each series, side by
// side, with their numbers above.
type Bars struct {
	Title  string
	X      string // meaning of the groups
	Y      Axis   // begins at 0, or if logarithmic at a power of ten
	Groups []string
	Series []BarSeries
}

// mostLevel is the most groups with level names.
const mostLevel = 7

// groupShare is the share of a group's room that its bars take.
const groupShare = .8

func (b *Bars) build() (*plot.Plot, *plot.Legend, error) {
	of, err := b.check()
	if err != nil {
		return nil, nil, err
	}
	p, err := axes(b.Title, Axis{Label: b.X}, b.Y)
	if err != nil {
		return nil, nil, err
	}
	low, high := lengths(b.Y, of)
	p.Add(&plotter.Grid{Horizontal: rulers})
	legend := newLegend()
	for i, s := range b.Series {
		p.Add(&bars{values: s.Values, at: i, of: len(b.Series), from: low, style: textOf(len(b.Series) * len(b.Groups))})
		legend.Add(s.Name, swatch{colorOf(i)})
	}
	p.NominalX(b.Groups...)
	if len(b.Groups) > mostLevel { // names side by side would run into each other
		p.X.Tick.Label.Rotation, p.X.Tick.Label.XAlign, p.X.Tick.Label.YAlign = math.Pi/7, draw.XRight, draw.YCenter
	}
	p.X.Min, p.X.Max = -.5, float64(len(b.Groups))-.5
	p.Y.Min, p.Y.Max = low, high
	if len(b.Series) == 1 {
		legend = nil
	}
	return p, legend, nil
}

// lengths returns the bounds of the axis along bars, with room for the numbers at
// their ends.
func lengths(a Axis, of extent) (low, high float64) {
	if a.Log {
		low = math.Pow(10, math.Floor(math.Log10(of.low)))
		return low, max(of.high*1.5, low*10)
	}
	return 0, cmp.Or(of.high*1.1, 1)
}

func (b *Bars) check() (extent, error) {
	of := nothing
	if len(b.Groups) == 0 || len(b.Series) == 0 || len(b.Series) > MaxSeries || len(b.Groups) > MaxPoints {
		return of, fmt.Errorf("%w: %s: %d groups of %d series", ErrFigure, b.Title, len(b.Groups), len(b.Series))
	}
	for _, s := range b.Series {
		if s.Name == "" || len(s.Values) != len(b.Groups) {
			return of, fmt.Errorf("%w: %s: series %q has %d bars for %d groups", ErrFigure, b.Title, s.Name, len(s.Values), len(b.Groups))
		}
		if err := of.add(b.Y, s.Name, s.Values...); err != nil {
			return of, err
		}
	}
	return of, checkBars(b.Title, of)
}

// checkBars refuses bars below 0, and a panel without a bar.
func checkBars(title string, of extent) error {
	switch {
	case of == nothing:
		return fmt.Errorf("%w: %s: no bar", ErrFigure, title)
	case of.low < 0:
		return fmt.Errorf("%w: %s: a bar of %v", ErrFigure, title, of.low)
	}
	return nil
}

// bars draws a series. The library's plotter draws bars of a fixed width from 0,
// which a logarithmic axis does not have.
type bars struct {
	values []float64
	at, of int // index of the series, and number of series
	from   float64
	style  draw.TextStyle
}

// textOf returns the style of the numbers above n bars.
func textOf(n int) draw.TextStyle {
	size := vg.Length(8)
	if n > 24 {
		size = 6
	}
	s := textStyle(size)
	s.XAlign, s.YAlign = draw.XCenter, draw.YBottom
	return s
}

func (b *bars) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	width := groupShare / float64(b.of)
	for i, v := range b.values {
		if math.IsNaN(v) {
			continue
		}
		left := float64(i) - groupShare/2 + float64(b.at)*width
		r := vg.Rectangle{Min: vg.Point{X: x(left), Y: y(b.from)}, Max: vg.Point{X: x(left + width), Y: y(v)}}
		gap := (r.Max.X - r.Min.X) / 20
		r.Min.X, r.Max.X = r.Min.X+gap, r.Max.X-gap
		c.SetColor(colorOf(b.at))
		c.Fill(r.Path())
		c.FillText(b.style, vg.Point{X: (r.Min.X + r.Max.X) / 2, Y: r.Max.Y + 1}, Number(v))
	}
}

// swatch is the thumbnail of bars and bands.
type swatch struct{ color.Color }

func (s swatch) Thumbnail(c *draw.Canvas) {
	r := c.Rectangle
	r.Min.Y, r.Max.Y = r.Min.Y+(r.Max.Y-r.Min.Y)/5, r.Max.Y-(r.Max.Y-r.Min.Y)/5
	c.SetColor(s.Color)
	c.Fill(r.Path())
}
