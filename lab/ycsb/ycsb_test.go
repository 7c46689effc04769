package ycsb

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/samya-db/samya/kvpart"
)

func workload(t *testing.T, name string, change func(*Options)) *Workload {
	t.Helper()
	mix, err := MixOf(name)
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Mix: mix, Records: 1000, Clients: 4, ScanMin: 2, ScanMax: 8, Seed: 7}
	if change != nil {
		change(&o)
	}
	w, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestNames compares keys with the keys that YCSB prints for its first records.
func TestNames(t *testing.T) {
	for record, want := range []string{"user6284781860667377211", "user8517097267634966620", "user1820151046732198393"} {
		if got := Name(record); got != want {
			t.Errorf("record %d is %s, want %s", record, got, want)
		}
	}
	names := workload(t, "C", func(o *Options) { o.Records = 100_000 }).Names()
	sorted := slices.Compact(slices.Sorted(slices.Values(names)))
	if len(sorted) != len(names) {
		t.Errorf("%d names of %d records", len(sorted), len(names))
	}
}

func TestMixes(t *testing.T) {
	for name, want := range map[string][kinds]float64{
		"A": {Read: .5, Write: .5},
		"b": {Read: .95, Write: .05},
		"C": {Read: 1},
		"D": {Read: .95, Write: .05},
		"E": {Scan: .95, Write: .05},
		"F": {Read: .5, Modify: .5},
	} {
		const draws = 100_000
		w := workload(t, name, nil)
		g := w.Client(1)
		var got [kinds]float64
		lengths := map[int]float64{}
		for range draws {
			op := g.Next()
			got[op.Kind] += 1. / draws
			if op.Kind == Scan {
				lengths[op.Limit]++
			} else if op.Limit != 0 {
				t.Fatalf("%s: a limit of a %v", name, op.Kind)
			}
		}
		for k := range want {
			// Four standard deviations, and nothing where nothing is wanted.
			if bound := 4*math.Sqrt(want[k]*(1-want[k])/draws) + 1e-9; math.Abs(got[k]-want[k]) > bound {
				t.Errorf("%s: share of %v is %v, want %v", name, Kind(k), got[k], want[k])
			}
		}
		if want[Scan] > 0 {
			if len(lengths) != 7 {
				t.Errorf("%s: lengths of scans %v, want all from 2 to 8", name, lengths)
			}
			even := draws * want[Scan] / 7
			for n, c := range lengths {
				if n < 2 || n > 8 || math.Abs(c-even) > 4*math.Sqrt(even) {
					t.Errorf("%s: %v scans of %d, want about %v", name, c, n, even)
				}
			}
		}
	}
}

func TestDeterministic(t *testing.T) {
	draw := func(seed uint64, client int) []Op {
		g := workload(t, "E", func(o *Options) { o.Seed = seed }).Client(client)
		ops := make([]Op, 500)
		for i := range ops {
			ops[i] = g.Next()
		}
		return ops
	}
	if !slices.Equal(draw(1, 0), draw(1, 0)) {
		t.Error("the same seed and client give other operations")
	}
	if slices.Equal(draw(1, 0), draw(1, 1)) || slices.Equal(draw(1, 0), draw(2, 0)) {
		t.Error("another seed or client gives the same operations")
	}
}

// TestInserts checks that clients insert other records, none that is there.
func TestInserts(t *testing.T) {
	w := workload(t, "E", nil)
	seen := map[string]bool{}
	for _, n := range w.Names() {
		seen[n] = true
	}
	for c := range 4 {
		g := w.Client(c)
		for range 5000 {
			if op := g.Next(); op.Kind == Write {
				if seen[op.Key] {
					t.Fatalf("client %d inserts %s, which is there", c, op.Key)
				}
				seen[op.Key] = true
			}
		}
	}
	if len(seen) < 1000+4*5000/25 {
		t.Errorf("%d keys in the end: few were inserted", len(seen))
	}
}

// drawn counts how often each record is read.
func drawn(t *testing.T, w *Workload, draws int) []float64 {
	t.Helper()
	numbers := map[string]int{}
	for i, n := range w.Names() {
		numbers[n] = i
	}
	counts := make([]float64, len(w.Names()))
	g := w.Client(0)
	for range draws {
		n, ok := numbers[g.Next().Key]
		if !ok {
			t.Fatal("a record that is not there")
		}
		counts[n]++
	}
	return counts
}

