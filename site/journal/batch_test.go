package journal

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"
)

// TestKeysOfAnyLength: a key up to the longest is logged as it is. A longer key is
// refused with its batch, which is as good as new after a reset.
func TestKeysOfAnyLength(t *testing.T) {
	var b Batch
	for _, size := range []int{0, 1, maxKey - 1, maxKey, maxKey + 1, 1, maxKey} {
		key := bytes.Repeat([]byte("k"), size)
		b.Reset()
		b.Put(3, key, []byte("value"))
		if size > maxKey {
			if err := b.valid(maxCommit); !errors.Is(err, errTooLarge) {
				t.Errorf("a key of %d bytes: %v", size, err)
			}
			continue
		}
		if err := b.valid(maxCommit); err != nil {
			t.Errorf("a key of %d bytes: %v", size, err)
			continue
		}
		op, rest, err := next(b.buf[frameBytes:])
		if err != nil || len(rest) > 0 || !bytes.Equal(op.Key, key) || string(op.Value) != "value" {
			t.Errorf("a key of %d bytes is found as one of %d with %q, %v", size, len(op.Key), op.Value, err)
		}
	}
}

// TestLargeBatchesAreLetGo: the memory of a large commit is not kept for later commits.
func TestLargeBatchesAreLetGo(t *testing.T) {
	for _, size := range []int{maxKept / 2, maxKept + 1} {
		var b Batch
		b.Put(1, nil, make([]byte, size))
		before := cap(b.buf)
		if b.Reset(); !b.Empty() || b.Len() != 0 || (cap(b.buf) == before) != (before <= maxKept) {
			t.Errorf("of %d bytes %d are kept: %d of payload", before, cap(b.buf), b.Len())
		}
	}
}

// TestSyncThatFails: a sync that the system refuses is an error.
func TestSyncThatFails(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows waits for who reads a pipe")
	}
	// A pipe is on no disk.
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := (osFile{w}).Sync(); err == nil {
		t.Error("a pipe was synced")
	}
	if err := errors.Join(r.Close(), w.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestLaterVersion: a segment of another version is refused, and is not taken for damage.
func TestLaterVersion(t *testing.T) {
	h := header{owner: 7, first: 3}
	for v := range uint32(4) {
		raw := h.encode()
		le.PutUint32(raw[8:], v)
		le.PutUint32(raw[headerSummed:], crc32.Checksum(raw[:headerSummed], castagnoli))
		got, err := decodeHeader(raw)
		if v == version && (err != nil || got != h) {
			t.Errorf("version %d: %+v, %v", v, got, err)
		}
		if v != version && !errors.Is(err, errVersion) {
			t.Errorf("version %d: %+v, %v, want %v", v, got, err, errVersion)
		}
	}
}

// TestDeletionsInAnyOrder: an overlay has the same effect as its operations in their
// order, with deletions below higher and lower keys than before.
func TestDeletionsInAnyOrder(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		o, want, did := newOverlay(), make(map[string]int64), ""
		for n := range int64(2 + rnd.IntN(8)) {
			key := fmt.Sprint(rnd.IntN(6))
			kind := Kind(1 + rnd.IntN(3))
			did += fmt.Sprint(" ", kind, ":", key)
			o.add(Op{Kind: kind, Bucket: 1, Key: []byte(key)}, 0, n)
			switch kind {
			case Put:
				want[key] = n
			case Delete:
				delete(want, key)
			case DeleteBelow:
				maps.DeleteFunc(want, func(k string, _ int64) bool { return k < key })
			}
		}
		got := make(map[string]int64)
		for _, p := range o.operations() {
			switch p.kind {
			case Put:
				got[p.key] = p.at
			case Delete:
				delete(got, p.key)
			case DeleteBelow:
				maps.DeleteFunc(got, func(k string, _ int64) bool { return k < p.key })
			}
		}
		if !maps.Equal(got, want) {
			t.Fatalf("after%s: %v, want %v", did, got, want)
		}
	}
}
