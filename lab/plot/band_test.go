package plot

import (
	"errors"
	"io"
	"math"
	"testing"
)

// banded is a panel with a band, a line with gaps and dots.
func banded() *Lines {
	l := &Lines{
		Title: "Demand", X: Axis{Label: "hours"}, Y: Axis{Label: "tokens", Zero: true}, Band: &Band{Name: "a band"},
		Series: []Series{{Name: "line", Gaps: true}, {Name: "dots", Dots: true}},
	}
	for i := range 9 {
		x := float64(i)
		l.Band.Points = append(l.Band.Points, Breadth{x, x, 4000})
		l.Series[0].Points = append(l.Series[0].Points, Point{x, 100 * x})
	}
	l.Series[1].Points = []Point{{2, -4000}, {3, 4500}}
	return l
}

// TestBand: the band and the dots stand in the data and in the legend, and a gap
// makes two lines of a line.
func TestBand(t *testing.T) {
	l := banded()
	d := svgOf(t, New(l))
	d.wantTexts(t, "Demand", "hours", "tokens", "a band", "line", "dots", "-4,000", "0", "4,000")
	if band, dots := d.fills[hex(amber)], d.fills[hex(colorOf(1))]; band != 2 || dots != 3 {
		t.Errorf("%d bands and %d dots, want 2 and 3 with the legend's", band, dots)
	}
	whole := d.strokes[hex(colorOf(0))]
	for _, gap := range []int{0, 4, 5, 8} {
		l.Series[0].Points[gap].Y = math.NaN()
	}
	if n := svgOf(t, New(l)).strokes[hex(colorOf(0))]; n != whole+1 {
		t.Errorf("%d lines with a gap, %d without", n, whole)
	}
}

// TestZero: a line at 0 stands between numbers below and above.
func TestZero(t *testing.T) {
	l := banded()
	l.Series[1].Points[0].Y = -3700
	d := svgOf(t, New(l))
	d.wantTexts(t, "0")
	with := d.strokes[hex(ink)]
	l.Series[1].Points[0].Y = 4000
	if without := svgOf(t, New(l)).strokes[hex(ink)]; with <= without {
		t.Errorf("%d lines of the axes' colour with numbers below 0, %d without", with, without)
	}
}

// A series without a number, and dots without a point, stand in the legend alone.
func TestNothingOfASeries(t *testing.T) {
	l := banded()
	for i := range l.Series[0].Points {
		l.Series[0].Points[i].Y = math.NaN()
	}
	l.Series[1].Points = nil
	d := svgOf(t, New(l))
	d.wantTexts(t, "line", "dots", "a band")
	if n := d.strokes[hex(colorOf(0))]; n != 1 {
		t.Errorf("%d lines, want the legend's", n)
	}
}

func TestBandRefused(t *testing.T) {
	for name, spoil := range map[string]func(*Lines){
		"no name":       func(l *Lines) { l.Band.Name = "" },
		"a point":       func(l *Lines) { l.Band.Points = l.Band.Points[:1] },
		"NaN":           func(l *Lines) { l.Band.Points[1].Low = math.NaN() },
		"infinite":      func(l *Lines) { l.Band.Points[1].High = math.Inf(1) },
		"log":           func(l *Lines) { l.Y.Log = true },
		"no number":     func(l *Lines) { l.Band, l.Series = nil, l.Series[1:]; l.Series[0].Points = nil },
		"a gap in dots": func(l *Lines) { l.Series[1].Points[0].Y = math.NaN() },
	} {
		l := banded()
		spoil(l)
		if err := New(l).WriteSVG(io.Discard); !errors.Is(err, ErrFigure) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAStrongLineOfManyPoints is thinner, and still wider than the others.
func TestAStrongLineOfManyPoints(t *testing.T) {
	if few, many := strongLine(60), strongLine(1000); many.Width >= few.Width || many.Width <= contextLine(0).Width {
		t.Errorf("widths %v and %v", few.Width, many.Width)
	}
}
