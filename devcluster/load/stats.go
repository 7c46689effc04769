package load

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Counts are what a region's requests came to. All but InFlight, Unresolved
// and LastError only grow.
type Counts struct {
	// Requests counts the requests made.
	Requests uint64
	// Granted and Released count acquires and releases that were executed.
	Granted, Released uint64
	// Refused counts acquires for which there were not enough tokens.
	Refused uint64
	// Failed counts requests that were not executed for another reason.
	Failed uint64
	// Unknown counts requests that ended without an answer, Resolved those of
	// them that were settled since, and Unresolved those that were not (yet).
	Unknown, Resolved, Unresolved uint64
	// Shed counts arrivals for which no request was made because too many were
	// under way.
	Shed uint64
	// InFlight counts the requests whose outcome is open.
	InFlight uint64
	// LastError is the last failure's text, if there was one.
	LastError string
}

// plus adds up.
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

// Latency is where the latencies of requests lie, from due to answered.
type Latency struct {
	// P50, P99 and Max are the median, the 99th percentile and the highest.
	P50, P99, Max time.Duration
}

func latencyOf(h *hdrhistogram.Histogram) Latency {
	at := func(q float64) time.Duration { return time.Duration(h.ValueAtQuantile(q)) * time.Microsecond }
	return Latency{P50: at(50), P99: at(99), Max: time.Duration(h.Max()) * time.Microsecond}
}

// RegionStats is the state of one region.
type RegionStats struct {
	// Region is the region's name.
	Region string
	// Counts are its requests so far.
	Counts Counts
	// Held is how many tokens its clients hold; Target is how many they want.
	Held int64
	// Target is the value of the region's curve now.
	Target float64
	// Latency is over all its requests, or over a window; see the method.
	Latency Latency
}

// Stats is the state of a load.
type Stats struct {
	// Regions are the regions, in the order of the configuration.
	Regions []RegionStats
	// Total adds up the regions' counts.
	Total Counts
	// Latency is over the requests of all regions.
	Latency Latency
	// Lacked counts the refused acquires by the entity that had not the tokens: the
	// one asked for or one above it.
	Lacked map[string]uint64
}

// Stats returns the state with the latencies of all requests so far.
func (l *Load) Stats() Stats {
	return l.stats(func(r *region) *hdrhistogram.Histogram { return r.latency }, false)
}

// Window returns the state with the latencies of the requests answered since
// the call of Window before.
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
