package samya

import (
	"fmt"
	"time"
)

// play is a run: the system, the demand and the faults. Equal plays have equal
// outcomes.
type play struct {
	system   string
	workload string
	seed     uint64
	// span is the length of the load.
	span time.Duration
	// limit and sites are 0 for the paper's values, 5000 and 5.
	limit, sites int
	// stretch is the length of a bin of the trace over five seconds; 0 means 1.
	stretch int
	// fault names the fault; "" means none.
	fault fault
	// clients is the number of clients in each region that ask again after each
	// answer. 0 means an open load, with each request made when it is due.
	clients int
	// reads is the percentage of reads among the requests of such clients. exact
	// asks for the tokens free at a single instant.
	reads int
	exact bool
}

// fault is a kind of fault of a run.
type fault string

const (
	// crashes takes down region after region, a sixth of the run apart, until a single
	// region is alive.
	crashes fault = "crash"
	// cut separates three regions from the other two for most of the run.
	cut fault = "partition"
)

func (p play) String() string {
	s := fmt.Sprintf("%s, %s, seed %d", p.system, p.workload, p.seed)
	if p.limit != 0 {
		s += fmt.Sprintf(", limit %d", p.limit)
	}
	if p.sites != 0 {
		s += fmt.Sprintf(", %d sites", p.sites)
	}
	if p.stretch > 1 {
		s += fmt.Sprintf(", stretched %d times", p.stretch)
	}
	if p.fault != "" {
		s += ", " + string(p.fault)
	}
	if p.clients > 0 {
		s += fmt.Sprintf(", %d clients a region", p.clients)
	}
	if p.reads > 0 {
		s += fmt.Sprintf(", %d %% reads", p.reads)
	}
	return s
}

// outcome is the result of a run. Times are in milliseconds, from when a request
// was due.
type outcome struct {
	seconds float64
	// requests counts all acquires. waited counts acquires that their server could
	// not answer from its own tokens.
	requests, granted, refused, timedOut, waited int
	releases, reads                              int
	// falsely counts refused acquires that came while a twentieth of the limit was
	// free on reachable sites.
	falsely int
	// beyond is the most tokens that clients held above the limit. grantedBeyond
	// counts acquires that left clients above the limit.
	beyond, grantedBeyond int
	// oracleCommitted and oracleRefused are the counts of a single counter without
	// latency.
	oracleCommitted, oracleRefused int
	// all is the latency of acquires and reads, refusals the latency of refused
	// acquires. plenty is the latency of acquires that came while a twentieth of the
	// limit was free.
	all, refusals, plenty latency
	// began counts the redistributions begun, by kind; applied counts
	// redistributions that a site applied.
	began map[string]float64
	// messages and bytes count the traffic between sites.
	messages, bytes float64
	// counters are all counters of the system, by name.
	counters map[string]float64
	// byMinute is the transactions committed in each minute. tailByMinute is the
	// 99th percentile of the worst ten seconds of each minute.
	byMinute, tailByMinute []float64
}

// latency is percentiles by nearest rank, and the mean.
type latency struct {
	p50, p90, p95, p99, p999, max, mean float64
}

// committed returns the paper's count: granted acquires, released tokens, and
// reads.
func (o *outcome) committed() float64 { return float64(o.granted + o.releases + o.reads) }

// rate returns the transactions committed a second.
func (o *outcome) rate() float64 { return o.committed() / o.seconds }

// inMinute returns the transactions committed in a minute.
func (o *outcome) inMinute(m int) float64 {
	if m >= len(o.byMinute) {
		return 0
	}
	return o.byMinute[m]
}

// waits returns the percentage of acquires that waited.
func (o *outcome) waits() float64 { return 100 * float64(o.waited) / float64(max(o.requests, 1)) }

// redistributions returns the number of redistributions begun.
func (o *outcome) redistributions() float64 {
	sum := 0.0
	for _, n := range o.began {
		sum += n
	}
	return sum
}

// beyondOracle returns the refusals beyond the oracle's.
func (o *outcome) beyondOracle() float64 { return float64(o.refused - o.oracleRefused) }
