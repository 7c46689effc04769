package replica_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/samya-db/samya/site/journal"
	"github.com/samya-db/samya/site/replica"
	"github.com/samya-db/samya/site/replica/replicatest"
)

// spoiled is a store in which some values are changed on their way to a reader.
type spoiled struct {
	replica.KV
	change func(e *replica.Entry)
}

// Read implements replica.KV.
func (s *spoiled) Read(from, to string, limit int) ([]replica.Entry, error) {
	entries, err := s.KV.Read(from, to, limit)
	for i := range entries {
		entries[i].Value = slices.Clone(entries[i].Value)
		s.change(&entries[i])
	}
	return entries, err
}

// TestDamagedCommits has a node read commits with one bit changed: short ones, long ones in
// parts, and one under the number of another. It takes none of them.
func TestDamagedCommits(t *testing.T) {
	store := replicatest.New()
	writer := newNode("a", store.At(nil), 1)
	if err := errors.Join(writer.open(), writer.lead()); err != nil {
		t.Fatal(err)
	}
	var b journal.Batch
	for _, size := range []int{1, 10, 3000} {
		b.Reset()
		b.Put(1, []byte("k"), bytes.Repeat([]byte{7}, size))
		if err := writer.log.Commit(&b); err != nil {
			t.Fatal(err)
		}
	}
	var first []byte
	for _, e := range store.Entries() {
		if e.Key == keys.Prefix()+"log/0000000000000000" || !strings.Contains(e.Key, "/log/") && !strings.Contains(e.Key, "/part/") {
			continue
		}
		if first == nil {
			first = e.Value
		}
		for bit := range 8 * len(e.Value) {
			if at := bit / 8; at == 1 || at > 40 && at%97 != 0 || strings.Contains(e.Key, "/log/") && at >= 4 && at < 12 {
				continue // a free byte; enough of a long value; the term, which no sum covers
			}
			reader := newNode("b", &spoiled{store.At(nil), func(r *replica.Entry) {
				if r.Key == e.Key {
					r.Value[bit/8] ^= 1 << (bit % 8)
				}
			}}, 2)
			if err := reader.open(); err != nil {
				t.Fatal(err)
			}
			if _, err := reader.log.Follow(0); err == nil {
				t.Fatalf("%s: a commit with bit %d changed is taken", e.Key, bit)
			}
			if err := reader.log.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if bytes.Equal(e.Value, first) || !strings.Contains(e.Key, "/log/") {
			continue
		}
		reader := newNode("b", &spoiled{store.At(nil), func(r *replica.Entry) {
			if r.Key == e.Key {
				r.Value = first
			}
		}}, 2)
		if err := reader.open(); err != nil {
			t.Fatal(err)
		}
		if _, err := reader.log.Follow(0); err == nil {
			t.Fatalf("%s: commit 1 is taken under this number", e.Key)
		}
	}
}
