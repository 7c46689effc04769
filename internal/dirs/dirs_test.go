package dirs_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/samya-db/samya/internal/dirs"
	"github.com/samya-db/samya/internal/synctrace"
)

// TestMake makes directories of several levels: all their names are synced.
func TestMake(t *testing.T) {
	synctrace.Run(t, nil, func(dir string, durable func()) {
		for _, path := range []string{filepath.Join(dir, "a", "b", "c"), filepath.Join(dir, "a", "d") + "/", filepath.Join(dir, "a")} {
			if err := dirs.Make(path, 0o700); err != nil {
				t.Fatal(err)
			}
			durable()
			if info, err := os.Stat(path); err != nil || !info.IsDir() {
				t.Fatal(info, err)
			}
		}
	})
}

// TestMakeAfterAKill finds a directory that a killed process made and did not sync: its
// name is durable before anything below is relied upon.
func TestMakeAfterAKill(t *testing.T) {
	synctrace.Run(t, nil, func(dir string, durable func()) {
		if err := dirs.Make(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for made, below := range map[string]string{"a": "", "b": "of-b", "c": "of-c/deeper"} {
			if err := os.Mkdir(filepath.Join(dir, made), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := dirs.Make(filepath.Join(dir, made, below), 0o700); err != nil {
				t.Fatal(err)
			}
			durable()
		}
	})
}

// TestMakePermissions: parents made for a directory are as closed to others as the
// directory.
func TestMakePermissions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "c")
	if err := dirs.Make(path, 0o700); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
		path = filepath.Dir(path)
	}
}

// TestSyncFails: Sync returns the error of a failed sync.
func TestSyncFails(t *testing.T) {
	if err := dirs.Sync(os.DevNull); err == nil {
		t.Error("what cannot be synced was synced")
	}
}

func TestMakeFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := dirs.Make(file, 0o700); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("a file in the way: %v", err)
	}
	if err := dirs.Make(filepath.Join(file, "below"), 0o700); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("below a file: %v", err)
	}
	if err := dirs.Sync(filepath.Join(file, "none")); err == nil {
		t.Error("what is not there was synced")
	}
}

// TestReplace: a replaced file is durable with its name, and a failure leaves the old file.
func TestReplace(t *testing.T) {
	synctrace.Run(t, nil, func(dir string, durable func()) {
		if err := dirs.Make(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "file")
		for _, content := range []string{"first", "second, longer", ""} {
			if err := dirs.Replace(path, []byte(content)); err != nil {
				t.Fatal(err)
			}
			durable()
			if got, err := os.ReadFile(path); err != nil || string(got) != content {
				t.Fatalf("%q, %v", got, err)
			}
		}
		if err := os.Mkdir(path+".new", 0o700); err != nil {
			t.Fatal(err)
		}
		if err := dirs.Replace(path, []byte("third")); err == nil {
			t.Error("the file was replaced although none could be written")
		}
		if got, err := os.ReadFile(path); err != nil || len(got) != 0 {
			t.Errorf("%q, %v", got, err)
		}
	})
}
