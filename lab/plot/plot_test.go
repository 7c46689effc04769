package plot

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image/color"
	"image/png"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
)

// drawn is the content of an SVG file.
type drawn struct {
	texts   []string
	fills   map[string]int // elements by the colour they are filled with
	strokes map[string]int
}

// parse reads an SVG file.
func parse(t *testing.T, svg []byte) *drawn {
	t.Helper()
	d := &drawn{fills: make(map[string]int), strokes: make(map[string]int)}
	var text *strings.Builder
	for x := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := x.Token()
		if errors.Is(err, io.EOF) {
			return d
		}
		if err != nil {
			t.Fatalf("not XML: %v", err)
		}
		switch e := token.(type) {
		case xml.StartElement:
			if e.Name.Local == "text" {
				text = &strings.Builder{}
				continue
			}
			for _, a := range e.Attr {
				if a.Name.Local != "style" {
					continue
				}
				for style := range strings.SplitSeq(a.Value, ";") {
					switch key, value, _ := strings.Cut(style, ":"); key {
					case "fill":
						d.fills[value]++
					case "stroke":
						d.strokes[value]++
					}
				}
			}
		case xml.CharData:
			if text != nil {
				text.Write(e)
			}
		case xml.EndElement:
			if e.Name.Local == "text" && text != nil {
				d.texts = append(d.texts, strings.TrimSpace(text.String()))
				text = nil
			}
		}
	}
}

func hex(c color.RGBA) string { return fmt.Sprintf("#%02X%02X%02X", c.R, c.G, c.B) }

// svgOf draws f and reads it back.
func svgOf(t *testing.T, f *Figure) *drawn {
	t.Helper()
	var b bytes.Buffer
	if err := f.WriteSVG(&b); err != nil {
		t.Fatal(err)
	}
	if bytes.Count(b.Bytes(), []byte(family)) != bytes.Count(b.Bytes(), []byte("font-family")) {
		t.Error("a text has no face but one")
	}
	return parse(t, b.Bytes())
}

func (d *drawn) wantTexts(t *testing.T, want ...string) {
	t.Helper()
	for _, w := range want {
		if !slices.Contains(d.texts, w) {
			t.Errorf("no text %q in %q", w, d.texts)
		}
	}
}

func lines() *Lines {
	l := &Lines{
		Title: "Throughput <&> time", X: Axis{Label: "time", Unit: "s"}, Y: Axis{Label: "throughput", Unit: "op/s", Zero: true},
		Spans: []Span{{1, 2}, {3, 3.5}}, Spanned: "cut under way",
	}
	for i := range 3 {
		s := Series{Name: fmt.Sprintf("series %d", i), Marks: i == 2}
		for x := range 5 {
			s.Points = append(s.Points, Point{float64(x), 1000 * float64((i+1)*(x+1))})
		}
		l.Series = append(l.Series, s)
	}
	return l
}

func TestLines(t *testing.T) {
	d := svgOf(t, New(lines()))
	d.wantTexts(t, "Throughput <&> time", "time (s)", "throughput (op/s)", "series 0", "series 1", "series 2", "cut under way", "5,000", "10,000", "0")
	for i := range 3 {
		// Each line stands in the data and in the legend.
		if n := d.strokes[hex(colorOf(i))]; n < 2 {
			t.Errorf("series %d: %d lines of its colour", i, n)
		}
	}
	if n := d.fills[hex(shade)]; n != 3 {
		t.Errorf("%d shaded, want two spans and one in the legend", n)
	}
}

func TestBars(t *testing.T) {
	b := &Bars{
		Title: "Median", X: "workload", Y: Axis{Label: "throughput", Unit: "kop/s"},
		Groups: []string{"A", "D", "E"},
		Series: []BarSeries{{"RR", []float64{418, 664, 5}}, {"Async", []float64{335, math.NaN(), 36.125}}},
	}
	for _, log := range []bool{false, true} {
		b.Y.Log = log
		d := svgOf(t, New(b))
		d.wantTexts(t, "Median", "workload", "throughput (kop/s)", "A", "D", "E", "RR", "Async", "418", "664", "5", "335", "36.12")
		if rr, async := d.fills[hex(colorOf(0))], d.fills[hex(colorOf(1))]; rr != 4 || async != 3 {
			t.Errorf("log %v: %d and %d bars, want 4 and 3 with the legend's", log, rr, async)
		}
	}
}

// Names of many groups are turned, so that they do not run into each other.
func TestManyGroups(t *testing.T) {
	b := &Bars{Title: "t", X: "x", Y: Axis{Label: "y"}, Series: []BarSeries{{Name: "a"}}}
	turned := func() bool {
		b.Groups = append(b.Groups, "a long name of a group")
		b.Series[0].Values = append(b.Series[0].Values, 1)
		p, _, err := b.build()
		if err != nil {
			t.Fatal(err)
		}
		return p.X.Tick.Label.Rotation != 0
	}
	for i := range 2 * mostLevel {
		if got := turned(); got != (i >= mostLevel) {
			t.Errorf("%d groups: turned %v", i+1, got)
		}
	}
}

