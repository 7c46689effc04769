package trace

import (
	"fmt"
	"math"
	"slices"

	"github.com/samya-db/samya/predict"
)

// grid snaps rows to bins of equal length, a whole number of seconds. Times are
// milliseconds in ascending order.
//
// Most rows determine the length (see stepOf). The grid is placed so that most rows
// are near the middle of a bin: jitter of less than half a bin moves no row out of
// its bin. If two rows share a bin, a row goes to the empty bin beside it. All
// other rows of a bin are added up.
func grid(times []int64, rows []predict.Bin) (*Series, error) {
	if len(times) < 2 {
		return nil, fmt.Errorf("%w: %d rows, needs two", ErrFormat, len(times))
	}
	step, err := stepOf(times)
	if err != nil {
		return nil, err
	}
	phase := phaseOf(times, 1000*step)
	places := make([]int, len(times))
	for i, t := range times {
		n := floorDiv64(t-phase+500*step, 1000*step) - floorDiv64(times[0]-phase+500*step, 1000*step)
		if n >= maxBins {
			return nil, fmt.Errorf("%w: more than %d bins of %d s", ErrFormat, maxBins, step)
		}
		places[i] = int(n)
	}
	spread(places, times, 500*step)
	start := floorDiv64(phase+1000*step*floorDiv64(times[0]-phase+500*step, 1000*step)+500, 1000)
	first := places[0]
	s := &Series{
		Start: start + int64(first)*step, Step: step,
		Bins: slices.Repeat([]predict.Bin{predict.Missing}, places[len(places)-1]-first+1),
	}
	for i, place := range places {
		b := &s.Bins[place-first]
		switch {
		case math.IsNaN(rows[i].Net):
		case math.IsNaN(b.Net):
			*b = rows[i]
		default:
			*b = predict.Bin{Net: b.Net + rows[i].Net, Peak: max(b.Peak, b.Net+rows[i].Peak)}
		}
	}
	return s, nil
}

const (
	// fits is the share of distances that must be near a multiple of the length.
	// nearStep is the largest deviation, in parts of the length.
	fits, nearStep = .9, .2
	// sameBin is the part of the length below which two rows share a bin, if at most
	// a share fewRepeats of the distances are so short.
	sameBin, fewRepeats = .25, .3
	// farthest is the largest number of rows between compared times, sampled about
	// the number of compared pairs.
	farthest, sampled = 4096, 1 << 16
)

// stepOf returns the length of a bin in seconds. A guess is the median distance of
// two rows. If most bins have no row, the guess is the largest distance that
// divides nearly all distances. Rows ever farther apart then refine the guess.
func stepOf(times []int64) (int64, error) {
	var steps []float64
	for i := range times[1:] {
		if d := times[i+1] - times[i]; d > 0 {
			steps = append(steps, float64(d))
		}
	}
	if len(steps) <= (len(times)-1)/2 {
		return 0, fmt.Errorf("%w: most rows have one time", ErrFormat)
	}
	slices.Sort(steps)
	step := steps[len(steps)/2]
	for _, part := range [...]int{2, 3, 4, 6, 8, 10} {
		guess := steps[len(steps)/part]
		near, repeats := 0, 0
		for _, d := range steps {
			switch {
			case d < sameBin*guess:
				repeats++
			case math.Abs(d-max(1, math.Round(d/guess))*guess) <= nearStep*guess:
				near++
			}
		}
		if n := float64(len(steps)); float64(repeats) <= fewRepeats*n && float64(near) >= fits*(n-float64(repeats)) {
			step = guess
			break
		}
	}
	var lengths []float64
	for apart := 1; apart < len(times) && apart <= farthest; apart *= 2 {
		lengths = lengths[:0]
		for i := 0; i < len(times)-apart; i += 1 + len(times)/sampled {
			d := float64(times[i+apart] - times[i])
			if bins := math.Round(d / step); bins > 0 {
				lengths = append(lengths, d/bins)
			}
		}
		if len(lengths) > 0 {
			slices.Sort(lengths)
			step = lengths[len(lengths)/2]
		}
	}
	seconds := math.Round(step / 1000)
	if seconds < 1 {
		return 0, fmt.Errorf("%w: rows are %.3g s apart, must be a second at least", ErrFormat, step/1000)
	}
	return int64(seconds), nil
}

// phaseOf returns a time of the grid, in milliseconds: the median position of rows
// within the bins that would begin at the first row.
func phaseOf(times []int64, step int64) int64 {
	// The rows fill an arc of the circle of a bin. The median starts in the middle
	// of the widest gap.
	offsets := make([]int64, len(times))
	for i, t := range times {
		offsets[i] = (t - times[0]) % step
	}
	slices.Sort(offsets)
	cut, widest := 0, offsets[0]+step-offsets[len(offsets)-1]
	for i := range offsets[1:] {
		if gap := offsets[i+1] - offsets[i]; gap > widest {
			cut, widest = i+1, gap
		}
	}
	middle := cut + len(offsets)/2
	if middle < len(offsets) {
		return times[0] + offsets[middle]
	}
	return times[0] + offsets[middle-len(offsets)] + step
}

// spread separates rows that jitter has put into the same bin, if the bin before or
// after is empty. Rows less than half a bin apart stay together.
func spread(places []int, times []int64, half int64) {
	for i := 1; i < len(places); i++ {
		if places[i] != places[i-1] || times[i]-times[i-1] <= half {
			continue
		}
		switch last := len(places) - 1; {
		case i == 1 || places[i-2] < places[i-1]-1:
			places[i-1]--
		case i == last || places[i+1] > places[i]+1:
			places[i]++
		}
	}
}

func floorDiv64(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
