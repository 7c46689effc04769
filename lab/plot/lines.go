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
	// Spans are shaded behind the lines; Spanned is their name in the legend.
	Spans   []Span
	Spanned string
}

func (l *Lines) build() (*plot.Plot, *plot.Legend, error) {
	if err := l.check(); err != nil {
		return nil, nil, err
	}
	p, err := axes(l.Title, l.X, l.Y)
	if err != nil {
		return nil, nil, err
	}
	low, high := l.heights()
	legend := newLegend()
	for i, s := range l.Spans {
		poly, err := plotter.NewPolygon(plotter.XYs{{X: s.From, Y: low}, {X: s.From, Y: high}, {X: s.To, Y: high}, {X: s.To, Y: low}})
		if err != nil {
			return nil, nil, fmt.Errorf("%w: %s: %w", ErrFigure, l.Title, err)
		}
		poly.Color, poly.Width = shade, 0
		p.Add(poly)
		if i == 0 && l.Spanned != "" {
			legend.Add(l.Spanned, poly)
		}
	}
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = nil, ruler
	p.Add(grid)
	styles, thumbs := l.styles(), make([][]plot.Thumbnailer, len(l.Series))
	for _, i := range l.order() {
		s := l.Series[i]
		points := make(plotter.XYs, len(s.Points))
		for j, pt := range s.Points {
			points[j] = plotter.XY(pt)
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return nil, nil, fmt.Errorf("%w: %s: %w", ErrFigure, s.Name, err)
		}
		line.LineStyle = styles[i]
		p.Add(line)
		shown := []plot.Thumbnailer{line}
		if s.Marks {
			marks, err := plotter.NewScatter(points)
			if err != nil {
				return nil, nil, fmt.Errorf("%w: %s: %w", ErrFigure, s.Name, err)
			}
			marks.Color, marks.Shape, marks.Radius = styles[i].Color, glyphs[i%len(glyphs)], 2.5
			p.Add(marks)
			shown = append(shown, marks)
		}
		thumbs[i] = shown
	}
	for i, s := range l.Series {
		legend.Add(s.Name, thumbs[i]...)
	}
	p.Y.Min, p.Y.Max = low, high
	if l.X.Zero && !l.X.Log {
		p.X.Min = min(p.X.Min, 0)
	}
	p.X.Max = max(p.X.Max, l.X.Reach)
	if len(l.Series) == 1 && l.Spanned == "" {
		legend = nil
	}
	return p, legend, nil
}

// styles returns the line styles of the series.
func (l *Lines) styles() []draw.LineStyle {
	strong := slices.ContainsFunc(l.Series, func(s Series) bool { return s.Strong })
	styles := make([]draw.LineStyle, len(l.Series))
	others := 0
	for i, s := range l.Series {
		switch {
		case s.Strong:
			styles[i] = strongLine()
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
func (l *Lines) heights() (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, s := range l.Series {
		of := func(a, b Point) int { return cmp.Compare(a.Y, b.Y) }
		low, high = min(low, slices.MinFunc(s.Points, of).Y), max(high, slices.MaxFunc(s.Points, of).Y)
	}
	high = max(high, l.Y.Reach)
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

func (l *Lines) check() error {
	if len(l.Series) == 0 || len(l.Series) > MaxSeries {
		return fmt.Errorf("%w: %s: %d series, there must be 1 to %d", ErrFigure, l.Title, len(l.Series), MaxSeries)
	}
	for _, s := range l.Series {
		if s.Name == "" {
			return fmt.Errorf("%w: %s: a series without a name", ErrFigure, l.Title)
		}
		if len(s.Points) == 0 || len(s.Points) > MaxPoints {
			return fmt.Errorf("%w: %s: %d points, there must be 1 to %d", ErrFigure, s.Name, len(s.Points), MaxPoints)
		}
		for _, pt := range s.Points {
			if err := cmp.Or(l.X.check(pt.X), l.Y.check(pt.Y)); err != nil {
				return fmt.Errorf("%s: %w", s.Name, err)
			}
		}
	}
	for _, s := range l.Spans {
		if err := cmp.Or(l.X.check(s.From), l.X.check(s.To)); err != nil {
			return fmt.Errorf("span: %w", err)
		}
	}
	return nil
}
