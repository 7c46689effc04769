// Package race tells tests whether the race detector watches them, and leaves
// out those that it has nothing to find in. It finds no races itself. The packages of
// alone.txt have no second goroutine; `make race` leaves them out.
package race

import "testing"

// OneGoroutine skips a test under the race detector. It is for tests that step
// deterministic machines by the hundred, all in the test's own goroutine: no
// two accesses of theirs can race, and the detector takes ten times as long to
// say so. That such machines share nothing is for other tests to show, which
// run some beside each other and stay under the detector.
func OneGoroutine(tb testing.TB) {
	tb.Helper()
	if Enabled {
		tb.Skip("all in one goroutine: the race detector has nothing to find")
	}
}

// OtherProcesses skips a test under the race detector. It is for tests of programs that
// are built without it and run as processes: the detector would watch the test, and
// nothing of the programs.
func OtherProcesses(tb testing.TB) {
	tb.Helper()
	if Enabled {
		tb.Skip("what it tests runs in other processes, built without the race detector")
	}
}
