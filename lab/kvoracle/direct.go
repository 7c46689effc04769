package kvoracle

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/samya-db/samya/kvpart"
	"github.com/samya-db/samya/kvpart/sched"
)

// Direct is the plainest store on a scheduler: entries hold the values, and keys
// move at random all the time. It puts the scheduler itself on trial.
type Direct struct {
	s      *sched.Scheduler[[]byte]
	mover  sync.WaitGroup
	stop   chan struct{}
	moving bool
}

// NewDirect returns an empty store.
func NewDirect(o sched.Options[[]byte], seed uint64) (*Direct, error) {
	s, err := sched.New(o)
	if err != nil {
		return nil, fmt.Errorf("make a scheduler: %w", err)
	}
	d := &Direct{s: s, stop: make(chan struct{}), moving: true}
	d.mover.Go(func() { d.move(rand.New(rand.NewPCG(seed, 0))) })
	return d, nil
}

// move assigns some keys anew and switches, again and again.
func (d *Direct) move(rng *rand.Rand) {
	tick := time.NewTicker(300 * time.Microsecond)
	defer tick.Stop()
	var entries []*sched.Entry[[]byte]
	for {
		select {
		case <-d.stop:
			return
		case <-tick.C:
		}
		remap := func() {
			entries = d.s.Entries(entries[:0], "", 1<<16)
			for _, e := range entries {
				if rng.IntN(3) > 0 {
					continue
				}
				to := rng.IntN(d.s.Partitions())
				if rng.IntN(10) == 0 {
					to = sched.Unplaced
				}
				if _, err := d.s.Assign(e, to); err != nil {
					panic(err) // the partition is in range
				}
				if rng.IntN(8) == 0 {
					yield()
				}
			}
			d.s.Switch(nil)
		}
		if rng.IntN(8) == 0 {
			d.s.Hold(remap)
		} else {
			remap()
		}
	}
}

// directJob is the work of a request.
type directJob struct {
	run func(*sched.Request[[]byte])
	end func(error)
}

func (j *directJob) Run(r *sched.Request[[]byte]) { j.run(r) }

func (j *directJob) End(err error) {
	if j.end != nil {
		j.end(err)
	}
}

// asStore turns an error of a scheduler into an error of a store.
func asStore(err error) error {
	switch {
	case errors.Is(err, sched.ErrUnknown):
		return fmt.Errorf("%w: %w", kvpart.ErrUnknown, err)
	case errors.Is(err, sched.ErrClosed):
		return fmt.Errorf("%w: %w", kvpart.ErrClosed, err)
	}
	return err
}

// Read implements Store.
func (d *Direct) Read(ctx context.Context, key string, dst []byte) ([]byte, error) {
	var r sched.Request[[]byte]
	var got []byte
	present := false
	r.One(key, sched.Share, &directJob{run: func(r *sched.Request[[]byte]) {
		e := r.Entries()[0]
		present, got = e.Present, append(got, e.Value...)
	}})
	err := d.s.Do(ctx, &r)
	switch {
	case errors.Is(err, sched.ErrNoEntry):
		return dst, kvpart.ErrNotFound
	case err != nil:
		return dst, asStore(err)
	case !present:
		return dst, kvpart.ErrNotFound
	}
	return append(dst, got...), nil
}

// Write implements Store.
func (d *Direct) Write(ctx context.Context, key string, value []byte) error {
	var r sched.Request[[]byte]
	value = slices.Clone(value)
	r.One(key, sched.Create, &directJob{run: func(r *sched.Request[[]byte]) { set(r.Entries()[0], value) }})
	return asStore(d.s.Do(ctx, &r))
}

// set writes a value in two parts, so that a concurrent reader sees a torn value.
func set(e *sched.Entry[[]byte], value []byte) {
	half := len(value) / 2
	e.Present, e.Value = true, append(e.Value[:0], value[:half]...)
	yield()
	e.Value = append(e.Value, value[half:]...)
}

func unset(e *sched.Entry[[]byte]) { e.Present, e.Value = false, e.Value[:0] }

// Delete implements Store.
func (d *Direct) Delete(ctx context.Context, key string) error {
	var r sched.Request[[]byte]
	r.One(key, sched.Alone, &directJob{run: func(r *sched.Request[[]byte]) { unset(r.Entries()[0]) }})
	if err := d.s.Do(ctx, &r); !errors.Is(err, sched.ErrNoEntry) {
		return asStore(err)
	}
	return nil
}

