package realtime

import (
	"slices"
	"time"

	"github.com/samya-db/samya/devcluster/ledger"
	"github.com/samya-db/samya/lab/replay"
)

// Result is the measurements of a play. Times are in milliseconds.
type Result struct {
	Workload string        `json:"workload"`
	Seed     uint64        `json:"seed"`
	Limit    int64         `json:"limit"`
	Span     time.Duration `json:"-"`
	// Requests counts acquires and releases. Each was Granted, Released, Refused for
	// want of tokens, or TimedOut, that is, not answered in time.
	Requests int `json:"requests"`
	Granted  int `json:"granted"`
	Released int `json:"released"`
	Refused  int `json:"refused"`
	TimedOut int `json:"timed_out"`
	// Resumed counts repeats of requests to learn an outcome or to have a request
	// done.
	Resumed int `json:"resumed"`
	// Latency is the latency of all requests from when they were due, refused and
	// timed out requests included. Acquires is the latency of acquires alone.
	Latency  replay.Latency `json:"latency_ms"`
	Acquires replay.Latency `json:"acquires_ms"`
	// Served is the latency from the sending of requests: it leaves out Behind.
	Served replay.Latency `json:"served_ms"`
	// Behind is the delay between due and sending: the load program's part of
	// Latency.
	Behind replay.Latency `json:"behind_ms"`
	// Windows are the transactions committed in each replay.WindowSpan, by the time
	// of the answer. The element after the last window counts answers after the end.
	Windows []int `json:"windows"`
	// Waited is the number of acquires that waited for tokens.
	Waited int `json:"waited"`
	// Started counts redistributions by trigger. Ended counts them by outcome, once
	// for each site that took part.
	Started map[string]int `json:"redistributions_started"`
	Ended   map[string]int `json:"redistributions_ended"`
	// Held is the number of tokens that clients held in the end, Peak the most at
	// any time.
	Held int64 `json:"held"`
	Peak int64 `json:"peak"`
}

// Committed returns the number of acquires granted and tokens released.
func (r *Result) Committed() int { return r.Granted + r.Released }

// Redistributions returns the number of redistributions begun.
func (r *Result) Redistributions() int {
	sum := 0
	for _, n := range r.Started {
		sum += n
	}
	return sum
}

// latencyOf sorts all and takes percentiles by nearest rank, as package replay
// does.
func latencyOf(all []time.Duration) replay.Latency {
	if len(all) == 0 {
		return replay.Latency{}
	}
	slices.Sort(all)
	var sum time.Duration
	for _, d := range all {
		sum += d
	}
	milliseconds := func(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
	// Ranks are exact: part is in thousandths.
	at := func(part int) float64 { return milliseconds(all[(part*len(all)+999)/1000-1]) }
	return replay.Latency{
		Mean: milliseconds(sum) / float64(len(all)),
		P50:  at(500), P90: at(900), P95: at(950), P99: at(990), P999: at(999), Max: at(1000),
	}
}

// committed reports whether the request was done in time.
func (q *request) committed() bool { return q.executed && !q.late }

// result sums up all requests.
func (l *load) result(c counted) *Result {
	d := l.o.Demand
	r := &Result{
		Workload: d.Workload, Seed: d.Seed, Limit: l.o.Limit, Span: d.Span, Requests: len(l.requests), Resumed: l.resumed,
		Windows: make([]int, (d.Span+replay.WindowSpan-1)/replay.WindowSpan+1), Waited: c.waited, Started: c.started, Ended: c.ended,
		Held: l.ledger.Held(entity), Peak: l.ledger.MaxAcquired(entity).Tokens,
	}
	var all, acquires, served, behind []time.Duration
	for i := range l.requests {
		q := &l.requests[i]
		all = append(all, q.answered-q.due)
		behind = append(behind, q.sent-q.due)
		served = append(served, q.answered-q.sent)
		if q.kind == ledger.Acquire {
			acquires = append(acquires, q.answered-q.due)
		}
		switch {
		case q.late:
			r.TimedOut++
		case !q.executed:
			r.Refused++
		case q.kind == ledger.Acquire:
			r.Granted++
		default:
			r.Released++
		}
		if q.committed() {
			r.Windows[min(int(q.answered/replay.WindowSpan), len(r.Windows)-1)]++
		}
	}
	r.Latency, r.Acquires, r.Served, r.Behind = latencyOf(all), latencyOf(acquires), latencyOf(served), latencyOf(behind)
	return r
}
