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
	at := func(workload Workload, system, way string, rate float64, change func(*Sample)) *Measured {
		m := measured(Cell{system, way, workload}, rate, 2*rate, rate)
		for _, s := range m.Samples {
			change(s)
		}
		return m
	}
	plain := func(*Sample) {}
	costs := func(micros float64) func(*Sample) { return func(s *Sample) { s.ServerCPU = micros } }
	tails := func(p99, p999 float64) func(*Sample) { return func(s *Sample) { s.P99, s.P999 = p99, p999 } }
	r := &Report{Rounds: 3, Seconds: 5, Cores: 2, Cells: []*Measured{
		at(Hot, BareGRPC, WayEcho, 10_000, plain),
		at(Hot, Samya, WayUnary, 8000, plain),
		at(Hot, Samya, WayStream64, 21_900, func(s *Sample) { s.ServerCPU, s.P999 = 6, 1500 }),
		at(Hot, Samya, WayStream1024, 48_000, costs(2.5)),
		at(Hot, Samya, WayBatch, 400_000, costs(2)),
		at(Hot, Samya, WayHTTP, 4500, costs(45)),
		at(Hot, Samya, WayStreamOpen, 30_000, tails(5000, 20_000)),
		at(Hot, BareHTTP, WayEcho, 10_000, plain),
		at(Hot, RedisAlways, WaySingle, 14_600, plain),
		at(Hot, RedisAlways, WayPipelined, 200_000, plain),
		at(Hot, RedisNoIDs, WaySingle, 7300, plain),
		at(Hot, RedisNoIDs, WayPipelined, 200_000, plain),
		at(Hot, RedisNoIDs, WayOpen, 30_000, tails(5000, 20_000)),
		at(Even, Samya, WayBatch, 130_000, plain),
		at(Even, RedisNoIDs, WayPipelined, 100_000, plain),
		at(Hot, Postgres, WaySingle, 1600, plain),
		at(Hot, Etcd, WayCAS, 800, plain),
		at(Hot, BareSync, WaySync, 33_000, tails(100, 1000)),
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
			s.P99 *= 1.1
			s.P999 *= 1.1
			s.ServerCPU *= 1.1
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
	m := measured(Cell{Samya, WayBatch, Hot}, 300_000, 400_000, 500_000)
	r := &Report{Cells: []*Measured{m}}
	r.summarize()
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
	for _, want := range []string{"400,000", "400,000 … 800,000", "samya", "batches of 100", "0.80 ×", "45.0 µs"} {
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
