package trace

import (
	"bytes"
	"compress/gzip"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/samya-db/samya/internal/testfuzz"
	"github.com/samya-db/samya/predict"
)

func equal(a, b []predict.Bin) bool {
	return slices.EqualFunc(a, b, func(x, y predict.Bin) bool {
		return x == y || math.IsNaN(x.Net) && math.IsNaN(y.Net)
	})
}

func TestReadCSV(t *testing.T) {
	// Bins of 10 s; a row is 2 s late, a bin is missing, two rows are in the last bin.
	in := "t,count\n100,5\n110,-6\n122,7\n140,8\n150,1\n150,2\n"
	s, err := ReadCSV(strings.NewReader(in), "count")
	if err != nil {
		t.Fatal(err)
	}
	want := []predict.Bin{{Net: 5, Peak: 5}, {Net: -6}, {Net: 7, Peak: 7}, predict.Missing, {Net: 8, Peak: 8}, {Net: 3, Peak: 3}}
	if s.Start != 100 || s.Step != 10 || !equal(s.Bins, want) || s.MissingBins() != 1 {
		t.Errorf("got %+v, want bins %v", s, want)
	}
	if s.Day() != 8640 {
		t.Errorf("%d bins a day", s.Day())
	}
	s, err = ReadCSV(strings.NewReader("x,t,net,peak\n,0,1,4\n,60,,\n,120,-2,3\n"), "net")
	if err != nil {
		t.Fatal(err)
	}
	if want := []predict.Bin{{Net: 1, Peak: 4}, predict.Missing, {Net: -2, Peak: 3}}; !equal(s.Bins, want) {
		t.Errorf("got %v, want %v", s.Bins, want)
	}
}

