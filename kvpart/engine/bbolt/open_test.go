package bbolt

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/samya-db/samya/kvpart/engine"
)

// TestBoltLargeWrite: a write larger than the bound of a transaction has its own.
func TestBoltLargeWrite(t *testing.T) {
	t.Parallel()
	e, err := openBoltFile(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer closeEngine(t, e)
	large := bytes.Repeat([]byte("x"), boltGroup+1)
	for _, value := range [][]byte{[]byte("before"), large, []byte("after")} {
		if err := e.Put("k", value); err != nil {
			t.Fatal(err)
		}
		if got, err := e.Get("k", nil); err != nil || !bytes.Equal(got, value) {
			t.Fatalf("of %d bytes %d are found, %v", len(value), len(got), err)
		}
	}
}

// TestBoltLetsGo: an engine that could not be opened does not keep its file from others.
func TestBoltLetsGo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	e, err := openBoltFile(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(e.Put("k", []byte("v")), e.Close()); err != nil {
		t.Fatal(err)
	}
	// The first transaction cannot be written.
	_, err = openBoltFile(dir, func(path string, _ int, mode os.FileMode) (*os.File, error) {
		return os.OpenFile(path, os.O_RDONLY, mode)
	})
	if err == nil {
		t.Fatal("a file that cannot be written was opened")
	}
	if e, err = openBoltFile(dir, nil); err != nil {
		t.Fatal(err)
	}
	defer closeEngine(t, e)
	if got, err := e.Get("k", nil); err != nil || string(got) != "v" {
		t.Errorf("read %q, %v", got, err)
	}
}

// TestBoltEmptyFile: a start that was cut off leaves an empty file, which opens as new.
func TestBoltEmptyFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, boltFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		e, err := openBoltFile(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(e.Put("k", []byte("v")), e.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBoltGroupFails: all writes that share a failed transaction fail.
func TestBoltGroupFails(t *testing.T) {
	t.Parallel()
	var file *os.File
	e, err := openBoltFile(t.TempDir(), func(path string, flag int, mode os.FileMode) (*os.File, error) {
		f, err := os.OpenFile(path, flag, mode)
		file = f
		return f, err
	})
	if err != nil {
		t.Fatal(err)
	}
	hold, err := e.db.Begin(true)
	if err != nil {
		t.Fatal(err)
	}
	const writers = 10
	got := make(chan error, writers)
	for i := range writers {
		go func() { got <- e.Put(fmt.Sprint(i), []byte("v")) }()
	}
	for n := 0; n < writers-1; runtime.Gosched() {
		e.mu.Lock()
		n = len(e.waiting)
		e.mu.Unlock()
	}
	if err := errors.Join(file.Close(), hold.Rollback()); err != nil {
		t.Fatal(err)
	}
	for range writers {
		if err := <-got; !errors.Is(err, engine.ErrBroken) {
			t.Errorf("a write of a transaction that failed: %v", err)
		}
	}
	// The file is closed already.
	if err := e.Close(); err == nil {
		t.Error("closing a file twice is no error")
	}
}

// TestBoltWrittenBytes compares the count of written bytes with the file.
func TestBoltWrittenBytes(t *testing.T) {
	t.Parallel()
	e, file := openSeen(t, t.TempDir())
	defer closeEngine(t, e)
	page := int64(os.Getpagesize())
	for i := range 200 {
		before, err := os.ReadFile(file.Name())
		if err != nil {
			t.Fatal(err)
		}
		last := e.WrittenBytes()
		if err := e.Put(fmt.Sprint("k", i%50), bytes.Repeat([]byte{byte(i)}, i*20)); err != nil {
			t.Fatal(err)
		}
		after, err := os.ReadFile(file.Name())
		if err != nil {
			t.Fatal(err)
		}
		// A page that is written may hold what it held before: it does not show.
		var changed int64
		for at := int64(0); at < int64(len(after)); at += page {
			if at >= int64(len(before)) && !bytes.Equal(after[at:at+page], make([]byte, page)) ||
				at < int64(len(before)) && !bytes.Equal(before[at:at+page], after[at:at+page]) {
				changed += page
			}
		}
		if by := e.WrittenBytes() - last; by < changed || by > changed+2*page {
			t.Errorf("write %d: %d bytes are counted, %d changed", i, by, changed)
		}
	}
}
