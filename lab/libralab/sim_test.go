package libralab

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	_ "github.com/samya-db/samya/internal/testheap"
	"github.com/samya-db/samya/kvpart/libra"
)

// policies are all policies, with all ways to split.
func policies() []Policy {
	return []Policy{
		{Name: "off", Off: true},
		{Name: "libra"},
		{Name: "eager", Eager: true},
		{Name: "printed", Printed: true},
		{Name: "by size", Splits: BySize},
		{Name: "never", Splits: Never},
		{Name: "cpu", Rule: libra.OnlyCPU},
		{Name: "disk", Rule: libra.OnlyDisk},
		{Name: "turns", Rule: libra.Isolated},
		{Name: "parallel", Rule: libra.Isolated, Parallel: true, Unguarded: true},
		{Name: "weighted", Rule: libra.Weighted, Weight: .5, Splits: ByRate},
	}
}

// TestRegionsStayWhole: at all times regions cover all keys, have all load together, and
// are on nodes without another replica.
func TestRegionsStayWhole(t *testing.T) {
	for _, p := range policies() {
		for _, handover := range []bool{false, true} {
			s, err := begin(&Config{
				Nodes: 8, Workload: Mixgraph(Run, 11), Policy: p, Begin: 20, Shift: 400, End: 1000, Noise: .05, Drift: .1, Merge: true, Handover: handover,
			})
			if err != nil {
				t.Fatal(err)
			}
			for ; s.now <= s.End; s.now++ {
				if err := s.second(); err != nil {
					t.Fatalf("%s: %v", p.Name, err)
				}
				whole(t, p.Name, s)
			}
			if busy := s.result.Moves > 0; busy == p.Off {
				t.Errorf("%s: %d moves", p.Name, s.result.Moves)
			}
		}
	}
}

func whole(t *testing.T, name string, s *sim) {
	t.Helper()
	key, sum, total := 0, libra.Load{}, s.space.total()
	sources, destinations := map[int]int{}, map[int]int{}
	for _, r := range s.regions {
		if r.low != key || r.high <= r.low {
			t.Fatalf("%s, second %d: a region from %d to %d after key %d", name, s.now, r.low, r.high, key)
		}
		key = r.high
		for d := range sum {
			sum[d] += r.load[d]
		}
		replicas := append([]int{r.node}, r.followers...)
		slices.Sort(replicas)
		if len(slices.Compact(replicas)) != 3 {
			t.Fatalf("%s, second %d: replicas on nodes %v", name, s.now, replicas)
		}
		if r.to != nowhere {
			sources[r.node]++
			destinations[r.to]++
			if !s.Handover && slices.Contains(r.followers, r.to) {
				t.Fatalf("%s, second %d: a move to a node with a replica", name, s.now)
			}
		}
	}
	for j := range s.Nodes {
		if sources[j] > 1 || destinations[j] > 1 {
			t.Fatalf("%s, second %d: node %d has %d moves off and %d to it", name, s.now, j, sources[j], destinations[j])
		}
	}
	want := libra.Load{total.reads + s.cost*total.writes, total.bytes}
	if key != allKeys || math.Abs(sum[0]-want[0]) > 1e-6*want[0] || math.Abs(sum[1]-want[1]) > 1e-6*want[1] {
		t.Fatalf("%s, second %d: load %v up to key %d, want %v", name, s.now, sum, key, want)
	}
}

func TestSameSeedSameRun(t *testing.T) {
	run := func(seed uint64) *Result {
		r, err := Do(&Config{Nodes: 8, Workload: Mixgraph(Run, seed), Begin: 20, Shift: 300, End: 900, Noise: .05, Merge: true})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	a := run(1)
	if !reflect.DeepEqual(a, run(1)) {
		t.Error("the same seed gives another run")
	}
	if reflect.DeepEqual(a, run(2)) {
		t.Error("another seed gives the same run")
	}
}

// TestBalance: the product's way balances without noise where no splits do not.
func TestBalance(t *testing.T) {
	last := func(p Policy) float64 {
		r, err := Do(&Config{Nodes: 8, Workload: Mixgraph(Run, 21), Policy: p, Begin: 20, End: 2400})
		if err != nil {
			t.Fatal(err)
		}
		end := r.Points[len(r.Points)-1].Served
		return max(end[libra.CPU], end[libra.Disk])
	}
	if got := last(Policy{}); got > 1+libra.DefaultTolerance+1e-9 {
		t.Errorf("Max/Mean %v", got)
	}
	if got := last(Policy{Splits: Never}); got <= 1+libra.DefaultTolerance {
		t.Errorf("Max/Mean %v without splits", got)
	}
}

func TestSplitsAreAccurate(t *testing.T) {
	for _, share := range []float64{.1, .5} {
		a, err := Split(Mixgraph(Run, 5), 8, 100, share)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range libra.Dimensions() {
			if a.Load[d] > .1 || a.Size[d] < .4 {
				t.Errorf("share %v, %v: errors %v by load and %v by size", share, d, a.Load[d], a.Size[d])
			}
		}
	}
	if _, err := Split(Mixgraph(Run, 5), 8, 1, 1); !errors.Is(err, errConfig) {
		t.Errorf("a share of 1: %v", err)
	}
}

// TestSplitKeys: all parts but the last have the share.
func TestSplitKeys(t *testing.T) {
	var samples []libra.Sample[int]
	for key := range 1000 {
		samples = append(samples, libra.Sample[int]{Start: key, End: key, Load: 1})
	}
	if got, want := splitKeys(samples, 0, 1000, .25, 4), []int{250, 500, 750}; !slices.Equal(got, want) {
		t.Errorf("keys %v, want %v", got, want)
	}
	if got := splitKeys(samples[:1], 0, 1000, .25, 4); len(got) != 0 {
		t.Errorf("keys %v of a single request", got)
	}
}

func TestConfigIsChecked(t *testing.T) {
	for field, change := range map[string]func(*Config){
		"nodes":    func(c *Config) { c.Nodes = 3 },
		"workload": func(c *Config) { c.Workload = nil },
		"end":      func(c *Config) { c.End = 0 },
		"shift":    func(c *Config) { c.Shift = -1 },
		"noise":    func(c *Config) { c.Noise = math.NaN() },
		"drift":    func(c *Config) { c.Drift = -.6 },
		"rule":     func(c *Config) { c.Policy.Parallel = true },
	} {
		c := Config{Nodes: 8, Workload: Mixgraph(Run, 1), End: 10}
		change(&c)
		if _, err := Do(&c); !errors.Is(err, errConfig) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	if _, err := Do(&Config{Nodes: 8, Workload: Mixgraph(Run, 1), End: 10, Tolerance: 2}); !errors.Is(err, libra.ErrInput) {
		t.Errorf("tolerance: %v", err)
	}
}
