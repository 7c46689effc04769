//go:build race

package partitions_test

// raced tells that this is built with the race detector.
const raced = true
