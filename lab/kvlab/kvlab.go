// Package kvlab runs workloads against partitioned stores and tells what that
// costs: processor time, latency, and what repartitioning did meanwhile. It
// refuses to say whether answers are right: that is lab/kvoracle's.
package kvlab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sync/errgroup"

	"github.com/samya-db/samya/kvpart"
	"github.com/samya-db/samya/lab/ycsb"
)

// Store is what a workload needs of a kvpart.Store.
type Store interface {
	Read(ctx context.Context, key string, dst []byte) ([]byte, error)
	Write(ctx context.Context, key string, value []byte) error
	Scan(ctx context.Context, from string, limit int, dst []kvpart.Pair) ([]kvpart.Pair, error)
	Execute(ctx context.Context, keys []string, fn func(kvpart.Tx) error) error
	Stats() kvpart.Stats
	Close() error
}

// Load says what to run.
type Load struct {
	Clients   []Source      // each is run by a client of its own
	ValueSize int           // bytes of a value that is written
	Duration  time.Duration // the load ends after it, or when all sources have: 0 for these alone
	// Every is how often a Sample is taken, 0 for none but the first and the last.
	Every time.Duration
	// Sampled is told each sample, from one goroutine.
	Sampled func(Sample)
}

// Sample is what was so at a moment of a run. Sums are since the run began.
type Sample struct {
	Elapsed        time.Duration
	Operations     int64 // answered to clients
	Ran            int64 // operations by the store's own count, read together with Multi
	Memory         int64 // bytes that the process has of the system
	Disk           int64 // bytes
	Tracking       time.Duration
	Repartitioning time.Duration
	Multi          int64
	Applied        int64
}

// Result is what a run did. What it has of the store is since the run began, but
// for Store.Pause and what is so at its end.
type Result struct {
	Operations int64
	NotFound   int64 // reads of keys that were not there
	Values     int64 // that were read and scanned
	Bytes      int64 // of these
	Elapsed    time.Duration
	Processor  time.Duration // of this process, the clients included
	Latency    *hdrhistogram.Histogram
	Store      kvpart.Stats
	Samples    []Sample
}

// Rate is operations a second.
func (r *Result) Rate() float64 { return float64(r.Operations) / r.Elapsed.Seconds() }

// PerOperation is processor time an operation, in µs.
func (r *Result) PerOperation() float64 {
	return float64(r.Processor.Nanoseconds()) / 1e3 / float64(max(r.Operations, 1))
}

// MultiShare is the share of requests that were on several partitions.
func (r *Result) MultiShare() float64 {
	return float64(r.Store.Multi) / float64(max(r.Store.Operations, 1))
}

const (
	// timed is of how many operations one is timed: two readings of the clock cost
	// as much as a tenth of a short operation.
	timed = 8
	// longest is the longest latency told, in ns.
	longest = int64(time.Minute)
)

// client is one client under way. Its counter is read by the sampler.
type client struct {
	store    Store
	write    func(ctx context.Context, key string, value []byte) error
	source   Source
	value    []byte
	got      []byte
	pairs    []kvpart.Pair
	notFound int64
	values   int64
	bytes    int64
	latency  *hdrhistogram.Histogram
	stop     *atomic.Bool
	done     atomic.Int64
	_        [64]byte // the next client's counter is on another cache line
}

func newClient(s Store, source Source, valueSize int, stop *atomic.Bool) *client {
	return &client{store: s, write: s.Write, source: source, value: make([]byte, valueSize), latency: hdrhistogram.New(1, longest, 3), stop: stop}
}

// Run runs a load to its end. An error of the store, other than that a key is not
// there, ends it and is returned.
func Run(ctx context.Context, s Store, l *Load) (*Result, error) {
	before, err := readUsage(s)
	if err != nil {
		return nil, err
	}
	r := &Result{Latency: hdrhistogram.New(1, longest, 3)}
	var stop atomic.Bool
	clients := make([]*client, len(l.Clients))
	group, inner := errgroup.WithContext(ctx)
	defer context.AfterFunc(ctx, func() { stop.Store(true) })()
	began := time.Now()
	for i, source := range l.Clients {
		clients[i] = newClient(s, source, l.ValueSize, &stop)
	}
	for _, c := range clients {
		group.Go(func() error {
			err := c.run(inner)
			if err != nil {
				stop.Store(true) // no other need go on
			}
			return err
		})
	}
	sample := func(u usage) {
		now := Sample{
			Elapsed: time.Since(began), Memory: u.memory, Disk: u.stats.DiskBytes,
			Tracking: u.stats.TrackingTime - before.stats.TrackingTime, Repartitioning: u.stats.CuttingTime - before.stats.CuttingTime,
			Ran: u.stats.Operations - before.stats.Operations, Multi: u.stats.Multi - before.stats.Multi, Applied: u.stats.Applied - before.stats.Applied,
		}
		for _, c := range clients {
			now.Operations += c.done.Load()
		}
		r.Samples = append(thin(r.Samples), now)
		if l.Sampled != nil {
			l.Sampled(now)
		}
	}
	sample(before)
	ended := make(chan error, 1)
	go func() { ended <- group.Wait() }()
	if err := watch(l, &stop, ended, func() error {
		u, err := readUsage(s)
		if err == nil {
			sample(u)
		}
		return err
	}); err != nil && ctx.Err() == nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	r.Elapsed = time.Since(began)
	after, err := readUsage(s)
	if err != nil {
		return nil, err
	}
	sample(after)
	for _, c := range clients {
		r.Operations += c.done.Load()
		r.NotFound += c.notFound
		r.Values += c.values
		r.Bytes += c.bytes
		if dropped := r.Latency.Merge(c.latency); dropped > 0 {
			return nil, fmt.Errorf("%d latencies out of the histogram's range", dropped)
		}
	}
	r.Processor = after.processor - before.processor
	r.Store = since(after.stats, before.stats)
	return r, nil
}

