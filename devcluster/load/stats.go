package load

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Counts count a region's requests by outcome. All but InFlight, Unresolved and
// LastError only grow.
type Counts struct {
	// Requests counts the requests made.
	Requests uint64
	// Granted and Released count acquires and releases that were executed.
	Granted, Released uint64
	// Refused counts acquires for which there were not enough tokens.
	Refused uint64
	// Failed counts requests that were not executed for another reason.
	Failed uint64
	// Unknown counts requests that ended without an answer, Resolved the unknown
	// requests settled since, and Unresolved the unknown requests not settled (yet).
	Unknown, Resolved, Unresolved uint64
	// Shed counts arrivals dropped because too many requests were under way.
	Shed uint64
	// InFlight counts the requests without a known outcome.
	InFlight uint64
	// LastError is the text of the last failure; empty for none.
	LastError string
}

// plus returns the sum of c and o.
func (c Counts) plus(o Counts) Counts {
	c.Requests += o.Requests
	c.Granted += o.Granted
	c.Released += o.Released
	c.Refused += o.Refused
	c.Failed += o.Failed
	c.Unknown += o.Unknown
	c.Resolved += o.Resolved
	c.Unresolved += o.Unresolved
	c.Shed += o.Shed
	c.InFlight += o.InFlight
	if o.LastError != "" {
		c.LastError = o.LastError
	}
	return c
}

// Latency summarizes the latencies of requests, from due to answered.
type Latency struct {
	// P50, P99 and Max are the median, the 99th percentile and the highest.
	P50, P99, Max time.Duration
}

func latencyOf(h *hdrhistogram.Histogram) Latency {
	at := func(q float64) time.Duration { return time.Duration(h.ValueAtQuantile(q)) * time.Microsecond }
	return Latency{P50: at(50), P99: at(99), Max: time.Duration(h.Max()) * time.Microsecond}
}

// RegionStats is the state of a region.
type RegionStats struct {
	// Region is the region's name.
	Region string
	// Counts are the region's requests so far.
	Counts Counts
	// Held is the tokens that the region's clients hold.
	Held int64
	// Target is the region's target now, in tokens.
	Target float64
	// Latency covers all requests of the region, or a window; see the method.
	Latency Latency
}

// Stats is the state of a load.
type Stats struct {
	// Regions are the regions, in the order of the configuration.
	Regions []RegionStats
	// Total adds up the regions' counts.
	Total Counts
	// Latency covers the requests of all regions.
	Latency Latency
	// Lacked counts the refused acquires by the entity that lacked the tokens: the
	// entity of the request or an entity above it.
	Lacked map[string]uint64
}

// Stats returns the state with the latencies of all requests so far.
func (l *Load) Stats() Stats {
	return l.stats(func(r *region) *hdrhistogram.Histogram { return r.latency }, false)
}

// Window returns the state with the latencies of the requests answered since the
// previous call of Window.
func (l *Load) Window() Stats {
	return l.stats(func(r *region) *hdrhistogram.Histogram { return r.window }, true)
}

func (l *Load) stats(of func(*region) *hdrhistogram.Histogram, reset bool) Stats {
	all := hdrhistogram.New(minLatency.Microseconds(), maxLatency.Microseconds(), latencyPrecision)
	s := Stats{Lacked: make(map[string]uint64)}
	for _, r := range l.regions {
		r.mu.Lock()
		var since time.Duration
		if !r.start.IsZero() {
			since = time.Since(r.start)
		}
		h := of(r)
		stats := RegionStats{Region: r.name, Counts: r.counts, Target: r.target(since), Latency: latencyOf(h)}
		for i := range r.holdings {
			stats.Held += r.holdings[i].held
		}
		for name, n := range r.lacked {
			s.Lacked[name] += n
		}
		all.Merge(h)
		if reset {
			h.Reset()
		}
		r.mu.Unlock()
		s.Regions = append(s.Regions, stats)
		s.Total = s.Total.plus(stats.Counts)
	}
	s.Latency = latencyOf(all)
	return s
}
