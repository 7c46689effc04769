//go:build !race

package race

// Enabled tells that this is built with the race detector.
const Enabled = false
