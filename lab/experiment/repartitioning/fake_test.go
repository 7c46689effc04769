package repartitioning

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/samya-db/samya/kvpart"
)

// fake is a store with a single goroutine, which answers in order. The test sets its
// figures.
type fake struct {
	options  kvpart.Options
	queue    chan *kvpart.Request
	ended    sync.WaitGroup
	size     int // bytes of the values
	pairs    int // that are missing of each scan
	fails    error
	refuse   int64 // the request that is refused, from 1
	kinds    [8]atomic.Int64
	started  atomic.Int64
	out, top atomic.Int64 // under way, and the most of them
	closed   atomic.Bool
	stats    func(ran int64) kvpart.Stats
}

func newFake(o kvpart.Options) *fake {
	f := &fake{options: o, queue: make(chan *kvpart.Request, 1<<16), size: -1}
	f.ended.Go(func() {
		for r := range f.queue {
			f.answer(r)
			f.out.Add(-1)
			r.Done(r)
		}
	})
	return f
}

func (f *fake) answer(r *kvpart.Request) {
	f.kinds[r.Kind].Add(1)
	r.Err = f.fails
	switch r.Kind {
	case kvpart.ReadRequest:
		r.Value = append(r.Value[:0], make([]byte, f.size)...)
	case kvpart.ScanRequest:
		r.Pairs = append(r.Pairs[:0], make([]kvpart.Pair, r.Limit-f.pairs)...)
		for i := range r.Pairs {
			r.Pairs[i] = kvpart.Pair{Key: r.Key, Value: make([]byte, f.size)}
		}
	}
}

func (f *fake) Load(_ context.Context, _ string, value []byte) error {
	f.size = len(value)
	return nil
}

func (f *fake) Write(context.Context, string, []byte) error {
	f.kinds[kvpart.WriteRequest].Add(1)
	return f.fails
}

func (f *fake) Read(_ context.Context, _ string, dst []byte) ([]byte, error) {
	f.kinds[kvpart.ReadRequest].Add(1)
	return append(dst, make([]byte, f.size)...), f.fails
}

func (f *fake) Scan(context.Context, string, int, []kvpart.Pair) ([]kvpart.Pair, error) {
	f.kinds[kvpart.ScanRequest].Add(1)
	return nil, f.fails
}

func (f *fake) Start(_ context.Context, r *kvpart.Request) error {
	if f.started.Add(1) == f.refuse {
		return kvpart.ErrClosed
	}
	f.top.Store(max(f.top.Load(), f.out.Add(1)))
	f.queue <- r
	return nil
}

func (f *fake) Stats() kvpart.Stats {
	ran := int64(0)
	for i := range f.kinds {
		ran += f.kinds[i].Load()
	}
	if f.stats != nil {
		return f.stats(ran)
	}
	return kvpart.Stats{Operations: ran, Multi: ran / 2, Queued: make([]int, f.options.Partitions)}
}

func (f *fake) Close() error {
	if !f.closed.Swap(true) {
		close(f.queue)
		f.ended.Wait()
	}
	return nil
}

// smallLoad is a load of a few requests.
func smallLoad(t *testing.T, workload string, ops int) *load {
	t.Helper()
	l, err := newLoad(loadOptions{workload: workload, records: 1000, ops: ops, seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// driverOf is a driver of a fake store that holds its records.
func driverOf(t *testing.T, f *fake, l *load, inFlight int) *driver {
	t.Helper()
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	d := newDriver(f, l, 10, inFlight, time.Now)
	if err := d.preload(t.Context()); err != nil {
		t.Fatal(err)
	}
	return d
}
