package engine

import (
	"testing"
	"time"
)

// TestNext: the committer puts off a commit as long as that pays.
func TestNext(t *testing.T) {
	for _, tc := range []struct {
		what   string
		load   load
		yields int
		more   bool
		want   step
	}{
		{"as many came as were answered", load{handled: 8, committed: committed{answered: 8}}, 0, true, begin},
		{"fewer came", load{handled: 7, committed: committed{answered: 8}}, 0, true, yield},
		{"fewer came, none since the last yield", load{handled: 7, committed: committed{answered: 8}}, 1, false, begin},
		{"fewer came, after all yields", load{handled: 7, committed: committed{answered: 8}}, mostYields, true, begin},
		{"inputs are at the partitions", load{handled: 8, committed: committed{answered: 8}, atParts: 1}, 0, true, awaitParts},
		{"the partitions served enough", load{handled: worthACommit, served: worthACommit, committed: committed{answered: 8}, atParts: 1}, 0, true, yield},
		{"inputs stay at the partitions", load{handled: 8, committed: committed{answered: 8}, atParts: 1}, mostYields, true, begin},
		{"nothing at all", load{}, 0, true, begin},
	} {
		if got := tc.load.next(tc.yields, tc.more); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.what, got, tc.want)
		}
	}
}

// TestHold: the committer waits for answered callers while they come back, and at most as
// long as the commit took.
func TestHold(t *testing.T) {
	const took = 8 * time.Millisecond
	last := func(answered, beside int) committed {
		return committed{answered: answered, beside: beside, took: took}
	}
	for _, tc := range []struct {
		what   string
		load   load
		since  time.Duration
		before int
		want   time.Duration
	}{
		{"nothing is to be committed", load{committed: last(8, 0)}, 0, -1, 0},
		{"answers are on their way", load{handled: 4, committed: last(8, 4)}, 0, -1, 2 * took / 8},
		{"the commit was short", load{handled: 4, committed: committed{answered: 8, beside: 4, took: worthHolding - 1}}, 0, -1, 0},
		{"callers come back", load{handled: 4, waiting: 2, committed: last(8, 4)}, took / 4, 5, took / 8},
		{"none came since the last look", load{handled: 4, waiting: 2, committed: last(8, 4)}, took / 4, 6, 0},
		{"none came beside, and none comes back", load{handled: 2, committed: last(8, 0)}, took / 4, 2, 0},
		{"none came beside, and callers come back", load{handled: 2, committed: last(8, 0)}, took / 4, 1, took / 8},
		{"they come as fast as beside the commit", load{handled: 81, committed: last(20, 72)}, took / 4, 72, took / 8},
		{"they come slower than beside the commit", load{handled: 80, committed: last(20, 72)}, took / 4, 72, 0},
		{"all came back", load{handled: 4, waiting: 8, committed: last(8, 4)}, took / 4, 6, 0},
		{"all came back before the first look", load{handled: 12, committed: last(8, 4)}, 0, -1, 0},
		{"it waited as long as the commit took", load{handled: 6, committed: last(8, 4)}, took, 5, 0},
		{"the store stalled", load{handled: 4, waiting: 2, committed: committed{answered: 8, beside: 4, took: time.Minute}}, 0, -1, 2 * mostHeld / 8},
		{"after a long commit, as fast as beside it", load{handled: 74, committed: committed{answered: 20, beside: 64, took: 64 * time.Millisecond}}, mostHeld / 4, 72, mostHeld / 8},
		{"after a long commit, slower than beside it", load{handled: 73, committed: committed{answered: 20, beside: 64, took: 64 * time.Millisecond}}, mostHeld / 4, 72, 0},
		{"the store stalled, and all was waited", load{handled: 6, committed: committed{answered: 8, beside: 4, took: time.Minute}}, mostHeld, 5, 0},
		{"the commit was long ago", load{handled: 1, committed: last(8, 0)}, time.Hour, -1, 0},
		{"nobody was answered", load{handled: 1, committed: last(0, 0)}, 0, -1, 0},
	} {
		if got := tc.load.hold(tc.since, tc.before); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.what, got, tc.want)
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
		{load{committed: committed{answered: 1}}, 0, true},
		{load{committed: committed{answered: mostFinished}}, 0, true},
		{load{committed: committed{answered: mostFinished + 1}}, 0, false},
		{load{committed: committed{answered: 10}, handled: 3, waiting: 1}, 0, true},
		{load{committed: committed{answered: 10}, handled: 3, waiting: 2}, 0, false},
		{load{committed: committed{answered: 10}}, 1, false},
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
