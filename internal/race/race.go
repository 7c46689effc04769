// Package race tells tests whether the race detector watches them, and skips tests in
// which it has nothing to find. It finds no races itself. The packages of alone.txt have
// no second goroutine; `make race` leaves them out.
package race

import "testing"

// OneGoroutine skips a test under the race detector. It is for tests that step
// deterministic machines by the hundred, each in a single goroutine. No accesses of a
// machine can race, and the detector takes ten times as long to say so. Other tests run
// some machines beside each other under the detector, and show that machines share
// nothing.
func OneGoroutine(tb testing.TB) {
	tb.Helper()
	if Enabled {
		tb.Skip("each machine in one goroutine: the race detector has nothing to find")
	}
}

// OtherProcesses skips a test under the race detector. It is for tests of programs that
// are built without the detector and run as processes. The detector would watch the test,
// and nothing of the programs.
func OtherProcesses(tb testing.TB) {
	tb.Helper()
	if Enabled {
		tb.Skip("what it tests runs in other processes, built without the race detector")
	}
}
