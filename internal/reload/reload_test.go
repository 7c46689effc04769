package reload_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samya-db/samya/internal/reload"
)

// TestEvery: a look after each interval, and none once the context has ended.
func TestEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3500*time.Millisecond)
		defer cancel()
		began, looks := time.Now(), 0
		reload.Every(ctx, time.Second, func() {
			if looks++; time.Since(began) != time.Duration(looks)*time.Second {
				t.Errorf("look %d after %v", looks, time.Since(began))
			}
		})
		if looks != 3 {
			t.Errorf("%d looks in 3.5 s, want 3", looks)
		}
	})
}

// TestRead: a file up to the bound, and an error for all else.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := os.WriteFile(path, []byte("four"), 0o600); err != nil {
		t.Fatal(err)
	}
	if b, err := reload.Read(path, 4); err != nil || string(b) != "four" {
		t.Errorf("read %q: %v", b, err)
	}
	if _, err := reload.Read(path, 3); err == nil || !strings.Contains(err.Error(), "4 bytes, at most 3") {
		t.Errorf("a byte too many: %v", err)
	}
	if _, err := reload.Read(dir, 1<<20); err == nil || !strings.Contains(err.Error(), "is a directory") {
		t.Errorf("a directory: %v", err)
	}
	if _, err := reload.Read(path+"s", 4); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// TestFresh: a fault is fresh until it is told, and again after a look without it.
func TestFresh(t *testing.T) {
	one, two := errors.New("one"), errors.New("two")
	var f reload.Fault
	for i, look := range []struct {
		err   error
		fresh bool
	}{{nil, false}, {one, true}, {one, false}, {two, true}, {one, true}, {nil, false}, {one, true}} {
		if fresh := f.Fresh(look.err); fresh != look.fresh {
			t.Errorf("look %d, %v: fresh is %v", i, look.err, fresh)
		}
	}
}
