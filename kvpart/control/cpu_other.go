//go:build !linux

package control

import "time"

// ThreadTime returns wall time, for want of a clock of the calling thread's processor
// time.
func ThreadTime() time.Duration { return time.Since(started) }
