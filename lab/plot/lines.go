package plot

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"
)

// Point is a point of a line.
type Point struct{ X, Y float64 }

// Series is a line through its points, in order.
type Series struct {
	Name   string
	Points []Point
	// Marks draws a mark at each point.
	Marks bool
	// Dots draws a dot at each point, and no line.
	Dots bool
	// Gaps breaks the line at each point with NaN as Y.
	Gaps bool
	// Strong makes the line stand out: the line is wide and on top, and all other
	// lines of the panel are thin.
	Strong bool
}

// Span is a shaded stretch of the X axis, such as the time of a cut.
type Span struct{ From, To float64 }

// Lines is a panel of lines.
type Lines struct {
	Title  string
	X, Y   Axis
	Series []Series
	// Band lies behind the lines; nil for none.
	Band *Band
	// Spans are shaded behind the lines; Spanned is their name in the legend.
	Spans   []Span
	Spanned string
}

func (l *Lines) build() (*plot.Plot, *plot.Legend, error) {
	of, err := l.check()
	if err != nil {
		return nil, nil, err
	}
	p, err := axes(l.Title, l.X, l.Y)
	if err != nil {
		return nil, nil, err
	}
	low, high := l.heights(of)
	legend := newLegend()
	for i, s := range l.Spans {
		poly := filled(shade, plotter.XYs{{X: s.From, Y: low}, {X: s.From, Y: high}, {X: s.To, Y: high}, {X: s.To, Y: low}})
		p.Add(poly)
		if i == 0 && l.Spanned != "" {
			legend.Add(l.Spanned, poly)
		}
	}
	if l.Band != nil {
		p.Add(l.Band.area())
	}
	p.Add(&plotter.Grid{Horizontal: rulers})
	if low < 0 && high > 0 {
		zero := plotter.NewFunction(func(float64) float64 { return 0 })
		zero.Samples, zero.LineStyle = 2, draw.LineStyle{Color: ink, Width: .5}
		p.Add(zero)
	}
	styles, thumbs := l.styles(), make([][]plot.Thumbnailer, len(l.Series))
	for _, i := range l.order() {
		s, shape := l.Series[i], glyphs[i%len(glyphs)]
		if s.Dots {
			styles[i].Width, shape = 0, draw.CircleGlyph{}
		}
		for _, points := range s.stretches() {
			line := &plotter.Line{XYs: points, LineStyle: styles[i]}
			p.Add(line)
			thumbs[i] = []plot.Thumbnailer{line}
			if s.Marks || s.Dots {
				marks := &plotter.Scatter{XYs: points, GlyphStyle: draw.GlyphStyle{Color: styles[i].Color, Shape: shape, Radius: 2.5}}
				p.Add(marks)
				thumbs[i] = append(thumbs[i], marks)
			}
		}
	}
	for i, s := range l.Series {
		legend.Add(s.Name, thumbs[i]...)
	}
	if l.Band != nil {
		legend.Add(l.Band.Name, swatch{amber})
	}
	p.Y.Min, p.Y.Max = low, high
	if l.X.Zero && !l.X.Log {
		p.X.Min = min(p.X.Min, 0)
	}
	p.X.Max = max(p.X.Max, l.X.Reach)
	if len(l.Series) == 1 && l.Spanned == "" && l.Band == nil {
		legend = nil
	}
	return p, legend, nil
}

// stretches returns the points between gaps; at least a single stretch, which may be
// empty.
func (s *Series) stretches() []plotter.XYs {
	all := []plotter.XYs{nil}
	for _, pt := range s.Points {
		last := len(all) - 1
		switch {
		case !math.IsNaN(pt.Y):
			all[last] = append(all[last], plotter.XY(pt))
		case len(all[last]) > 0:
			all = append(all, nil)
		}
	}
	return all
}

// styles returns the line styles of the series.
func (l *Lines) styles() []draw.LineStyle {
	strong := slices.ContainsFunc(l.Series, func(s Series) bool { return s.Strong })
	styles := make([]draw.LineStyle, len(l.Series))
	others := 0
	for i, s := range l.Series {
		switch {
		case s.Strong:
			styles[i] = strongLine(len(s.Points))
		case strong:
			styles[i] = contextLine(others)
			others++
		default:
			styles[i] = lineOf(i)
		}
	}
	return styles
}

// order returns the order of drawing: strong series last, on top.
func (l *Lines) order() []int {
	order := make([]int, 0, len(l.Series))
	for _, strong := range []bool{false, true} {
		for i, s := range l.Series {
			if s.Strong == strong {
				order = append(order, i)
			}
		}
	}
	return order
}

// heights returns the bounds of the Y axis, with a little air above, and some
// height for a level line.
func (l *Lines) heights(of extent) (low, high float64) {
	low, high = of.low, max(of.high, l.Y.Reach)
	if l.Y.Log {
		return low / 1.1, high * 1.1
	}
	if l.Y.Zero {
		low = min(low, 0)
	}
	if low == high {
		high = low + max(math.Abs(low)/10, 1)
	}
	return low, high + (high-low)/20
}

func (l *Lines) check() (extent, error) {
	of := nothing
	if len(l.Series) == 0 || len(l.Series) > MaxSeries {
		return of, fmt.Errorf("%w: %s: %d series, there must be 1 to %d", ErrFigure, l.Title, len(l.Series), MaxSeries)
	}
	for _, s := range l.Series {
		if s.Name == "" {
			return of, fmt.Errorf("%w: %s: a series without a name", ErrFigure, l.Title)
		}
		if len(s.Points) == 0 && !s.Dots || len(s.Points) > MaxPoints {
			return of, fmt.Errorf("%w: %s: %d points, there must be 1 to %d", ErrFigure, s.Name, len(s.Points), MaxPoints)
		}
		for _, pt := range s.Points {
			if s.Gaps && math.IsNaN(pt.Y) {
				continue
			}
			if err := cmp.Or(l.X.check(pt.X), l.Y.check(pt.Y)); err != nil {
				return of, fmt.Errorf("%s: %w", s.Name, err)
			}
			of.low, of.high = min(of.low, pt.Y), max(of.high, pt.Y)
		}
	}
	if l.Band != nil {
		if err := l.Band.check(l, &of); err != nil {
			return of, err
		}
	}
	for _, s := range l.Spans {
		if err := cmp.Or(l.X.check(s.From), l.X.check(s.To)); err != nil {
			return of, fmt.Errorf("span: %w", err)
		}
	}
	if of == nothing {
		return of, fmt.Errorf("%w: %s: no number", ErrFigure, l.Title)
	}
	return of, nil
}
