package store_test

import (
	"bytes"
	"fmt"
	stdmaps "maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/samya-db/samya/site/journal"
	"github.com/samya-db/samya/site/store"
)

// baseFile is a base alone, in its file.
type baseFile struct {
	t     *testing.T
	path  string
	base  journal.Base
	close func() error
}

func openBaseFile(t *testing.T, path string) *baseFile {
	t.Helper()
	f := &baseFile{t: t, path: path}
	var err error
	if f.base, f.close, err = store.OpenBase(path); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *baseFile) image() []byte {
	f.t.Helper()
	b, err := os.ReadFile(f.path)
	if err != nil {
		f.t.Fatal(err)
	}
	return b
}

// put writes 30 keys. Most were there before.
func (f *baseFile) put(n int) {
	f.t.Helper()
	var ops []journal.Op
	for i := range 30 {
		ops = append(ops, journal.Op{
			Kind: journal.Put, Bucket: 3, Key: fmt.Append(nil, "key ", (7*n+i)%90), Value: bytes.Repeat([]byte{byte(n)}, 200),
		})
	}
	if err := f.base.Apply(ops, new(journal.Number(n))); err != nil {
		f.t.Fatal(err)
	}
}

func (f *baseFile) held() map[string]string {
	f.t.Helper()
	held := make(map[string]string)
	err := f.base.Each(3, func(k, v []byte) error { held[string(k)] = string(v); return nil })
	if err != nil {
		f.t.Fatal(err)
	}
	return held
}

// TestMetaPageIsOnlyInTheCache: the sync of the meta page of a transaction has failed, so
// that the next process reads that page and the disk does not have it. The power is lost
// while that process writes its own first transaction. The data that it had found is
// there, though the pages of the state before are free by then and written to.
func TestMetaPageIsOnlyInTheCache(t *testing.T) {
	dir := t.TempDir()
	before := openBaseFile(t, filepath.Join(dir, "before"))
	before.put(0)
	for n := 1; n <= 12; n++ {
		disk := before.image()
		before.put(n)
		cached := before.image()
		want := before.held()
		// All of the transaction is on the disk but for its meta page.
		for at := range cached {
			if at < metaEnd || at >= len(disk) {
				continue
			}
			disk[at] = cached[at]
		}
		disk = append(disk, cached[len(disk):]...)

		path := filepath.Join(dir, fmt.Sprint("after ", n))
		if err := os.WriteFile(path, cached, 0o600); err != nil {
			t.Fatal(err)
		}
		next := openBaseFile(t, path)
		if err := next.base.Apply(nil, nil); err != nil {
			t.Fatal(err)
		}
		settled := next.image()
		if !slices.Equal(settled[metaEnd:], cached[metaEnd:]) {
			t.Errorf("after transaction %d: more is written than a meta page", n)
		}
		next.put(n + 100)
		written := next.image()
		closing(t, next)
		// The disk has all writes synced before that transaction, and all pages of the
		// transaction but for the meta page that makes it count.
		overlay(disk, cached, settled)
		disk = append(disk, make([]byte, len(written)-len(disk))...)
		copy(disk[metaEnd:], written[metaEnd:])
		if err := os.WriteFile(path, disk, 0o600); err != nil {
			t.Fatal(err)
		}
		found := openBaseFile(t, path)
		if got := found.held(); !stdmaps.Equal(got, want) {
			t.Errorf("after transaction %d: got %d keys, want %d as the process before has found them", n, len(got), len(want))
		}
		closing(t, found)
	}
	closing(t, before)
}

func closing(t *testing.T, f *baseFile) {
	t.Helper()
	if err := f.close(); err != nil {
		t.Fatal(err)
	}
}

// overlay puts the bytes that differ between two images on the disk.
func overlay(disk, from, to []byte) {
	for at := range from {
		if from[at] != to[at] {
			disk[at] = to[at]
		}
	}
}