func TestReadCSVRefuses(t *testing.T) {
	for name, in := range map[string]string{
		"no column":    "t,x\n1,2\n2,3\n",
		"one row":      "t,count\n1,2\n",
		"no number":    "t,count\n1,2\n2,many\n",
		"infinite":     "t,count\n1,2\n2,inf\n",
		"out of order": "t,count\n2,2\n1,2\n",
		"one time":     "t,count\n2,2\n2,2\n2,3\n",
		"too long":     "t,count\n0,1\n1,1\n2,1\n3,1\n1000000000,1\n",
		"far":          "t,count\n0,1\n9000000000000000000,1\n",
	} {
		if _, err := ReadCSV(strings.NewReader(in), "count"); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ReadCSV(strings.NewReader(""), "count"); err == nil {
		t.Error("an empty file is read")
	}
}

const vms = `a,s,d,300,900,1,1,1,Unknown,2,4
b,s,d,0,900,1,1,1,Interactive,2,4
c,s,d,310,2591700,1,1,1,Delay-insensitive,>24,>64
d,s,d,600,600,1,1,1,Unknown,2,4
`

func TestReadVMTable(t *testing.T) {
	dir := t.TempDir()
	plain, packed := filepath.Join(dir, "vmtable.csv"), filepath.Join(dir, "vmtable.csv.gz")
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(vms)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(z.Close(), os.WriteFile(packed, b.Bytes(), 0o600), os.WriteFile(plain, []byte(vms), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{plain, packed} {
		s, err := ReadFile(path, "ignored")
		if err != nil {
			t.Fatal(err)
		}
		want := []predict.Bin{{}, {Net: 2, Peak: 2}, {}, {Net: -2}}
		if s.Step != 300 || !equal(s.Bins, want) {
			t.Errorf("%s: %v, want %v", path, s.Bins, want)
		}
	}
	for name, in := range map[string]string{"no time": strings.Replace(vms, "310", "x", 1), "negative": strings.Replace(vms, "310", "-1", 1), "empty": ""} {
		if _, err := ReadVMTable(strings.NewReader(in)); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ReadFile(filepath.Join(dir, "none.csv"), "count"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

func FuzzReadCSV(tf *testing.F) {
	f := testfuzz.On(tf)
	f.Add("t,count\n100,5\n110,-6\n")
	f.Add("t,count,peak\n100,5,7\n110,-6,\n")
	f.Fuzz(func(t *testing.T, in string) {
		s, err := ReadCSV(strings.NewReader(in), "count")
		if err == nil && (s.Step <= 0 || len(s.Bins) == 0 || len(s.Bins) > maxBins+1) {
			t.Errorf("%d bins of %d s", len(s.Bins), s.Step)
		}
		if _, err := ReadVMTable(strings.NewReader(in)); err != nil {
			return
		}
	})
}

func TestWriteCSV(t *testing.T) {
	s := NearPeriodic(3)
	s.Bins[5] = predict.Missing
	var b bytes.Buffer
	if err := WriteCSV(&b, s); err != nil {
		t.Fatal(err)
	}
	again, err := ReadCSV(&b, "net")
	if err != nil {
		t.Fatal(err)
	}
	if again.Step != s.Step || again.Start != s.Start || !equal(again.Bins, s.Bins) {
		t.Error("what was written is not what is read")
	}
}

// sums are the mean of positive bins, the largest, and the net sum.
func sums(s *Series) (mean, most, net float64) {
	n := 0.
	for _, b := range s.Bins {
		net += b.Net
		if b.Net > 0 {
			mean += b.Net
			n++
		}
		most = max(most, b.Net)
	}
	return mean / n, most, net
}

func TestNearPeriodic(t *testing.T) {
	s := NearPeriodic(1)
	mean, most, net := sums(s)
	if len(s.Bins) != 8640 || s.Day() != 288 {
		t.Fatalf("%d bins, %d a day", len(s.Bins), s.Day())
	}
	if math.Abs(mean-624) > 25 || most != 3118 || math.Abs(net) > .05*624*4320 {
		t.Errorf("mean %v, most %v, net %v", mean, most, net)
	}
	if !equal(s.Bins, NearPeriodic(1).Bins) || equal(s.Bins, NearPeriodic(2).Bins) {
		t.Error("the seed does not make the series")
	}
}

func TestAzureLike(t *testing.T) {
	a, err := AzureLike(1, "fit", 0)
	if err != nil {
		t.Fatal(err)
	}
	b, err := AzureLike(1, "fit", 1)
	if err != nil {
		t.Fatal(err)
	}
	if equal(a.Bins, b.Bins) {
		t.Error("two regions are one")
	}
	again, err := AzureLike(1, "fit", 0)
	if err != nil || !equal(a.Bins, again.Bins) {
		t.Errorf("the seed does not make the series: %v", err)
	}
	held, most := 0., 0.
	for _, bin := range a.Bins {
		if bin.Peak < max(0, bin.Net) {
			t.Fatalf("peak below net: %+v", bin)
		}
		held += bin.Net
		most = max(most, held)
	}
	// The peak of the held tokens is some 1200 to 2000 (fit), from a start that is not
	// zero.
	if most < 500 || most > 2500 {
		t.Errorf("most held %v", most)
	}
	if _, err := AzureLike(1, "exact", 0); !errors.Is(err, ErrParameter) {
		t.Errorf("unknown variant: %v", err)
	}
	if _, err := AzureLike(1, "fit", 5); !errors.Is(err, ErrParameter) {
		t.Errorf("unknown region: %v", err)
	}
}

// TestAzureLikeStays: figures rest on the series, so it stays as it is.
func TestAzureLikeStays(t *testing.T) {
	s, err := AzureLike(1, "single", 0)
	if err != nil {
		t.Fatal(err)
	}
	want := []predict.Bin{{Net: 754, Peak: 755}, {Net: -277, Peak: 2}, {Net: -114, Peak: 0}, {Net: -86, Peak: 7}, {Net: -39, Peak: 2}, {Net: -60, Peak: 0}}
	if got := s.Bins[:len(want)]; !equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestBurst: the tokens of a deployment are acquired almost at once.
func TestBurst(t *testing.T) {
	for name, want := range map[string]func(share float64) bool{
		"fit":   func(share float64) bool { return share < .3 },
		"burst": func(share float64) bool { return share > .9 },
	} {
		leases, err := AzureLikeLeases(1, name, 2)
		if err != nil {
			t.Fatal(err)
		}
		all, near, before := 0., 0., math.Inf(-1)
		for l := range leases {
			all++
			if math.Abs(l.At-before) <= .06 {
				near++
			}
			if before = l.At; l.At > 1000 {
				break
			}
		}
		if share := near / all; !want(share) {
			t.Errorf("%s: %v of %v tokens come near to the one before", name, share, all)
		}
	}
}

// TestBatch: each region has its jobs at the same local times every day.
func TestBatch(t *testing.T) {
	for region, after := range hourly.after {
		s, err := AzureLike(3, "batch", Region(region))
		if err != nil {
			t.Fatal(err)
		}
		for bin := range 3 * syntheticDay {
			local := bin + 12*phases[region]
			least, at := 0., s.Bins[bin].Peak
			if (local-after)%12 == 0 {
				least += .8 * hourly.tokens
			}
			if local%syntheticDay == nightly.at {
				least += .8 * nightly.tokens
			}
			if at < least || least == 0 && at > 600 {
				t.Errorf("region %d, bin %d: a peak of %v, jobs of %v", region, bin, at, least)
			}
		}
	}
}

func TestBins(t *testing.T) {
	changes := func(yield func(at float64, tokens int) bool) {
		for _, c := range []struct {
			at     float64
			tokens int
		}{{-.5, 1}, {1.5, 4}, {-1.5, 9}, {-.5, -3}, {-.25, 4}, {2, 9}} {
			if !yield(c.at, c.tokens) {
				return
			}
		}
	}
	want := []predict.Bin{{Net: 2, Peak: 2}, {}, {Net: 4, Peak: 4}}
	if got := Bins(changes, -1, 2); !equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestEnvelope(t *testing.T) {
	// Saturday, 09:00 (h = .375): 1 + .35·sin 0 + .1·sin(4π·.175), on a day of .75.
	if got, want := envelope(5*288+108), (1+.1*math.Sin(4*math.Pi*.175))*.75; math.Abs(got-want) > 1e-12 {
		t.Errorf("envelope %v, want %v", got, want)
	}
	if math.Abs(envelope(-1)-envelope(7*288-1)) > 1e-12 {
		t.Error("weeks differ before the first")
	}
}
