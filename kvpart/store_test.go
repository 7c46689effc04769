package kvpart_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/samya-db/samya/kvpart"
	"github.com/samya-db/samya/kvpart/engine"
)

// combination is a strategy with a backend.
type combination struct {
	strategy kvpart.Strategy
	backend  string
	durable  bool
}

func combinations(tb testing.TB) []combination {
	tb.Helper()
	var all []combination
	for _, s := range kvpart.Strategies() {
		for _, b := range engine.Names() {
			f, err := engine.Lookup(b)
			if err != nil {
				tb.Fatal(err)
			}
			all = append(all, combination{s, b, f.Durable})
		}
	}
	return all
}

// each runs a test with each combination, side by side.
func each(t *testing.T, f func(t *testing.T, c combination)) {
	t.Helper()
	t.Parallel()
	for _, c := range combinations(t) {
		t.Run(fmt.Sprintf("%s/%s", c.strategy, c.backend), func(t *testing.T) {
			t.Parallel()
			f(t, c)
		})
	}
}

// options returns options of a small store that repartitions all the time.
func (c combination) options(tb testing.TB) kvpart.Options {
	tb.Helper()
	o := kvpart.Options{Strategy: c.strategy, Partitions: 3, Backend: c.backend}
	if c.durable {
		o.Dirs = []string{tempDir(tb), tempDir(tb)}
	}
	if c.strategy != kvpart.Bare {
		o.Policy = restless
	}
	return o
}

// tempDir makes a directory in memory where the system has such: the tests of this
// package write much, and package engine tests syncs.
func tempDir(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "kvpart-*")
	if err != nil {
		return tb.TempDir()
	}
	tb.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			tb.Error(err)
		}
	})
	return dir
}

// restless is a policy that applies a new map as often as there is a new map.
var restless = kvpart.Policy{Kind: kvpart.Async, Every: time.Millisecond, Gain: -1, Share: 1, Sample: 1, Window: 1000}