// Scan implements Store.
func (d *Direct) Scan(ctx context.Context, from string, limit int, _ []kvpart.Pair) ([]kvpart.Pair, error) {
	for reach := limit; ; reach *= 2 {
		var r sched.Request[[]byte]
		var pairs []kvpart.Pair
		short := false
		r.Range(from, reach, sched.Share, &directJob{run: func(r *sched.Request[[]byte]) {
			for _, e := range r.Entries() {
				if e.Present && len(pairs) < limit {
					pairs = append(pairs, kvpart.Pair{Key: e.Key(), Value: slices.Clone(e.Value)})
				}
			}
			short = len(pairs) < limit && len(r.Entries()) == reach
		}})
		if err := d.s.Do(ctx, &r); err != nil {
			return nil, asStore(err)
		}
		if !short {
			return pairs, nil
		}
	}
}

// Execute implements Store.
func (d *Direct) Execute(ctx context.Context, keys []string, fn func(kvpart.Tx) error) error {
	keys = slices.Compact(slices.Sorted(slices.Values(keys)))
	var r sched.Request[[]byte]
	var failed error
	r.Several(keys, sched.Create, &directJob{run: func(r *sched.Request[[]byte]) {
		t := &directTx{keys: keys, entries: r.Entries(), writes: make([]*[]byte, len(keys)), gone: make([]bool, len(keys))}
		if failed = fn(t); failed != nil {
			return
		}
		for i, e := range t.entries {
			if t.gone[i] {
				unset(e)
			} else if v := t.writes[i]; v != nil {
				set(e, *v)
			}
			if i == 0 {
				yield()
			}
		}
	}})
	if err := d.s.Do(ctx, &r); err != nil {
		return asStore(err)
	}
	return failed
}

type directTx struct {
	keys    []string
	entries []*sched.Entry[[]byte]
	writes  []*[]byte
	gone    []bool
}

func (t *directTx) Get(key string, dst []byte) ([]byte, error) {
	i, ok := slices.BinarySearch(t.keys, key)
	switch {
	case !ok:
		return dst, kvpart.ErrUndeclared
	case t.writes[i] != nil && !t.gone[i]:
		return append(dst, *t.writes[i]...), nil
	case t.gone[i] || !t.entries[i].Present:
		return dst, kvpart.ErrNotFound
	}
	return append(dst, t.entries[i].Value...), nil
}

func (t *directTx) Put(key string, value []byte) error {
	i, ok := slices.BinarySearch(t.keys, key)
	if !ok {
		return kvpart.ErrUndeclared
	}
	value = slices.Clone(value)
	t.writes[i], t.gone[i] = &value, false
	return nil
}

func (t *directTx) Delete(key string) error {
	i, ok := slices.BinarySearch(t.keys, key)
	if !ok {
		return kvpart.ErrUndeclared
	}
	t.gone[i] = true
	return nil
}

// Start implements Starter.
func (d *Direct) Start(ctx context.Context, q *kvpart.Request) error {
	r := new(sched.Request[[]byte])
	j := &directJob{end: func(err error) {
		switch {
		case errors.Is(err, sched.ErrNoEntry) && q.Kind == kvpart.ReadRequest:
			q.Err = kvpart.ErrNotFound
		case err != nil && !errors.Is(err, sched.ErrNoEntry):
			q.Err = asStore(err)
		}
		q.Done(q)
	}}
	switch q.Kind {
	case kvpart.ReadRequest:
		j.run = func(r *sched.Request[[]byte]) {
			if e := r.Entries()[0]; e.Present {
				q.Value = append(q.Value[:0], e.Value...)
			} else {
				q.Err = kvpart.ErrNotFound
			}
		}
		r.One(q.Key, sched.Create, j)
	case kvpart.WriteRequest:
		j.run = func(r *sched.Request[[]byte]) { set(r.Entries()[0], q.Value) }
		r.One(q.Key, sched.Create, j)
	case kvpart.DeleteRequest:
		j.run = func(r *sched.Request[[]byte]) { unset(r.Entries()[0]) }
		r.One(q.Key, sched.Create, j)
	default:
		return fmt.Errorf("%w: kind %d", kvpart.ErrOptions, q.Kind)
	}
	return asStore(d.s.Start(ctx, r))
}

// Close implements Store.
func (d *Direct) Close() error {
	if d.moving {
		d.moving = false
		close(d.stop)
	}
	d.s.Close()
	d.mover.Wait()
	return nil
}
