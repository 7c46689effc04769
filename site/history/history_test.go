package history

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/samya-db/samya/internal/testfuzz"
)

func change(entity string, n int) Change {
	return Change{AtMS: int64(n), Entity: entity, Caller: "kim", RequestID: fmt.Sprint("r", n), Kind: "limit", OldLimit: new(int64(n)), NewLimit: int64(n + 1), Version: uint64(n)}
}

func open(t *testing.T, path string) *History {
	t.Helper()
	h, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	return h
}

// TestHistory: the last changes of an entity outlive the process, the latest first, and a
// repeat of a request is no change.
func TestHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "changes.log")
	h := open(t, path)
	for n := range 20 {
		if err := h.Add(change("vm", n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Add(change("vm", 19)); err != nil {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("{\"entity\":\"vm\",\"kind\":\"li"); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	for range 2 {
		h = open(t, path)
		got := h.Of("vm")
		if len(got) != maxChanges || !reflect.DeepEqual(got[0], change("vm", 19)) || !reflect.DeepEqual(got[15], change("vm", 4)) {
			t.Errorf("%d changes, %+v", len(got), got)
		}
	}
	if got := h.Of("other"); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	for n := range 2 { // after the torn line, and then after a whole one
		if err := h.Add(change("vm", 20+n)); err != nil {
			t.Fatal(err)
		}
		if got := open(t, path).Of("vm"); len(got) != maxChanges || !reflect.DeepEqual(got[0], change("vm", 20+n)) {
			t.Errorf("%d changes, %+v", len(got), got)
		}
	}
}

// TestNothingToRemember: a start without changes writes nothing.
func TestNothingToRemember(t *testing.T) {
	path := filepath.Join(t.TempDir(), "changes.log")
	for range 2 {
		if err := open(t, path).Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is a file: %v", err)
	}
}

// TestBounds: the file is written anew before it grows beyond its bound, and the entity
// changed longest ago makes room.
func TestBounds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "changes.log")
	h := open(t, path)
	for n := range maxEntities + 1 {
		h.add(change(fmt.Sprint("e", n), n))
	}
	if len(h.Of("e0")) != 0 || len(h.Of("e1")) != 1 || len(h.changes) != maxEntities {
		t.Errorf("%d entities", len(h.changes))
	}
	for n := range 10 {
		created := change(fmt.Sprint("new", n), maxEntities+2)
		created.Kind = Created
		h.add(created)
	}
	if len(h.Of("e1")) != 0 || len(h.Of("e2")) != 1 || len(h.Of("new9")) != 1 {
		t.Error("creations took the place of what tells more")
	}
	h.size = maxFile
	if err := h.Add(change("last", maxEntities+3)); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil || strings.Count(string(text), "\n") != maxEntities || h.size != int64(len(text)) {
		t.Errorf("%d lines, size %d of %d, %v", strings.Count(string(text), "\n"), h.size, len(text), err)
	}
	if err := h.Add(change("last", maxEntities+4)); err != nil || len(open(t, path).Of("last")) != 2 {
		t.Errorf("after the file was written anew: %v", err)
	}
}

// TestNoFile: where no file can be written the history is in memory.
func TestNoFile(t *testing.T) {
	h := open(t, filepath.Join(t.TempDir(), "none", "changes.log"))
	if err := h.Add(change("vm", 1)); err == nil || len(h.Of("vm")) != 1 || h.Close() != nil {
		t.Errorf("a file in no directory: %v", err)
	}
	h, err := Open(t.TempDir())
	if err == nil {
		t.Error("a directory in the place of the file")
	}
	if err := h.Add(change("vm", 1)); err != nil || len(h.Of("vm")) != 1 || h.Close() != nil {
		t.Error(err)
	}
}

// TestInMemory: without a path nothing is written.
func TestInMemory(t *testing.T) {
	h := open(t, "")
	if err := h.Add(change("vm", 1)); err != nil || len(h.Of("vm")) != 1 {
		t.Error(err)
	}
}

// FuzzRead: no file breaks the site.
func FuzzRead(tf *testing.F) {
	f := testfuzz.On(tf)
	f.Add([]byte(`{"at_ms":1,"entity":"vm","kind":"limit","new_limit":5,"version":2,"generation":1}` + "\n{}\nx\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		h := &History{changes: make(map[string][]Change)}
		h.read(text)
		for name, of := range h.changes {
			if name == "" || len(of) == 0 || len(of) > maxChanges {
				t.Errorf("%q has %d changes", name, len(of))
			}
		}
	})
}