// TestZipfian compares how often ranks are drawn with 1/k^Theta.
func TestZipfian(t *testing.T) {
	const draws = 1_000_000
	for _, records := range []int{1, 2, 3, 1000, 100_000} {
		w := workload(t, "C", func(o *Options) { o.Records = records })
		counts := drawn(t, w, draws)
		zeta := 0.0
		for k := 1; k <= records; k++ {
			zeta += math.Pow(float64(k), -Theta)
		}
		// The first two, then sums over ranks, which double.
		for from := 0; from < records; from = max(from+1, 2*from) {
			to := min(records, max(from+1, 2*from))
			want, got := 0.0, 0.0
			for k := from; k < to; k++ {
				want += draws * math.Pow(float64(k+1), -Theta) / zeta
				got += counts[w.order[k]]
			}
			if math.Abs(got-want) > 5*math.Sqrt(want) {
				t.Errorf("%d records: ranks %d to %d drawn %v times, want %.0f", records, from, to-1, got, want)
			}
		}
	}
}

// TestScrambled checks that the most wanted lie anywhere, and the same for all clients.
func TestScrambled(t *testing.T) {
	w := workload(t, "C", func(o *Options) { o.Records = 100_000 })
	hot := slices.Clone(w.order[:1000])
	sum := 0.0
	for _, r := range hot {
		sum += float64(r) / 1000
	}
	if math.Abs(sum-50_000) > 5*100_000/math.Sqrt(12*1000) {
		t.Errorf("the thousand most wanted are at %v in the mean, want 50,000", sum)
	}
	seen := slices.Clone(w.order)
	slices.Sort(seen)
	for i, r := range seen {
		if int(r) != i {
			t.Fatalf("no order of all records: %d at %d", r, i)
		}
	}
}

func TestUniform(t *testing.T) {
	const draws, records = 1_000_000, 1000
	counts := drawn(t, workload(t, "C", func(o *Options) { o.Mix.Distribution = Uniform }), draws)
	chi := 0.0
	for _, c := range counts {
		chi += (c - draws/records) * (c - draws/records) / (draws / records)
	}
	// 999 degrees of freedom: mean 999, standard deviation 44.7.
	if math.Abs(chi-999) > 5*44.7 {
		t.Errorf("chi-square %v, want 999±%v", chi, 5*44.7)
	}
}

// TestLatest checks that the newest record is the most wanted, whatever was inserted.
func TestLatest(t *testing.T) {
	w := workload(t, "D", func(o *Options) { o.Clients = 1 })
	g := w.Client(0)
	numbers := map[string]int{}
	for i := range 200_000 {
		numbers[Name(i)] = i
	}
	newest, zeta := 1000, 0.0
	var reads, first, want float64
	for k := 1; k <= newest; k++ {
		zeta += math.Pow(float64(k), -Theta)
	}
	for range 500_000 {
		op := g.Next()
		n, ok := numbers[op.Key]
		if !ok {
			t.Fatalf("%s is no record", op.Key)
		}
		if op.Kind == Write {
			if n != newest {
				t.Fatalf("inserted %d, want %d", n, newest)
			}
			newest++
			zeta += math.Pow(float64(newest), -Theta)
			continue
		}
		if n >= newest {
			t.Fatalf("read %d, the newest is %d", n, newest-1)
		}
		reads++
		want += 1 / zeta
		if n == newest-1 {
			first++
		}
	}
	if newest < 20_000 || math.Abs(first-want) > 5*math.Sqrt(want) {
		t.Errorf("%d records; the newest was %v of %v reads, want %.0f", newest, first, reads, want)
	}
}

func TestOptions(t *testing.T) {
	for want, change := range map[string]func(*Options){
		"records: 0":              func(o *Options) { o.Records = 0 },
		"clients: -1":             func(o *Options) { o.Clients = -1 },
		"scan length: 0":          func(o *Options) { o.ScanMin = 0 },
		"scan length: 9":          func(o *Options) { o.ScanMin = 9 },
		"scan length: 1 to 65537": func(o *Options) { o.ScanMax = kvpart.MaxScan + 1 },
		"distribution":            func(o *Options) { o.Mix.Distribution = "pareto" },
		"together":                func(o *Options) { o.Mix.Read = .1 },
		"below 0":                 func(o *Options) { o.Mix.Read = math.NaN() },
	} {
		o := Options{Mix: mixes["A"], Records: 10, Clients: 1, ScanMin: 1, ScanMax: 8}
		if _, err := New(o); err != nil {
			t.Fatal(err)
		}
		change(&o)
		if _, err := New(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := MixOf("G"); err == nil {
		t.Error("a workload G")
	}
}
