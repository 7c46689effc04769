package trace

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/samya-db/samya/predict"
)

// table writes rows with times in milliseconds.
func table(times []int64, value func(i int) float64) string {
	var b strings.Builder
	b.WriteString("t,count\n")
	for i, t := range times {
		fmt.Fprintf(&b, "%.3f,%g\n", float64(t)/1000, value(i))
	}
	return b.String()
}

// daily repeats itself after a day of 288 bins, and every bin differs.
func daily(i int) float64 { return float64(i % 288 * 7 % 101) }

// TestGridSnaps: jitter, duplicates and gaps leave the bins where they belong.
func TestGridSnaps(t *testing.T) {
	const bins = 3 * 288
	for name, tc := range map[string]struct {
		step int64 // seconds
		move func(r *rand.Rand, i int) int64
	}{
		"as it should be":       {300, func(*rand.Rand, int) int64 { return 0 }},
		"a few seconds":         {300, func(r *rand.Rand, _ int) int64 { return r.Int64N(14_000) - 7000 }},
		"a third of a bin":      {300, func(r *rand.Rand, _ int) int64 { return r.Int64N(200_000) - 100_000 }},
		"late, at times by far": {300, func(r *rand.Rand, _ int) int64 { return int64(min(290_000, 10_000*r.ExpFloat64())) }},
		"the first is late":     {300, func(_ *rand.Rand, i int) int64 { return max(0, 149_000-149_000*int64(i)) }},
		"bins of 10 s":          {10, func(r *rand.Rand, _ int) int64 { return r.Int64N(6000) - 3000 }},
		"bins of 7 minutes":     {420, func(r *rand.Rand, _ int) int64 { return r.Int64N(20_000) - 10_000 }},
		"bins of 301 s":         {301, func(*rand.Rand, int) int64 { return 0 }},
		"bins of 299 s":         {299, func(r *rand.Rand, _ int) int64 { return r.Int64N(4000) - 2000 }},
	} {
		r := rand.New(rand.NewPCG(1, 1))
		times := make([]int64, bins)
		for i := range times {
			times[i] = 1_424_986_973_000 + int64(i)*1000*tc.step + tc.move(r, i)
		}
		slices.Sort(times)
		s, err := ReadCSV(strings.NewReader(table(times, daily)), "count")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if s.Step != tc.step || len(s.Bins) != bins || s.MissingBins() != 0 {
			t.Errorf("%s: %d bins of %d s, %d missing", name, len(s.Bins), s.Step, s.MissingBins())
			continue
		}
		for i, b := range s.Bins {
			if b.Net != daily(i) {
				t.Errorf("%s: bin %d is %v, want %v", name, i, b.Net, daily(i))
				break
			}
		}
	}
}

// TestGridGaps: a bin without a row is missing, also where most are, and rows of the same
// bin are added up.
func TestGridGaps(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	var times []int64
	want := make(map[int]float64)
	for i := range 2000 {
		if i > 0 && r.IntN(3) > 0 {
			continue
		}
		for range 1 + r.IntN(8)/7 {
			times = append(times, int64(i)*60_000+r.Int64N(8000))
			want[i]++
		}
	}
	slices.Sort(times)
	s, err := ReadCSV(strings.NewReader(table(times, func(int) float64 { return 1 })), "count")
	if err != nil {
		t.Fatal(err)
	}
	if s.Step != 60 || s.Day() != 1440 {
		t.Fatalf("bins of %d s, %d a day", s.Step, s.Day())
	}
	for i, b := range s.Bins {
		if n, ok := want[i]; ok != !math.IsNaN(b.Net) || ok && b.Net != n {
			t.Errorf("bin %d is %v, want %v", i, b.Net, n)
		}
	}
}

// TestDay: a day is the nearest whole number of bins, or the day of the series if the
// clock of the bins runs ahead or behind.
func TestDay(t *testing.T) {
	for _, tc := range []struct {
		step   int64
		period int // of the series, in bins
		want   int
	}{
		{300, 288, 288},
		{301, 288, 288},
		{301, 287, 287},
		{299, 288, 288},
		{299, 289, 289},
		{420, 206, 206},
		{1800, 48, 48},
		{1801, 48, 48},
		{1815, 48, 48},
		{10, 8640, 8640},
		{3000, 29, 0},
		{18_000, 5, 0},
		{86_400, 1, 1},
		{90_000, 1, 0},
		{0, 1, 0},
	} {
		s := &Series{Step: tc.step, Bins: make([]predict.Bin, 5*288)}
		for i := range s.Bins {
			s.Bins[i].Net = float64(i % tc.period * 7 % 101)
		}
		if got := s.Day(); got != tc.want {
			t.Errorf("bins of %d s that repeat after %d: a day of %d, want %d", tc.step, tc.period, got, tc.want)
		}
	}
}

