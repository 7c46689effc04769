package kvlab

import (
	"encoding/csv"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/samya-db/samya/lab/plot"
)

func TestReport(t *testing.T) {
	w := workload(t, "E", 100, 2)
	f := newFake()
	if _, err := Preload(t.Context(), f, Writes(w.Names()), 16); err != nil {
		t.Fatal(err)
	}
	f.stats.Computed, f.stats.TrackingTime = 3, time.Second // before the run
	r, err := Run(t.Context(), f, &Load{
		Clients: []Source{Limited(Endless(w.Client(0)), 2000), Limited(Endless(w.Client(1)), 1000)}, ValueSize: 16, Every: time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	told := r.Report()
	if told.Count != 3000 || told.Computed != 0 || told.Tracking != 0 || told.Multi < .9 || told.LastMulti < .9 || told.LastMulti > 1 ||
		told.P50 <= 0 || told.P50 > told.P99 || told.P99 > told.P999 || told.Rate <= 0 || told.Processor <= 0 {
		t.Errorf("%+v", told)
	}
	var text strings.Builder
	if err := told.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"3,000 in ", "µs an operation", "p99.9", "several partitions", "pauses"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
	var table strings.Builder
	if err := WriteCSV(&table, r.Samples); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(table.String())).ReadAll()
	if err != nil || len(rows) != len(r.Samples)+1 || strings.Join(rows[0][:6], ",") != "elapsed,operations,memory,disk,tracking,repartitioning" {
		t.Fatalf("%v, %d rows of %d samples: %v", err, len(rows), len(r.Samples), rows[0])
	}
	if last := rows[len(rows)-1]; last[1] != "3000" {
		t.Errorf("the last row: %v", last)
	}
	var svg strings.Builder
	if err := Figure("a run", r.Samples).WriteSVG(&svg); err != nil || !strings.Contains(svg.String(), "<svg") {
		t.Errorf("%v: %.80s", err, svg.String())
	}
}

// TestSharesOfASlowCount: clients count an operation some time after the store does. The
// share of operations on several partitions goes by the store's count alone.
func TestSharesOfASlowCount(t *testing.T) {
	r := &Result{Latency: hdrhistogram.New(1, 10, 1), Samples: []Sample{
		{}, {Elapsed: 1, Operations: 90, Ran: 100, Multi: 50}, {Elapsed: 2, Operations: 100, Ran: 200, Multi: 120},
	}}
	if got := r.Report().LastMulti; got != .7 {
		t.Errorf("a share of %v, want 70 of 100", got)
	}
	shares := Figure("", r.Samples).Panels[1].(*plot.Lines).Series[0].Points
	if len(shares) != 2 || shares[0].Y != 50 || shares[1].Y != 70 {
		t.Errorf("%+v", shares)
	}
}

func TestThin(t *testing.T) {
	var samples []Sample
	for i := range int64(3*mostSamples + 5) {
		samples = append(thin(samples), Sample{Operations: i})
	}
	if len(samples) > mostSamples || len(samples) < mostSamples/2 || samples[0].Operations != 0 ||
		samples[len(samples)-1].Operations != 3*mostSamples+4 {
		t.Errorf("%d samples from %d to %d", len(samples), samples[0].Operations, samples[len(samples)-1].Operations)
	}
	for i := range len(samples) - 1 {
		if samples[i].Operations >= samples[i+1].Operations {
			t.Fatal("out of order at " + strconv.Itoa(i))
		}
	}
}
