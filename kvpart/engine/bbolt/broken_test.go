package bbolt

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/samya-db/samya/kvpart/engine"
)

func closeEngine(t *testing.T, e engine.Engine) {
	t.Helper()
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// openSeen opens an engine, and returns its file for the test to close and read.
func openSeen(t *testing.T, dir string) (e *bolted, file *os.File) {
	t.Helper()
	e, err := openBoltFile(dir, func(path string, flag int, mode os.FileMode) (*os.File, error) {
		f, err := os.OpenFile(path, flag, mode)
		file = f
		return f, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return e, file
}

// TestBoltBroken fails a transaction: it and all later writes fail, reads go on, and the
// writes acknowledged before are there after opening again.
func TestBoltBroken(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e, file := openSeen(t, dir)
	if err := e.Put("before", []byte("1")); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if err := e.Put("after", []byte("2")); !errors.Is(err, engine.ErrBroken) || !errors.Is(err, os.ErrClosed) {
		t.Errorf("a write that failed: %v", err)
	}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if err := e.Put(fmt.Sprint(i), []byte("3")); !errors.Is(err, engine.ErrBroken) {
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

// TestBoltBrokenForGood: after a failed transaction all later transactions fail, even if
// the cause is gone: nobody knows the state that the failed transaction has left.
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
	if err := e.Put(strings.Repeat("k", 1<<16), nil); !errors.Is(err, engine.ErrBroken) {
		t.Fatalf("a write that failed: %v", err)
	}
	for what, write := range map[string]func() error{
		"put":    func() error { return e.Put("after", []byte("2")) },
		"delete": func() error { return e.Delete("before") },
		"apply": func() error {
			return e.Apply([]engine.Write{{Key: "after", Value: []byte("2")}, {Key: "before", Delete: true}})
		},
	} {
		if err := write(); !errors.Is(err, engine.ErrBroken) {
			t.Errorf("a %s after a write that failed: %v", what, err)
		}
	}
	if got, err := e.Get("before", nil); err != nil || string(got) != "1" {
		t.Errorf("read %q, %v", got, err)
	}
	if _, err := e.Get("after", nil); !errors.Is(err, engine.ErrNotFound) {
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

// TestBoltDamaged spoils each page of a file in turn: the engine refuses the file, or can
// read its content. A panic of the library would end the test.
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
		if n == writers-1 { // the last writes, or is about to
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
	// The first writer writes alone, another for all that waited: some pages each.
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
