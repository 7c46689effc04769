package libralab

import (
	"fmt"
	"math"

	"github.com/samya-db/samya/kvpart/libra"
)

// Accuracy is the mean error of splits, by dimension: the difference of the part's share of
// load and the wanted share, over the wanted share.
type Accuracy struct {
	Load libra.Load // split at a key that a sample of requests gives
	Size libra.Load // split where the first part has the wanted share of the keys
}

// leastSampled is the least requests in a sample of a region that is worth a split.
const leastSampled = 100

// Split splits up to n random regions with requests, by each dimension, and returns the
// mean error for a wanted share of 0 to 1. It fails if the cluster is out of range.
func Split(w *Workload, nodes, n int, share float64) (Accuracy, error) {
	s, err := begin(&Config{Nodes: nodes, Workload: w, End: 1})
	if err != nil {
		return Accuracy{}, err
	}
	if !(share > 0 && share < 1) {
		return Accuracy{}, fmt.Errorf("%w: share of %v, want above 0 and below 1", errConfig, share)
	}
	var sum Accuracy
	var counts [2]float64
	for _, i := range s.rnd.Perm(len(s.regions)) {
		r := s.regions[i]
		if (r.flow.reads+r.flow.writes)*sampleSeconds < leastSampled {
			continue
		}
		if n--; n < 0 {
			break
		}
		for _, d := range libra.Dimensions() {
			of := func(key int) float64 {
				part := region{low: r.low, high: key}
				s.weigh(&part)
				return math.Abs(part.load[d]/r.load[d]-share) / share
			}
			counts[d]++
			sum.Size[d] += of(r.low + int(share*float64(r.high-r.low)))
			if keys := splitKeys(s.sample(r.low, r.high, d), r.low, r.high, share, 2); len(keys) > 0 {
				sum.Load[d] += of(keys[0])
			} else {
				sum.Load[d]++ // nothing is split off
			}
		}
	}
	for _, d := range libra.Dimensions() {
		sum.Load[d] /= max(counts[d], 1)
		sum.Size[d] /= max(counts[d], 1)
	}
	return sum, nil
}
