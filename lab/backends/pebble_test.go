package backends

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/samya-db/samya/kvpart/engine"
	"github.com/samya-db/samya/kvpart/engine/enginetest"
)

// TestPebble: the backend keeps the rules of an engine.
func TestPebble(t *testing.T) {
	t.Parallel()
	f, err := engine.Lookup("pebble")
	if err != nil {
		t.Fatal(err)
	}
	enginetest.Run(t, f)
}

// TestLookup: all backends are registered.
func TestLookup(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"bbolt", "btree", "hash", "pebble"} {
		if _, err := engine.Lookup(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := engine.Lookup("rocksdb"); !errors.Is(err, engine.ErrBackend) {
		t.Errorf("an unknown backend: %v", err)
	}
}

func closeEngine(t *testing.T, e engine.Engine) {
	t.Helper()
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// TestPebbleBroken fails the sync of a write.
func TestPebbleBroken(t *testing.T) {
	t.Parallel()
	failed := errors.New("failed")
	fail := errorfs.Toggle{Injector: errorfs.InjectorFunc(func(op errorfs.Op) error {
		switch op.Kind {
		case errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo:
			return failed
		default:
			return nil
		}
	})}
	mem := vfs.NewCrashableMem()
	e, err := openPebbleOn(engine.Config{Dir: "", Log: slog.New(slog.DiscardHandler)}, errorfs.Wrap(mem, &fail))
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Put("before", []byte("1")); err != nil {
		t.Fatal(err)
	}
	fail.On()
	if err := e.Put("after", []byte("2")); !errors.Is(err, engine.ErrBroken) {
		t.Errorf("a write that failed: %v", err)
	}
	if err := e.Delete("before"); !errors.Is(err, engine.ErrBroken) {
		t.Errorf("a deletion after a write that failed: %v", err)
	}
	if err := e.Apply([]engine.Write{{Key: "k"}}); !errors.Is(err, engine.ErrBroken) {
		t.Errorf("writes after one that failed: %v", err)
	}
	fail.Off()
	again, err := openPebbleOn(engine.Config{}, mem.CrashClone(vfs.CrashCloneCfg{}))
	if err != nil {
		t.Fatal(err)
	}
	defer closeEngine(t, again)
	if got, err := again.Get("before", nil); err != nil || string(got) != "1" {
		t.Errorf("read %q, %v", got, err)
	}
}

// TestPebbleSyncs takes all unsynced data away after each kind of write: the write is
// there.
func TestPebbleSyncs(t *testing.T) {
	t.Parallel()
	mem := vfs.NewCrashableMem()
	e, err := openPebbleOn(engine.Config{}, mem)
	if err != nil {
		t.Fatal(err)
	}
	defer closeEngine(t, e)
	for _, step := range []struct {
		name string
		do   func() error
		want string
	}{
		{"put", func() error { return e.Put("k", []byte("1")) }, "1"},
		{"put again", func() error { return e.Put("k", []byte("2")) }, "2"},
		{"delete", func() error { return e.Delete("k") }, ""},
		{"apply", func() error { return e.Apply([]engine.Write{{Key: "k", Value: []byte("3")}}) }, "3"},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		again, err := openPebbleOn(engine.Config{}, mem.CrashClone(vfs.CrashCloneCfg{}))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := again.Get("k", nil); string(got) != step.want || errors.Is(err, engine.ErrNotFound) != (step.want == "") {
			t.Errorf("%s: read %q, %v", step.name, got, err)
		}
		closeEngine(t, again)
	}
}

// TestPebbleCrash loses unsynced data at random, while goroutines write: acknowledged
// writes are there, and Apply wrote all or nothing.
func TestPebbleCrash(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		rng := rand.New(rand.NewPCG(seed, 0))
		mem := vfs.NewCrashableMem()
		e, err := openPebbleOn(engine.Config{}, mem)
		if err != nil {
			t.Fatal(err)
		}
		acked := make([]int, 4)
		crashed := make([]int, 4) // acknowledged before the crash
		var mu sync.Mutex
		var disk *vfs.MemFS
		var wg sync.WaitGroup
		at := 1 + rng.IntN(100)
		for w := range acked {
			wg.Go(func() {
				for i := 1; i <= 50; i++ {
					v := fmt.Appendf(nil, "%d", i)
					if err := e.Apply([]engine.Write{{Key: fmt.Sprint("a", w), Value: v}, {Key: fmt.Sprint("b", w), Value: v}}); err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					acked[w] = i
					if at--; at == 0 {
						copy(crashed, acked)
						disk = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: rng})
					}
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		again, err := openPebbleOn(engine.Config{}, disk)
		if err != nil {
			t.Fatal(err)
		}
		for w, n := range crashed {
			a, errA := again.Get(fmt.Sprint("a", w), nil)
			b, errB := again.Get(fmt.Sprint("b", w), nil)
			if string(a) != string(b) {
				t.Errorf("seed %d: half of an Apply: %q %v, %q %v", seed, a, errA, b, errB)
			}
			var got int
			_, _ = fmt.Sscan(string(a), &got)
			if got < n {
				t.Errorf("seed %d: %d was acknowledged, found %d, %v", seed, n, got, errA)
			}
		}
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPebbleLetsGo: an engine that could not be opened does not keep its directory from
// others.
func TestPebbleLetsGo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	// It names a file that is not there.
	marker := filepath.Join(dir, "marker.manifest.000001.MANIFEST-000009")
	if err := os.WriteFile(marker, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if e, err := openPebble(engine.Config{Dir: dir}); err == nil {
		closeEngine(t, e)
		t.Fatal("a directory without its files was opened")
	} else if errors.Is(err, engine.ErrInUse) {
		t.Fatal(err)
	}
	if err := os.Remove(marker); err != nil {
		t.Fatal(err)
	}
	e, err := openPebble(engine.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	closeEngine(t, e)
}
