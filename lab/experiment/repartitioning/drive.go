package repartitioning

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/samya-db/samya/kvpart"
)

// store is the part of kvpart.Store that the driver needs.
type store interface {
	Load(ctx context.Context, key string, value []byte) error
	Start(ctx context.Context, r *kvpart.Request) error
	Stats() kvpart.Stats
	Close() error
}

// errAnswer says that a request was answered wrongly.
var errAnswer = errors.New("wrong answer")

// driver is the paper's scheduler: a goroutine that hands over the requests of a
// load in turn. It waits for an answer only when all slots are under way.
type driver struct {
	store store
	load  *load
	value []byte // value of every write
	slots []slot
	now   func() time.Time

	done   atomic.Int64
	failed atomic.Pointer[error]
	// wake tells the scheduler that its slot is free.
	wake chan struct{}
	// longest is the duration of the longest Start.
	longest time.Duration
}

// The states of a slot.
const (
	free uint32 = iota
	busy
	awaited // busy, with the scheduler waiting
)

// slot is a reused request, with the memory of its answers.
type slot struct {
	kvpart.Request
	d     *driver
	state atomic.Uint32
	read  []byte // memory of values read
}

// newDriver returns a driver with at most inFlight requests under way.
func newDriver(s store, l *load, valueSize, inFlight int, now func() time.Time) *driver {
	d := &driver{store: s, load: l, value: make([]byte, valueSize), slots: make([]slot, inFlight), now: now, wake: make(chan struct{}, 1)}
	for i := range d.value {
		d.value[i] = byte(i)
	}
	for i := range d.slots {
		s := &d.slots[i]
		s.d, s.Done = d, s.end
	}
	return d
}

// preload writes the initial records in the order of their numbers, which is
// unrelated to the order of their keys.
func (d *driver) preload(ctx context.Context) error {
	for _, name := range d.load.names[:d.load.records] {
		if err := d.store.Load(ctx, name, d.value); err != nil {
			return fmt.Errorf("load the records: %w", err)
		}
	}
	return nil
}

// run hands all requests over and waits until they are done.
func (d *driver) run(ctx context.Context) error {
	last := d.now()
	for i := range d.load.ops {
		s := &d.slots[i%len(d.slots)]
		if s.state.Load() != free {
			if err := d.await(ctx, s); err != nil {
				return err
			}
			last = d.now()
		}
		s.state.Store(busy)
		s.fill(&d.load.ops[i])
		if err := d.store.Start(ctx, &s.Request); err != nil {
			s.state.Store(free)
			return errors.Join(fmt.Errorf("hand a request over: %w", err), d.drain(ctx))
		}
		t := d.now()
		d.longest = max(d.longest, t.Sub(last))
		last = t
	}
	return d.drain(ctx)
}

// drain waits for all requests under way.
func (d *driver) drain(ctx context.Context) error {
	for i := range d.slots {
		if s := &d.slots[i]; s.state.Load() != free {
			if err := d.await(ctx, s); err != nil {
				return err
			}
		}
	}
	if err := d.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// await waits until a slot is free.
func (d *driver) await(ctx context.Context, s *slot) error {
	if s.state.CompareAndSwap(busy, awaited) {
		select {
		case <-d.wake:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if err := d.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// fill makes the request of o.
func (s *slot) fill(o *op) {
	s.Kind, s.Key, s.Limit, s.Err = o.kind, s.d.load.names[o.key], int(o.limit), nil
	s.Value = s.read[:0]
	if o.kind == kvpart.WriteRequest {
		s.Value = s.d.value
	}
}

// end is called by the worker that has run the request.
func (s *slot) end(*kvpart.Request) {
	if err := s.check(); err != nil {
		err = fmt.Errorf("%s %s: %w", s.d.load.workload, s.Key, err)
		s.d.failed.CompareAndSwap(nil, &err)
	}
	if s.Kind == kvpart.ReadRequest {
		s.read = s.Value
	}
	s.d.done.Add(1)
	if s.state.Swap(free) == awaited {
		s.d.wake <- struct{}{}
	}
}

// check checks that the answer can be right: every requested key was written
// before.
func (s *slot) check() error {
	if s.Err != nil {
		return s.Err
	}
	size := len(s.d.value)
	switch s.Kind {
	case kvpart.ReadRequest:
		if len(s.Value) != size {
			return fmt.Errorf("%w: %d bytes", errAnswer, len(s.Value))
		}
	case kvpart.ScanRequest:
		if n := len(s.Pairs); n == 0 || n > s.Limit || s.Pairs[0].Key != s.Key {
			return fmt.Errorf("%w: %d pairs of %d", errAnswer, n, s.Limit)
		}
		for i := range s.Pairs {
			if len(s.Pairs[i].Value) != size {
				return fmt.Errorf("%w: %d bytes of %s", errAnswer, len(s.Pairs[i].Value), s.Pairs[i].Key)
			}
		}
	}
	return nil
}
