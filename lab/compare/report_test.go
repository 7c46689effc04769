package compare

import (
	"math"
	"strings"
	"testing"

	_ "github.com/samya-db/samya/internal/testheap"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{
		{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1}, 5}, {[]float64{5, 1, 100}, 5}, {[]float64{4, 1, 3, 100}, 3.5},
	} {
		if got := median(c.values); got != c.want {
			t.Errorf("median of %v: %v, want %v", c.values, got, c.want)
		}
	}
}

// measured is a cell with a sample for each of the rates, and with p99s and p99.9s of a
// hundredth and a tenth of the rates.
func measured(c Cell, rates ...float64) *Measured {
	m := &Measured{Cell: c, Kind: Durable, Promise: "synced"}
	for _, r := range rates {
		m.Samples = append(m.Samples, &Sample{Rate: r, P50: r / 1000, P99: r / 100, P999: r / 10, Operations: 1, Seconds: 1})
	}
	return m
}

// reached is a report in which all goals are met, each just so.
func reached() *Report {
	hot := func(system, way string) Cell { return Cell{system, way, Hot} }
	r := &Report{Rounds: 3, Seconds: 5, Cores: 2, Cells: []*Measured{
		measured(hot(BareGRPC, WayEcho), 10_000, 20_000, 10_000),
		measured(hot(Samya, WayUnary), 6500, 13_000, 6500),
		measured(hot(Samya, WayStream64), 16_250, 32_500, 16_250),
		measured(hot(Samya, WayStream1024), 39_000, 78_000, 39_000),
		measured(hot(Samya, WayBatch), 300_000, 400_000, 500_000),
		measured(hot(Samya, WayHTTP), 4500, 4500, 4500),
		measured(hot(BareHTTP, WayEcho), 10_000, 10_000, 10_000),
		measured(hot(RedisAlways, WaySingle), 10_000, 10_000, 10_000),
		measured(hot(RedisAlways, WayPipelined), 100_000, 200_000, 250_000),
		measured(hot(Postgres, WaySingle), 1300, 2600, 1300),
		measured(hot(Etcd, WayCAS), 650, 1300, 650),
		measured(hot(BareSync, WaySync), 33_000, 66_000, 33_000),
	}}
	r.summarize()
	return r
}

func TestGoalsAreMet(t *testing.T) {
	r := reached()
	r.Judge()
	if len(r.Goals) != len(goals()) || !r.Met() {
		t.Errorf("not all met: %+v", r.Goals)
	}
}

func TestEachGoalCanBeMissed(t *testing.T) {
	for i, g := range goals() {
		r := reached()
		m := r.find(g.cell)
		for _, s := range m.Samples {
			// Slower by a tenth, and with longer tails.
			s.Rate *= .9
			s.P999 *= 1.1
		}
		r.Judge()
		if r.Goals[i].Met || r.Met() {
			t.Errorf("%s: %+v is met", g.what, r.Goals[i])
		}
		r = reached()
		m = r.find(g.cell)
		m.Way = "another"
		r.Judge()
		if r.Goals[i].Met || r.Goals[i].Measured {
			t.Errorf("%s: met though not measured", g.what)
		}
	}
	if (&Report{}).Met() {
		t.Error("no goals are met")
	}
}

func TestRatioIsOfTheSameRound(t *testing.T) {
	// A machine that is slow in a round is slow for both.
	a := measured(Cell{}, 10, 1, 10, 1, 1)
	b := measured(Cell{}, 20, 2, 20, 2, 2)
	if got := ratio(a, rate, b, rate); got != .5 {
		t.Errorf("ratio %v, want 0.5", got)
	}
}

func TestSummary(t *testing.T) {
	m := reached().find(Cell{Samya, WayBatch, Hot})
	if m.Lowest != 300_000 || m.Highest != 500_000 || m.Median.Rate != 400_000 || math.Abs(m.Median.P99-4000) > 1e-9 {
		t.Errorf("%+v", m)
	}
}

func TestTables(t *testing.T) {
	r := reached()
	r.Judge()
	var text, markdown strings.Builder
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	if err := r.WriteMarkdown(&markdown); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"400,000", "300,000 … 500,000", "samya", "batches of 100", "0.65 ×", "2.50 ×"} {
		if !strings.Contains(text.String(), want) || !strings.Contains(markdown.String(), want) {
			t.Errorf("%q is missing in\n%s\n%s", want, &text, &markdown)
		}
	}
	for line := range strings.Lines(markdown.String()) {
		if strings.HasPrefix(line, "| samya") && strings.Count(line, "|") != len(heads)+1 {
			t.Errorf("a row of another length: %s", line)
		}
	}
	if strings.Contains(markdown.String(), "10,000 entities") {
		t.Error("a table of what was not measured")
	}
}

func TestThousands(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 999.4: "999", 1000: "1,000", 1234567: "1,234,567"} {
		if got := thousands(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
}
