package judge

import (
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/samya-db/samya/lab/plot"
	"github.com/samya-db/samya/predict"
)

func pictureOf(bins int) *Plot {
	p := &Plot{Title: "a picture", Step: 300, First: 10, Horizon: 2}
	for i := range bins {
		net := 100 * math.Sin(float64(i)/9)
		p.Bins = append(p.Bins, predict.Bin{Net: net, Peak: max(0, net)})
		p.Forecasts = append(p.Forecasts, predict.Forecast{Expected: 2 * net, Median: 50, High: 150})
	}
	if bins > 30 {
		p.Bins[30] = predict.Missing
	}
	return p
}

// TestPlot: each epoch has its demand and its forecast, with a gap where a bin is
// missing, and a dot where the peak is above the band.
func TestPlot(t *testing.T) {
	p := pictureOf(100)
	figure := p.Figure()
	var b strings.Builder
	if err := figure.WriteSVG(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"a picture", "hours", "tokens", "net demand", "expected", "stalled", "peak: median to high quantile"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q", want)
		}
	}
	l := figure.Panels[0].(*plot.Lines)
	net, expected, stalled := l.Series[0].Points, l.Series[1].Points, l.Series[2].Points
	if len(net) != 89 || len(expected) != 89 || len(l.Band.Points) != 89 {
		t.Fatalf("%d, %d and %d points for 89 epochs", len(net), len(expected), len(l.Band.Points))
	}
	for i := range net {
		at := 10 + i
		demand, peak := Epoch(p.Bins[at : at+2])
		x := float64(i) / 12 // hours
		if net[i].X != x || net[i].Y != demand && !(math.IsNaN(net[i].Y) && (at == 29 || at == 30)) {
			t.Errorf("epoch %d: demand %v", at, net[i])
		}
		if told := p.Forecasts[at-1]; expected[i] != (plot.Point{X: x, Y: told.Expected}) || l.Band.Points[i] != (plot.Breadth{X: x, Low: 50, High: 150}) {
			t.Errorf("epoch %d: expected %v in %v", at, expected[i], l.Band.Points[i])
		}
		if peak > 150 {
			if len(stalled) == 0 || stalled[0] != (plot.Point{X: x, Y: peak}) {
				t.Fatalf("epoch %d: no dot at %v in %v", at, peak, stalled)
			}
			stalled = stalled[1:]
		}
	}
	if len(stalled) > 0 || len(l.Series[2].Points) == 0 {
		t.Errorf("dots %v, %v are not stalled", l.Series[2].Points, stalled)
	}
	for _, bins := range []int{0, 11, 12} {
		if err := pictureOf(bins).Figure().WriteSVG(io.Discard); !errors.Is(err, plot.ErrFigure) {
			t.Errorf("%d bins: %v", bins, err)
		}
	}
}

func TestUnit(t *testing.T) {
	for span, want := range map[int64]string{3600: "minutes", 7200: "hours", 4 * 86400: "hours", 5 * 86400: "days"} {
		if got, _ := unitOf(span); got != want {
			t.Errorf("%d s in %s, want %s", span, got, want)
		}
	}
}
