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
	// Beyond is how many rows are missing because their number was beyond
	// predict.MaxTokens.
	Beyond int
}

// dayDrift is by how much of a day the whole number of bins that is nearest to a
// day may miss it: 3.6 minutes.
const dayDrift = .0025

// nominal is how near a length of bins is to a divisor of a day that may be meant.
const nominal = .01

// Day returns how many bins make a day: the nearest whole number, or 0 if that is
// off by more than dayDrift. Bins of 301 s may be bins of 300 s whose clock runs
// ahead: where a divisor of the day is as near as nominal, the number of bins that
// the series repeats itself after is returned.
func (s *Series) Day() int {
	if s.Step <= 0 || s.Step > secondsPerDay {
		return 0
	}
	bins := secondsPerDay / float64(s.Step)
	day := int(math.Round(bins))
	if secondsPerDay%s.Step == 0 {
		return day
	}
	off := func(n int) float64 { return math.Abs(float64(n)-bins) / bins }
	meant, within := 0, int(nominal*bins)+1
	for n := max(1, day-within); n <= day+within; n++ {
		if secondsPerDay%n == 0 && off(n) <= nominal && (meant == 0 || off(n) < off(meant)) {
			meant = n
		}
	}
	switch fits := off(day) <= dayDrift; {
	case meant == 0 && fits, meant != 0 && fits && s.repeats(day) < s.repeats(meant):
		return day
	default:
		return meant
	}
}

// repeats is the mean absolute difference of bins so many apart; infinite if there
// are none.
func (s *Series) repeats(period int) float64 {
	sum, n := 0., 0.
	for i := range max(0, len(s.Bins)-period) {
		if d := math.Abs(s.Bins[i+period].Net - s.Bins[i].Net); !math.IsNaN(d) {
			sum += d
			n++
		}
	}
	if n == 0 {
		return math.Inf(1)
	}
	return sum / n
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
