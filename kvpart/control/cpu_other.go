//go:build !linux

package control

import "time"

// threadTime returns wall time, for want of a clock of the calling thread's processor
// time.
func threadTime() time.Duration { return time.Since(started) }
