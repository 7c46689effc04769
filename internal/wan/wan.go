// Package wan makes a single machine feel as wide as the world: it knows the delays
// between regions and holds messages back by them. It touches no network: loss and
// partitions belong to the fault hook of the transport. A program that injects no delay
// needs nothing of it.
package wan

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
)

const (
	// intraRegion is the round trip within a region, unless a matrix says
	// otherwise.
	intraRegion = 500 * time.Microsecond
	// maxRoundTrip is the longest round trip that a matrix may hold.
	maxRoundTrip = 10 * time.Second
	// maxRegions is the most regions that a matrix may name.
	maxRegions = 64
)

// Matrix holds the round trips between regions, the same in both directions.
// Half of a round trip is taken for each way. The zero Matrix knows no region
// and so delays nothing. A Matrix is immutable.
type Matrix struct {
	roundTrips map[pair]time.Duration
	regions    []string
}

// pair names two regions, in order.
type pair struct{ a, b string }

func pairOf(a, b string) pair { return pair{min(a, b), max(a, b)} }

// Samya returns Table 5 of Samya (Maiyya et al.): the latencies between the
// five regions of its experiments, taken as round trips. The paper's regions
// are US-West1, AS-East2, EU-West2, AU-Southeast1 and SA-East1 of Google Cloud;
// here they are named us, as, eu, au and sa.
func Samya() *Matrix {
	const ms = time.Millisecond
	return &Matrix{
		regions: []string{"as", "au", "eu", "sa", "us"},
		roundTrips: map[pair]time.Duration{
			{"as", "us"}: 131 * ms,
			{"eu", "us"}: 132 * ms,
			{"au", "us"}: 161 * ms,
			{"sa", "us"}: 180 * ms,
			{"as", "eu"}: 262 * ms,
			{"as", "au"}: 125 * ms,
			{"as", "sa"}: 302 * ms,
			{"au", "eu"}: 265 * ms,
			{"eu", "sa"}: 218 * ms,
			{"au", "sa"}: 305 * ms,
		},
	}
}

// Open returns the matrix that a flag names. "none" and "" name a matrix without delays,
// "samya" names Table 5, and any other name is the name of a file.
func Open(name string) (*Matrix, error) {
	switch name {
	case "", "none":
		return &Matrix{}, nil
	case "samya":
		return Samya(), nil
	}
	return load(name)
}

// Regions returns the names of all regions, sorted.
func (m *Matrix) Regions() []string { return slices.Clone(m.regions) }

// RoundTrip returns the round trip between two regions. Within a region it is 500µs
// unless the matrix gives another. It is zero if the matrix does not know both regions.
func (m *Matrix) RoundTrip(a, b string) time.Duration {
	if d, known := m.roundTrips[pairOf(a, b)]; known {
		return d
	}
	if _, known := slices.BinarySearch(m.regions, a); known && a == b {
		return intraRegion
	}
	return 0
}

// OneWay returns half of the round trip between two regions.
func (m *Matrix) OneWay(from, to string) time.Duration { return m.RoundTrip(from, to) / 2 }

// Max returns the longest round trip: how long to wait for all regions.
func (m *Matrix) Max() time.Duration {
	var longest time.Duration
	for d := range maps.Values(m.roundTrips) {
		longest = max(longest, d)
	}
	return longest
}

// Wait waits for d, or until the context ends; then it returns the context's
// error.
func Wait(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil || d <= 0 {
		return err
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// parseError describes a fault in a latency matrix.
type parseError struct {
	// Line is the line, from 1; 0 if the matrix as a whole is wrong.
	Line int
	// Problem is the fault.
	Problem string
}

// Error returns "line n: problem".
func (e *parseError) Error() string {
	if e.Line == 0 {
		return e.Problem
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Problem)
}
