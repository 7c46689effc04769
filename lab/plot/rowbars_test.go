package plot

import (
	"errors"
	"io"
	"math"
	"slices"
	"testing"
)

func rowBarsOf(groups ...BarGroup) *RowBars {
	return &RowBars{
		Title: "Acquires\nmedians", X: Axis{Label: "operations a second", Log: true},
		Kinds: []string{"durable", "volatile"}, Pale: "many entities", Groups: groups,
	}
}

// TestRowBars: each bar has the colour of its kind and its number, and the names
// stand once for a group.
func TestRowBars(t *testing.T) {
	r := rowBarsOf(
		BarGroup{Name: "samya", Rows: []BarRow{{"unary", 33_589, 30_028}, {"batches", 400_000, math.NaN()}}},
		BarGroup{Name: "redis", Kind: 1, Rows: []BarRow{{"pipelines", math.NaN(), 1000}}},
	)
	for _, log := range []bool{true, false} {
		r.X.Log = log
		d := svgOf(t, New(r))
		d.wantTexts(t, "Acquires", "medians", "operations a second", "durable", "volatile", "many entities",
			"samya", "unary", "batches", "redis", "pipelines", "33,589", "30,028", "400,000", "1,000")
		for c, want := range map[string]int{
			hex(kindColors[0]): 3, hex(pale(kindColors[0])): 2, hex(kindColors[1]): 1, hex(pale(kindColors[1])): 1,
		} {
			if got := d.fills[c]; got != want {
				t.Errorf("log %v: %d bars of %s, want %d with the legend's", log, got, c, want)
			}
		}
		if n := len(slices.DeleteFunc(d.texts, func(s string) bool { return s != "samya" })); n != 1 {
			t.Errorf("the name of a group stands %d times", n)
		}
	}
}

// TestRowBarsHeight: more rows and more groups take more height.
func TestRowBarsHeight(t *testing.T) {
	row := BarRow{"a", 1, 2}
	height := func(groups ...BarGroup) float64 { return rowBarsOf(groups...).Height() }
	one, rows, groups := height(BarGroup{Rows: []BarRow{row}}), height(BarGroup{Rows: []BarRow{row, row}}),
		height(BarGroup{Rows: []BarRow{row}}, BarGroup{Rows: []BarRow{row}})
	if !(0 < one && one < rows && rows < groups) {
		t.Errorf("heights %v, %v, %v", one, rows, groups)
	}
}

func TestRowBarsRefuse(t *testing.T) {
	rows := []BarRow{{"a", 1, 2}}
	for name, r := range map[string]*RowBars{
		"no group":   rowBarsOf(),
		"no name":    rowBarsOf(BarGroup{Rows: rows}),
		"no bar":     rowBarsOf(BarGroup{Name: "a", Rows: []BarRow{{"b", math.NaN(), math.NaN()}}}),
		"no row":     rowBarsOf(BarGroup{Name: "a"}),
		"below zero": rowBarsOf(BarGroup{Name: "a", Rows: []BarRow{{"b", -1, 1}}}),
		"kind":       rowBarsOf(BarGroup{Name: "a", Kind: 2, Rows: rows}),
		"no kind":    rowBarsOf(BarGroup{Name: "a", Kind: -1, Rows: rows}),
		"no title":   {X: Axis{Label: "x"}, Kinds: []string{"k"}, Groups: []BarGroup{{Name: "a", Rows: rows}}},
		"kinds":      {Title: "t", X: Axis{Label: "x"}, Kinds: make([]string, 4), Groups: []BarGroup{{Name: "a", Rows: rows}}},
		"negative":   {Title: "t", X: Axis{Label: "x"}, Kinds: []string{"k"}, Groups: []BarGroup{{Name: "a", Rows: []BarRow{{"b", -1, 1}}}}},
	} {
		if err := New(r).WriteSVG(io.Discard); !errors.Is(err, ErrFigure) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestKindsDifferInGrey(t *testing.T) {
	for i, c := range kindColors {
		if d := lightness(pale(c)) - lightness(c); d < 15 {
			t.Errorf("kind %d: its pale bars are lighter by %.0f", i, d)
		}
		for j, other := range kindColors[:i] {
			if d := math.Abs(lightness(c) - lightness(other)); d < 7 {
				t.Errorf("kinds %d and %d differ by %.0f", i, j, d)
			}
		}
	}
}
