package engine

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

func closeEngine(t *testing.T, e Engine) {
	t.Helper()
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// TestBoltBroken fails a transaction: it and all later writes fail, reads go on, and
// what was acknowledged before is there after opening again.
func TestBoltBroken(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var file *os.File
	e, err := openBoltFile(dir, func(path string, flag int, mode os.FileMode) (*os.File, error) {
		f, err := os.OpenFile(path, flag, mode)
		file = f
		return f, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Put("before", []byte("1")); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if err := e.Put("after", []byte("2")); !errors.Is(err, ErrBroken) || !errors.Is(err, os.ErrClosed) {
		t.Errorf("a write that failed: %v", err)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if err := e.Put(fmt.Sprint(i), []byte("3")); !errors.Is(err, ErrBroken) {
				t.Errorf("a write after one that failed: %v", err)
			}
		})
	}
	wg.Wait()
	if got, err := e.Get("before", nil); err != nil || string(got) != "1" {
		t.Errorf("read %q, %v", got, err)
	}
	// The file is closed already.
	if err := e.Close(); err == nil {
		t.Error("closing a file twice is no error")
	}
	again, err := openBoltFile(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer closeEngine(t, again)
	if got, err := again.Get("before", nil); err != nil || string(got) != "1" {
		t.Errorf("read %q, %v", got, err)
	}
}

// TestBoltBrokenForGood: after a transaction that failed all later ones fail, also where
// whatever failed works again: what the failed one has left is not known.
func TestBoltBrokenForGood(t *testing.T) {
	t.Parallel()
	e, err := openBoltFile(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer closeEngine(t, e)
	if err := e.Put("before", []byte("1")); err != nil {
		t.Fatal(err)
	}
	// The library refuses such a key, and with it the transaction.
	if err := e.Put(strings.Repeat("k", 1<<16), nil); !errors.Is(err, ErrBroken) {
		t.Fatalf("a write that failed: %v", err)
	}
	for what, write := range map[string]func() error{
		"put":    func() error { return e.Put("after", []byte("2")) },
		"delete": func() error { return e.Delete("before") },
		"apply": func() error {
			return e.Apply([]Write{{Key: "after", Value: []byte("2")}, {Key: "before", Delete: true}})
		},
	} {
		if err := write(); !errors.Is(err, ErrBroken) {
			t.Errorf("a %s after a write that failed: %v", what, err)
		}
	}
	if got, err := e.Get("before", nil); err != nil || string(got) != "1" {
		t.Errorf("read %q, %v", got, err)
	}
	if _, err := e.Get("after", nil); !errors.Is(err, ErrNotFound) {
		t.Errorf("what was refused is there: %v", err)
	}
}

func TestBoltCutOff(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e, err := openBoltFile(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(e.Put("k", make([]byte, 1<<20)), e.Close()); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, boltFile), 32<<10); err != nil {
		t.Fatal(err)
	}
	if _, err := openBoltFile(dir, nil); err == nil {
		t.Error("a file that was cut off was opened")
	}
}

// TestBoltDamaged spoils one page of a file after the other: it is refused, or what
// is there can be read. A panic of the library would end the test.
func TestBoltDamaged(t *testing.T) {
	t.Parallel()
	const page = 4096
	dir := t.TempDir()
	path := filepath.Join(dir, boltFile)
	e, err := openBoltFile(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		err = errors.Join(err, e.Put(fmt.Sprint("key ", i), make([]byte, 100)))
	}
	good, failed := os.ReadFile(path)
	if err := errors.Join(err, failed, e.Close()); err != nil {
		t.Fatal(err)
	}
	refused := 0
	for at := 0; at < len(good); at += page {
		for _, spoil := range []func([]byte){
			func(b []byte) { clear(b) },
			func(b []byte) { b[0] ^= 1 },
			func(b []byte) { b[8] ^= 0x10 },
			func(b []byte) { b[10] ^= 0x40 },
			func(b []byte) { b[20] ^= 0x80 },
			func(b []byte) { b[25] ^= 0x80 },
		} {
			b := slices.Clone(good)
			spoil(b[at : at+page])
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			e, err := openBoltFile(dir, nil)
			if err != nil {
				refused++
				continue
			}
			each := e.Each(func(string, []byte) error { return nil })
			if err := errors.Join(each, e.Put("new", []byte("v")), e.Close()); err != nil {
				t.Errorf("page %d: opened, and then: %v", at/page, err)
			}
		}
	}
	if refused == 0 {
		t.Error("nothing was refused")
	}
}

// TestBoltGroups holds a transaction up: the writes that come meanwhile share few.
func TestBoltGroups(t *testing.T) {
	t.Parallel()
	e, err := openBoltFile(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer closeEngine(t, e)
	hold, err := e.db.Begin(true)
	if err != nil {
		t.Fatal(err)
	}
	const writers = 20
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			if err := e.Put(fmt.Sprint(i), []byte("v")); err != nil {
				t.Error(err)
			}
		})
	}
	for deadline := time.Now().Add(10 * time.Second); ; runtime.Gosched() {
		e.mu.Lock()
		n := len(e.waiting)
		e.mu.Unlock()
		if n == writers-1 { // one of them writes, or is about to
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d writers wait", n)
		}
	}
	before := e.db.Stats()
	if err := hold.Rollback(); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	// The first writes its own, one of the others all that waited: some pages each.
	after := e.db.Stats()
	if n := after.TxStats.GetWrite() - before.TxStats.GetWrite(); n == 0 || n > 2*4 {
		t.Errorf("%d writers wrote %d pages", writers, n)
	}
	for i := range writers {
		if _, err := e.Get(fmt.Sprint(i), nil); err != nil {
			t.Errorf("key %d: %v", i, err)
		}
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
	e, err := openPebbleOn(Config{Dir: "", Log: slog.New(slog.DiscardHandler)}, errorfs.Wrap(mem, &fail))
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Put("before", []byte("1")); err != nil {
		t.Fatal(err)
	}
	fail.On()
	if err := e.Put("after", []byte("2")); !errors.Is(err, ErrBroken) {
		t.Errorf("a write that failed: %v", err)
	}
	if err := e.Delete("before"); !errors.Is(err, ErrBroken) {
		t.Errorf("a deletion after a write that failed: %v", err)
	}
	if err := e.Apply([]Write{{Key: "k"}}); !errors.Is(err, ErrBroken) {
		t.Errorf("writes after one that failed: %v", err)
	}
	fail.Off()
	again, err := openPebbleOn(Config{}, mem.CrashClone(vfs.CrashCloneCfg{}))
	if err != nil {
		t.Fatal(err)
	}
	defer closeEngine(t, again)
	if got, err := again.Get("before", nil); err != nil || string(got) != "1" {
		t.Errorf("read %q, %v", got, err)
	}
}

// TestPebbleSyncs takes all that is not on the disk away after each kind of write: it
// is there.
func TestPebbleSyncs(t *testing.T) {
	t.Parallel()
	mem := vfs.NewCrashableMem()
	e, err := openPebbleOn(Config{}, mem)
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
		{"apply", func() error { return e.Apply([]Write{{Key: "k", Value: []byte("3")}}) }, "3"},
	} {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		again, err := openPebbleOn(Config{}, mem.CrashClone(vfs.CrashCloneCfg{}))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := again.Get("k", nil); string(got) != step.want || errors.Is(err, ErrNotFound) != (step.want == "") {
			t.Errorf("%s: read %q, %v", step.name, got, err)
		}
		closeEngine(t, again)
	}
}

// TestPebbleCrash loses at random what was not synced, while goroutines write: what
// was acknowledged is there, and Apply wrote all or nothing.
func TestPebbleCrash(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		rng := rand.New(rand.NewPCG(seed, 0))
		mem := vfs.NewCrashableMem()
		e, err := openPebbleOn(Config{}, mem)
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
					if err := e.Apply([]Write{{Key: fmt.Sprint("a", w), Value: v}, {Key: fmt.Sprint("b", w), Value: v}}); err != nil {
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
		again, err := openPebbleOn(Config{}, disk)
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
