//go:build !amd64 && !arm64

package kvpart

// goroutine returns a name of the calling goroutine: no other goroutine has it until the
// calling goroutine ends.
func goroutine() uintptr { return numbered() }
