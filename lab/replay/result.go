package replay

import (
	"strings"
	"time"

	"github.com/samya-db/samya/lab/virtual"
)

// Result is the measurements of a run. Times are in milliseconds.
type Result struct {
	Workload string `json:"workload"`
	// Setting is left to the caller.
	Setting string        `json:"setting,omitempty"`
	Seed    uint64        `json:"seed"`
	Span    time.Duration `json:"-"`
	// Client is the round trip between client and server, part of all latencies.
	// Places are the names of the asked places.
	Client time.Duration `json:"-"`
	Places []string      `json:"-"`
	// Requests counts acquires. Each is Granted, Refused, TimedOut, or Lost when its
	// place crashed.
	Requests int `json:"requests"`
	Granted  int `json:"granted"`
	Refused  int `json:"refused"`
	TimedOut int `json:"timed_out"`
	Lost     int `json:"lost,omitempty"`
	// ReadsAsked counts reads made, Reads reads answered with a number, LostReads
	// reads without an answer because their place crashed.
	ReadsAsked int `json:"reads_asked,omitempty"`
	Reads      int `json:"reads,omitempty"`
	LostReads  int `json:"reads_lost,omitempty"`
	// Unasked counts acquires and reads not made because their place was down.
	Unasked int `json:"unasked,omitempty"`
	// BeyondOracle is Refused plus TimedOut less the oracle's refusals; below zero
	// if waits caught later releases.
	BeyondOracle int `json:"refused_beyond_oracle"`
	// Waited counts the acquires, granted or refused later, that joined their site's
	// queue for tokens on arrival. All others get their answer by their site's next
	// commit.
	Waited   int `json:"waited"`
	Releases int `json:"releases"`
	// Beyond is the most tokens that clients held above the limit. GrantedBeyond
	// counts the acquires that left clients above the limit. Only Unlimited systems
	// have them.
	Beyond        int `json:"beyond_limit,omitempty"`
	GrantedBeyond int `json:"granted_beyond_limit,omitempty"`
	// Latency is the latency of all acquires, refused acquires included, All the
	// latency of all answers. Committed covers grants, releases and reads, Rejected
	// refusals, Expired time-outs.
	Latency   Latency `json:"latency_ms"`
	All       Latency `json:"latency_all_ms"`
	Committed Latency `json:"latency_committed_ms"`
	Rejected  Latency `json:"latency_refused_ms"`
	Expired   Latency `json:"latency_timed_out_ms"`
	// Plenty covers the acquires that arrived while tokens were plenty.
	Plenty Plenty `json:"plenty"`
	// Windows are windows of WindowSpan each. Sample is at most 5000 answers, evenly
	// thinned, in the order of their times.
	Windows []Window `json:"-"`
	Sample  []Point  `json:"-"`
	// Begun counts redistributions begun, by variant and trigger reason.
	Begun map[string]int `json:"redistributions_begun"`
	// Applied counts applied redistributions, once for each site that applied it.
	Applied int `json:"redistributions_applied"`
	Failed  int `json:"redistributions_failed"`
	// GaveUp counts the times that a site found that no tokens were left.
	GaveUp int `json:"gave_up"`
	// Messages counts messages of redistributions, Gossip messages with the state of
	// sites; the catalogue's messages are left out. MessageBytes and GossipBytes are
	// their sizes on the wire.
	Messages     int `json:"messages"`
	MessageBytes int `json:"message_bytes"`
	Gossip       int `json:"gossip"`
	GossipBytes  int `json:"gossip_bytes"`
	// TokensMoved is the tokens that sites received by redistributions minus the
	// tokens that they gave.
	TokensMoved int64 `json:"tokens_moved"`
	// Counters are all counters of the system, by name.
	Counters map[string]float64 `json:"-"`
	// Peaks are the most tokens that the clients of each place held, by name.
	Peaks  map[string]int `json:"peaks"`
	Oracle Oracle         `json:"oracle"`
}

// Redistributions returns the number of redistributions begun.
func (r *Result) Redistributions() int {
	sum := 0
	for _, n := range r.Begun {
		sum += n
	}
	return sum
}

// TPS returns acquires granted, tokens released and reads answered a second.
func (r *Result) TPS() float64 { return float64(r.Granted+r.Releases+r.Reads) / r.Span.Seconds() }

// WaitedShare returns the share of acquires that waited.
func (r *Result) WaitedShare() float64 { return float64(r.Waited) / float64(max(1, r.Requests)) }

// count copies the system's counters.
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

// tell computes the figures of the answers.
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
