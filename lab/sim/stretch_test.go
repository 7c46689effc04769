package sim

import "testing"

// TestNothingEndsWithAStretch ends a stretch on every single event of a run, and then
// makes the run longer. Every recurring event meets the end of a stretch at once, and
// must still happen long after.
func TestNothingEndsWithAStretch(t *testing.T) {
	repeated := func(s *sim) map[string]int {
		kinds := make(map[opKind]int)
		for _, p := range s.changes {
			kinds[p.kind]++
		}
		r := &s.report
		of := map[string]int{
			"requests of clients": len(s.requests), "reads": r.Reads, "exact reads": r.ExactBegun, "states watched": r.WatchStates,
			"limits set": kinds[setLimit], "moves asked for": kinds[move], "modes asked for": kinds[setMode],
		}
		for _, f := range []Fault{
			Crash, SyncError, SlowDisk, Pause, Overload, PartitionFull, PartitionLinks, WrongDetector, StaleSnapshot,
		} {
			of[f.String()] = r.Faults[f]
		}
		return of
	}
	stretches := func(s *sim, end micros) {
		for next, ok := s.queue.Next(); s.violation == nil && ok && next <= end; next, ok = s.queue.Next() {
			s.faultsEnd = next
			s.runUntil(s.faultsEnd)
		}
	}
	const length = 90 * second
	s := newSim(Options{Seed: 1, Sites: 5, Protocol: Switching, Long: true, Trees: true})
	// Clients never cease ahead of an end: every moment is an end.
	s.load.quiet = 0
	s.start()
	if s.report.Trees == 0 {
		t.Fatal("the seed has no tree")
	}
	stretches(s, length)
	before := repeated(s)
	stretches(s, 2*length)
	if s.violation != nil {
		t.Fatal(s.violation)
	}
	for what, n := range repeated(s) {
		if n == before[what] {
			t.Errorf("%s: %d in the first half, none in the second", what, n)
		}
	}
}

// TestGardenerDoesWhatIsMissing counts the changes asked for in a run that goes on.
func TestGardenerDoesWhatIsMissing(t *testing.T) {
	for _, test := range []struct {
		moves, prunes int
		// These are parts of all deletions and moves, in percent.
		least, most int
	}{
		{moves: 0, prunes: 0, least: 15, most: 35},
		{moves: 0, prunes: minFeature, least: 1, most: 15},
		{moves: minFeature, prunes: 0, least: 40, most: 60},
		{moves: minFeature, prunes: minFeature, least: 1, most: 15},
	} {
		s := newSim(Options{Seed: 1, Sites: 5, Long: true, Trees: true, Calm: true})
		s.start()
		s.runUntil(5 * second)
		s.extended, s.report.Moves, s.report.Prunes = 1, test.moves, test.prunes
		s.changes = nil
		g := &gardener{s: s}
		for range 300 {
			g.next()
		}
		removes, moves := 0, 0
		for _, p := range s.changes {
			switch p.kind {
			case remove:
				removes++
			case move:
				moves++
			}
		}
		if part := 100 * removes / max(1, removes+moves); moves == 0 || part < test.least || part > test.most {
			t.Errorf("after %d moves and %d deletions of subtrees: %d deletions and %d moves, want %d to %d %% deletions",
				test.moves, test.prunes, removes, moves, test.least, test.most)
		}
	}
}

// TestNextToNothingDecided: sites so far apart, on disks so slow, that hardly an
// instance comes to its end. The run must show enough all the same.
func TestNextToNothingDecided(t *testing.T) {
	o := Options{Seed: 7000034, Sites: 5, Protocol: "auto", Long: true, Trees: true}
	r, err := Run(o)
	if err != nil {
		t.Fatal(err)
	}
	if why := r.Trivial(o); why != "" {
		t.Errorf("%v: %s", r.Simulated(), why)
	}
}
