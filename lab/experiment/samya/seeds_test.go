package samya

import (
	"slices"
	"testing"
	"time"
)

// Runs have as many seeds as they need and time allows. A comparison of two runs looks at
// the seeds that both have.
func TestSeeds(t *testing.T) {
	s := &setting{first: 1, span: time.Hour}
	for p, want := range map[play]int{
		{system: transfers, workload: fit, span: time.Hour}:                 20,
		{system: star, workload: burst, span: time.Hour}:                    20,
		{system: transfers, workload: tight, span: time.Hour}:               10,
		{system: escrowHalf, workload: fit, span: time.Hour}:                10,
		{system: batched, workload: fit, span: time.Hour}:                   3,
		{system: with(transfers, offerAll), workload: fit, span: time.Hour}: 3,
		{system: transfers, workload: fit, span: time.Hour, fault: crashes}: 3,
		{system: transfers, workload: fit, span: 30 * time.Minute}:          3,
		{system: transfers, workload: fit, span: time.Hour, sites: 10}:      3,
		{system: transfers, workload: traced, span: time.Hour}:              3,
	} {
		if got := s.seedsOf(p); len(got) != want || got[0] != 1 || !s.has(p, uint64(want)) || s.has(p, uint64(want)+1) { //nolint:gosec // few
			t.Errorf("%v: %v, want %d seeds", p, got, want)
		}
	}
	given := &setting{first: 5, seeds: 2, span: time.Hour}
	if got := given.seedsOf(play{system: transfers, workload: fit, span: time.Hour}); !slices.Equal(got, []uint64{5, 6}) {
		t.Errorf("two seeds from 5 on: %v", got)
	}
	quick := &setting{first: 1, span: time.Minute, quick: true}
	if got := quick.longest(); !slices.Equal(got, []uint64{1}) {
		t.Errorf("a quick run has the seeds %v", got)
	}
	if got := s.told(latencyPlays(s)); got != "seeds 1 to 20, or 1 to 10, or 1 to 3" {
		t.Error(got)
	}
}

// TestSharedSeeds: a ratio of two runs is of the seeds that both have.
func TestSharedSeeds(t *testing.T) {
	r := &runs{setting: &setting{first: 1, span: time.Hour}, outcomes: make(map[play]*outcome)}
	a, b := r.on(transfers, fit), r.on(batched, fit)
	for _, p := range []play{a, b} {
		for _, seed := range r.seedsOf(p) {
			p.seed = seed
			r.outcomes[p] = &outcome{seconds: 1, granted: int(seed)} //nolint:gosec // few
		}
	}
	if got := r.each(a, (*outcome).committed); len(got) != 20 || most(got) != 20 {
		t.Errorf("one run: %v", got)
	}
	if got := r.ratios(a, b, (*outcome).committed); !slices.Equal(got, []float64{1, 1, 1}) || r.err != nil {
		t.Errorf("two runs: %v, %v", got, r.err)
	}
	for seed := range uint64(20) {
		p := a
		p.seed = seed + 1
		r.outcomes[p].oracleRefused = int(seed % 2) //nolint:gosec // few
	}
	if got := r.whereFit(func(of func(play) *outcome) float64 { return of(a).committed() }); len(got) != 10 || got[1] != 3 {
		t.Errorf("hours that fit: %v", got)
	}
}
