package wan

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/samya-db/samya/internal/name"
)

// maxLine is the longest line of a matrix, in bytes.
const maxLine = 1024

// load reads a latency matrix from a file, as [Parse] does.
func load(file string) (_ *Matrix, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("open latency matrix: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	m, err := Parse(f)
	if err != nil {
		return nil, fmt.Errorf("read latency matrix %s: %w", file, err)
	}
	return m, nil
}

// Parse reads a latency matrix: a line for each pair of regions, with the round trip
// between them.
//
//	# round trips
//	us, as, 131ms
//	us, eu, 132ms
//	as, eu, 262ms
//	eu,eu, 1ms
//
// A line of a region with itself replaces the 500µs there. Empty lines and lines that
// begin with '#' are skipped. Round trips are 0s to 10s, with their unit. A
// pair may appear in both orders if the round trips are the same; every pair of regions
// must appear. An error names the line of the fault.
func Parse(r io.Reader) (*Matrix, error) {
	m := &Matrix{roundTrips: map[pair]time.Duration{}}
	regions := map[string]bool{}
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, maxLine), maxLine)
	number := 0
	for lines.Scan() {
		number++
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		a, b, roundTrip, err := parseLine(line)
		if err != nil {
			return nil, &parseError{Line: number, Problem: err.Error()}
		}
		key := pairOf(a, b)
		if earlier, twice := m.roundTrips[key]; twice && earlier != roundTrip {
			return nil, &parseError{number, fmt.Sprintf("%s and %s are %v apart, and %v on an earlier line", a, b, roundTrip, earlier)}
		}
		m.roundTrips[key] = roundTrip
		regions[a], regions[b] = true, true
		if len(regions) > maxRegions {
			return nil, &parseError{number, fmt.Sprintf("more than %d regions", maxRegions)}
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, &parseError{number + 1, fmt.Sprintf("line too long, at most %d bytes", maxLine)}
	} else if err != nil {
		return nil, err
	}
	m.regions = slices.Sorted(maps.Keys(regions))
	return m, m.complete()
}

// parseLine reads "region, region, round trip".
func parseLine(line string) (a, b string, roundTrip time.Duration, err error) {
	fields := strings.Split(line, ",")
	if len(fields) != 3 {
		return "", "", 0, fmt.Errorf("%d fields, want 3: two regions, their round trip", len(fields))
	}
	for i := range fields {
		fields[i] = strings.TrimSpace(fields[i])
	}
	a, b = fields[0], fields[1]
	if err := errors.Join(name.Site("first region", a), name.Site("second region", b)); err != nil {
		return "", "", 0, err
	}
	roundTrip, err = time.ParseDuration(fields[2])
	switch {
	case err != nil:
		return "", "", 0, fmt.Errorf("round trip: %w", err)
	case roundTrip < 0:
		return "", "", 0, fmt.Errorf("round trip: %v, at least 0s", roundTrip)
	case roundTrip > maxRoundTrip:
		return "", "", 0, fmt.Errorf("round trip: %v, at most %v", roundTrip, maxRoundTrip)
	}
	return a, b, roundTrip, nil
}

// complete fails with the first pair of regions that has no round trip.
func (m *Matrix) complete() error {
	if len(m.regions) == 0 {
		return &parseError{Problem: "no regions"}
	}
	for i, a := range m.regions {
		for _, b := range m.regions[i+1:] {
			if _, known := m.roundTrips[pair{a, b}]; !known {
				return &parseError{Problem: fmt.Sprintf("no round trip between %s and %s", a, b)}
			}
		}
	}
	return nil
}
