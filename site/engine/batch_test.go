package engine

import "testing"

// TestNext: the committer puts off a commit as long as that pays.
func TestNext(t *testing.T) {
	for _, tc := range []struct {
		what   string
		load   load
		yields int
		more   bool
		want   step
	}{
		{"as many came as were answered", load{handled: 8, answered: 8}, 0, true, begin},
		{"fewer came", load{handled: 7, answered: 8}, 0, true, yield},
		{"fewer came, none since the last yield", load{handled: 7, answered: 8}, 1, false, begin},
		{"fewer came, after all yields", load{handled: 7, answered: 8}, mostYields, true, begin},
		{"inputs are at the partitions", load{handled: 8, answered: 8, atParts: 1}, 0, true, awaitParts},
		{"the partitions served enough", load{handled: worthACommit, served: worthACommit, answered: 8, atParts: 1}, 0, true, yield},
		{"inputs stay at the partitions", load{handled: 8, answered: 8, atParts: 1}, mostYields, true, begin},
		{"nothing at all", load{}, 0, true, begin},
	} {
		if got := tc.load.next(tc.yields, tc.more); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.what, got, tc.want)
		}
	}
}

// TestItself: the committer lets small batches leave itself, and only while few inputs
// wait and no batch before is leaving.
func TestItself(t *testing.T) {
	for _, tc := range []struct {
		load       load
		unfinished int
		want       bool
	}{
		{load{answered: 1}, 0, true},
		{load{answered: mostFinished}, 0, true},
		{load{answered: mostFinished + 1}, 0, false},
		{load{answered: 10, handled: 3, waiting: 1}, 0, true},
		{load{answered: 10, handled: 3, waiting: 2}, 0, false},
		{load{answered: 10}, 1, false},
		{load{}, 0, false},
	} {
		if got := tc.load.itself(tc.unfinished); got != tc.want {
			t.Errorf("%+v with %d: %v", tc.load, tc.unfinished, got)
		}
	}
}

// TestPhases: an engine at its end goes to later phases only.
func TestPhases(t *testing.T) {
	var s state
	if !s.move(working, syncing) || s.move(working, resting) {
		t.Error("a phase is left from elsewhere")
	}
	for _, to := range []phase{closing, failed, stopped, refused, failed} {
		before := s.now()
		s.end(to)
		if got := s.now(); got != max(before, to) {
			t.Errorf("from %d to %d: %d", before, to, got)
		}
		if s.move(working, resting) || s.move(syncing, working) {
			t.Errorf("the committer moves after the end, phase %d", s.now())
		}
	}
}
