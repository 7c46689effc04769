package kvoracle

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestCopyTreeWhileAnEngineGoes: an image leaves out a directory that goes while the
// image is taken. Other errors, and a directory to copy that is missing, are told.
func TestCopyTreeWhileAnEngineGoes(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "image")
	below := filepath.Join(from, "engine.gone")
	if err := copyEntry(from, to, below, nil, &os.PathError{Op: "open", Path: below, Err: os.ErrNotExist}); err != nil {
		t.Errorf("a directory that went: %v", err)
	}
	if err := copyEntry(from, to, below, nil, os.ErrPermission); !errors.Is(err, os.ErrPermission) {
		t.Errorf("a directory that is closed: %v", err)
	}
	if err := copyTree(filepath.Join(from, "none"), to); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("nothing to copy: %v", err)
	}
	if err := os.Mkdir(below, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(below, "file"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := copyTree(from, to); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(to, "engine.gone", "file")); err != nil || string(got) != "x" {
		t.Errorf("copied %q, %v", got, err)
	}
	// The engine is given up while its files are copied.
	if err := os.Rename(below, below+".gone"); err != nil {
		t.Fatal(err)
	}
	if err := prune(from, to); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(to); err != nil || len(left) != 0 {
		t.Errorf("the copy has %v, %v", left, err)
	}
}
