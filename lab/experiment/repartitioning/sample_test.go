package repartitioning

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/samya-db/samya/kvpart"
)

// looksAt makes looks every 50 ms at a run of these rates in thousands a second.
// In the bins of cutting a cut was under way, and ended with the bin.
func looksAt(rates []float64, cutting ...int) []look {
	all := []look{{Stats: kvpart.Stats{Queued: []int{0, 0}}}}
	for i, rate := range rates {
		l := all[i]
		l.at += binLength
		ended := int64(rate * 1000 * binLength.Seconds())
		l.done += ended
		l.Operations += ended
		l.Queued = []int{10, 30}
		if slices.Contains(cutting, i) {
			l.Computed++
			l.Applied++
			l.LastCutTime = 20 * time.Millisecond
		}
		if l.Applied == 0 {
			l.Multi += ended / 2
		}
		all = append(all, l)
	}
	return all
}

func TestBins(t *testing.T) {
	all := bins(looksAt([]float64{10, 20, 0}, 1))
	if len(all) != 3 || all[0].rate != 10_000 || all[1].rate != 20_000 || all[2].rate != 0 {
		t.Fatalf("bins %+v", all)
	}
	if all[0].multi != .5 || all[1].multi != 0 || !math.IsNaN(all[2].multi) {
		t.Errorf("shares %v, %v, %v", all[0].multi, all[1].multi, all[2].multi)
	}
	if all[0].spread != .5 || all[1].applied != 1 || all[1].from != binLength || all[1].to != 2*binLength {
		t.Errorf("bin %+v", all[1])
	}
}

func TestVariation(t *testing.T) {
	for _, c := range []struct {
		lengths []int
		want    float64
	}{
		{[]int{5, 5, 5}, 0},
		{[]int{10, 30}, .5},
		{[]int{0, 8}, 1},
		{[]int{0, 0}, math.NaN()},
	} {
		if got := variation(c.lengths); got != c.want && !(math.IsNaN(got) && math.IsNaN(c.want)) {
			t.Errorf("%v: %v, want %v", c.lengths, got, c.want)
		}
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		of   []float64
		want float64
	}{
		{[]float64{3, 1, 2}, 2},
		{[]float64{4, 1, 2, 3}, 2.5},
		{[]float64{math.NaN(), 7}, 7},
		{[]float64{math.NaN()}, math.NaN()},
		{nil, math.NaN()},
	} {
		if got := median(c.of); got != c.want && !(math.IsNaN(got) && math.IsNaN(c.want)) {
			t.Errorf("%v: %v, want %v", c.of, got, c.want)
		}
	}
}

// A dip is told where the rate dips, and only there.
func TestDip(t *testing.T) {
	rates := []float64{100, 100, 100, 40, 100, 100, 100, 100, 100, 20, 100, 100, 100, 100, 30, 100}
	looks := looksAt(rates, 3, 9, 14)
	all, of := bins(looks), cuts(looks)
	if len(of) != 3 {
		t.Fatalf("cuts %v", of)
	}
	for i, bin := range []int{3, 9, 14} {
		if of[i].to != all[bin].to || of[i].to-of[i].from < 20*time.Millisecond {
			t.Errorf("cut %d: %v", i, of[i])
		}
	}
	if got := dip(all, of); math.Abs(got-.7) > 1e-9 {
		t.Errorf("dip of %v, want .7", got)
	}
	calm := between(of)
	if len(calm) != 2 {
		t.Fatalf("between cuts: %v", calm)
	}
	if got := dip(all, calm); got != 0 {
		t.Errorf("dip of %v where nothing is cut", got)
	}
	if got := dip(all, nil); !math.IsNaN(got) {
		t.Errorf("dip of %v without a cut", got)
	}
}

func TestLoss(t *testing.T) {
	looks := looksAt([]float64{100, 100, 40, 100, 100, 20, 100}, 2, 5)
	all := bins(looks)
	of := []span{{all[2].from, all[2].to}, {all[5].from, all[5].to}}
	if got := loss(all, of); math.Abs(got-.7) > 1e-9 {
		t.Errorf("loss of %v, want .7", got)
	}
	if got := loss(all, nil); !math.IsNaN(got) {
		t.Errorf("loss of %v without a cut", got)
	}
	if got := loss(all, []span{{0, all[6].to}}); !math.IsNaN(got) {
		t.Errorf("loss of %v where all is cut", got)
	}
}

func TestSums(t *testing.T) {
	var f figures
	f.sum(looksAt([]float64{10, 10, 10, 30, 30, 30, 30, 99}, 2, 6))
	if f.median != 30_000 && f.median != 20_000 {
		t.Errorf("median %v", f.median)
	}
	if math.Abs(f.first-.5) > 1e-9 || f.once != 0 || f.spread != .5 || len(f.cuts) != 2 {
		t.Errorf("first %v, once %v, spread %v, cuts %v", f.first, f.once, f.spread, f.cuts)
	}
	var still figures
	still.sum(looksAt([]float64{10, 10}))
	if !math.IsNaN(still.once) || still.first != .5 || !math.IsNaN(still.dip) {
		t.Errorf("without a switch: first %v, once %v, dip %v", still.first, still.once, still.dip)
	}
}
