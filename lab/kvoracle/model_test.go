package kvoracle_test

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/samya-db/samya/kvpart"
)

// fault is a bug of the model.
type fault int

const (
	none fault = iota
	tornScan
	phantom
	shortScan
	longScan
	unsortedScan
	lostWrite
	staleRead
	resurrects
	keepsValue
	tornExecute
	lostUpdate
	together
	halfOnFailure
	seesIntermediate
	runsTwice
	doneThoughRefused
	runsAfterRefusal
	reordered
	doneTwice
	deadlocks
	closeHangs
	closeLoses
	closeTakesBack
)

// model is a store with a map and a mutex: the control. A fault makes it wrong in a
// single way, once in a few requests.
type model struct {
	fault  fault
	mu     sync.Mutex
	n      int
	values map[string][]byte
	old    map[string][]byte
	closed bool
	queue  chan *kvpart.Request
	wait   sync.WaitGroup
}

func newModel(f fault) *model {
	m := &model{fault: f, values: make(map[string][]byte), old: make(map[string][]byte), queue: make(chan *kvpart.Request, 4)}
	go m.work()
	return m
}

// now tells whether the fault shows this time; the lock is held.
func (m *model) now(f fault, every int) bool {
	if m.fault != f {
		return false
	}
	m.n++
	return m.n%every == 0
}

// pause lets others in, though it should not; the lock is held.
func (m *model) pause() {
	m.mu.Unlock()
	runtime.Gosched()
	m.mu.Lock()
}

func (m *model) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil && m.fault != doneThoughRefused {
		return err
	}
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return fmt.Errorf("model: %w", kvpart.ErrClosed)
	}
	return nil
}

func (m *model) Read(ctx context.Context, key string, dst []byte) ([]byte, error) {
	if err := m.enter(ctx); err != nil {
		return dst, err
	}
	defer m.mu.Unlock()
	v, ok := m.values[key]
	if old, had := m.old[key]; had && m.now(staleRead, 50) {
		v, ok = old, true
	}
	if !ok {
		return dst, fmt.Errorf("model: %w", kvpart.ErrNotFound)
	}
	return append(dst, v...), nil
}

