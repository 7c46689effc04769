package replay

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/samya-db/samya/lab/replay/sites"
	"github.com/samya-db/samya/lab/trace"
	"github.com/samya-db/samya/lab/virtual"
	"github.com/samya-db/samya/predict"
)

// seriesOf makes a series of bins of an hour.
func seriesOf(bins int, value func(i int) float64) *trace.Series {
	s := &trace.Series{Name: "test", Step: 3600}
	for i := range bins {
		v := value(i)
		s.Bins = append(s.Bins, predict.Bin{Net: v, Peak: max(0, v)})
	}
	return s
}

// acquiredIn counts the acquires of a place in each bin of the run.
func acquiredIn(d *Demand, p virtual.Place) []int {
	in := make([]int, d.Span/Bin)
	for _, l := range d.Leases {
		if l.Place == p {
			in[l.Due/Bin]++
		}
	}
	return in
}

// TestCounts: the count of a bin is acquired in the bin, in each place at its local time;
// the rest of the series is for training.
func TestCounts(t *testing.T) {
	s := seriesOf(100, func(i int) float64 { return float64(10 + i) })
	s.Bins[97] = predict.Missing
	d, err := FromSeries(s, SeriesOptions{Bins: 10, Scale: 2})
	if err != nil {
		t.Fatal(err)
	}
	us, as := acquiredIn(d, 0), acquiredIn(d, 1)
	for i := range us {
		here, there := 2*(10+90+i), 2*(10+(90+i+16)%100)
		if i == 7 {
			here = 0
		}
		if us[i] != here || as[i] != there {
			t.Errorf("bin %d: %d and %d are acquired, measured are %d and %d", i, us[i], as[i], here, there)
		}
	}
	if err := d.Recall(); err != nil {
		t.Fatal(err)
	}
	if len(d.History) != 5 || len(d.History[0]) != 90 {
		t.Fatalf("%d places remember", len(d.History))
	}
	// Most tokens are held for a bin, so that a first bin's net is near its count.
	if n := d.History[0][0].Net; n < 5 || n > 20 {
		t.Errorf("the first bin's net is %v", n)
	}
	d, err = FromSeries(s, SeriesOptions{Seed: 3, Places: 7, Limit: 1000, Part: .9})
	if err != nil {
		t.Fatal(err)
	}
	if most := d.Shape().Max; len(d.Places) != 7 || d.Span != 50*Bin || most < 850 || most > 950 {
		t.Errorf("%d places, %v, at most %d out", len(d.Places), d.Span, most)
	}
	if r, err := Run(Options{Demand: d, Limit: 1000}, sites.New(nil)); err != nil || r.Granted == 0 || r.Redistributions() == 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestChanges: in a series with bins below zero, bins are changes of the held tokens.
func TestChanges(t *testing.T) {
	s := seriesOf(48, func(i int) float64 { return 30 * math.Cos(float64(i)*math.Pi/6) })
	d, err := FromSeries(s, SeriesOptions{Bins: 48, Scale: 1, Places: 1})
	if err != nil {
		t.Fatal(err)
	}
	held, want := 0, 0.
	released := make([]int, 48)
	for _, l := range d.Leases {
		if end := l.Due + l.Hold - turnaround; end < d.Span {
			released[end/Bin]++
		}
	}
	for i, n := range acquiredIn(d, 0) {
		held += n - released[i]
		want = max(0, want+s.Bins[i].Net)
		if math.Abs(float64(held)-want) > 2 || n > 0 && released[i] > 1 {
			t.Errorf("bin %d: %d held instead of %v, %d acquired, %d released", i, held, want, n, released[i])
		}
	}
}

// TestVMs: every VM of a table is a lease of its own lifetime.
func TestVMs(t *testing.T) {
	var table strings.Builder
	row := func(created, deleted int) {
		fmt.Fprintf(&table, "a,b,c,%d,%d,1,2,3,x,4,5\n", created, deleted)
	}
	row(0, 3000)
	for i := range 40 {
		row(300*(i+1), 300*(i+4))
	}
	row(300*20, 2591700)
	path := filepath.Join(t.TempDir(), "vmtable.csv")
	if err := os.WriteFile(path, []byte(table.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := FromFile(path, "", SeriesOptions{Bins: 30, Places: 1, Scale: 3})
	if err != nil {
		t.Fatal(err)
	}
	long := 0
	for _, l := range d.Leases {
		switch {
		case l.Hold > 1000*Bin:
			long++
		case l.Hold < 3*Bin || l.Hold > 4*Bin:
			t.Errorf("a VM of three bins is held for %v", l.Hold)
		}
	}
	if len(d.Leases) != 3*31 || long != 3 {
		t.Errorf("%d leases, %d of them without an end", len(d.Leases), long)
	}
	if d, err = FromFile(path, "", SeriesOptions{Bins: 30, Scale: .5}); err != nil || len(d.Leases) < 40 || len(d.Leases) > 110 {
		t.Errorf("half of all: %d leases, %v", len(d.Leases), err)
	}
	csv := filepath.Join(t.TempDir(), "counts.csv")
	if err := os.WriteFile(csv, []byte("t,count\n0,5\n300,7\n600,9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if d, err = FromFile(csv, "count", SeriesOptions{Bins: 1, Places: 1, Scale: 1}); err != nil || len(d.Leases) != 9 || d.Workload != "counts" || d.Span != 5*time.Second {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestSeriesRefuses(t *testing.T) {
	s := seriesOf(10, func(int) float64 { return 1 })
	for _, o := range []SeriesOptions{{Bins: 11}, {Bins: -1}, {Places: -1}, {Places: MaxPlaces + 1}, {Scale: -1}, {Scale: math.NaN()}, {Limit: -1}, {Part: -1}} {
		if _, err := FromSeries(s, o); err == nil {
			t.Errorf("%+v", o)
		}
	}
	if _, err := FromSeries(seriesOf(10, func(int) float64 { return 0 }), SeriesOptions{}); err == nil {
		t.Error("nothing was measured")
	}
	if _, err := FromFile(filepath.Join(t.TempDir(), "no.csv"), "count", SeriesOptions{}); err == nil {
		t.Error("no file")
	}
}