func open(tb testing.TB, o kvpart.Options) *kvpart.Store {
	tb.Helper()
	s, err := kvpart.Open(o)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func closing(tb testing.TB, s *kvpart.Store) {
	tb.Helper()
	if err := s.Close(); err != nil {
		tb.Error(err)
	}
}

// holds fails unless a scan of all finds exactly want.
func holds(s *kvpart.Store, want map[string]string) error {
	pairs, err := s.Scan(context.Background(), "", len(want)+1, nil)
	if err != nil {
		return err
	}
	if !slices.IsSortedFunc(pairs, func(a, b kvpart.Pair) int {
		if a.Key < b.Key {
			return -1
		}
		return 1
	}) {
		return fmt.Errorf("keys do not ascend: %v", pairs)
	}
	got := make(map[string]string)
	for _, p := range pairs {
		got[p.Key] = string(p.Value)
	}
	if !maps.Equal(got, want) {
		return fmt.Errorf("store holds %v, want %v", got, want)
	}
	return nil
}

func TestOneKey(t *testing.T) {
	each(t, func(t *testing.T, c combination) {
		t.Helper()
		s := open(t, c.options(t))
		defer closing(t, s)
		ctx := t.Context()
		if _, err := s.Read(ctx, "k", nil); !errors.Is(err, kvpart.ErrNotFound) {
			t.Errorf("read of no key: %v", err)
		}
		if err := s.Delete(ctx, "k"); err != nil {
			t.Errorf("delete of no key: %v", err)
		}
		for _, v := range []string{"one", "", "three and more", "4"} {
			if err := s.Write(ctx, "k", []byte(v)); err != nil {
				t.Fatal(err)
			}
			if got, err := s.Read(ctx, "k", []byte("> ")); err != nil || string(got) != "> "+v {
				t.Errorf("read %q, %v, want %q", got, err, "> "+v)
			}
			if got, err := s.Read(context.Background(), "k", []byte("> ")); err != nil || string(got) != "> "+v {
				t.Errorf("read %q, %v, want %q", got, err, "> "+v)
			}
		}
		if err := s.Delete(ctx, "k"); err != nil {
			t.Fatal(err)
		}
		if err := holds(s, nil); err != nil {
			t.Error(err)
		}
	})
}

// TestModel compares with a map, over closing and opening again with other
// strategies if the backend is durable.
func TestModel(t *testing.T) {
	each(t, func(t *testing.T, c combination) {
		t.Helper()
		o := c.options(t)
		s := open(t, o)
		defer func() { closing(t, s) }()
		draw := newGenerators()
		rapid.Check(t, func(t *rapid.T) {
			m := model{store: s, values: make(map[string]string), o: o, draw: draw}
			m.wipe(t)
			actions := map[string]func(*rapid.T){
				"write": m.write, "delete": m.remove, "read": m.read, "scan": m.scan, "execute": m.execute, "": m.check,
			}
			if c.durable {
				actions["reopen"] = m.reopen
			}
			defer func() { s = m.store }()
			t.Repeat(actions)
		})
	})
}

// model is a store and its expected content.
type model struct {
	store  *kvpart.Store
	o      kvpart.Options
	values map[string]string
	pairs  []kvpart.Pair
	draw   generators
}

// generators are for a single test: not for use by several at the same time.
type generators struct {
	key, value *rapid.Generator[string]
	some       *rapid.Generator[[]string]
}

func newGenerators() generators {
	key := rapid.StringMatching("[a-e]{1,2}")
	return generators{key: key, value: rapid.StringN(0, 30, -1), some: rapid.SliceOfN(key, 1, 5)}
}

func need(t *rapid.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// context is a context that may end, or cannot, which takes other ways with workers.
func (m *model) context(t *rapid.T) context.Context {
	if rapid.Bool().Draw(t, "cancelable") {
		ctx, cancel := context.WithCancel(context.Background())
		t.Cleanup(cancel)
		return ctx
	}
	return context.Background()
}

func (m *model) wipe(t *rapid.T) {
	pairs, err := m.store.Scan(context.Background(), "", kvpart.MaxScan, nil)
	need(t, err)
	for _, p := range pairs {
		need(t, m.store.Delete(context.Background(), p.Key))
	}
}

func (m *model) write(t *rapid.T) {
	k, v := m.draw.key.Draw(t, "key"), m.draw.value.Draw(t, "value")
	need(t, m.store.Write(m.context(t), k, []byte(v)))
	m.values[k] = v
}

func (m *model) remove(t *rapid.T) {
	k := m.draw.key.Draw(t, "key")
	need(t, m.store.Delete(m.context(t), k))
	delete(m.values, k)
}

func (m *model) read(t *rapid.T) {
	k := m.draw.key.Draw(t, "key")
	got, err := m.store.Read(m.context(t), k, nil)
	want, ok := m.values[k]
	if errors.Is(err, kvpart.ErrNotFound) == ok || string(got) != want {
		t.Fatalf("read %q: %q, %v, want %q, %v", k, got, err, want, ok)
	}
}

func (m *model) scan(t *rapid.T) {
	from, limit := m.draw.key.Draw(t, "from"), rapid.IntRange(1, 12).Draw(t, "limit")
	got, err := m.store.Scan(m.context(t), from, limit, m.pairs)
	need(t, err)
	var want []string
	for _, k := range slices.Sorted(maps.Keys(m.values)) {
		if k >= from && len(want) < limit {
			want = append(want, k)
		}
	}
	if len(got) != len(want) {
		t.Fatalf("scan finds %v, want %v", got, want)
	}
	for i, k := range want {
		if got[i].Key != k || string(got[i].Value) != m.values[k] {
			t.Fatalf("scan finds %v, want %v", got, want)
		}
	}
	m.pairs = got
}

func (m *model) execute(t *rapid.T) {
	all := m.draw.some.Draw(t, "keys")
	fails := rapid.IntRange(0, 4).Draw(t, "fails") == 0
	next := maps.Clone(m.values)
	failure := errors.New("failed")
	err := m.store.Execute(m.context(t), all, func(tx kvpart.Tx) error {
		for i := range rapid.IntRange(1, 8).Draw(t, "steps") {
			k := all[rapid.IntRange(0, len(all)-1).Draw(t, "key")]
			switch (i + len(all)) % 3 {
			case 0:
				v := m.draw.value.Draw(t, "value")
				next[k] = v
				if err := tx.Put(k, []byte(v)); err != nil {
					return err
				}
			case 1:
				delete(next, k)
				if err := tx.Delete(k); err != nil {
					return err
				}
			default:
				got, err := tx.Get(k, nil)
				want, ok := next[k]
				if errors.Is(err, kvpart.ErrNotFound) == ok || string(got) != want {
					return fmt.Errorf("tx gets %q: %q, %w, want %q, %v", k, got, err, want, ok)
				}
			}
		}
		if fails {
			return failure
		}
		return nil
	})
	if fails {
		if !errors.Is(err, failure) {
			t.Fatalf("execute that fails: %v", err)
		}
		return
	}
	need(t, err)
	m.values = next
}

func (m *model) reopen(t *rapid.T) {
	if rapid.IntRange(0, 9).Draw(t, "rarely") > 0 {
		return
	}
	need(t, m.store.Close())
	o := m.o
	o.Strategy = rapid.SampledFrom(kvpart.Strategies()).Draw(t, "strategy")
	if o.Strategy == kvpart.Bare {
		o.Policy = kvpart.Policy{}
	}
	o.Partitions = rapid.IntRange(1, 3).Draw(t, "partitions")
	var err error
	m.store, err = kvpart.Open(o)
	need(t, err)
}

func (m *model) check(t *rapid.T) {
	need(t, holds(m.store, m.values))
	if n := m.store.Stats().Keys; n != len(m.values) {
		t.Fatalf("store counts %d keys, want %d", n, len(m.values))
	}
}
