package boltfile_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/samya-db/samya/internal/boltfile"
)

// fresh makes a file in a single transaction, so that no page of an earlier state is
// left.
func fresh(t *testing.T, path string) []byte {
	t.Helper()
	db, err := bolt.Open(path, 0o600, &bolt.Options{NoFreelistSync: true, FreelistType: bolt.FreelistMapType, PageSize: pageBytes, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		b, err := tx.CreateBucket([]byte("large"))
		for i := range 500 {
			if err == nil {
				err = b.Put(fmt.Appendf(nil, "key %05d", i), make([]byte, 50))
			}
		}
		return err
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// pageOf returns the offset of a page of a kind with at least `least` elements.
func pageOf(t *testing.T, b []byte, kind uint16, least int) int {
	t.Helper()
	for at := len(b)/pageBytes*pageBytes - pageBytes; at >= 2*pageBytes; at -= pageBytes {
		count := binary.NativeEndian.Uint16(b[at+10:])
		if binary.NativeEndian.Uint64(b[at:]) == uint64(at/pageBytes) && binary.NativeEndian.Uint16(b[at+8:]) == kind && int(count) >= least {
			return at
		}
	}
	t.Fatal("there is no such page")
	return 0
}

// pagesOf returns the number of pages of a file, as the newer of its meta pages tells.
func pagesOf(b []byte) int {
	newest, pages := uint64(0), 0
	for _, at := range []int{16, pageBytes + 16} {
		if n := binary.NativeEndian.Uint64(b[at+48:]); n >= newest {
			newest, pages = n, int(binary.NativeEndian.Uint64(b[at+40:]))
		}
	}
	return pages
}

// TestListOfFreePages: each page of the list has to be a page of the file. This holds
// also for a list with its length in the first entry, as 16 bits do not hold it.
func TestListOfFreePages(t *testing.T) {
	const list, head = 0x10, 16
	path := filepath.Join(t.TempDir(), "file")
	good := written(t, path, true)
	order := binary.NativeEndian
	at, pages := pageOf(t, good, list, 2), uint64(pagesOf(good))
	count := int(order.Uint16(good[at+10:]))
	long := slices.Clone(good)
	copy(long[at+head+8:at+head+8+8*count], good[at+head:])
	order.PutUint16(long[at+10:], 0xffff)
	order.PutUint64(long[at+head:], uint64(count))
	for name, tc := range map[string]struct {
		file []byte
		// entry is the place of the list that changes to to; nothing changes if to is 0.
		entry int
		to    uint64
		good  bool
	}{
		"a good list":                   {good, 0, 0, true},
		"a good long list":              {long, 0, 0, true},
		"the first is none of the file": {good, 0, pages, false},
		"the last is none of the file":  {good, count - 1, pages, false},
		"the last of the file":          {good, count - 1, pages - 1, true},
		"a meta page":                   {good, 0, 1, false},
		"the last of a long list":       {long, count, pages, false},
		"the first of a long list":      {long, 1, 1, false},
		"a list longer than its page":   {long, 0, 1 << 20, false},
	} {
		b := slices.Clone(tc.file)
		if tc.to != 0 {
			order.PutUint64(b[at+head+8*tc.entry:], tc.to)
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := boltfile.Check(path); tc.good != (err == nil) || err != nil && !errors.Is(err, boltfile.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWhatIsDamaged damages the parts of a page in use, each by itself: Check tells the
// damage.
func TestWhatIsDamaged(t *testing.T) {
	const branch, element = 1, 16
	path := filepath.Join(t.TempDir(), "file")
	good := fresh(t, path)
	at := pageOf(t, good, branch, 3)
	order := binary.NativeEndian
	leaf := int(order.Uint64(good[at+element+8:])) * pageBytes
	pages := pagesOf(good)
	for name, tc := range map[string]struct {
		spoil func(b []byte) []byte
		want  string
	}{
		"cut in a page":   {func(b []byte) []byte { return b[:at+100] }, "that belong to it"},
		"cut in a head":   {func(b []byte) []byte { return b[:10] }, "neither of its first two pages"},
		"no meta page":    {func(b []byte) []byte { clear(b[:2*pageBytes]); return b }, "neither of its first two pages"},
		"a page of zeros": {func(b []byte) []byte { clear(b[leaf : leaf+pageBytes]); return b }, "it says that it is page 0"},
		"another number":  {func(b []byte) []byte { b[leaf] ^= 1; return b }, "it says that it is page"},
		"another kind":    {func(b []byte) []byte { order.PutUint16(b[leaf+8:], 4); return b }, "it is of kind 0x4"},
		"too many pages":  {func(b []byte) []byte { order.PutUint32(b[leaf+12:], 1<<30); return b }, "more"},
		"too many keys":   {func(b []byte) []byte { order.PutUint16(b[leaf+10:], 60_000); return b }, "element"},
		"a page twice":    {func(b []byte) []byte { copy(b[at+2*element+8:at+3*element], b[at+element+8:at+2*element]); return b }, "is referred to twice"},
		"no such page":    {func(b []byte) []byte { order.PutUint64(b[at+element+8:], 1<<40); return b }, "it is referred to, and there are"},
		"a meta page":     {func(b []byte) []byte { order.PutUint64(b[at+element+8:], 1); return b }, "it is referred to, and there are"},
		"a key elsewhere": {func(b []byte) []byte { order.PutUint32(b[leaf+element+4:], 1<<20); return b }, "has a key from byte"},
		"a long value":    {func(b []byte) []byte { order.PutUint32(b[leaf+element+12:], 1<<20); return b }, "are left"},
		"no key":          {func(b []byte) []byte { order.PutUint32(b[leaf+element+8:], 0); return b }, "has a key from byte"},
		"a key out of order": {func(b []byte) []byte {
			key := leaf + element + int(order.Uint32(b[leaf+element+4:]))
			b[key] = 0xff
			return b
		}, "key"},
		"a key of elsewhere": {func(b []byte) []byte {
			last := leaf + element*int(order.Uint16(b[leaf+10:]))
			b[last+int(order.Uint32(b[last+4:]))] = 0xff
			return b
		}, "is not below those of the next page"},
		"of an unknown kind": {func(b []byte) []byte { order.PutUint32(b[leaf+element:], 8); return b }, "is of kind 0x8"},
		"a page that reaches beyond the last": {func(b []byte) []byte {
			order.PutUint32(b[leaf+12:], uint32(pages-leaf/pageBytes))
			return b
		}, "more"},
		"a key twice": {func(b []byte) []byte {
			first, second := leaf+element+int(order.Uint32(b[leaf+element+4:])), leaf+2*element+int(order.Uint32(b[leaf+2*element+4:]))
			copy(b[second:second+len("key 00000")], b[first:])
			return b
		}, "is not above the one before"},
		"an empty branch": {func(b []byte) []byte { order.PutUint16(b[at+10:], 0); return b }, "nothing is below it"},
		"a key among the elements": {func(b []byte) []byte {
			order.PutUint32(b[leaf+element+4:], element)
			return b
		}, "has a key from byte"},
		"a bucket of values": {func(b []byte) []byte { order.PutUint32(b[leaf+element:], 1); return b }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(path, tc.spoil(slices.Clone(good)), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := boltfile.Check(path); !errors.Is(err, boltfile.ErrDamaged) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want that %s", err, tc.want)
			}
		})
	}
}
