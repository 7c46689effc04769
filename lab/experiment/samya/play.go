package samya

import (
	"fmt"
	"time"
)

// play is one run: who is asked for what, and what goes wrong. Two that are the
// same give the same outcome.
type play struct {
	system   string
	workload string
	seed     uint64
	// span is for how long load is made.
	span time.Duration
	// limit and sites are 0 for those of the paper, 5000 and 5.
	limit, sites int
	// stretch is how many times slower than five seconds a bin of the trace goes by;
	// 0 for once.
	stretch int
	// fault names what goes wrong; "" for nothing.
	fault fault
	// clients is how many a region ask again as soon as they are answered; 0 for
	// an open load, in which all is asked for when it is due.
	clients int
	// reads is the share of what such clients ask that only reads, in percent; exact
	// says that they ask for the tokens free at one instant.
	reads int
	exact bool
}

// fault is what goes wrong in a run.
type fault string

const (
	// crashes ends one region after the other, a sixth of the run apart, until one is
	// alive.
	crashes fault = "crash"
	// cut parts three regions from the other two for most of the run.
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

// outcome is what came of a run. Times are in milliseconds, from when a request
// was due.
type outcome struct {
	seconds float64
	// Of the acquires, requests in all. waited are those that had no answer from
	// what their server held.
	requests, granted, refused, timedOut, waited int
	releases, reads                              int
	// falsely are the refusals of acquires that came while a twentieth of the limit
	// was free on sites that could be reached.
	falsely int
	// beyond is by how many tokens clients held more than the limit at most,
	// grantedBeyond how many acquires were granted while they did.
	beyond, grantedBeyond int
	// oracleCommitted and oracleRefused are those of one counter without latency.
	oracleCommitted, oracleRefused int
	// all is the latency of every acquire and read; of those refused, and of those
	// that came while a twentieth of the limit was free, alone.
	all, refusals, plenty latency
	// began are redistributions begun, of each kind; applied those that a site
	// applied.
	began map[string]float64
	// messages and bytes are those between sites.
	messages, bytes float64
	// counters are all that the system counted, by name.
	counters map[string]float64
	// byMinute is what was committed in each, tailByMinute the 99th percentile of its
	// worst ten seconds.
	byMinute, tailByMinute []float64
}

// latency is its percentiles by nearest rank, and its mean.
type latency struct {
	p50, p90, p95, p99, p999, max, mean float64
}

// committed counts what the paper counts: acquires that were granted, tokens that
// were released, and reads.
func (o *outcome) committed() float64 { return float64(o.granted + o.releases + o.reads) }

// rate is what was committed a second.
func (o *outcome) rate() float64 { return o.committed() / o.seconds }

// inMinute is what was committed in a minute.
func (o *outcome) inMinute(m int) float64 {
	if m >= len(o.byMinute) {
		return 0
	}
	return o.byMinute[m]
}

// waits is the share of acquires that waited, in percent.
func (o *outcome) waits() float64 { return 100 * float64(o.waited) / float64(max(o.requests, 1)) }

// redistributions is how many were begun.
func (o *outcome) redistributions() float64 {
	sum := 0.0
	for _, n := range o.began {
		sum += n
	}
	return sum
}

// beyondOracle is how many more than the oracle were refused.
func (o *outcome) beyondOracle() float64 { return float64(o.refused - o.oracleRefused) }