func TestPanelsAndPNG(t *testing.T) {
	second := lines()
	second.Title = "Again"
	second.Series = second.Series[:1]
	second.Spans, second.Spanned = nil, ""
	f := New(lines(), second)
	svgOf(t, f).wantTexts(t, "Throughput <&> time", "Again")
	var b bytes.Buffer
	if err := f.WritePNG(&b); err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	if got := img.Bounds().Size(); got.X != 2*usualWidth || got.Y != 2*2*usualHeight {
		t.Errorf("size %v", got)
	}
	found := false
	want := colorOf(0)
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			r, g, b, _ := img.At(x, y).RGBA()
			found = found || r>>8 == uint32(want.R) && g>>8 == uint32(want.G) && b>>8 == uint32(want.B)
		}
	}
	if !found {
		t.Error("no line in the picture")
	}
}

func TestRefused(t *testing.T) {
	for name, spoil := range map[string]func(*Lines){
		"no title":    func(l *Lines) { l.Title = "" },
		"no label":    func(l *Lines) { l.Y.Label = "" },
		"no series":   func(l *Lines) { l.Series = nil },
		"no name":     func(l *Lines) { l.Series[1].Name = "" },
		"no points":   func(l *Lines) { l.Series[1].Points = nil },
		"NaN":         func(l *Lines) { l.Series[1].Points[1].Y = math.NaN() },
		"infinite":    func(l *Lines) { l.Series[1].Points[1].X = math.Inf(1) },
		"log of zero": func(l *Lines) { l.X.Log = true },
		"span":        func(l *Lines) { l.Spans[0].To = math.NaN() },
	} {
		l := lines()
		spoil(l)
		if err := New(l).WriteSVG(io.Discard); !errors.Is(err, ErrFigure) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, b := range map[string]*Bars{
		"no groups": {Title: "t", X: "x", Y: Axis{Label: "y"}, Series: []BarSeries{{Name: "a"}}},
		"short":     {Title: "t", X: "x", Y: Axis{Label: "y"}, Groups: []string{"g", "h"}, Series: []BarSeries{{"a", []float64{1}}}},
		"negative":  {Title: "t", X: "x", Y: Axis{Label: "y"}, Groups: []string{"g"}, Series: []BarSeries{{"a", []float64{-1}}}},
		"all NaN":   {Title: "t", X: "x", Y: Axis{Label: "y"}, Groups: []string{"g"}, Series: []BarSeries{{"a", []float64{math.NaN()}}}},
		"log of 0":  {Title: "t", X: "x", Y: Axis{Label: "y", Log: true}, Groups: []string{"g"}, Series: []BarSeries{{"a", []float64{0}}}},
	} {
		if err := New(b).WriteSVG(io.Discard); !errors.Is(err, ErrFigure) {
			t.Errorf("bars, %s: %v", name, err)
		}
	}
	if err := New().WritePNG(io.Discard); !errors.Is(err, ErrFigure) {
		t.Errorf("no panels: %v", err)
	}
}

func TestFailedWriteIsTold(t *testing.T) {
	if err := New(lines()).WriteSVG(failing{}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("SVG: %v", err)
	}
	if err := New(lines()).WritePNG(failing{}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("PNG: %v", err)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// A line that is level, a single point and a single bar are drawn.
func TestDegenerate(t *testing.T) {
	l := &Lines{Title: "t", X: Axis{Label: "x"}, Y: Axis{Label: "y"}, Series: []Series{{Name: "s", Points: []Point{{1, 0}, {2, 0}}}}}
	svgOf(t, New(l)).wantTexts(t, "t", "x", "y")
	l.Series[0].Points = l.Series[0].Points[:1]
	svgOf(t, New(l)).wantTexts(t, "t")
	l.X.Reach, l.Y.Reach = 40, 4000
	svgOf(t, New(l)).wantTexts(t, "35", "4,000")
	b := &Bars{Title: "t", X: "x", Y: Axis{Label: "y"}, Groups: []string{"g"}, Series: []BarSeries{{"a", []float64{0}}}}
	svgOf(t, New(b)).wantTexts(t, "g", "0")
}

// lightness is CIE L*, from 0 to 100.
func lightness(c color.RGBA) float64 {
	linear := func(v uint8) float64 {
		s := float64(v) / 255
		if s <= .04045 {
			return s / 12.92
		}
		return math.Pow((s+.055)/1.055, 2.4)
	}
	y := .2126*linear(c.R) + .7152*linear(c.G) + .0722*linear(c.B)
	if y <= 216./24389 {
		return y * 24389 / 27
	}
	return 116*math.Cbrt(y) - 16
}

func TestColorsDifferInGrey(t *testing.T) {
	for i, a := range palette {
		for j, b := range palette[:i] {
			if d := math.Abs(lightness(a) - lightness(b)); d < 7 {
				t.Errorf("colours %d and %d: lightness %.0f and %.0f", i, j, lightness(a), lightness(b))
			}
		}
		if lightness(a) > 85 {
			t.Errorf("colour %d is too light for white paper", i)
		}
	}
	if a, b := lineOf(0), lineOf(len(palette)); len(a.Dashes) == len(b.Dashes) {
		t.Error("a colour that comes again is not dashed")
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 5: "5", 36.125: "36.12", 1234.5: "1,234", 999999: "999,999", 1e6: "1,000,000", -12345: "-12,345",
		.00125: "0.00125", .5: "0.5", 1e-9: "1e-09", math.Inf(1): "+Inf",
	} {
		if got := Number(v); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
}
