// Package coreslab tells the gain of a site from more processor cores: a model of a site in virtual
// time, on cores that this machine may lack, with costs measured here. The package decides
// nothing about a product, and refuses options out of range.
//
// The model has the goroutines and locks of package engine, without requests that no shard
// serves: a reader and a sender for each connection, the committer, the finisher, the turn
// of the core, a lock for each shard, and the lock of the table of request ids. A lock that
// is held has others spin, and moves between cores. Clients are on other machines, unless
// they share the cores of the site, as in the comparison with a real site.
//
// Left out are the caches that cores share, collections of garbage, and the scheduler of
// the operating system: on many cores a real site does less than the model.
package coreslab

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Design is how a site divides its work: a set of parts. Zero is the core alone: a goroutine
// at a time steps it.
type Design uint8

// The parts of designs. All but TwoCommits need Shards.
const (
	// Shards: requests are served on a shard for each core, at least two. The table of ids
	// has a single lock.
	Shards Design = 1 << iota
	// OwnLog: shards encode their part of the log, and the committer joins the parts.
	OwnLog
	// Striped: parts of the table have locks of their own.
	Striped
	// OwnForgetting: a shard forgets an old id for each new id, under the lock of a part of
	// the table. Else the committer forgets while all shards wait.
	OwnForgetting
	// OwnReplies: each shard has a finisher for its answers.
	OwnReplies
	// TwoCommits: a commit begins while the last is synced.
	TwoCommits
	all = 1<<iota - 1
)

// has reports whether a design has a part.
func (d Design) has(part Design) bool { return d&part != 0 }

// product is the product's design with several partitions.
const product = Shards | OwnLog

// plans are the designs of tables, with their names. From the fourth on a design has all parts
// of the design before.
var plans = []struct {
	name string
	of   Design
}{
	{"core alone", 0},
	{"core alone, two commits", TwoCommits},
	{"shards", product},
	{"+ striped table", product | Striped},
	{"+ own forgetting", product | Striped | OwnForgetting},
	{"+ own replies", product | Striped | OwnForgetting | OwnReplies},
	{"+ two commits", all},
	{"all but own log", all &^ OwnLog},
}

// String is the name in tables.
func (d Design) String() string {
	for _, p := range plans {
		if p.of == d {
			return p.name
		}
	}
	return fmt.Sprintf("parts %06b", uint8(d))
}

// Options describe a run.
type Options struct {
	Design Design
	// Cores is the number of cores, 1 to 64. Shards is their number with shards; 0 for as
	// many as cores, at least two.
	Cores, Shards int
	// Callers ask in a closed loop over Connections: callers of a connection that were
	// answered together ask again together.
	Callers, Connections int
	// Local has the clients share the cores of the site.
	Local bool
	// Taken is the share of the cores that other programs take, below 1.
	Taken float64
	// Forgets has the site forget an id for each new id, as it does in the long run.
	Forgets bool
	// Warmup is virtual time before the measured Time.
	Warmup, Time time.Duration
	Seed         uint64
	Costs        *Costs
}

// Result is the result of a run.
type Result struct {
	Design  string `json:"design"`
	Cores   int    `json:"cores"`
	Callers int    `json:"callers"`
	// Rate is operations a second, P50 and P99 are latencies of calls in µs.
	Rate float64 `json:"rate"`
	P50  float64 `json:"p50_us"`
	P99  float64 `json:"p99_us"`
	// Bottleneck is the part that was busy for most of the time, and Busy its share.
	Bottleneck string  `json:"bottleneck"`
	Busy       float64 `json:"busy"`
	// Used is the share of the time of all cores that was used, Spun the share spent at
	// locks.
	Used float64 `json:"used"`
	Spun float64 `json:"spun"`
	// Nanos is processor time an operation, at the site and at local clients.
	Nanos float64 `json:"cpu_ns"`
	// PerCommit is operations a commit, PerMessage operations a message of answers.
	PerCommit  float64 `json:"operations_per_commit"`
	PerMessage float64 `json:"operations_per_message"`
	// Taken is the share of the cores that other programs took.
	Taken float64 `json:"taken"`
}

// ErrOptions says that an option is out of range. Nothing was run.
var ErrOptions = errors.New("bad option")

const (
	mostCores = 64
	// netDelay is the way of a message to a client on another machine of the same zone.
	netDelay = 50 * time.Microsecond
)

func (o *Options) check() error {
	switch {
	case o.Design > all || o.Design&^TwoCommits != 0 && !o.Design.has(Shards):
		return fmt.Errorf("%w: design %v without shards", ErrOptions, o.Design)
	case o.Cores < 1 || o.Cores > mostCores:
		return fmt.Errorf("%w: %d cores, want 1 to %d", ErrOptions, o.Cores, mostCores)
	case o.Connections < 1 || o.Callers < o.Connections:
		return fmt.Errorf("%w: %d callers over %d connections", ErrOptions, o.Callers, o.Connections)
	case o.Taken < 0 || o.Taken >= 1:
		return fmt.Errorf("%w: %v of the cores are taken", ErrOptions, o.Taken)
	case o.Warmup < 0 || o.Time <= 0:
		return fmt.Errorf("%w: %v after %v", ErrOptions, o.Time, o.Warmup)
	case o.Costs == nil || len(o.Costs.Syncs) == 0 || len(o.Costs.Pairs) == 0:
		return fmt.Errorf("%w: no costs", ErrOptions)
	}
	return nil
}

// Run runs a site in virtual time. Equal options have equal results. The error wraps
// ErrOptions.
func Run(o Options) (*Result, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	s := newSite(o)
	s.start()
	s.m.world.Until(o.Warmup)
	s.measure()
	s.m.world.Until(o.Warmup + o.Time)
	return s.result(), nil
}

// result tells all since measure.
func (s *site) result() *Result {
	span := s.o.Time.Seconds()
	r := &Result{Design: s.o.Design.String(), Cores: s.o.Cores, Callers: s.o.Callers, Rate: float64(s.answers) / span, Taken: s.o.Taken}
	slices.Sort(s.latencies)
	if n := len(s.latencies); n > 0 {
		r.P50, r.P99 = float64(s.latencies[n/2].Nanoseconds())/1e3, float64(s.latencies[n*99/100].Nanoseconds())/1e3
	}
	of := func(d time.Duration) float64 { return d.Seconds() / span }
	used := s.m.busy - s.before.busy
	share := (1 - s.o.Taken) / float64(s.o.Cores)
	r.Used, r.Spun = of(used)*share, of(s.m.spun-s.before.spun)*share
	if s.answers > 0 {
		r.Nanos = float64(used.Nanoseconds()) / float64(s.answers) * (1 - s.o.Taken)
		r.PerMessage = float64(s.answers) / float64(s.messages)
	}
	if s.commits > 0 {
		r.PerCommit = float64(s.committed) / float64(s.commits)
	}
	parts := s.parts()
	for i, p := range parts {
		if share := of(p.busy - s.before.parts[i]); share > r.Busy {
			r.Bottleneck, r.Busy = p.name, share
		}
	}
	if used := r.Used + r.Taken; used > r.Busy {
		r.Bottleneck, r.Busy = "cores", used
	}
	return r
}
