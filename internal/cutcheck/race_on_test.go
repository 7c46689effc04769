//go:build race

package cutcheck

// raced tells that this is built with the race detector.
const raced = true
