package replay

import (
	"slices"
	"time"
)

// Result is what a run measured. Times are in milliseconds.
type Result struct {
	Workload string `json:"workload"`
	// Setting is filled in by who knows it.
	Setting string        `json:"setting,omitempty"`
	Seed    uint64        `json:"seed"`
	Span    time.Duration `json:"-"`
	// Requests are the acquires; each is either Granted or Refused.
	Requests int `json:"requests"`
	Granted  int `json:"granted"`
	Refused  int `json:"refused"`
	// BeyondOracle is how many more than the oracle's were refused; below zero
	// where waiting caught later releases.
	BeyondOracle int `json:"refused_beyond_oracle"`
	// Waited counts the acquires, granted or refused later, that joined the queue
	// of those that wait for tokens when they reached their site. All others have
	// their answer by the next commit of their site.
	Waited   int `json:"waited"`
	Releases int `json:"releases"`
	// Latency is that of all acquires, refused ones as well.
	Latency Latency `json:"latency_ms"`
	// Begun counts redistributions begun, by variant and trigger reason.
	Begun map[string]int `json:"redistributions_begun"`
	// Applied counts each once a site that applied it.
	Applied int `json:"redistributions_applied"`
	Failed  int `json:"redistributions_failed"`
	// GaveUp counts how often a site believed that there are no tokens left.
	GaveUp int `json:"gave_up"`
	// Messages are those sent for redistributions, Gossip those that tell what
	// sites have; the catalogue's are left out.
	Messages int `json:"messages"`
	Gossip   int `json:"gossip"`
	// TokensMoved is what sites got by redistributions beyond what they gave.
	TokensMoved int64 `json:"tokens_moved"`
	// Peaks are the most tokens that the clients of each region held.
	Peaks  map[string]int `json:"peaks"`
	Oracle Oracle         `json:"oracle"`
}

// Redistributions is how many were begun.
func (r *Result) Redistributions() int {
	sum := 0
	for _, n := range r.Begun {
		sum += n
	}
	return sum
}

// TPS is acquires granted and tokens released a second.
func (r *Result) TPS() float64 { return float64(r.Granted+r.Releases) / r.Span.Seconds() }

// WaitedShare is the part of all acquires that waited.
func (r *Result) WaitedShare() float64 { return float64(r.Waited) / float64(max(1, r.Requests)) }

// Latency is how long answers took from when their requests were due: the
// smallest value that so many of them are not above.
type Latency struct {
	P50  float64 `json:"p50"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
	Max  float64 `json:"max"`
}

// latencyOf sorts all and takes the values by nearest rank.
func latencyOf(all []time.Duration) Latency {
	if len(all) == 0 {
		return Latency{}
	}
	slices.Sort(all)
	// Ranks are exact: part is in thousandths.
	at := func(part int) float64 {
		return float64(all[(part*len(all)+999)/1000-1]) / float64(time.Millisecond)
	}
	return Latency{P50: at(500), P99: at(990), P999: at(999), Max: at(1000)}
}
