package plot

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
)

func rangesOf(rows ...Row) *Ranges {
	return &Ranges{Title: "Latency", X: Axis{Label: "latency", Unit: "ms", Log: true}, Points: []string{"p50", "p99"}, Rows: rows}
}

// TestRanges: every row has its name and the number of its last mark, and the strong
// row alone has the strong colour.
func TestRanges(t *testing.T) {
	figure := New(rangesOf(Row{Name: "samya", Values: []float64{1.3, 1.5}, Strong: true}, Row{Name: "other", Values: []float64{2, 300}}, Row{Name: "half", Values: []float64{7, math.NaN()}}))
	var b bytes.Buffer
	if err := figure.WriteSVG(&b); err != nil {
		t.Fatal(err)
	}
	d := parse(t, b.Bytes())
	for _, want := range []string{"samya", "other", "half", "1.5", "300", "7", "1", "100", "p50", "p99", "latency (ms)"} {
		if !slices.Contains(d.texts, want) {
			t.Errorf("%q is not written: %q", want, d.texts)
		}
	}
	strong, plain := hex(palette[strongColor]), hex(contexts[0])
	if d.strokes[strong] == 0 || d.strokes[plain] <= d.strokes[strong] {
		t.Errorf("strokes %v, want some of %s and more of %s", d.strokes, strong, plain)
	}
}

func TestRangesRefuse(t *testing.T) {
	for name, r := range map[string]*Ranges{
		"no row":     rangesOf(),
		"no name":    rangesOf(Row{Values: []float64{1, 2}}),
		"a few":      rangesOf(Row{Name: "a", Values: []float64{1}}),
		"no mark":    rangesOf(Row{Name: "a", Values: []float64{math.NaN(), math.NaN()}}),
		"below zero": rangesOf(Row{Name: "a", Values: []float64{-1, 2}}),
		"no points":  {Title: "t", X: Axis{Label: "x"}, Rows: []Row{{Name: "a"}}},
		"five":       {Title: "t", X: Axis{Label: "x"}, Points: strings.Split("abcde", ""), Rows: []Row{{Name: "a", Values: make([]float64, 5)}}},
	} {
		if err := New(r).WriteSVG(&bytes.Buffer{}); !errors.Is(err, ErrFigure) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAStrongLine is wide and drawn last, and no other line has its colour.
func TestAStrongLine(t *testing.T) {
	l := &Lines{Title: "t", X: Axis{Label: "x"}, Y: Axis{Label: "y"}}
	for i := range 8 {
		l.Series = append(l.Series, Series{Name: string(rune('a' + i)), Points: []Point{{0, 1}, {1, float64(i)}}, Strong: i == 3})
	}
	styles := l.styles()
	for i, s := range styles {
		if i != 3 && (s.Color == styles[3].Color || s.Width >= styles[3].Width) {
			t.Errorf("line %d is %+v, the strong line %+v", i, s, styles[3])
		}
		for j := range i {
			if j != 3 && i != 3 && s.Color == styles[j].Color && slices.Equal(s.Dashes, styles[j].Dashes) {
				t.Errorf("lines %d and %d are the same", i, j)
			}
		}
	}
	if order := l.order(); order[7] != 3 || len(order) != 8 {
		t.Errorf("drawn in the order %v", order)
	}
}
