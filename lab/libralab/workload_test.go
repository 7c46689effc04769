package libralab

import (
	"math"
	"slices"
	"testing"
)

func TestWeights(t *testing.T) {
	for _, c := range []struct{ skew, first float64 }{{Published, .78}, {Run, .33}} {
		shares := weights(c.skew)
		sum := 0.
		for i, s := range shares {
			sum += s
			if i > 0 && s > shares[i-1] {
				t.Fatalf("a=%v: rank %d has more than rank %d", c.skew, i+1, i)
			}
		}
		if math.Abs(sum-1) > 1e-9 || math.Abs(shares[0]-c.first) > .01 {
			t.Errorf("a=%v: the hottest range has %v, want about %v; the sum is %v", c.skew, shares[0], c.first, sum)
		}
		if shares[410] != 0 || shares[390] == 0 {
			t.Errorf("a=%v: ranks 391 and 411 have %v and %v, want 0 from about rank 405 on", c.skew, shares[390], shares[410])
		}
	}
}

func TestSizes(t *testing.T) {
	if got := paretoSize(1); got != mostSize {
		t.Errorf("the largest size is %v", got)
	}
	if got := paretoSize(0); got != leastSize {
		t.Errorf("the smallest size is %v", got)
	}
	// The distribution's own quantile: 1 - (1 + kx/σ)^(-1/k).
	for _, x := range []float64{50, 226, 3000, 9000} {
		u := 1 - math.Pow(1+paretoShape*x/paretoScale, -1/paretoShape)
		if got := paretoSize(u); math.Abs(got-x) > x*1e-9 {
			t.Errorf("at %v: %v, want %v", u, got, x)
		}
	}
}

func TestPlaces(t *testing.T) {
	w := Mixgraph(Run, 7)
	shares := weights(Run)
	place := w.places(w.random(99), shares)
	sorted := slices.Clone(place)
	slices.Sort(sorted)
	for i, r := range sorted {
		if r != i {
			t.Fatal("not each range has a rank")
		}
	}
	large, small := 0, 0
	for i, r := range place {
		if shares[i] < hotShare {
			break
		}
		switch size := w.sizes[r]; {
		case size >= largeFrom && size <= largeTo:
			large++
		case size >= smallFrom && size <= smallTo:
			small++
		default:
			t.Errorf("hot rank %d has values of %v bytes", i+1, size)
		}
		for k := range i {
			if shares[i] >= veryHotShare && max(place[k]-r, r-place[k]) < apart {
				t.Errorf("ranks %d and %d are at %d and %d", k+1, i+1, place[k], r)
			}
		}
	}
	if small-large > 1 || large > small || large == 0 {
		t.Errorf("%d large and %d small hot ranges, want as many", large, small)
	}
}

// spaces are the key spaces of all workloads.
func spaces(t *testing.T) map[string]*Workload {
	t.Helper()
	all := map[string]*Workload{"published": Mixgraph(Published, 3), "run": Mixgraph(Run, 3)}
	for _, letter := range []string{"A", "B", "C", "D", "E", "F"} {
		w, err := YCSB(letter, 3)
		if err != nil {
			t.Fatal(err)
		}
		all[letter] = w
	}
	return all
}

func TestSpaceHasAllRequests(t *testing.T) {
	for name, w := range spaces(t) {
		for shift := range 2 {
			s := w.space(shift, 8)
			want := w.flow(1, 0, 8)
			got := s.total()
			if s.keys() != allKeys || math.Abs(got.reads-want.reads) > 1e-6*want.reads+1e-6 || math.Abs(got.writes-want.writes) > 1e-6*want.writes+1e-6 {
				t.Errorf("%s: %d keys, %v requests, want %v", name, s.keys(), got, want)
			}
			low, mid, high := 12_345, 40_000_001, 77_777_777
			both := s.between(low, mid).plus(s.between(mid, high), 1)
			all := s.between(low, high)
			if math.Abs(both.bytes-all.bytes) > 1e-6*all.bytes {
				t.Errorf("%s: parts have %v, the whole %v", name, both, all)
			}
		}
		if w.space(0, 8).between(0, allKeys/2) == w.space(1, 8).between(0, allKeys/2) && name != "D" {
			t.Errorf("%s: the hot spots do not move", name)
		}
	}
}

func TestUnknownWorkload(t *testing.T) {
	if _, err := YCSB("G", 1); err == nil {
		t.Error("no error")
	}
}
