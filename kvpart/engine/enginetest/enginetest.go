// Package enginetest checks whether an engine keeps the promises of package engine, and
// makes engines that fail. It is for tests.
package enginetest

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/samya-db/samya/kvpart/engine"
)

// Run runs all tests on engines of a factory.
func Run(t *testing.T, f engine.Factory) {
	t.Helper()
	t.Run("one key", func(t *testing.T) { oneKey(t, f) })
	t.Run("sizes", func(t *testing.T) { sizes(t, f) })
	t.Run("copies", func(t *testing.T) { copies(t, f) })
	t.Run("apply", func(t *testing.T) { apply(t, f) })
	t.Run("gather", func(t *testing.T) { gather(t, f) })
	t.Run("cells", func(t *testing.T) { cells(t, f) })
	t.Run("written", func(t *testing.T) { written(t, f) })
	t.Run("visit fails", func(t *testing.T) { visitFails(t, f) })
	t.Run("model", func(t *testing.T) { model(t, f) })
	t.Run("concurrent", func(t *testing.T) { concurrent(t, f) })
	if f.Durable {
		t.Run("in use", func(t *testing.T) { inUse(t, f) })
		t.Run("empty", func(t *testing.T) {
			dir := t.TempDir()
			closing(t, open(t, f, dir))
			e := open(t, f, dir)
			defer closing(t, e)
			Holds(t, e, nil)
		})
	}
}

// Holds fails the test unless e holds exactly want.
func Holds(tb testing.TB, e engine.Engine, want map[string]string) {
	tb.Helper()
	if err := holds(e, want); err != nil {
		tb.Fatal(err)
	}
}

func holds(e engine.Engine, want map[string]string) error {
	got := make(map[string]string)
	err := e.Each(func(key string, value []byte) error {
		if _, ok := got[key]; ok {
			return fmt.Errorf("Each visits %.40q twice", key)
		}
		got[key] = string(value)
		return nil
	})
	if err != nil {
		return err
	}
	if !maps.Equal(got, want) {
		return fmt.Errorf("holds %.200v, want %.200v", got, want)
	}
	for key, value := range want {
		if got, err := e.Get(key, nil); err != nil || string(got) != value {
			return fmt.Errorf("Get(%.40q) is %.40q, %w, want %.40q", key, got, err, value)
		}
	}
	return nil
}

