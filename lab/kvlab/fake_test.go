package kvlab

import (
	"context"
	"slices"
	"sync"

	"github.com/samya-db/samya/kvpart"
)

// fake is a store behind a lock.
type fake struct {
	mu                             sync.Mutex
	values                         map[string][]byte
	stats                          kvpart.Stats
	fail                           error // of writes
	reads, writes, scans, executes int
	closed                         bool
}

func newFake() *fake { return &fake{values: map[string][]byte{}} }

func (f *fake) Read(_ context.Context, key string, dst []byte) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads++
	f.stats.Operations++
	return f.get(key, dst)
}

func (f *fake) get(key string, dst []byte) ([]byte, error) {
	v, ok := f.values[key]
	if !ok {
		return dst, kvpart.ErrNotFound
	}
	return append(dst, v...), nil
}

func (f *fake) Write(_ context.Context, key string, value []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail != nil {
		return f.fail
	}
	f.writes++
	f.stats.Operations++
	f.values[key] = slices.Clone(value)
	return nil
}

func (f *fake) Scan(_ context.Context, from string, limit int, dst []kvpart.Pair) ([]kvpart.Pair, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.scans++
	f.stats.Operations++
	f.stats.Multi++
	var keys []string
	for k := range f.values {
		if k >= from {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	for _, k := range keys[:min(limit, len(keys))] {
		dst = append(dst, kvpart.Pair{Key: k, Value: f.values[k]})
	}
	return dst, nil
}

func (f *fake) Execute(_ context.Context, _ []string, fn func(kvpart.Tx) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.executes++
	f.stats.Operations++
	return fn(fakeTx{f})
}

type fakeTx struct{ f *fake }

func (t fakeTx) Get(key string, dst []byte) ([]byte, error) { return t.f.get(key, dst) }
func (t fakeTx) Put(key string, value []byte) error {
	t.f.values[key] = slices.Clone(value)
	return nil
}
func (t fakeTx) Delete(key string) error { delete(t.f.values, key); return nil }

func (f *fake) Stats() kvpart.Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stats
}

func (f *fake) Close() error { f.closed = true; return nil }
