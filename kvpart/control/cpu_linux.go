package control

import (
	"time"

	"golang.org/x/sys/unix"
)

// ThreadTime returns the processor time used by the calling thread.
func ThreadTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return time.Since(started)
	}
	return time.Duration(t.Nano())
}
