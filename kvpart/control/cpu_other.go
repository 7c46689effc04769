//go:build !linux

package control

import "time"

// threadTime is the processor time that the calling thread used; here, where there
// is no such clock, wall time.
func threadTime() time.Duration { return time.Since(started) }
