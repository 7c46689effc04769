// Package trace holds series of demand to forecast and to replay: real ones,
// read from files, and synthetic ones, drawn from a seed. It refuses to fetch
// anything, and to fill what is missing: a bin that a file does not have is
// marked, not counted as zero.
package trace

import (
	"math"

	"github.com/samya-db/samya/predict"
)

// secondsPerDay is the season that people make.
const secondsPerDay = 86400

// Series is demand in bins of equal length, one after the other.
type Series struct {
	// Name says what it is, for tables and pictures.
	Name string
	// Start is when the first bin begins, in Unix seconds; for synthetic series,
	// in seconds from Monday, midnight.
	Start int64
	// Step is the length of a bin in seconds, above zero.
	Step int64
	// Bins are the bins; predict.Missing stands where nothing was measured.
	Bins []predict.Bin
}

// Day returns how many bins make a day, or 0 if a day is no whole number of
// bins.
func (s *Series) Day() int {
	if s.Step <= 0 || secondsPerDay%s.Step != 0 {
		return 0
	}
	return int(secondsPerDay / s.Step)
}

// MissingBins counts the bins that were not measured.
func (s *Series) MissingBins() int {
	n := 0
	for _, b := range s.Bins {
		if math.IsNaN(b.Net) {
			n++
		}
	}
	return n
}

// fromNet makes bins of sums alone. The order within a bin is not known: the
// running sum is taken to reach the bin's sum, if that is above zero, and not
// more.
func fromNet(net []float64) []predict.Bin {
	bins := make([]predict.Bin, len(net))
	for i, n := range net {
		bins[i] = predict.Bin{Net: n, Peak: max(0, n)}
	}
	return bins
}