func open(tb testing.TB, f engine.Factory, dir string) engine.Engine {
	tb.Helper()
	e, err := f.Open(engine.Config{Dir: dir})
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

func opened(t *testing.T, f engine.Factory) engine.Engine {
	t.Helper()
	e := open(t, f, t.TempDir())
	t.Cleanup(func() { closing(t, e) })
	return e
}

func closing(tb testing.TB, e engine.Engine) {
	tb.Helper()
	if err := e.Close(); err != nil {
		tb.Error(err)
	}
}

func put(tb testing.TB, e engine.Engine, key, value string) {
	tb.Helper()
	if err := e.Put(key, []byte(value)); err != nil {
		tb.Fatalf("Put(%.40q): %v", key, err)
	}
}

func oneKey(t *testing.T, f engine.Factory) {
	t.Helper()
	e := opened(t, f)
	dst := []byte("kept ")
	if got, err := e.Get("k", dst); !errors.Is(err, engine.ErrNotFound) || string(got) != "kept " {
		t.Fatalf("Get of no key is %q, %v", got, err)
	}
	if err := e.Delete("k"); err != nil {
		t.Fatalf("Delete of no key: %v", err)
	}
	for _, value := range []string{"first", "", "a longer one", strings.Repeat("x", 2000), "short"} {
		put(t, e, "k", value)
		if got, err := e.Get("k", dst); err != nil || string(got) != "kept "+value {
			t.Fatalf("Get is %.40q, %v, want %.40q", got, err, "kept "+value)
		}
		Holds(t, e, map[string]string{"k": value})
	}
	if err := e.Delete("k"); err != nil {
		t.Fatal(err)
	}
	Holds(t, e, nil)
}

func sizes(t *testing.T, f engine.Factory) {
	t.Helper()
	e := opened(t, f)
	noise := make([]byte, 1<<20) // noise does not compress
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
	want := map[string]string{
		"\x00":                        "a zero byte",
		"\xff\xfe":                    "no UTF-8",
		"k":                           string(noise),
		strings.Repeat("k", 4<<10):    "the longest key",
		strings.Repeat("\xff", 4<<10): "the last key",
	}
	for key, value := range want {
		put(t, e, key, value)
	}
	Holds(t, e, want)
	if bytes := e.DiskBytes(); f.Durable && bytes < 1<<20 || !f.Durable && bytes != 0 {
		t.Errorf("takes %d bytes of the disk", bytes)
	}
}

func copies(t *testing.T, f engine.Factory) {
	t.Helper()
	e := opened(t, f)
	value := []byte("value")
	if err := e.Put("put", value); err != nil {
		t.Fatal(err)
	}
	if err := e.Apply([]engine.Write{{Key: "applied", Value: value}}); err != nil {
		t.Fatal(err)
	}
	copy(value, "XXXXX")
	got, err := e.Get("put", nil)
	if err != nil {
		t.Fatal(err)
	}
	copy(got, "XXXXX")
	Holds(t, e, map[string]string{"put": "value", "applied": "value"})
}

func apply(t *testing.T, f engine.Factory) {
	t.Helper()
	e := opened(t, f)
	put(t, e, "old", "1")
	put(t, e, "stays", "1")
	if err := e.Apply(nil); err != nil {
		t.Fatal(err)
	}
	err := e.Apply([]engine.Write{
		{Key: "old", Delete: true},
		{Key: "never", Delete: true},
		{Key: "new", Value: []byte("2")},
		{Key: "twice", Value: []byte("3")},
		{Key: "twice", Value: []byte("4")},
		{Key: "gone", Value: []byte("5")},
		{Key: "gone", Delete: true},
		{Key: "empty"},
	})
	if err != nil {
		t.Fatal(err)
	}
	Holds(t, e, map[string]string{"stays": "1", "new": "2", "twice": "4", "empty": ""})
}

func gather(t *testing.T, f engine.Factory) {
	t.Helper()
	e := opened(t, f)
	for i := range 200 {
		put(t, e, fmt.Sprintf("k%03d", i*2), fmt.Sprint(i*2))
	}
	rapid.Check(t, func(t *rapid.T) {
		wanted := rapid.SliceOfNDistinct(rapid.IntRange(0, 410), 0, 30, rapid.ID).Draw(t, "keys")
		slices.Sort(wanted)
		keys := make([]string, len(wanted))
		var want, got []string
		for i, k := range wanted {
			keys[i] = fmt.Sprintf("k%03d", k)
			if k < 400 && k%2 == 0 {
				want = append(want, fmt.Sprint(i, " ", k))
			}
		}
		err := e.Gather(keys, func(i int, value []byte) error {
			got = append(got, fmt.Sprint(i, " ", string(value)))
			return nil
		})
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("Gather visits %v, %v, want %v", got, err, want)
		}
	})
}

// cells tests engines with cells.
func cells(t *testing.T, f engine.Factory) {
	t.Helper()
	e := opened(t, f)
	h, ok := e.(engine.Holder)
	if !ok {
		return
	}
	put(t, e, "k", "v")
	put(t, e, "stays", "1")
	if h.Cell("never") != nil || h.Take("never") != nil {
		t.Error("no key has a cell")
	}
	c := h.Cell("k")
	put(t, e, "k", "value")
	if got := c.Get([]byte("> ")); string(got) != "> value" || string(c.Value()) != "value" {
		t.Errorf("the cell holds %q", got)
	}
	c.Set([]byte("set"))
	Holds(t, e, map[string]string{"k": "set", "stays": "1"})
	if h.Take("k") != c {
		t.Error("Take returns another cell")
	}
	Holds(t, e, map[string]string{"stays": "1"})
	h.Give("stays", c)
	h.Give("other", h.Take("stays"))
	Holds(t, e, map[string]string{"other": "set"})
}

func visitFails(t *testing.T, f engine.Factory) {
	t.Helper()
	e := opened(t, f)
	put(t, e, "a", "1")
	put(t, e, "b", "2")
	failed := errors.New("failed")
	visits := 0
	if err := e.Gather([]string{"a", "b"}, func(int, []byte) error { visits++; return failed }); !errors.Is(err, failed) || visits != 1 {
		t.Errorf("Gather: %v after %d visits", err, visits)
	}
	visits = 0
	if err := e.Each(func(string, []byte) error { visits++; return failed }); !errors.Is(err, failed) || visits != 1 {
		t.Errorf("Each: %v after %d visits", err, visits)
	}
}