// mostSamples bounds the samples of a run.
const mostSamples = 1 << 15

// thin leaves out every second sample if there are too many.
func thin(samples []Sample) []Sample {
	if len(samples) < mostSamples {
		return samples
	}
	for i := range len(samples) / 2 {
		samples[i] = samples[2*i]
	}
	return samples[:len(samples)/2]
}

// watch waits for the end of all clients, takes samples meanwhile, and tells
// clients when the time is over.
func watch(l *Load, stop *atomic.Bool, ended <-chan error, sample func() error) error {
	var tick, over <-chan time.Time
	if l.Every > 0 {
		ticker := time.NewTicker(l.Every)
		defer ticker.Stop()
		tick = ticker.C
	}
	if l.Duration > 0 {
		timer := time.NewTimer(l.Duration)
		defer timer.Stop()
		over = timer.C
	}
	for {
		select {
		case err := <-ended:
			return err
		case <-over:
			stop.Store(true)
		case <-tick:
			if err := sample(); err != nil {
				stop.Store(true)
				return errors.Join(err, <-ended)
			}
		}
	}
}

// run runs operations until there are no more, or the time is over.
func (c *client) run(ctx context.Context) error {
	for n := int64(1); !c.stop.Load(); n++ {
		op, err := c.source.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			if n%timed == 0 {
				began := time.Now()
				err = c.do(ctx, op)
				if err == nil {
					err = c.latency.RecordValue(min(max(int64(time.Since(began)), 1), longest))
				}
			} else {
				err = c.do(ctx, op)
			}
		}
		if err != nil {
			return fmt.Errorf("operation %d of a client: %w", n, err)
		}
		c.done.Store(n)
	}
	return nil
}

// do runs one operation.
func (c *client) do(ctx context.Context, op ycsb.Op) (err error) {
	switch op.Kind {
	case ycsb.Read:
		c.got, err = c.store.Read(ctx, op.Key, c.got[:0])
		if errors.Is(err, kvpart.ErrNotFound) {
			c.notFound++
			return nil
		}
		c.values++
		c.bytes += int64(len(c.got))
	case ycsb.Write:
		c.stamp()
		err = c.write(ctx, op.Key, c.value)
	case ycsb.Scan:
		c.pairs, err = c.store.Scan(ctx, op.Key, op.Limit, c.pairs[:0])
		c.values += int64(len(c.pairs))
		for i := range c.pairs {
			c.bytes += int64(len(c.pairs[i].Value))
		}
	case ycsb.Modify:
		err = c.store.Execute(ctx, []string{op.Key}, func(tx kvpart.Tx) error {
			var err error
			if c.got, err = tx.Get(op.Key, c.got[:0]); err != nil && !errors.Is(err, kvpart.ErrNotFound) {
				return err
			}
			c.stamp()
			return tx.Put(op.Key, c.value)
		})
	}
	if err != nil {
		return fmt.Errorf("%v %q: %w", op.Kind, op.Key, err)
	}
	return nil
}

// stamp makes the value another than the last.
func (c *client) stamp() {
	for i := range min(len(c.value), 8) {
		c.value[i]++
		if c.value[i] != 0 {
			return
		}
	}
}

// loader is a store that can be loaded without that being taken for use.
type loader interface {
	Load(ctx context.Context, key string, value []byte) error
}

// Preload runs a source by one client, outside of any measurement, and returns how
// many operations that were.
func Preload(ctx context.Context, s Store, source Source, valueSize int) (int64, error) {
	var stop atomic.Bool
	c := newClient(s, source, valueSize, &stop)
	if l, ok := s.(loader); ok {
		c.write = l.Load
	}
	if err := c.run(ctx); err != nil {
		return c.done.Load(), fmt.Errorf("preload: %w", err)
	}
	return c.done.Load(), nil
}

// Writes is a source that writes each key once.
func Writes(keys []string) Source { return &writes{keys} }

type writes struct{ keys []string }

func (w *writes) Next() (ycsb.Op, error) {
	if len(w.keys) == 0 {
		return ycsb.Op{}, io.EOF
	}
	key := w.keys[0]
	w.keys = w.keys[1:]
	return ycsb.Op{Kind: ycsb.Write, Key: key}, nil
}
