// Package plot draws measurements as lines over a number such as time, as bars and
// as ranges, to SVG and PNG. It is a thin layer over gonum's plot that fixes the look
// of our figures: axes with units, a legend beside the data, and series that differ
// in grey as well. It draws nothing without labels or points, and no number that is
// not finite.
package plot

import (
	"bytes"
	"errors"
	"fmt"
	"image/color"
	"io"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// ErrFigure says that a figure cannot be drawn; it is wrapped with the reason.
var ErrFigure = errors.New("figure cannot be drawn")

// The bounds of a figure.
const (
	MaxPanels = 16
	MaxSeries = 16
	MaxPoints = 1 << 16 // of a series
)

// Figure is a picture of panels, one below the other, with aligned axes.
type Figure struct {
	Panels []Panel
	// Width is the width of the picture, Height the height of a panel, in points
	// (1/72 inch); 0 means 640 and 300.
	Width, Height float64
}

// Panel is a pair of axes: Lines, Bars, RowBars or Ranges.
type Panel interface {
	// build makes the plot, and its legend for more than a single series.
	build() (*plot.Plot, *plot.Legend, error)
}

// New returns a figure of the usual size.
func New(panels ...Panel) *Figure { return &Figure{Panels: panels} }

// The dimensions of a figure, in points.
const (
	usualWidth  = 640
	usualHeight = 300
	margin      = 8
	resolution  = 144 // dots an inch in a PNG
)

// WriteSVG draws the figure as SVG.
func (f *Figure) WriteSVG(w io.Writer) error {
	width, height := f.size()
	c := vgsvg.New(width, height)
	if err := f.draw(draw.New(c)); err != nil {
		return err
	}
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return fmt.Errorf("write the figure: %w", err)
	}
	if _, err := faces.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write the figure: %w", err)
	}
	return nil
}

// family names our font, and similar fonts for a viewer without our font.
const family = "font-family:Liberation Sans,Arial,Helvetica,sans-serif"

// faces replaces the library's description of a text's font.
var faces = strings.NewReplacer(
	"font-family:Liberation Sans;font-variant:normal", family,
	";font-weight:normal;font-style:normal", "",
)

// WritePNG draws the figure as PNG, two pixels to a point.
func (f *Figure) WritePNG(w io.Writer) error {
	width, height := f.size()
	c := vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(resolution))}
	if err := f.draw(draw.New(c)); err != nil {
		return err
	}
	if _, err := c.WriteTo(w); err != nil {
		return fmt.Errorf("write the figure: %w", err)
	}
	return nil
}

func (f *Figure) size() (width, height vg.Length) {
	width, height = usualWidth, usualHeight
	if f.Width > 0 {
		width = vg.Length(f.Width)
	}
	if f.Height > 0 {
		height = vg.Length(f.Height)
	}
	return width, height * vg.Length(max(len(f.Panels), 1))
}

// draw draws all panels, with legends to the right of the data.
func (f *Figure) draw(c draw.Canvas) error {
	if len(f.Panels) == 0 || len(f.Panels) > MaxPanels {
		return fmt.Errorf("%w: %d panels, there must be 1 to %d", ErrFigure, len(f.Panels), MaxPanels)
	}
	plots := make([][]*plot.Plot, len(f.Panels))
	legends := make([]*plot.Legend, len(f.Panels))
	var room vg.Length
	for i, panel := range f.Panels {
		p, legend, err := panel.build()
		if err != nil {
			return err
		}
		plots[i], legends[i] = []*plot.Plot{p}, legend
		if legend != nil {
			r := legend.Rectangle(c)
			room = max(room, r.Max.X-r.Min.X+2*margin)
		}
	}
	c.SetColor(color.White)
	c.Fill(c.Path())
	inner := draw.Crop(c, margin, -margin-room, margin, -margin)
	tiles := draw.Tiles{Rows: len(plots), Cols: 1, PadY: 2 * margin}
	for i, row := range plot.Align(plots, tiles, inner) {
		plots[i][0].Draw(row[0])
		if legends[i] != nil {
			beside := row[0]
			beside.Min.X, beside.Max.X = inner.Max.X+margin, c.Max.X-margin
			legends[i].Draw(draw.Crop(beside, 0, 0, 0, -2*margin))
		}
	}
	return nil
}