// model compares an engine with a map, over closing and opening again if the engine is
// durable.
func model(t *testing.T, f engine.Factory) {
	t.Helper()
	dir := t.TempDir()
	e := open(t, f, dir)
	defer func() { closing(t, e) }()
	rapid.Check(t, func(t *rapid.T) {
		want := make(map[string]string)
		check(t, wipe(e))
		key := rapid.StringMatching("[a-e]{1,2}")
		value := rapid.StringN(0, 40, -1)
		actions := map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				k, v := key.Draw(t, "key"), value.Draw(t, "value")
				want[k] = v
				check(t, e.Put(k, []byte(v)))
			},
			"delete": func(t *rapid.T) {
				k := key.Draw(t, "key")
				delete(want, k)
				check(t, e.Delete(k))
			},
			"apply": func(t *rapid.T) {
				var writes []engine.Write
				for range rapid.IntRange(1, 4).Draw(t, "writes") {
					w := engine.Write{Key: key.Draw(t, "key"), Delete: rapid.Bool().Draw(t, "delete")}
					if w.Delete {
						delete(want, w.Key)
					} else {
						w.Value = []byte(value.Draw(t, "value"))
						want[w.Key] = string(w.Value)
					}
					writes = append(writes, w)
				}
				check(t, e.Apply(writes))
			},
			"": func(t *rapid.T) { check(t, holds(e, want)) },
		}
		if f.Durable {
			actions["reopen"] = func(t *rapid.T) {
				if rapid.IntRange(0, 7).Draw(t, "rarely") > 0 {
					return
				}
				check(t, e.Close())
				var err error
				e, err = f.Open(engine.Config{Dir: dir})
				check(t, err)
			}
		}
		t.Repeat(actions)
	})
}

// wipe removes all keys of e.
func wipe(e engine.Engine) error {
	var writes []engine.Write
	err := e.Each(func(key string, _ []byte) error {
		writes = append(writes, engine.Write{Key: key, Delete: true})
		return nil
	})
	return errors.Join(err, e.Apply(writes))
}

func check(t *rapid.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// concurrent runs several goroutines, each on keys of its own.
func concurrent(t *testing.T, f engine.Factory) {
	t.Helper()
	dir := t.TempDir()
	e := open(t, f, dir)
	const workers, rounds, keys = 8, 30, 10
	want := make([]map[string]string, workers)
	var wg sync.WaitGroup
	for w := range workers {
		mine := make(map[string]string)
		want[w] = mine
		wg.Go(func() {
			if err := worker(e, w, rounds, keys, mine); err != nil {
				t.Errorf("worker %d: %v", w, err)
			}
		})
	}
	wg.Wait()
	all := make(map[string]string)
	for _, mine := range want {
		maps.Copy(all, mine)
	}
	Holds(t, e, all)
	closing(t, e)
	if f.Durable {
		e := open(t, f, dir)
		defer closing(t, e)
		Holds(t, e, all)
	}
}

func worker(e engine.Engine, w, rounds, keys int, mine map[string]string) error {
	names := make([]string, keys)
	for k := range keys {
		// The keys of all workers are interleaved.
		names[k] = fmt.Sprintf("k%03d-%d", k, w)
	}
	for r := range rounds {
		for k, name := range names {
			value := fmt.Sprint(w, k, r)
			var err error
			switch (r + k) % 4 {
			case 0:
				delete(mine, name)
				err = e.Delete(name)
			case 1:
				other := names[(k+1)%keys]
				mine[name], mine[other] = value, value
				err = e.Apply([]engine.Write{{Key: name, Value: []byte(value)}, {Key: other, Value: []byte(value)}})
			default:
				mine[name] = value
				err = e.Put(name, []byte(value))
			}
			if err != nil {
				return err
			}
			if got, err := e.Get(name, nil); string(got) != mine[name] {
				return fmt.Errorf("%s is %q, %w, want %q", name, got, err, mine[name])
			}
		}
		found := 0
		err := e.Gather(names, func(i int, value []byte) error {
			found++
			if string(value) != mine[names[i]] {
				return fmt.Errorf("%s is %q, want %q", names[i], value, mine[names[i]])
			}
			return nil
		})
		if err != nil || found != len(mine) {
			return fmt.Errorf("gathered %d of %d: %w", found, len(mine), err)
		}
	}
	return nil
}

func inUse(t *testing.T, f engine.Factory) {
	t.Helper()
	dir := t.TempDir()
	e := open(t, f, dir)
	put(t, e, "k", "v")
	if other, err := f.Open(engine.Config{Dir: dir}); !errors.Is(err, engine.ErrInUse) {
		t.Errorf("a second engine of one directory: %v, %v", other, err)
	}
	put(t, e, "k", "w")
	closing(t, e)
	e = open(t, f, dir)
	defer closing(t, e)
	Holds(t, e, map[string]string{"k": "w"})
}
