package compare

import "context"

// Measure makes load with a driver and measures it, for measurements of systems that keep no
// books. Every operation must be granted.
func Measure(ctx context.Context, d Driver, l *Load) (*Sample, error) { return drive(ctx, d, l) }

// UsageOf reads the processor time of this process and of a system's processes.
func UsageOf(servers []int) (Usage, error) { return usage(servers) }

// Median returns the middle of values; for an even number, the mean of the middle two. It
// does not change values.
func Median(values []float64) float64 { return median(values) }

// Thousands writes a number rounded to an integer, with its thousands apart.
func Thousands(v float64) string { return thousands(v) }
