package journal_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/samya-db/samya/site/journal"
)

// TestShadowDir: a view shows what was done to it, as a directory would, and the
// directory stays as it was.
func TestShadowDir(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		path := t.TempDir()
		want := map[string][]byte{"a": []byte("hello, world"), "b": {}}
		for name, b := range want {
			if err := os.WriteFile(filepath.Join(path, name), b, 0o600); err != nil {
				rt.Fatal(err)
			}
		}
		d := journal.NewShadowDir(path)
		name := rapid.SampledFrom([]string{"a", "b", "c", "d"})
		rt.Repeat(map[string]func(*rapid.T){
			"create": func(rt *rapid.T) {
				n := name.Draw(rt, "name")
				_, there := want[n]
				if _, err := d.Create(n); there != errors.Is(err, fs.ErrExist) {
					rt.Fatalf("create %s: %v", n, err)
				} else if !there {
					want[n] = []byte{}
				}
			},
			"write": func(rt *rapid.T) {
				n, at := name.Draw(rt, "name"), rapid.IntRange(0, 20).Draw(rt, "at")
				b := rapid.SliceOfN(rapid.Byte(), 1, 8).Draw(rt, "bytes")
				f, err := d.Open(n)
				if _, there := want[n]; !there {
					if !errors.Is(err, fs.ErrNotExist) {
						rt.Fatalf("open %s: %v", n, err)
					}
					return
				}
				if err == nil {
					_, err = f.WriteAt(b, int64(at))
				}
				if err != nil {
					rt.Fatal(err)
				}
				for len(want[n]) < at+len(b) {
					want[n] = append(want[n], 0)
				}
				want[n] = slices.Clone(want[n])
				copy(want[n][at:], b)
			},
			"rename": func(rt *rapid.T) {
				from, to := name.Draw(rt, "from"), name.Draw(rt, "to")
				b, there := want[from]
				if err := d.Rename(from, to); there == errors.Is(err, fs.ErrNotExist) {
					rt.Fatalf("rename %s: %v", from, err)
				} else if there {
					delete(want, from)
					want[to] = b
				}
			},
			"remove": func(rt *rapid.T) {
				n := name.Draw(rt, "name")
				if _, there := want[n]; there == errors.Is(d.Remove(n), fs.ErrNotExist) {
					rt.Fatalf("remove %s", n)
				}
				delete(want, n)
			},
			"": func(rt *rapid.T) {
				names, err := d.List()
				if err != nil || len(names) != len(want) {
					rt.Fatalf("%v, %v, want %d", names, err, len(want))
				}
				for n, b := range want {
					f, err := d.Open(n)
					if err != nil {
						rt.Fatal(err)
					}
					size, err := f.Size()
					got := make([]byte, len(b)+1)
					k, readErr := f.ReadAt(got, 0)
					if err != nil || !errors.Is(readErr, io.EOF) || size != int64(len(b)) || !bytes.Equal(got[:k], b) {
						rt.Fatalf("%s: %q, size %d, %v, %v, want %q", n, got[:k], size, err, readErr, b)
					}
				}
			},
		})
		entries, err := os.ReadDir(path)
		if err != nil || len(entries) != 2 {
			rt.Fatalf("%v, %v", entries, err)
		}
		if b, err := os.ReadFile(filepath.Join(path, "a")); err != nil || string(b) != "hello, world" {
			rt.Fatalf("%q, %v", b, err)
		}
	})
}
