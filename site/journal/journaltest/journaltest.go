// Package journaltest is the suite of tests that every journal.Log has to pass: the log of
// a directory, and the log that nodes of a site share. It asks nothing of a log that the
// interface does not promise.
package journaltest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/samya-db/samya/site/journal"
)

// Base is a journal.Base in memory.
type Base struct {
	buckets map[journal.Bucket]map[string]string
	through journal.Number
	known   bool
}

// NewBase returns an empty base.
func NewBase() *Base { return &Base{buckets: make(map[journal.Bucket]map[string]string)} }

// Clone returns a copy.
func (b *Base) Clone() *Base {
	c := &Base{buckets: make(map[journal.Bucket]map[string]string), through: b.through, known: b.known}
	for id, m := range b.buckets {
		c.buckets[id] = maps.Clone(m)
	}
	return c
}

// Through implements journal.Base.
func (b *Base) Through() (journal.Number, bool, error) { return b.through, b.known, nil }

// Apply implements journal.Base.
func (b *Base) Apply(ops []journal.Op, through *journal.Number) error {
	for i := range ops {
		b.apply(&ops[i])
	}
	if through != nil {
		b.through, b.known = *through, true
	}
	return nil
}

func (b *Base) apply(op *journal.Op) {
	m := b.buckets[op.Bucket]
	if m == nil {
		m = make(map[string]string)
		b.buckets[op.Bucket] = m
	}
	switch op.Kind {
	case journal.Put:
		m[string(op.Key)] = string(op.Value)
	case journal.Delete:
		delete(m, string(op.Key))
	case journal.DeleteBelow:
		maps.DeleteFunc(m, func(k, _ string) bool { return k < string(op.Key) })
	}
}

// Each implements journal.Base.
func (b *Base) Each(bucket journal.Bucket, f func(key, value []byte) error) error {
	m := b.buckets[bucket]
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if err := f([]byte(k), []byte(m[k])); err != nil {
			return err
		}
	}
	return nil
}

// Equal reports whether two bases hold the same.
func (b *Base) Equal(o *Base) bool {
	same := func(x, y map[string]string) bool { return maps.Equal(x, y) }
	for id := range max(journal.Bucket(len(b.buckets)), journal.Bucket(len(o.buckets))) + 8 {
		if !same(b.buckets[id], o.buckets[id]) {
			return false
		}
	}
	return true
}

// Rig is a log that a test opens again and again.
type Rig struct {
	// Open opens the log, after Close or Crash, and returns it with its base.
	Open func() (journal.Log, *Base, error)
	// Crash loses all that is not durable, without Close.
	Crash func()
	// Longest is the longest commit that the log takes, in bytes.
	Longest int
}

// Commit fills a batch with operations drawn from r, and carries them out on want.
func Commit(r *rand.Rand, b *journal.Batch, want *Base) {
	b.Reset()
	for range 1 + r.IntN(5) {
		op := journal.Op{Kind: journal.Put, Bucket: journal.Bucket(1 + r.IntN(3)), Key: Key(r.Uint64N(50))}
		switch r.IntN(6) {
		case 0:
			op.Kind = journal.Delete
			b.Delete(op.Bucket, op.Key)
		case 1:
			op.Kind = journal.DeleteBelow
			op.Key = Key(r.Uint64N(10))
			b.DeleteBelow(op.Bucket, op.Key)
		default:
			op.Value = bytes.Repeat([]byte{byte(r.Uint32())}, r.IntN(300))
			b.Put(op.Bucket, op.Key, op.Value)
		}
		want.apply(&op)
	}
}

