package boltfile_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	bolt "go.etcd.io/bbolt"
	"pgregory.net/rapid"

	"github.com/samya-db/samya/internal/boltfile"
)

// pageBytes is the size of pages here, on any system.
const pageBytes = 1 << 12

// written makes a file of several buckets, large and small, with branches and long
// values, and some of it deleted again.
func written(tb testing.TB, path string, freelist bool) []byte {
	tb.Helper()
	db, err := bolt.Open(path, 0o600, &bolt.Options{NoFreelistSync: !freelist, FreelistType: bolt.FreelistMapType, PageSize: pageBytes, NoSync: true})
	if err != nil {
		tb.Fatal(err)
	}
	for round := range 4 {
		err = errors.Join(err, db.Update(func(tx *bolt.Tx) error {
			small, err := tx.CreateBucketIfNotExists([]byte("small"))
			if err != nil {
				return err
			}
			large, err := tx.CreateBucketIfNotExists([]byte("large"))
			if err != nil {
				return err
			}
			nested, err := large.CreateBucketIfNotExists([]byte("nested"))
			if err != nil {
				return err
			}
			_, err = tx.CreateBucketIfNotExists([]byte("empty"))
			err = errors.Join(err, small.Put([]byte("k"), fmt.Append(nil, round)), nested.Put(fmt.Append(nil, round), []byte("v")))
			for i := range 700 {
				key := fmt.Appendf(nil, "key %05d", i*(round+1))
				if i%3 == round%3 {
					err = errors.Join(err, large.Delete(key))
					continue
				}
				err = errors.Join(err, large.Put(key, bytes.Repeat([]byte{byte(i)}, 5+i%90)))
			}
			return errors.Join(err, large.Put([]byte("long"), make([]byte, 20_000*(round+1))))
		}))
	}
	if err := errors.Join(err, db.Close()); err != nil {
		tb.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// use opens a file and reads and writes all of it, as its owner would.
func use(path string) error {
	db, err := bolt.Open(path, 0o600, &bolt.Options{NoFreelistSync: true, FreelistType: bolt.FreelistMapType, NoSync: true})
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bolt.Tx) error {
		return tx.ForEach(func(_ []byte, b *bolt.Bucket) error {
			var keys [][]byte
			if err := b.ForEach(func(k, _ []byte) error { keys = append(keys, slices.Clone(k)); return nil }); err != nil {
				return err
			}
			for _, k := range keys {
				// A bucket is none of the values.
				if b.Bucket(k) == nil {
					if err := b.Put(k, []byte("new")); err != nil {
						return err
					}
				}
			}
			return b.Put([]byte("zzz"), []byte("new"))
		})
	})
	return errors.Join(err, db.Close())
}

// TestWhole: Check accepts files written by bbolt.
func TestWhole(t *testing.T) {
	for _, freelist := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "file")
		written(t, path, freelist)
		if err := boltfile.Check(path); err != nil {
			t.Errorf("with a list of free pages %t: %v", freelist, err)
		}
		if err := errors.Join(use(path), boltfile.Check(path)); err != nil {
			t.Error(err)
		}
	}
	if err := boltfile.Check(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// TestDamaged damages a file anywhere: it is refused, or can be used without a panic,
// which would end the test.
func TestDamaged(t *testing.T) {
	for _, freelist := range []bool{false, true} {
		dir := t.TempDir()
		path := filepath.Join(dir, "file")
		good := written(t, path, freelist)
		refused, used := 0, 0
		rapid.Check(t, func(t *rapid.T) {
			b := slices.Clone(good)
			page := rapid.IntRange(0, len(b)/pageBytes-1).Draw(t, "page") * pageBytes
			switch rapid.IntRange(0, 5).Draw(t, "damage") {
			case 0:
				b = b[:rapid.IntRange(1, len(b)-1).Draw(t, "cut at")]
			case 1:
				clear(b[page : page+pageBytes])
			case 2:
				other := rapid.IntRange(0, len(b)/pageBytes-1).Draw(t, "other page") * pageBytes
				copy(b[page:page+pageBytes], good[other:])
			case 3: // the heads of a page and of its first elements
				b[page+rapid.IntRange(0, 100).Draw(t, "byte")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
			case 4:
				b[page+rapid.IntRange(0, 100).Draw(t, "byte")] = rapid.Byte().Draw(t, "to")
			default:
				b[page+rapid.IntRange(0, pageBytes-1).Draw(t, "byte")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
			}
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := boltfile.Check(path); err != nil {
				if !errors.Is(err, boltfile.ErrDamaged) {
					t.Fatal(err)
				}
				refused++
				return
			}
			used++
			if err := use(path); err != nil {
				t.Fatalf("used after it was found whole: %v", err)
			}
		})
		if refused == 0 || used == 0 {
			t.Errorf("%d were refused, %d used", refused, used)
		}
	}
}