// Axis describes an axis.
type Axis struct {
	// Label is the name of the axis, Unit its unit; "" for a plain number.
	Label, Unit string
	// Log makes the axis logarithmic: all numbers must be above 0.
	Log bool
	// Zero makes the axis begin at 0.
	Zero bool
	// Reach is the least upper end of the axis, for comparable panels.
	Reach float64
}

func (a Axis) String() string {
	if a.Unit == "" {
		return a.Label
	}
	return a.Label + " (" + a.Unit + ")"
}

// check refuses numbers that an axis cannot show.
func (a Axis) check(v float64) error {
	switch {
	case math.IsNaN(v) || math.IsInf(v, 0):
		return fmt.Errorf("%w: %s: %v is not finite", ErrFigure, a.Label, v)
	case a.Log && v <= 0:
		return fmt.Errorf("%w: %s: %v on a logarithmic axis", ErrFigure, a.Label, v)
	}
	return nil
}

// extent is the bounds of the numbers of a panel.
type extent struct{ low, high float64 }

// add takes in the numbers of a series, and refuses numbers that the axis cannot
// show. NaN is no number.
func (e *extent) add(a Axis, name string, values ...float64) error {
	for _, v := range values {
		if math.IsNaN(v) {
			continue
		}
		if err := a.check(v); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		e.low, e.high = min(e.low, v), max(e.high, v)
	}
	return nil
}

// nothing is the extent without a number.
var nothing = extent{math.Inf(1), math.Inf(-1)}

// textStyle returns the text style of our figures.
func textStyle(size font.Length) text.Style {
	return text.Style{
		Color:   ink,
		Font:    font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, size),
		Handler: plot.DefaultTextHandler,
	}
}

// setText sets the font of a style and keeps its alignment.
func setText(s *text.Style, size font.Length) {
	ours := textStyle(size)
	s.Color, s.Font = ours.Color, ours.Font
}

// axes returns an empty plot with labelled axes.
func axes(title string, x, y Axis) (*plot.Plot, error) {
	if title == "" || x.Label == "" || y.Label == "" {
		return nil, fmt.Errorf("%w: a panel needs a title and labels of both axes", ErrFigure)
	}
	p := plot.New()
	p.BackgroundColor = nil
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x.String(), y.String()
	setText(&p.Title.TextStyle, 12)
	p.Title.Padding = 6
	for _, a := range []struct {
		*plot.Axis
		want Axis
	}{{&p.X, x}, {&p.Y, y}} {
		setText(&a.Label.TextStyle, 10)
		setText(&a.Tick.Label, 9)
		a.Color, a.Tick.Color = ink, ink
		a.Tick.Marker = ticks{plot.DefaultTicks{}}
		if a.want.Log {
			a.Scale, a.Tick.Marker = plot.LogScale{}, ticks{plot.LogTicks{Prec: -1}}
		}
	}
	return p, nil
}

// newLegend returns a legend to stand beside a panel.
func newLegend() *plot.Legend {
	l := plot.NewLegend()
	setText(&l.TextStyle, 9)
	l.Top, l.Left, l.Padding = true, true, 3
	return &l
}

// ticks writes large numbers in groups of thousands, and has a number at 0 between
// numbers below and above.
type ticks struct{ plot.Ticker }

func (t ticks) Ticks(low, high float64) []plot.Tick {
	all := t.Ticker.Ticks(low, high)
	off := math.Inf(1) // from 0 to the nearest number
	for _, tick := range all {
		if tick.Label != "" && math.Abs(tick.Value) < math.Abs(off) {
			off = tick.Value
		}
	}
	for i := range all {
		if low < 0 && high > 0 {
			all[i].Value -= off
		}
		if all[i].Label != "" {
			all[i].Label = Number(all[i].Value)
		}
	}
	return all
}

// Number formats a number for figures and reports: at most four significant digits,
// with groups of thousands.
func Number(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	digits := 3 - int(math.Floor(math.Log10(math.Abs(v))))
	if v == 0 {
		digits = 0
	}
	if digits > 9 {
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	s := strconv.FormatFloat(v, 'f', max(digits, 0), 64)
	whole, part, _ := strings.Cut(s, ".")
	part = strings.TrimRight(part, "0")
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	for at := len(whole) - 3; at > 0; at -= 3 {
		whole = whole[:at] + "," + whole[at:]
	}
	if part != "" {
		whole += "." + part
	}
	return sign + whole
}
