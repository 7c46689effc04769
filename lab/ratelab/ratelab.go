package ratelab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"
)

// Quota is a quota under load.
type Quota struct {
	// Kind is "bucket" or "window".
	Kind   string        `json:"kind"`
	Limit  int64         `json:"limit"`
	Period time.Duration `json:"period_ns"`
}

// String names the quota in tables.
func (q *Quota) String() string { return fmt.Sprintf("%s, %d in %v", q.Kind, q.Limit, q.Period) }

// name is the name of the quota's entity.
func (q *Quota) name() string { return fmt.Sprintf("%s-%d", q.Kind, q.Period.Milliseconds()) }

// per is the period in samya's API.
func (q *Quota) per() string {
	if q.Period%time.Minute == 0 {
		return fmt.Sprintf("%dm", q.Period/time.Minute)
	}
	return fmt.Sprintf("%ds", q.Period/time.Second)
}

func (q *Quota) perSecond() float64 { return float64(q.Limit) / q.Period.Seconds() }

// Options are the options of a run. Bin must be set.
type Options struct {
	// Bin is the samya program; Ratelimit that of envoyproxy/ratelimit, empty to leave the
	// peer out.
	Bin, Ratelimit string
	// Duration is the length of the load.
	Duration time.Duration
	// Rate is the limit of each quota, in tokens a second.
	Rate int64
	// RoundTrip is the time between any two regions.
	RoundTrip time.Duration
	// Wait is how long an acquire may wait for tokens.
	Wait   time.Duration
	Demand Demand
	Seed   uint64
	// Dir holds a directory for data and logs; empty: the directory of temporary files.
	Dir string
	// Progress, if not nil, is called with messages of progress.
	Progress func(string)
}

// Default are the default options.
func Default() Options {
	return Options{
		Duration: 10 * time.Minute, Rate: 100, RoundTrip: 60 * time.Millisecond, Wait: 100 * time.Millisecond, Seed: 1,
		Demand: Demand{Calm: time.Minute, Busy: 3 * time.Minute, CalmLoad: .7, BusyLoad: 1.5, Move: 20 * time.Second, Hot: .6},
	}
}

// ErrOptions is the error of bad options.
var ErrOptions = errors.New("bad options")

// check refuses options out of range.
func (o *Options) check() error {
	switch d := &o.Demand; {
	case o.Bin == "":
		return fmt.Errorf("%w: no program", ErrOptions)
	case o.Duration < time.Second || o.Duration > 24*time.Hour:
		return fmt.Errorf("%w: --duration is %v, want 1s to 24h", ErrOptions, o.Duration)
	case o.Rate < 1 || o.Rate > 10_000:
		return fmt.Errorf("%w: --limit-rate is %d, want 1 to 10000", ErrOptions, o.Rate)
	case o.RoundTrip < 0 || o.RoundTrip > time.Second:
		return fmt.Errorf("%w: --round-trip is %v, want 0s to 1s", ErrOptions, o.RoundTrip)
	case o.Wait < 0 || o.Wait > time.Minute:
		return fmt.Errorf("%w: --acquire-wait is %v, want 0s to 1m", ErrOptions, o.Wait)
	case d.Calm < time.Second || d.Busy < time.Second || d.Move < 100*time.Millisecond:
		return fmt.Errorf("%w: --calm, --busy and --move are %v, %v and %v, want 1s, 1s and 100ms at least", ErrOptions, d.Calm, d.Busy, d.Move)
	}
	return nil
}

// quotas are the quotas of samya's run, all under load at the same time.
func (o *Options) quotas() []Quota {
	return []Quota{
		{"bucket", o.Rate, time.Second},
		{"window", o.Rate, time.Second},
		{"window", 10 * o.Rate, 10 * time.Second},
		{"window", 60 * o.Rate, time.Minute},
	}
}

// outcome is the answer to a request for a token.
type outcome byte

const (
	granted outcome = iota
	refused
	// unsettled requests have no known outcome, and may have been granted.
	unsettled
	// failed requests were not done.
	failed
)

// limiter is a system under load.
type limiter interface {
	// ask asks for a token of a quota in a region.
	ask(ctx context.Context, region int, q *Quota) (outcome, error)
	// check fails if the system has broken down; at the end of the load.
	check(ctx context.Context) error
	close(ctx context.Context) error
}

// Run measures samya, and the peer after it. It leaves no process behind. It fails with
// ErrOptions before any measurement.
func Run(ctx context.Context, o Options) (_ *Report, err error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	dir, err := os.MkdirTemp(o.Dir, "samya-ratelab-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for data and logs: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	// The processes must find their files from any working directory.
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, fmt.Errorf("the directory for data and logs: %w", err)
	}
	r := &Report{Duration: o.Duration.Seconds(), RoundTrip: o.RoundTrip.Seconds() * 1e3, Wait: o.Wait.Seconds() * 1e3, Demand: o.Demand}
	quotas := o.quotas()
	if err := r.measure(ctx, &o, Samya, quotas, func() (limiter, error) { return startSamya(ctx, &o, dir, quotas) }); err != nil {
		return nil, err
	}
	if o.Ratelimit == "" {
		return r, nil
	}
	// It knows windows of a unit alone.
	theirs := []Quota{quotas[1], quotas[3]}
	return r, r.measure(ctx, &o, Peer, theirs, func() (limiter, error) { return startPeer(ctx, &o, dir, theirs) })
}

// The names of the systems.
const (
	Samya = "samya"
	Peer  = "envoyproxy/ratelimit, redis"
)

// measure measures a system.
func (r *Report) measure(ctx context.Context, o *Options, name string, quotas []Quota, start func() (limiter, error)) (err error) {
	o.Progress("starting " + name)
	at, err := start()
	if err != nil {
		return fmt.Errorf("start %s: %w", name, cmp.Or(context.Cause(ctx), err))
	}
	defer func() { err = errors.Join(err, at.close(context.WithoutCancel(ctx))) }()
	l := &load{o: o, at: at, name: name}
	for i := range quotas {
		// All systems have the same arrivals for a quota.
		rnd := rand.New(rand.NewPCG(o.Seed, uint64(quotas[i].Period)+uint64(len(quotas[i].Kind)))) //nolint:gosec // to be repeated
		arrivals := o.Demand.draw(quotas[i].perSecond(), o.Duration, rnd)
		l.quotas = append(l.quotas, &loaded{Quota: &quotas[i], arrivals: arrivals})
	}
	if err := l.run(ctx); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := at.check(ctx); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for _, q := range l.quotas {
		r.Rows = append(r.Rows, q.row(l))
	}
	return nil
}
