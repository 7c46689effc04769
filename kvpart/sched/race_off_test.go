//go:build !race

package sched

// raced tells that this is built with the race detector.
const raced = false
