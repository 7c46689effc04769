package samya

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// The numbers of seeds of a run without --seeds: as many as time allows.
const (
	// mostSeeds is for samya's systems and the two rivals that come near, on an hour
	// of fit and of burst: rare waits decide about the tail.
	mostSeeds = 20
	// manySeeds is for all other runs of an hour of a workload.
	manySeeds = 10
	// fewSeeds is for slow runs: replicated counters, faults, and runs that differ
	// in more than the workload.
	fewSeeds = 3
)

// slowSystems are the systems that run slowly.
var slowSystems = []string{oneRound, oneRoundCentral, batched, approximate}

// closeSystems are the systems with the most seeds.
var closeSystems = []string{transfers, majority, star, auto, escrowAhead, centralPool}

// wanted returns the default number of seeds of a run.
func wanted(p play) int {
	hour := play{system: p.system, workload: p.workload, seed: p.seed, span: p.span}
	base, _, varied := strings.Cut(p.system, "+")
	switch {
	case p != hour || p.span < time.Hour || p.workload == traced || varied || slices.Contains(slowSystems, base):
		return fewSeeds
	case slices.Contains(closeSystems, base) && (p.workload == fit || p.workload == burst):
		return mostSeeds
	}
	return manySeeds
}

// seedsOf returns the seeds of a run.
func (s *setting) seedsOf(p play) []uint64 {
	n := s.seeds
	if n == 0 {
		n = wanted(p)
	}
	if s.quick {
		n = min(n, quickSeeds)
	}
	all := make([]uint64, n)
	for i := range all {
		all[i] = s.first + uint64(i) //nolint:gosec // few
	}
	return all
}

// has reports whether a run is played with a seed.
func (s *setting) has(p play, seed uint64) bool {
	return slices.Contains(s.seedsOf(p), seed)
}

// longest returns the longest list of seeds of any run.
func (s *setting) longest() []uint64 {
	return s.seedsOf(play{system: transfers, workload: fit, span: time.Hour})
}

// told describes the seeds of runs.
func (s *setting) told(plays []play) string {
	counts := make(map[int]bool)
	for _, p := range plays {
		counts[len(s.seedsOf(p))] = true
	}
	var each []string
	for n := range counts {
		each = append(each, fmt.Sprintf("%3d", n))
	}
	slices.Sort(each)
	slices.Reverse(each)
	to := make([]string, len(each))
	for i, n := range each {
		to[i] = fmt.Sprintf("%d to ", s.first) + strings.TrimSpace(n)
	}
	return "seeds " + strings.Join(to, ", or ")
}
