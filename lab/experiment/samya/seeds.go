package samya

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// How many seeds a run is played with unless --seeds says it: as many as time allows.
const (
	// mostSeeds are those of samya's systems on an hour of fit and of burst, where
	// rare waits decide about the tail, and of the two rivals that come near.
	mostSeeds = 20
	// manySeeds are those of all other runs of an hour of a workload.
	manySeeds = 10
	// fewSeeds are those of all that takes long: replicated counters, faults, and
	// runs that differ in more than the workload.
	fewSeeds = 3
)

// slowSystems are the systems that take long to run.
var slowSystems = []string{oneRound, oneRoundCentral, batched, approximate}

// closeSystems are the systems with the most seeds.
var closeSystems = []string{transfers, majority, star, auto, escrowAhead, centralPool}

// wanted is how many seeds a run is played with by default.
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

// seedsOf are the seeds that a run is played with.
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

// has tells whether a run is played with a seed.
func (s *setting) has(p play, seed uint64) bool {
	return slices.Contains(s.seedsOf(p), seed)
}

// longest are the most seeds of any run.
func (s *setting) longest() []uint64 {
	return s.seedsOf(play{system: transfers, workload: fit, span: time.Hour})
}

// told says which seeds runs are played with.
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
