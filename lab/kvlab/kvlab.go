// Package kvlab runs workloads against partitioned stores and reports the cost:
// processor time, latency, and the repartitioning meanwhile. It does not check
// answers: lab/kvoracle does.
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

// Store is the part of kvpart.Store that a workload needs.
type Store interface {
	Read(ctx context.Context, key string, dst []byte) ([]byte, error)
	Write(ctx context.Context, key string, value []byte) error
	Scan(ctx context.Context, from string, limit int, dst []kvpart.Pair) ([]kvpart.Pair, error)
	Execute(ctx context.Context, keys []string, fn func(kvpart.Tx) error) error
	Stats() kvpart.Stats
	Close() error
}

// Load is the load of a run.
type Load struct {
	Clients   []Source      // each with its own client
	ValueSize int           // bytes of a written value
	Duration  time.Duration // end of the load unless all sources end before; 0: no limit
	// Every is the interval between Samples; 0 takes the first and the last only.
	Every time.Duration
	// Sampled is called with each sample, from a single goroutine.
	Sampled func(Sample)
}

// Sample is the state of a run at a moment. Sums are since the start of the run.
type Sample struct {
	Elapsed        time.Duration
	Operations     int64 // answered to clients
	Ran            int64 // operations by the store's own count, read together with Multi
	Memory         int64 // bytes of memory that the process has from the system
	Disk           int64 // bytes
	Tracking       time.Duration
	Repartitioning time.Duration
	Multi          int64
	Applied        int64
}

// Result is the result of a run. Store holds sums since the start of the run,
// except for Store.Pause and values at the end.
type Result struct {
	Operations int64
	NotFound   int64 // reads of missing keys
	Values     int64 // values read and scanned
	Bytes      int64 // bytes of these values
	Elapsed    time.Duration
	Processor  time.Duration // of this process, the clients included
	Latency    *hdrhistogram.Histogram
	Store      kvpart.Stats
	Samples    []Sample
}

// Rate returns operations a second.
func (r *Result) Rate() float64 { return float64(r.Operations) / r.Elapsed.Seconds() }

// PerOperation returns the processor time of an operation, in µs.
func (r *Result) PerOperation() float64 {
	return float64(r.Processor.Nanoseconds()) / 1e3 / float64(max(r.Operations, 1))
}

// MultiShare returns the share of requests on several partitions.
func (r *Result) MultiShare() float64 {
	return float64(r.Store.Multi) / float64(max(r.Store.Operations, 1))
}

const (
	// timed is the number of operations for each timed operation: two readings of
	// the clock cost as much as a tenth of a short operation.
	timed = 8
	// longest is the longest recorded latency, in ns.
	longest = int64(time.Minute)
)

// client is a client under way. The sampler reads its counter.
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
	_        [64]byte // puts the next client's counter on another cache line
}

func newClient(s Store, source Source, valueSize int, stop *atomic.Bool) *client {
	return &client{store: s, write: s.Write, source: source, value: make([]byte, valueSize), latency: hdrhistogram.New(1, longest, 3), stop: stop}
}

// ErrEmpty says that no operation of a load ended: a rate of nothing says nothing.
var ErrEmpty = errors.New("no operation in the workload, or none that ended in time")

// Run runs a load to its end. It ends with the first error of the store other than
// a missing key, and returns the error. A load without operations fails with ErrEmpty.
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
				stop.Store(true) // the other clients can stop
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
	if r.Operations == 0 {
		return nil, ErrEmpty
	}
	r.Processor = after.processor - before.processor
	r.Store = since(after.stats, before.stats)
	return r, nil
}

// mostSamples bounds the samples of a run.
const mostSamples = 1 << 15

// thin drops every second sample if there are too many.
func thin(samples []Sample) []Sample {
	if len(samples) < mostSamples {
		return samples
	}
	for i := range len(samples) / 2 {
		samples[i] = samples[2*i]
	}
	return samples[:len(samples)/2]
}

// watch waits for the end of all clients, takes samples meanwhile, and stops
// clients after the duration.
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

// run runs operations until the source ends or stop is set.
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

// do runs an operation.
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
		if op.Limit > 1 {
			err = c.putAll(ctx, op)
			break
		}
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

// putAll writes several records of a Mix at once.
func (c *client) putAll(ctx context.Context, op ycsb.Op) error {
	keys, err := mixKeys(op)
	if err != nil {
		return err
	}
	c.stamp()
	err = c.store.Execute(ctx, keys, func(tx kvpart.Tx) error {
		for _, key := range keys {
			if err := tx.Put(key, c.value); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("write %d keys: %w", len(keys), err)
	}
	return nil
}

// stamp changes the value.
func (c *client) stamp() {
	for i := range min(len(c.value), 8) {
		c.value[i]++
		if c.value[i] != 0 {
			return
		}
	}
}

// loader is a store that can load values without counting the load as use.
type loader interface {
	Load(ctx context.Context, key string, value []byte) error
}

// Preload runs a source with a single client, outside of any measurement, and
// returns the number of operations.
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

// Writes returns a source that writes each key once.
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
