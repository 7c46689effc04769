// Package trace holds series of demand to forecast and to replay: real series, read
// from files, and synthetic series, drawn from a seed. It fetches nothing, and
// fills no gap: a bin missing from a file is marked, not counted as zero.
package trace

import (
	"math"

	"github.com/samya-db/samya/predict"
)

// secondsPerDay is the season of human demand.
const secondsPerDay = 86400

// Series is demand in consecutive bins of equal length.
type Series struct {
	// Name names the series in tables and pictures.
	Name string
	// Start is the start of the first bin, in Unix seconds; for synthetic series, in
	// seconds from Monday, midnight.
	Start int64
	// Step is the length of a bin in seconds, above zero.
	Step int64
	// Bins are the bins; predict.Missing marks bins without a measurement.
	Bins []predict.Bin
	// Beyond counts rows missing because their number was beyond predict.MaxTokens.
	Beyond int
}

// dayDrift is the largest deviation of a whole number of bins from a day, as a part
// of the day: 3.6 minutes.
const dayDrift = .0025

// nominal is the largest deviation of the length of a bin from a divisor of a day
// that may be meant, as a part.
const nominal = .01

// Day returns the number of bins in a day: the nearest whole number, or 0 if the
// number is off by more than dayDrift. Bins of 301 s may be bins of 300 s with a
// fast clock. If a divisor of the day is within nominal, Day returns the number of
// bins after which the series repeats itself.
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

// repeats returns the mean absolute difference of bins period apart; infinite for
// no such bins.
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

// MissingBins counts the bins without a measurement.
func (s *Series) MissingBins() int {
	n := 0
	for _, b := range s.Bins {
		if math.IsNaN(b.Net) {
			n++
		}
	}
	return n
}

// fromNet makes bins from sums alone. The order within a bin is not known: the
// running sum is assumed to peak at the bin's sum, if the sum is above zero, or
// else at zero.
func fromNet(net []float64) []predict.Bin {
	bins := make([]predict.Bin, len(net))
	for i, n := range net {
		bins[i] = predict.Bin{Net: n, Peak: max(0, n)}
	}
	return bins
}
