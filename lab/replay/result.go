package replay

import (
	"strings"
	"time"

	"github.com/samya-db/samya/lab/virtual"
)

// Result is what a run measured. Times are in milliseconds.
type Result struct {
	Workload string `json:"workload"`
	// Setting is filled in by who knows it.
	Setting string        `json:"setting,omitempty"`
	Seed    uint64        `json:"seed"`
	Span    time.Duration `json:"-"`
	// Client is the way to a server and back, which is in all latencies, and Places
	// are the names of those that are asked.
	Client time.Duration `json:"-"`
	Places []string      `json:"-"`
	// Requests are the acquires; each is either Granted, Refused or TimedOut, or Lost
	// as its place crashed.
	Requests int `json:"requests"`
	Granted  int `json:"granted"`
	Refused  int `json:"refused"`
	TimedOut int `json:"timed_out"`
	Lost     int `json:"lost,omitempty"`
	// ReadsAsked are the reads made, Reads those answered with the number asked for,
	// LostReads those that had no answer as their place crashed.
	ReadsAsked int `json:"reads_asked,omitempty"`
	Reads      int `json:"reads,omitempty"`
	LostReads  int `json:"reads_lost,omitempty"`
	// Unasked are the acquires and reads that were not made, as their place was down.
	Unasked int `json:"unasked,omitempty"`
	// BeyondOracle is how many more than the oracle's were refused or timed out;
	// below zero where waiting caught later releases.
	BeyondOracle int `json:"refused_beyond_oracle"`
	// Waited counts the acquires, granted or refused later, that joined the queue
	// of those that wait for tokens when they reached their site. All others have
	// their answer by the next commit of their site.
	Waited   int `json:"waited"`
	Releases int `json:"releases"`
	// Beyond is by how many tokens clients held more than the limit, at most, and
	// GrantedBeyond how many acquires were granted while they held it or more. Only
	// Unlimited systems have them.
	Beyond        int `json:"beyond_limit,omitempty"`
	GrantedBeyond int `json:"granted_beyond_limit,omitempty"`
	// Latency is that of all acquires, refused ones as well; All is that of all that
	// was answered. Committed is of the granted and released, and of reads; Rejected
	// and Expired are of what was refused and what timed out.
	Latency   Latency `json:"latency_ms"`
	All       Latency `json:"latency_all_ms"`
	Committed Latency `json:"latency_committed_ms"`
	Rejected  Latency `json:"latency_refused_ms"`
	Expired   Latency `json:"latency_timed_out_ms"`
	// Plenty is of those acquires alone that arrived while tokens were plenty.
	Plenty Plenty `json:"plenty"`
	// Windows are of WindowSpan each; Sample is of at most 5000 answers, evenly
	// thinned, in the order of their times.
	Windows []Window `json:"-"`
	Sample  []Point  `json:"-"`
	// Begun counts redistributions begun, by variant and trigger reason.
	Begun map[string]int `json:"redistributions_begun"`
	// Applied counts each once a site that applied it.
	Applied int `json:"redistributions_applied"`
	Failed  int `json:"redistributions_failed"`
	// GaveUp counts how often a site believed that there are no tokens left.
	GaveUp int `json:"gave_up"`
	// Messages are those sent for redistributions, Gossip those that tell what
	// sites have; the catalogue's are left out. MessageBytes and GossipBytes are what
	// they take on the wire.
	Messages     int `json:"messages"`
	MessageBytes int `json:"message_bytes"`
	Gossip       int `json:"gossip"`
	GossipBytes  int `json:"gossip_bytes"`
	// TokensMoved is what sites got by redistributions beyond what they gave.
	TokensMoved int64 `json:"tokens_moved"`
	// Counters are all that the system has counted, by name.
	Counters map[string]float64 `json:"-"`
	// Peaks are the most tokens that the clients of each place held.
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

// TPS is acquires granted, tokens released and numbers read a second.
func (r *Result) TPS() float64 { return float64(r.Granted+r.Releases+r.Reads) / r.Span.Seconds() }

// WaitedShare is the part of all acquires that waited.
func (r *Result) WaitedShare() float64 { return float64(r.Waited) / float64(max(1, r.Requests)) }

// count takes over what the system has counted.
func (r *Result) count(counters map[string]float64) {
	r.Counters = counters
	for name, to := range map[string]*int{
		virtual.Waited: &r.Waited, virtual.Applied: &r.Applied, virtual.Failed: &r.Failed, virtual.GaveUp: &r.GaveUp,
		virtual.Messages: &r.Messages, virtual.MessageBytes: &r.MessageBytes, virtual.Gossip: &r.Gossip, virtual.GossipBytes: &r.GossipBytes,
	} {
		*to = int(counters[name])
	}
	r.TokensMoved = int64(counters[virtual.Moved])
	for name, n := range counters {
		if reason, ok := strings.CutPrefix(name, virtual.Begun+" "); ok {
			r.Begun[reason] = int(n)
		}
	}
}

// tell sums up the answers.
func (r *Result) tell(t *told) {
	of := t.latencies()
	acquires := &of[virtual.Acquire]
	granted := merged(acquires[virtual.Granted], of[virtual.Release][virtual.Granted],
		of[virtual.ReadStale][virtual.Granted], of[virtual.ReadExact][virtual.Granted])
	refused := merged(acquires[virtual.Refused], of[virtual.ReadStale][virtual.Refused], of[virtual.ReadExact][virtual.Refused])
	expired := merged(acquires[virtual.TimedOut], of[virtual.ReadStale][virtual.TimedOut], of[virtual.ReadExact][virtual.TimedOut])
	r.Latency = latencyOfSorted(merged(acquires[virtual.Granted], acquires[virtual.Refused], acquires[virtual.TimedOut]))
	r.All = latencyOfSorted(merged(granted, refused, expired))
	r.Committed, r.Rejected, r.Expired = latencyOfSorted(granted), latencyOfSorted(refused), latencyOfSorted(expired)
	r.Windows, r.Sample = t.windows(r.Span, len(r.Places)), t.sample()
}