func (m *model) Write(ctx context.Context, key string, value []byte) error {
	if m.fault != keepsValue {
		value = bytes.Clone(value)
	}
	if err := m.enter(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	if old, ok := m.values[key]; ok {
		m.old[key] = old
	}
	if !m.now(lostWrite, 50) {
		m.values[key] = value
	}
	if m.fault == doneThoughRefused {
		return ctx.Err()
	}
	return nil
}

func (m *model) Delete(ctx context.Context, key string) error {
	if err := m.enter(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	if old, ok := m.old[key]; ok && m.now(resurrects, 20) {
		m.values[key] = old
		return nil
	}
	delete(m.values, key)
	if m.fault == doneThoughRefused {
		return ctx.Err()
	}
	return nil
}

func (m *model) Scan(ctx context.Context, from string, limit int, dst []kvpart.Pair) ([]kvpart.Pair, error) {
	if err := m.enter(ctx); err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	var keys []string
	for key := range m.values {
		if key >= from {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	if m.now(longScan, 50) {
		limit++
	}
	keys = keys[:min(limit, len(keys))]
	if len(keys) > 2 && m.now(shortScan, 50) {
		keys = slices.Delete(keys, 1, 2)
	}
	if len(keys) > 1 && m.now(unsortedScan, 50) {
		slices.Reverse(keys)
	}
	dst = dst[:0]
	if m.fault == phantom { // keys and values are of different instants
		m.pause()
	}
	for i, key := range keys {
		if m.fault == tornScan && i == len(keys)/2 {
			m.pause()
		}
		if v, ok := m.values[key]; ok {
			dst = append(dst, kvpart.Pair{Key: key, Value: bytes.Clone(v)})
		}
	}
	return dst, nil
}

// modelTx runs with the lock held, but for some faults.
type modelTx struct {
	m      *model
	keys   []string
	writes map[string][]byte // nil for a removal
}

func (t *modelTx) Get(key string, dst []byte) ([]byte, error) {
	if !slices.Contains(t.keys, key) {
		return dst, kvpart.ErrUndeclared
	}
	v, ok := t.writes[key]
	if !ok {
		v = t.m.values[key]
	}
	if t.m.fault == lostUpdate || t.m.fault == together {
		t.m.pause()
	}
	if v == nil {
		return dst, kvpart.ErrNotFound
	}
	return append(dst, v...), nil
}

func (t *modelTx) Put(key string, value []byte) error {
	if !slices.Contains(t.keys, key) {
		return kvpart.ErrUndeclared
	}
	t.writes[key] = bytes.Clone(value)
	if t.m.fault == halfOnFailure || t.m.fault == seesIntermediate {
		t.m.values[key] = t.writes[key]
	}
	if t.m.fault == seesIntermediate {
		t.m.pause()
	}
	return nil
}

func (t *modelTx) Delete(key string) error {
	if !slices.Contains(t.keys, key) {
		return kvpart.ErrUndeclared
	}
	t.writes[key] = nil
	return nil
}

func (m *model) Execute(ctx context.Context, keys []string, fn func(kvpart.Tx) error) error {
	if err := ctx.Err(); err != nil && m.fault == runsAfterRefusal {
		m.wait.Go(func() {
			for range 10 {
				runtime.Gosched()
			}
			m.mu.Lock()
			defer m.mu.Unlock()
			_ = fn(&modelTx{m: m, keys: keys, writes: make(map[string][]byte)})
		})
		return err
	}
	if err := m.enter(ctx); err != nil {
		return err
	}
	defer m.mu.Unlock()
	if m.now(deadlocks, 100) {
		<-make(chan struct{})
	}
	t := &modelTx{m: m, keys: keys, writes: make(map[string][]byte)}
	if err := fn(t); err != nil {
		return err
	}
	if m.now(runsTwice, 50) {
		if err := fn(t); err != nil {
			return err
		}
	}
	for key, v := range t.writes {
		if v == nil {
			delete(m.values, key)
		} else {
			m.values[key] = v
		}
		if m.fault == tornExecute {
			m.pause()
		}
	}
	if m.fault == doneThoughRefused {
		return ctx.Err()
	}
	return nil
}

func (m *model) Start(ctx context.Context, r *kvpart.Request) error {
	if err := m.enter(ctx); err != nil {
		return err
	}
	m.wait.Add(1)
	m.mu.Unlock()
	m.queue <- r
	return nil
}

// work runs the started requests, in their order.
func (m *model) work() {
	for r := range m.queue {
		if m.fault == reordered {
			select {
			case next := <-m.queue:
				m.serve(next)
			default:
			}
		}
		m.serve(r)
	}
}

func (m *model) serve(r *kvpart.Request) {
	defer m.wait.Done()
	m.mu.Lock()
	switch r.Kind {
	case kvpart.ReadRequest:
		v, ok := m.values[r.Key]
		if !ok {
			r.Err = kvpart.ErrNotFound
		}
		r.Value = append(r.Value[:0], v...)
	case kvpart.WriteRequest:
		m.values[r.Key] = bytes.Clone(r.Value)
	case kvpart.DeleteRequest:
		delete(m.values, r.Key)
	}
	twice := m.now(doneTwice, 20)
	m.mu.Unlock()
	if twice {
		r.Done(r)
	}
	r.Done(r)
}

func (m *model) Close() error {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	if m.fault == closeHangs {
		select {}
	}
	m.wait.Wait()
	close(m.queue)
	return nil
}

// reopen returns a store with the content of the closed store.
func (m *model) reopen() *model {
	again := newModel(none)
	again.values = m.values
	for key := range m.values {
		if m.fault == closeLoses {
			delete(m.values, key)
			break
		}
		if old, ok := m.old[key]; ok && m.fault == closeTakesBack {
			m.values[key] = old
			break
		}
	}
	return again
}
