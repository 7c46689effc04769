package plot

import (
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// RowBars is a panel of level bars, in groups of rows. A row has a bar, and a pale
// bar below, with their numbers behind. Groups and rows are in the order given, the
// first on top.
type RowBars struct {
	Title string
	X     Axis // begins at 0, or if logarithmic at a power of ten
	// Kinds are the names of the kinds of groups; each kind has a colour.
	Kinds []string
	// Pale is the name of the pale bars in the legend; "" for none.
	Pale   string
	Groups []BarGroup
}

// BarGroup is a group of rows.
type BarGroup struct {
	Name string
	Kind int // index into the panel's Kinds
	Rows []BarRow
}

// BarRow is a row of a group: a bar and a pale bar, or NaN for no bar.
type BarRow struct {
	Name        string
	Value, Pale float64
}

// kindColors are the colours of the kinds of groups, in order.
var kindColors = []color.RGBA{palette[0], palette[1], contexts[0]}

// The heights of a group's name, of a bar and of the gap between rows, and the room
// around all groups, in points.
const (
	nameHeight = 18
	barHeight  = 10
	rowGap     = 4
	rowsFrame  = 90
)

// bold is the weight of bold texts in package golang.org/x/image/font.
const bold = 3

// Height returns the height of a figure in which the rows stand well apart.
func (r *RowBars) Height() float64 {
	height := float64(rowsFrame)
	for _, g := range r.Groups {
		height += nameHeight
		for _, row := range g.Rows {
			height += row.height() + rowGap
		}
	}
	return height
}

// height returns the height of the row's bars.
func (r *BarRow) height() float64 {
	if math.IsNaN(r.Value) || math.IsNaN(r.Pale) {
		return barHeight
	}
	return 2 * barHeight
}

func (r *RowBars) build() (*plot.Plot, *plot.Legend, error) {
	of, err := r.check()
	if err != nil {
		return nil, nil, err
	}
	p, err := axes(r.Title, r.X, Axis{Label: "rows"})
	if err != nil {
		return nil, nil, err
	}
	p.HideY()
	p.Y.Label.Text = ""
	var names plot.ConstantTicks
	at := 0.
	for _, g := range r.Groups {
		at -= nameHeight
		for _, row := range g.Rows {
			names = append(names, plot.Tick{Value: at - row.height()/2, Label: row.Name})
			at -= row.height() + rowGap
		}
	}
	p.Y.Tick.Marker = names
	p.Add(&plotter.Grid{Vertical: rulers}, rowBars{r})
	p.X.Min, p.X.Max = lengths(r.X, of)
	if r.X.Log { // the numbers take a share of the width
		p.X.Max = max(p.X.Max, of.high*math.Pow(of.high/p.X.Min, .09))
	}
	p.Y.Min, p.Y.Max = at, 0
	legend := newLegend()
	for i, kind := range r.Kinds {
		legend.Add(kind, swatch{kindColors[i]})
	}
	if r.Pale != "" {
		legend.Add(r.Pale, swatch{pale(kindColors[0])})
	}
	return p, legend, nil
}

func (r *RowBars) check() (extent, error) {
	of := nothing
	if len(r.Groups) == 0 || len(r.Groups) > MaxPoints || len(r.Kinds) == 0 || len(r.Kinds) > len(kindColors) {
		return of, fmt.Errorf("%w: %s: %d groups of %d kinds, there must be 1 to %d kinds", ErrFigure, r.Title, len(r.Groups), len(r.Kinds), len(kindColors))
	}
	for _, g := range r.Groups {
		if g.Name == "" || g.Kind < 0 || g.Kind >= len(r.Kinds) || len(g.Rows) > MaxPoints {
			return of, fmt.Errorf("%w: %s: group %q of kind %d with %d rows", ErrFigure, r.Title, g.Name, g.Kind, len(g.Rows))
		}
		for _, row := range g.Rows {
			if err := of.add(r.X, g.Name+", "+row.Name, row.Value, row.Pale); err != nil {
				return of, err
			}
		}
	}
	return of, checkBars(r.Title, of)
}

// rowBars draws the names of the groups, the bars and their numbers.
type rowBars struct{ *RowBars }

func (r rowBars) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	name, number := textStyle(9), textStyle(8)
	name.Font.Weight, number.YAlign = bold, draw.YCenter
	at := 0.
	for _, g := range r.Groups {
		at -= nameHeight
		c.FillText(name, vg.Point{X: c.Min.X, Y: y(at + 4)}, g.Name)
		for _, row := range g.Rows {
			top := y(at)
			for i, fill := range [...]color.RGBA{kindColors[g.Kind], pale(kindColors[g.Kind])} {
				v := [...]float64{row.Value, row.Pale}[i]
				if math.IsNaN(v) {
					continue
				}
				bar := vg.Rectangle{Min: vg.Point{X: c.Min.X, Y: top - barHeight + 1}, Max: vg.Point{X: max(x(v), c.Min.X+1), Y: top}}
				c.SetColor(fill)
				c.Fill(bar.Path())
				c.FillText(number, vg.Point{X: bar.Max.X + 3, Y: top - barHeight/2 + 1}, Number(v))
				top -= barHeight
			}
			at -= row.height() + rowGap
		}
	}
}

// pale returns the colour of a pale bar.
func pale(c color.RGBA) color.RGBA {
	mix := func(v uint8) uint8 { return uint8((9*int(v) + 11*0xff) / 20) }
	return color.RGBA{R: mix(c.R), G: mix(c.G), B: mix(c.B), A: 0xff}
}
