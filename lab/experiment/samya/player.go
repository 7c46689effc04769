package samya

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/samya-db/samya/lab/replay"
	"github.com/samya-db/samya/site/core"
)

// player plays runs with the real code. It draws a demand once for all runs of the
// demand.
type player struct {
	// draw draws a demand. Tests replace it.
	draw    func(s *setting, of demanded) (*replay.Demand, error)
	mu      sync.Mutex
	demands []*drawn
}

// drawn is a demand, drawn by its first user.
type drawn struct {
	of demanded
	sync.Once
	demand *replay.Demand
	err    error
}

// demanded is the parameters of a demand.
type demanded struct {
	workload       string
	seed           uint64
	span           time.Duration
	sites, stretch int
}

// maxDemands is the number of demands kept: runs of the same demand follow each
// other.
const maxDemands = 6

func newPlayer() *player { return &player{draw: draw} }

// demand returns the demand of a run.
func (l *player) demand(s *setting, p play) (*replay.Demand, error) {
	of := demanded{p.workload, p.seed, p.span, p.sites, p.stretch}
	l.mu.Lock()
	var found *drawn
	for i, d := range l.demands {
		if d.of == of {
			// The most recently used demand is the last to be dropped.
			found, l.demands = d, append(l.demands[:i:i], l.demands[i+1:]...)
			break
		}
	}
	if found == nil {
		found = &drawn{of: of}
	}
	if l.demands = append(l.demands, found); len(l.demands) > maxDemands {
		l.demands = l.demands[1:]
	}
	l.mu.Unlock()
	found.Do(func() { found.demand, found.err = l.draw(s, of) })
	return found.demand, found.err
}

// draw draws a demand and the demand before, which sites learn from.
func draw(s *setting, of demanded) (*replay.Demand, error) {
	if of.workload == traced {
		return drawTrace(s, of)
	}
	stretch := max(of.stretch, 1)
	bins := max(1, int(of.span/replay.Bin)/stretch)
	d, err := replay.DrawPlaces(of.workload, of.seed, bins, cmp.Or(of.sites, regions))
	if err != nil {
		return nil, err
	}
	if err := d.Recall(); err != nil {
		return nil, err
	}
	return d.Stretch(float64(stretch))
}

// drawTrace draws the demand of a file; for a whole run, as much as the file has.
func drawTrace(s *setting, of demanded) (*replay.Demand, error) {
	o := replay.SeriesOptions{Seed: of.seed}
	if of.span < latencyStudy.span {
		o.Bins = int(of.span / replay.Bin)
	}
	d, err := replay.FromFile(s.trace, s.column, o)
	if err != nil {
		return nil, err
	}
	return d, d.Recall()
}

// play plays a run.
func (l *player) play(_ context.Context, s *setting, p play) (*outcome, error) {
	d := &replay.Demand{Workload: "closed loop", Seed: p.seed}
	if p.clients == 0 {
		var err error
		if d, err = l.demand(s, p); err != nil {
			return nil, err
		}
	}
	y, err := newSystem(p.system)
	if err != nil {
		return nil, err
	}
	o := replay.Options{
		Demand: d, Limit: core.Tokens(p.limit), Unlimited: p.system == unlimited || p.system == approximate, Service: s.service, Commit: s.commit,
		Faults: faultsOf(p.fault, p.span),
	}
	if at, ok := y.(placed); ok {
		o.Network = at.Network()
	}
	if p.clients > 0 {
		closed, err := replay.SaturateMix(o, y, p.clients, p.span, replay.Mix{Reads: float64(p.reads) / 100, Exact: p.exact})
		if err != nil {
			return nil, err
		}
		return closedOutcome(closed), nil
	}
	r, err := replay.Run(o, y)
	if err != nil {
		return nil, err
	}
	return outcomeOf(r), nil
}

// closedOutcome returns the outcome of a closed loop.
func closedOutcome(r *replay.Saturation) *outcome {
	return &outcome{
		seconds: r.Span.Seconds(), requests: r.Committed + r.Refused + r.TimedOut, granted: r.Committed,
		refused: r.Refused, timedOut: r.TimedOut, all: latencyOf(r.Latency), counters: r.Counters,
	}
}

// outcomeOf returns the outcome of an open load.
func outcomeOf(r *replay.Result) *outcome {
	o := &outcome{
		seconds: r.Span.Seconds(), requests: r.Requests, granted: r.Granted, refused: r.Refused, timedOut: r.TimedOut,
		waited: r.Waited, releases: r.Releases, reads: r.Reads, falsely: r.Plenty.Refused, beyond: r.Beyond, grantedBeyond: r.GrantedBeyond,
		oracleCommitted: r.Oracle.Granted + r.Oracle.Releases, oracleRefused: r.Oracle.Refused,
		all: latencyOf(r.Latency), refusals: latencyOf(r.Rejected), plenty: latencyOf(r.Plenty.Latency),
		began: make(map[string]float64), messages: float64(r.Messages), bytes: float64(r.MessageBytes), counters: r.Counters,
	}
	for reason, n := range r.Begun {
		o.began[reason] = float64(n)
	}
	o.byMinute = make([]float64, minutesOf(r.Span))
	o.tailByMinute = make([]float64, minutesOf(r.Span))
	for i, w := range r.Windows {
		m := int(time.Duration(i) * replay.WindowSpan / time.Minute)
		o.byMinute[m] += float64(w.Committed)
		o.tailByMinute[m] = max(o.tailByMinute[m], w.Acquires.P99)
	}
	return o
}

func latencyOf(l replay.Latency) latency {
	return latency{p50: l.P50, p90: l.P90, p95: l.P95, p99: l.P99, p999: l.P999, max: l.Max, mean: l.Mean}
}

// calibrate measures the service time of this machine, rounded to a tenth of a
// microsecond, which is finer than its repeatability.
func calibrate(ctx context.Context) (time.Duration, error) {
	service, err := replay.Calibrate(ctx)
	return max(service.Round(calibrated), calibrated), err
}

const calibrated = 100 * time.Nanosecond
