package replay

import (
	"slices"
	"time"
)

// Latency is the mean and the percentiles of the time from when requests were due
// to their answers, in milliseconds. A percentile is the smallest value that its
// share of the values do not exceed.
type Latency struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P95  float64 `json:"p95"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
	Max  float64 `json:"max"`
}

// latencyOf sorts all and takes percentiles by nearest rank.
func latencyOf(all []time.Duration) Latency {
	slices.Sort(all)
	return latencyOfSorted(all)
}

func latencyOfSorted(all []time.Duration) Latency {
	if len(all) == 0 {
		return Latency{}
	}
	var sum time.Duration
	for _, d := range all {
		sum += d
	}
	// Ranks are exact: part is in thousandths.
	at := func(part int) float64 { return milliseconds(all[(part*len(all)+999)/1000-1]) }
	return Latency{
		Mean: milliseconds(sum) / float64(len(all)),
		P50:  at(500), P90: at(900), P95: at(950), P99: at(990), P999: at(999), Max: at(1000),
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// merged merges sorted lists.
func merged(lists ...[]time.Duration) []time.Duration {
	var all []time.Duration
	for _, list := range lists {
		switch {
		case len(list) == 0:
		case all == nil:
			all = list
		default:
			all = merge(all, list)
		}
	}
	return all
}

func merge(a, b []time.Duration) []time.Duration {
	both := make([]time.Duration, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if a[0] <= b[0] {
			both, a = append(both, a[0]), a[1:]
		} else {
			both, b = append(both, b[0]), b[1:]
		}
	}
	return append(append(both, a...), b...)
}
