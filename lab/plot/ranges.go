package plot

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Row is a row of a panel of ranges.
type Row struct {
	Name string
	// Values has a value for each point of the panel, in order; NaN for none.
	Values []float64
	// Strong makes the row stand out.
	Strong bool
}

// Ranges is a panel with a row for each system: a mark for each point, such as a
// percentile, a line through the marks, and the number of the last mark. Rows are in
// the order given, the first on top.
type Ranges struct {
	Title string
	X     Axis
	// Points name the marks of a row, from the lowest to the highest.
	Points []string
	Rows   []Row
}

// MaxPointsOfRow is the most marks of a row: each has its own glyph.
const MaxPointsOfRow = 4

// rowGlyphs mark the points of a row, in order.
var rowGlyphs = [MaxPointsOfRow]draw.GlyphDrawer{draw.RingGlyph{}, draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}}

func (r *Ranges) build() (*plot.Plot, *plot.Legend, error) {
	of, err := r.check()
	if err != nil {
		return nil, nil, err
	}
	p, err := axes(r.Title, r.X, Axis{Label: "rows"})
	if err != nil {
		return nil, nil, err
	}
	p.Y.Label.Text = ""
	low, high := r.widths(of)
	p.Add(&plotter.Grid{Vertical: rulers})
	names := make([]string, len(r.Rows))
	for i, row := range r.Rows {
		names[len(names)-1-i] = row.Name
	}
	p.NominalY(names...)
	p.Add(&ranges{rows: r.Rows})
	p.X.Min, p.X.Max = low, high
	p.Y.Min, p.Y.Max = -.6, float64(len(r.Rows))-.4
	legend := newLegend()
	for i, name := range r.Points {
		legend.Add(name, mark{glyph: rowGlyphs[i]})
	}
	return p, legend, nil
}

// widths returns the bounds of the X axis, with room for the number behind a row.
func (r *Ranges) widths(of extent) (low, high float64) {
	low, high = of.low, max(of.high, r.X.Reach)
	if r.X.Log {
		// Label the power of ten below if it is near.
		low /= 1.3
		if decade := math.Pow(10, math.Floor(math.Log10(low))); low < 2*decade {
			low = decade / 1.1
		}
		return low, high * math.Pow(high/low*2, .12)
	}
	if r.X.Zero {
		low = min(low, 0)
	}
	if low == high {
		high = low + 1
	}
	return low, high + (high-low)*.12
}

func (r *Ranges) check() (extent, error) {
	of := nothing
	if len(r.Rows) == 0 || len(r.Rows) > MaxPoints || len(r.Points) == 0 || len(r.Points) > MaxPointsOfRow {
		return of, fmt.Errorf("%w: %s: %d rows of %d points, there must be 1 to %d points", ErrFigure, r.Title, len(r.Rows), len(r.Points), MaxPointsOfRow)
	}
	for _, row := range r.Rows {
		if row.Name == "" || len(row.Values) != len(r.Points) {
			return of, fmt.Errorf("%w: %s: row %q has %d values for %d points", ErrFigure, r.Title, row.Name, len(row.Values), len(r.Points))
		}
		if err := of.add(r.X, row.Name, row.Values...); err != nil {
			return of, err
		}
	}
	if of == nothing {
		return of, fmt.Errorf("%w: %s: no mark", ErrFigure, r.Title)
	}
	return of, nil
}

// ranges draws the rows.
type ranges struct{ rows []Row }

func (r *ranges) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for i, row := range r.rows {
		at := y(float64(len(r.rows) - 1 - i))
		values := slices.DeleteFunc(slices.Clone(row.Values), math.IsNaN)
		if len(values) == 0 {
			continue
		}
		color, width, radius := contexts[0], vg.Length(1.2), vg.Length(2.8)
		text := textStyle(8)
		if row.Strong {
			color, width, radius, text = palette[strongColor], 3, 4, textStyle(10)
		}
		text.Color, text.XAlign, text.YAlign = color, draw.XLeft, draw.YCenter
		first, last := x(slices.Min(values)), x(slices.Max(values))
		c.StrokeLine2(draw.LineStyle{Color: color, Width: width}, first, at, last, at)
		for j, v := range row.Values {
			if !math.IsNaN(v) {
				c.DrawGlyph(draw.GlyphStyle{Color: color, Radius: radius, Shape: rowGlyphs[j]}, vg.Point{X: x(v), Y: at})
			}
		}
		c.FillText(text, vg.Point{X: last + 2*radius, Y: at}, Number(slices.Max(values)))
	}
}

// mark is a point in the legend.
type mark struct{ glyph draw.GlyphDrawer }

func (m mark) Thumbnail(c *draw.Canvas) {
	c.DrawGlyph(draw.GlyphStyle{Color: ink, Radius: 3, Shape: m.glyph}, c.Center())
}