// Key is a number as a key.
func Key(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// Whole carries a log over to its base.
func Whole(log journal.Log) error {
	for {
		st := log.Stats()
		if st.Through == st.Number {
			return log.Failed()
		}
		if _, err := log.Step(); err != nil {
			return err
		}
	}
}

// Suite runs the tests on a log that rig makes anew for each of them.
func Suite(t *testing.T, rig func(t *testing.T, seed uint64) Rig) {
	t.Helper()
	t.Run("EveryCommitIsKept", func(t *testing.T) {
		for seed := range uint64(20) {
			kept(t, rig(t, seed), seed)
		}
	})
	t.Run("OnlyWholeCommits", func(t *testing.T) { empty(t, rig(t, 1)) })
	t.Run("Closed", func(t *testing.T) { closed(t, rig(t, 1)) })
	t.Run("LongCommits", func(t *testing.T) { long(t, rig(t, 1)) })
	t.Run("LongKeys", func(t *testing.T) { longKey(t, rig(t, 1)) })
}

// kept: the base has each commit that Sync has returned for, in order, after checkpoints,
// stops and crashes; numbers go on.
func kept(t *testing.T, rig Rig, seed uint64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	want, last := NewBase(), journal.Number(0)
	var b journal.Batch
	for life := range 6 {
		log, base, err := rig.Open()
		if err != nil {
			t.Fatalf("seed %d, life %d: %v", seed, life, err)
		}
		if n := log.Stats().Number; n != last {
			t.Fatalf("seed %d, life %d: the log ends with commit %d, want %d", seed, life, n, last)
		}
		for range r.IntN(40) {
			Commit(r, &b, want)
			n, err := log.Append(&b)
			if err == nil {
				err = log.Sync()
			}
			if err != nil || n != last+1 {
				t.Fatalf("seed %d: commit %d after %d: %v", seed, n, last, err)
			}
			last = n
			if err := log.Confirm(); err != nil {
				t.Fatal(err)
			}
			if st := log.Stats(); st.Durable != last {
				t.Fatalf("seed %d: durable is %d after commit %d", seed, st.Durable, last)
			}
			if r.IntN(3) == 0 {
				if _, err := log.Step(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if r.IntN(2) == 0 {
			rig.Crash()
			continue
		}
		if err := Whole(log); err != nil {
			t.Fatal(err)
		}
		if !base.Equal(want) {
			t.Fatalf("seed %d, life %d: the base differs", seed, life)
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
	}
	log, base, err := rig.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := Whole(log); err != nil || !base.Equal(want) {
		t.Fatalf("seed %d: the base differs in the end: %v", seed, err)
	}
	if err := log.Close(); err != nil {
		t.Error(err)
	}
}

// empty: a commit without operations is refused, and takes no number.
func empty(t *testing.T, rig Rig) {
	t.Helper()
	log, _, err := rig.Open()
	if err != nil {
		t.Fatal(err)
	}
	var b journal.Batch
	if n, err := log.Append(&b); err == nil {
		t.Errorf("an empty commit has number %d", n)
	}
	if err := log.Close(); err != nil {
		t.Error(err)
	}
}

// closed: after Close everything fails, and Close may be called again.
func closed(t *testing.T, rig Rig) {
	t.Helper()
	log, _, err := rig.Open()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	}
	var b journal.Batch
	b.Put(1, Key(1), nil)
	if _, err := log.Append(&b); err == nil {
		t.Error("a closed log takes a commit")
	}
	if log.Sync() == nil || log.Confirm() == nil || log.Failed() == nil {
		t.Error("a closed log works")
	}
}

// long: commits up to the bound are kept, longer commits are refused, and the log goes on
// after the refusal.
func long(t *testing.T, rig Rig) {
	t.Helper()
	log, _, err := rig.Open()
	if err != nil {
		t.Fatal(err)
	}
	want := NewBase()
	var b journal.Batch
	for i, size := range []int{rig.Longest - 100, rig.Longest + 1, rig.Longest / 2, 1} {
		b.Reset()
		op := journal.Op{Kind: journal.Put, Bucket: 1, Key: fmt.Append(nil, i), Value: bytes.Repeat([]byte{byte(i)}, size)}
		b.Put(op.Bucket, op.Key, op.Value)
		_, err := log.Append(&b)
		if size > rig.Longest {
			if err == nil {
				t.Errorf("a commit of %d bytes is taken", size)
			}
			continue
		}
		if err == nil {
			err = log.Sync()
		}
		if err != nil {
			t.Fatalf("a commit of %d bytes: %v", size, err)
		}
		want.apply(&op)
	}
	rig.Crash()
	log, base, err := rig.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := Whole(log); err != nil || !base.Equal(want) {
		t.Errorf("the base differs: %v", err)
	}
	if err := log.Close(); err != nil {
		t.Error(err)
	}
}

// longKey: a commit with a key that is too long is refused whole.
func longKey(t *testing.T, rig Rig) {
	t.Helper()
	log, _, err := rig.Open()
	if err != nil {
		t.Fatal(err)
	}
	var b journal.Batch
	b.Put(1, Key(1), []byte("a"))
	b.Put(1, make([]byte, 1<<16), []byte("b"))
	if n, err := log.Append(&b); err == nil {
		t.Errorf("a commit with a key of %d bytes has number %d", 1<<16, n)
	}
	if err := log.Close(); err != nil {
		t.Error(err)
	}
}
