package replay

import (
	"slices"
	"testing"
	"time"

	"github.com/samya-db/samya/internal/race"
	"github.com/samya-db/samya/lab/trace"
)

func draw(t *testing.T, workload string, bins int) *Demand {
	t.Helper()
	d, err := Draw(workload, 1, bins)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestCalibration: the demand of an hour has the known sizes of the workloads, so that
// figures of different runs can be compared.
func TestCalibration(t *testing.T) {
	race.OneGoroutine(t)
	for _, want := range []struct {
		workload             string
		from, to             int
		peakFrom, peakTo     int
		meanFrom, meanTo     float64
		maxFrom, maxTo       int
		aboveFrom, aboveTill float64
	}{
		{"fit", 785_000, 840_000, 1200, 2200, 2700, 3050, 4300, 5100, 0, .003},
		{"tight", 785_000, 840_000, 1350, 2500, 3500, 3900, 5200, 6300, .005, .076},
		{"burst", 785_000, 840_000, 1300, 2400, 2800, 3100, 4480, 5450, 0, .004},
		{"over", 785_000, 840_000, 1900, 3100, 5300, 5900, 7500, 8500, .67, .86},
		{"batch", 735_000, 760_000, 2000, 2900, 1650, 1850, 4000, 4900, 0, 0},
	} {
		d := draw(t, want.workload, MaxBins)
		s := d.Shape()
		if s.Transactions < want.from || s.Transactions > want.to {
			t.Errorf("%s: %d transactions", want.workload, s.Transactions)
		}
		if len(s.Peaks) != 5 {
			t.Errorf("%s: peaks of %d regions", want.workload, len(s.Peaks))
		}
		for region, peak := range s.Peaks {
			if peak < want.peakFrom || peak > want.peakTo {
				t.Errorf("%s: the peak of %s is %d", want.workload, region, peak)
			}
		}
		if s.Mean < want.meanFrom || s.Mean > want.meanTo || s.Max < want.maxFrom || s.Max > want.maxTo {
			t.Errorf("%s: mean %v, max %d", want.workload, s.Mean, s.Max)
		}
		if s.Above < want.aboveFrom || s.Above > want.aboveTill {
			t.Errorf("%s: %v of the time above the limit", want.workload, s.Above)
		}
		if !slices.IsSortedFunc(d.Leases, func(a, b Lease) int { return int(a.Due - b.Due) }) {
			t.Errorf("%s: not in order", want.workload)
		}
	}
}

// TestBatchTiming: the limit of batch is enough for all tokens asked for at any time. It
// is not enough for each site to hold a high quantile of its demand all the time.
func TestBatchTiming(t *testing.T) {
	d := draw(t, "batch", MaxBins)
	if err := d.Recall(); err != nil {
		t.Fatal(err)
	}
	const horizon = 6
	var quantiles float64
	for r, bins := range d.History {
		if len(bins) != firstBin-trace.FirstBin {
			t.Fatalf("region %d remembers %d bins", r, len(bins))
		}
		var peaks []float64
		for i := range len(bins) - horizon {
			net, peak := 0., 0.
			for _, b := range bins[i : i+horizon] {
				peak = max(peak, net+b.Peak)
				net += b.Net
			}
			peaks = append(peaks, peak)
		}
		slices.Sort(peaks)
		quantiles += peaks[len(peaks)*95/100]
	}
	s := d.Shape()
	if free := float64(Limit) - s.Mean; s.Max >= int(Limit) || quantiles < 1.3*free {
		t.Errorf("%v in all quantiles, %v free, at most %d out", quantiles, free, s.Max)
	}
}

func TestShape(t *testing.T) {
	const ms = time.Millisecond
	d := &Demand{Span: 100 * ms, Leases: []Lease{
		{Due: 0, Hold: 50 * ms, Place: 0}, {Due: 0, Hold: 200 * ms, Place: 1}, {Due: 50 * ms, Hold: 10 * ms, Place: 0},
	}}
	s := d.Shape()
	// The second release is due after the end. At 50 ms a token goes before another
	// comes.
	if s.Transactions != 5 || s.Max != 2 || s.Peaks["us"] != 1 || s.Peaks["as"] != 1 || s.Mean != 1.6 || s.Above != 0 {
		t.Errorf("%+v", s)
	}
}

func TestDrawRefuses(t *testing.T) {
	for _, bins := range []int{0, MaxBins + 1} {
		if _, err := Draw("fit", 1, bins); err == nil {
			t.Errorf("%d bins are drawn", bins)
		}
	}
	if _, err := Draw("single", 1, 1); err == nil {
		t.Error("an unknown workload is drawn")
	}
	// A shorter run is the beginning of a longer run.
	short, long := draw(t, "burst", 3), draw(t, "burst", 6)
	if n := len(short.Leases); n == 0 || n >= len(long.Leases) || !slices.Equal(short.Leases, long.Leases[:n]) {
		t.Error("15 s are not the beginning of 30 s")
	}
}

func TestOracle(t *testing.T) {
	const ms = time.Millisecond
	d := &Demand{Span: 100 * ms, Leases: []Lease{
		{Due: 0, Hold: 30 * ms},
		{Due: 10 * ms, Hold: 90 * ms},
		{Due: 20 * ms, Hold: ms, Place: 1},
		{Due: 30 * ms, Hold: 10 * ms},
		{Due: 35 * ms, Hold: 10 * ms},
		{Due: 40 * ms, Hold: 10 * ms},
	}}
	// Of two tokens: the third and the fifth find none, and have none to release;
	// the second is not released before the end.
	if got, want := d.Oracle(2), (Oracle{Granted: 4, Refused: 2, Releases: 3}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := d.Oracle(3); got.Refused != 0 || got.Granted != 6 {
		t.Errorf("of three tokens: %+v", got)
	}
}
