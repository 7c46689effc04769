package transports

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/samya-db/samya/lab/compare"
)

// report returns a report of three rounds.
func report() *Report {
	row := func(way string, secure bool, callers int, rates ...float64) Row {
		r := Row{Way: way, TLS: secure, Callers: callers}
		for _, rate := range rates {
			r.Samples = append(r.Samples, Sample{
				Sample:     compare.Sample{Rate: rate, P50: 100, P99: 1200, P999: 3400, ServerCPU: 2.25, ClientCPU: 3.5},
				PerMessage: 20,
			})
		}
		return r
	}
	r := &Report{Rounds: 3, Seconds: 2, Cores: 2, Rows: []Row{
		row(GRPC, false, 64, 100_000, 50_000, 200_000), row(Frames, false, 64, 150_000, 100_000, 250_000),
		row(GRPC, true, 64, 80_000, 80_000, 80_000), row(Frames, true, 64, 120_000, 40_000, 100_000),
		row(Frames, false, 1, 7, 8, 9),
	}}
	r.summarize()
	return r
}

// TestSummarize: figures are medians, and ratios are medians of those within a round, to
// gRPC with the same security and as many callers.
func TestSummarize(t *testing.T) {
	r := report()
	if f := r.Rows[1]; f.Rate != 150_000 || f.Lowest != 100_000 || f.Highest != 250_000 || f.Times != 1.5 || f.P99 != 1200 || f.PerMessage != 20 {
		t.Errorf("%+v", f)
	}
	if f := r.Rows[3]; f.Times != 1.25 {
		t.Errorf("over TLS %v times gRPC, want 1.25", f.Times)
	}
	if f := r.Rows[4]; f.Times != 0 {
		t.Errorf("%v times nothing", f.Times)
	}
}

// TestWrite: the tables have all rows, with the same cells.
func TestWrite(t *testing.T) {
	r := report()
	var text, page bytes.Buffer
	if err := errors.Join(r.WriteText(&text), r.WriteMarkdown(&page)); err != nil {
		t.Fatal(err)
	}
	const row = "| 64 | frames, TLS | 100,000 | 40,000 … 120,000 | 1.25 | 100 | 1,200 | 3,400 | 2.2 | 3.5 | 20.0 |\n"
	if !strings.Contains(page.String(), row) {
		t.Errorf("no row %s in\n%s", row, &page)
	}
	for _, table := range []string{text.String(), page.String()} {
		if !strings.HasPrefix(table, "Medians of 3 alternated rounds of 2 s, 2 cores.\n\n") || strings.Count(table, Frames) != 3 {
			t.Error(table)
		}
	}
	columns := strings.Count(row, "|")
	for line := range strings.Lines(page.String()) {
		if strings.HasPrefix(line, "|") && strings.Count(line, "|") != columns {
			t.Errorf("not %d columns: %s", columns-1, line)
		}
	}
}

// TestJSON: a report is read as it was written.
func TestJSON(t *testing.T) {
	r := report()
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(&back)
	if err != nil || !bytes.Equal(b, again) {
		t.Errorf("%s became %s: %v", b, again, err)
	}
	if s := back.Rows[1].Samples[1]; s.Rate != 100_000 || s.PerMessage != 20 {
		t.Errorf("%+v", s)
	}
}
