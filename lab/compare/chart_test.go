package compare

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestChart(t *testing.T) {
	r := reached()
	volatile := measured(Cell{RedisEverySec, WaySingle, Zipf}, 50_000)
	volatile.Kind = Volatile
	r.Cells = append(r.Cells, measured(Cell{Samya, WayUnary + " <&>", Zipf}, 9), volatile)
	r.summarize()
	var b strings.Builder
	if err := r.WriteSVG(&b); err != nil {
		t.Fatal(err)
	}
	bars := 0
	for d := xml.NewDecoder(strings.NewReader(b.String())); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("not XML: %v", err)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "rect" {
			bars++
		}
	}
	// The background and the legend are rectangles as well.
	if want := len(r.Cells) + 1 + len(kindColors); bars != want {
		t.Errorf("%d rectangles, want %d", bars, want)
	}
	for _, want := range []string{"400,000", "50,000", "operations a second", colorOf(Durable), colorOf(Volatile), ">1<", "1,000,000"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q", want)
		}
	}
	if err := (&Report{}).WriteSVG(io.Discard); !errors.Is(err, errNothing) {
		t.Errorf("an empty chart: %v", err)
	}
}

func TestBarsAreLogarithmic(t *testing.T) {
	r := &Report{Cells: []*Measured{measured(Cell{"a", "b", Hot}, 100), measured(Cell{"a", "c", Hot}, 10_000)}}
	r.summarize()
	if low, high := r.powers(); low != 2 || high != 4 {
		t.Errorf("axis from 10^%d to 10^%d, want 2 to 4", low, high)
	}
	r.Cells = r.Cells[:1]
	if low, high := r.powers(); low != 2 || high != 3 {
		t.Errorf("axis from 10^%d to 10^%d, want 2 to 3", low, high)
	}
}
