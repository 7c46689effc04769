package store

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestOtherProcessWasFaster: where another process has made the database meanwhile, that
// database stays, and the start is told.
func TestOtherProcessWasFaster(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, fileName)
	fresh, err := freshFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("of another process"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := publish(fresh, path); !errors.Is(err, ErrInUse) {
		t.Errorf("got %v, want %v", err, ErrInUse)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "of another process" {
		t.Errorf("the database of the other process is %q, %v", b, err)
	}
	if _, err := os.Stat(fresh); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the new file is left: %v", err)
	}
}

// TestLeftoversAreRemoved: a start removes the new files of starts that were cut off, and
// nothing else.
func TestLeftoversAreRemoved(t *testing.T) {
	dir := t.TempDir()
	left, other := filepath.Join(dir, fileName+".new-1234"), filepath.Join(dir, "site.db.copy")
	for _, path := range []string{left, other} {
		if err := os.WriteFile(path, []byte("cut off"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fresh, err := freshFile(filepath.Join(dir, fileName))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what a start has left is there: %v", err)
	}
	for _, path := range []string{fresh, other} {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
}
