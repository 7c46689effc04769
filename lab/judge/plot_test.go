package judge

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/samya-db/samya/predict"
)

func plot(bins int) *Plot {
	p := &Plot{Title: "a & b", Step: 300, First: 10, Horizon: 2}
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

// TestPlot: the picture is XML, and everything in it is within its frame.
func TestPlot(t *testing.T) {
	var b strings.Builder
	if err := plot(100).WriteSVG(&b); err != nil {
		t.Fatal(err)
	}
	decoder := xml.NewDecoder(strings.NewReader(b.String()))
	circles := 0
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "circle" {
			circles++
		}
	}
	points := regexp.MustCompile(`[ML](-?[0-9.]+) (-?[0-9.]+)`).FindAllStringSubmatch(b.String(), -1)
	if len(points) < 4*85 {
		t.Fatalf("%d points", len(points))
	}
	for _, p := range points {
		x, errX := strconv.ParseFloat(p[1], 64)
		y, errY := strconv.ParseFloat(p[2], 64)
		if errX != nil || errY != nil || x < plotLeft || x > plotWidth-plotRight || y < plotTop || y > plotHeight-plotBottom {
			t.Fatalf("point %v is outside", p)
		}
	}
	// A circle belongs to the legend; the others are epochs with a peak above 150.
	stalls := 0
	bins := plot(100).Bins
	for i := 10; i+2 <= 100; i++ {
		if _, peak := Epoch(bins[i : i+2]); peak > 150 {
			stalls++
		}
	}
	if circles != stalls+1 || stalls == 0 {
		t.Errorf("%d circles for %d stalls", circles, stalls)
	}
	if err := plot(11).WriteSVG(io.Discard); err == nil {
		t.Error("a picture of nothing")
	}
}

func TestTick(t *testing.T) {
	for in, want := range map[float64]float64{0: 1, .03: .05, 1: 1, 1.1: 2, 3: 5, 6: 10, 1234: 2000} {
		if got := tick(in); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("tick(%v) = %v, want %v", in, got, want)
		}
	}
}
