//go:build !linux && !darwin

package datadir

// freeBytes does not know the free space.
func freeBytes(string) (n uint64, known bool) { return 0, false }
