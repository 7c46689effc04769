package replay

import (
	"cmp"
	"slices"
)

// Measure is a figure for comparing settings.
type Measure struct {
	// Key names the figure in JSON, Head in a table.
	Key, Head string
	// Of returns the figure of a result.
	Of func(r *Result) float64
	// Digits is the number of printed digits after the point.
	Digits int
}

// Measures returns all measures.
func Measures() []Measure {
	const milliseconds = 1
	return []Measure{
		{"tps", "tps", (*Result).TPS, 2},
		{"refused", "refused", func(r *Result) float64 { return float64(r.Refused + r.TimedOut) }, 0},
		{"timed_out", "timed out", func(r *Result) float64 { return float64(r.TimedOut) }, 0},
		{"refused_beyond_oracle", "beyond oracle", func(r *Result) float64 { return float64(r.BeyondOracle) }, 0},
		{"waited_percent", "waited %", func(r *Result) float64 { return 100 * r.WaitedShare() }, 2},
		{"p50_ms", "p50", func(r *Result) float64 { return r.Latency.P50 }, milliseconds},
		{"p99_ms", "p99", func(r *Result) float64 { return r.Latency.P99 }, milliseconds},
		{"p999_ms", "p99.9", func(r *Result) float64 { return r.Latency.P999 }, milliseconds},
		{"max_ms", "max", func(r *Result) float64 { return r.Latency.Max }, milliseconds},
		{"plenty_p99_ms", "plenty p99", func(r *Result) float64 { return r.Plenty.Latency.P99 }, milliseconds},
		{"plenty_p999_ms", "plenty p99.9", func(r *Result) float64 { return r.Plenty.Latency.P999 }, milliseconds},
		{"plenty_refused", "plenty refused", func(r *Result) float64 { return float64(r.Plenty.Refused) }, 0},
		{"begun", "begun", func(r *Result) float64 { return float64(r.Redistributions()) }, 0},
		{"failed", "failed", func(r *Result) float64 { return float64(r.Failed) }, 0},
		{"gave_up", "gave up", func(r *Result) float64 { return float64(r.GaveUp) }, 0},
		{"messages", "messages", func(r *Result) float64 { return float64(r.Messages) }, 0},
		{"tokens_moved", "moved", func(r *Result) float64 { return float64(r.TokensMoved) }, 0},
	}
}

// Summary is the result of a setting on a workload over all seeds.
type Summary struct {
	Workload string `json:"workload"`
	Setting  string `json:"setting"`
	Seeds    int    `json:"seeds"`
	// Median is the median over the seeds, by the keys of measures. Ratio is the
	// ratio to the first setting of the workload, left out if the first setting's
	// median is not above zero.
	Median map[string]float64 `json:"median"`
	Ratio  map[string]float64 `json:"ratio"`
	// Begun is the median of redistributions begun, by variant and reason.
	Begun map[string]float64 `json:"redistributions_begun"`
}

// Summarize summarizes results by workload and setting, in the order of first
// appearance.
func Summarize(results []*Result) []Summary {
	type key struct{ workload, setting string }
	groups := make(map[key][]*Result)
	var order []key
	for _, r := range results {
		k := key{r.Workload, r.Setting}
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], r)
	}
	first := make(map[string]map[string]float64)
	list := make([]Summary, 0, len(order))
	for _, k := range order {
		group := groups[k]
		s := Summary{
			Workload: k.workload, Setting: k.setting, Seeds: len(group),
			Median: make(map[string]float64), Ratio: make(map[string]float64), Begun: make(map[string]float64),
		}
		if first[k.workload] == nil {
			first[k.workload] = s.Median
		}
		for _, m := range Measures() {
			s.Median[m.Key] = median(group, m.Of)
			if base := first[k.workload][m.Key]; base > 0 {
				s.Ratio[m.Key] = s.Median[m.Key] / base
			}
		}
		for _, r := range group {
			for reason := range r.Begun {
				s.Begun[reason] = median(group, func(r *Result) float64 { return float64(r.Begun[reason]) })
			}
		}
		list = append(list, s)
	}
	return list
}

// median returns the median, for an even number the mean of the middle two.
func median(group []*Result, of func(*Result) float64) float64 {
	values := make([]float64, len(group))
	for i, r := range group {
		values[i] = of(r)
	}
	slices.SortFunc(values, cmp.Compare[float64])
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}