// TestTimes: a series is the same however its times are written.
func TestTimes(t *testing.T) {
	const start, step = 1_427_590_800, 300
	want := make([]predict.Bin, 40)
	for i := range want {
		want[i] = predict.Bin{Net: float64(i), Peak: float64(i)}
	}
	cet := time.FixedZone("", 3600)
	for _, header := range []string{"t", "time", "timestamp"} {
		for name, write := range map[string]func(i int, at time.Time) string{
			"Unix seconds":  func(_ int, at time.Time) string { return fmt.Sprint(at.Unix()) },
			"with decimals": func(_ int, at time.Time) string { return fmt.Sprintf("%d.25", at.Unix()) },
			"RFC 3339":      func(_ int, at time.Time) string { return at.Format(time.RFC3339) },
			"a space":       func(_ int, at time.Time) string { return at.Format("2006-01-02 15:04:05") },
			"fractions":     func(_ int, at time.Time) string { return at.Format("2006-01-02T15:04:05.000Z07:00") },
			"UTC":           func(_ int, at time.Time) string { return at.Format("2006-01-02 15:04:05 UTC") },
			"no seconds":    func(_ int, at time.Time) string { return at.Format("2006-01-02T15:04") },
			"a zone":        func(_ int, at time.Time) string { return at.In(cet).Format(time.RFC3339) },
			"a short zone":  func(_ int, at time.Time) string { return at.In(cet).Format("2006-01-02 15:04:05Z0700") },
			"the clocks change": func(i int, at time.Time) string {
				return at.In(time.FixedZone("", 3600*(1+i/20))).Format("2006-01-02 15:04:05Z07:00")
			},
		} {
			var b strings.Builder
			b.WriteString(header + ",count\n")
			for i := range want {
				fmt.Fprintf(&b, "%s,%d\n", write(i, time.Unix(start+int64(i)*step, 0).UTC()), i)
			}
			s, err := ReadCSV(strings.NewReader(b.String()), "count")
			if err != nil {
				t.Errorf("%s: %v", name, err)
			} else if s.Start != start || s.Step != step || !equal(s.Bins, want) {
				t.Errorf("%s: bins of %d s from %d: %v", name, s.Step, s.Start, s.Bins)
			}
		}
	}
}

// TestTimesRefused: the error for a wrong time names its line and its fault.
func TestTimesRefused(t *testing.T) {
	for name, tc := range map[string]struct{ rows, line, says string }{
		"no time":       {"0,1\n300,1\nnoon,1\n", "line 4", `"noon" is neither Unix seconds nor ISO 8601`},
		"empty":         {"0,1\n,1\n", "line 3", `time ""`},
		"milliseconds":  {"1424986973000,1\n", "line 2", "milliseconds"},
		"not a number":  {"0,1\nNaN,1\n", "line 3", `"NaN"`},
		"infinite":      {"0,1\n1e999,1\n", "line 3", `"1e999"`},
		"back":          {"0,1\n300,1\n299,1\n", "line 4", `"299" is before "300"`},
		"mixed":         {"2015-02-26T21:42:53Z,1\n1424987273,1\n", "line 3", `"1424987273" is Unix seconds, those before are ISO 8601 with a zone`},
		"mixed zones":   {"2015-02-26T21:42:53Z,1\n2015-02-26T21:47:53,1\n", "line 3", "without a zone"},
		"ISO back":      {"2015-02-26T21:42:53Z,1\n2015-02-26T21:42:52Z,1\n", "line 3", "must be in order"},
		"clocks change": {"2015-10-25 02:55:00,1\n2015-10-25 02:00:00,1\n", "line 3", "need a zone"},
		"no such day":   {"2015-02-29T00:00:00Z,1\n", "line 2", "2015-02-29"},
	} {
		_, err := ReadCSV(strings.NewReader("t,count\n"+tc.rows), "count")
		if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), tc.line+":") || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v, want %s and %s", name, err, tc.line, tc.says)
		}
	}
}

// TestBeyond: a number that no entity can have is missing, and counted.
func TestBeyond(t *testing.T) {
	s, err := ReadCSV(strings.NewReader("t,count,peak\n0,5,5\n60,1e300,1e300\n120,-1,0\n180,3,1e17\n240,NaN,1\n"), "count")
	if err != nil {
		t.Fatal(err)
	}
	if want := []predict.Bin{{Net: 5, Peak: 5}, predict.Missing, {Net: -1}, predict.Missing, predict.Missing}; s.Beyond != 2 || !equal(s.Bins, want) {
		t.Errorf("%d beyond, bins %v, want 2 and %v", s.Beyond, s.Bins, want)
	}
}
