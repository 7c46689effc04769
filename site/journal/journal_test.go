package journal_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/samya-db/samya/internal/simdisk"
	_ "github.com/samya-db/samya/internal/testheap"
	"github.com/samya-db/samya/site/journal"
)

const owner = 0xfeed

// memoryBase is a Base in memory.
type memoryBase struct {
	buckets map[journal.Bucket]map[string]string
	through journal.Number
	known   bool
	// largest is the largest number of bytes that an Apply had to write.
	largest int
	// fail, if set, is asked before each Apply.
	fail func() error
}

func newBase() *memoryBase {
	return &memoryBase{buckets: make(map[journal.Bucket]map[string]string)}
}

func (b *memoryBase) Through() (journal.Number, bool, error) { return b.through, b.known, nil }

func (b *memoryBase) Apply(ops []journal.Op, through *journal.Number) error {
	if b.fail != nil {
		if err := b.fail(); err != nil {
			return err
		}
	}
	size := 0
	for _, op := range ops {
		size += len(op.Key) + len(op.Value)
		apply(b.buckets, op)
	}
	b.largest = max(b.largest, size)
	if through != nil {
		b.through, b.known = *through, true
	}
	return nil
}

func apply(buckets map[journal.Bucket]map[string]string, op journal.Op) {
	m := buckets[op.Bucket]
	if m == nil {
		m = make(map[string]string)
		buckets[op.Bucket] = m
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

func (b *memoryBase) Each(bucket journal.Bucket, f func(key, value []byte) error) error {
	m := b.buckets[bucket]
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if err := f([]byte(k), []byte(m[k])); err != nil {
			return err
		}
	}
	return nil
}

func key(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func steps(t *testing.T, j *journal.Journal) {
	t.Helper()
	for {
		more, err := j.Step()
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			return
		}
	}
}

// TestOnADisk logs on the system's own files, with checkpoints and a restart.
func TestOnADisk(t *testing.T) {
	dir, base := journal.OSDir(t.TempDir()), newBase()
	want := make(map[journal.Bucket]map[string]string)
	open := func() *journal.Journal {
		t.Helper()
		j, err := journal.Open(dir, base, journal.Options{Owner: owner, ChunkBytes: 1000})
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	j := open()
	var b journal.Batch
	for n := uint64(1); n <= 1000; n++ {
		b.Reset()
		for _, op := range []journal.Op{
			{Kind: journal.Put, Bucket: 1, Key: key(n), Value: bytes.Repeat([]byte{byte(n)}, int(n%300))},
			{Kind: journal.Put, Bucket: 2, Key: fmt.Append(nil, n%7), Value: key(n)},
			{Kind: journal.Delete, Bucket: 2, Key: fmt.Append(nil, (n+3)%7)},
			{Kind: journal.DeleteBelow, Bucket: 1, Key: key(n / 2)},
		} {
			switch op.Kind {
			case journal.Put:
				b.Put(op.Bucket, op.Key, op.Value)
			case journal.Delete:
				b.Delete(op.Bucket, op.Key)
			case journal.DeleteBelow:
				b.DeleteBelow(op.Bucket, op.Key)
			}
			apply(want, op)
		}
		if err := j.Commit(&b); err != nil {
			t.Fatal(err)
		}
		switch {
		case n%250 == 0:
			steps(t, j)
			if st := j.Stats(); st.Through != journal.Number(n) || st.Backlog != 0 {
				t.Fatalf("after a checkpoint: %+v", st)
			}
			if !maps.EqualFunc(base.buckets, want, maps.Equal) {
				t.Fatalf("after a checkpoint at %d: %v, want %v", n, base.buckets, want)
			}
		case n%177 == 0:
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			j = open()
			if !maps.EqualFunc(base.buckets, want, maps.Equal) {
				t.Fatalf("after a restart at %d: %v, want %v", n, base.buckets, want)
			}
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if names, err := dir.List(); err != nil || len(names) > 2 {
		t.Errorf("files %v, %v", names, err)
	}
}

// TestConcurrent appends, syncs and carries over at the same time, as a store does, and
// finds all of it again.
func TestConcurrent(t *testing.T) {
	const commits = 2000
	dir, base := journal.OSDir(t.TempDir()), newBase()
	j, err := journal.Open(dir, base, journal.Options{Owner: owner, ChunkBytes: 1000})
	if err != nil {
		t.Fatal(err)
	}
	appended, carried := make(chan struct{}), make(chan error, 1)
	synced := make(chan error, 1)
	go func() {
		var err error
		for done := false; !done && err == nil; {
			select {
			case <-appended:
				done = true
			default:
			}
			err = j.Sync()
		}
		synced <- err
	}()
	go func() {
		var err error
		for done, more := false, false; (!done || more) && err == nil; {
			select {
			case <-appended:
				done = true
			default:
			}
			more, err = j.Step()
		}
		carried <- err
	}()
	var b journal.Batch
	for n := uint64(1); n <= commits; n++ {
		b.Reset()
		b.Put(1, key(n%100), key(n))
		if _, err := j.Append(&b); err != nil {
			t.Fatal(err)
		}
	}
	close(appended)
	if err := errors.Join(<-synced, <-carried); err != nil {
		t.Fatal(err)
	}
	steps(t, j)
	if st := j.Stats(); st.Durable != commits || st.Through != commits {
		t.Errorf("%+v", st)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if j, err = journal.Open(dir, base, journal.Options{Owner: owner}); err != nil {
		t.Fatal(err)
	}
	for n := uint64(commits - 99); n <= commits; n++ {
		if got := base.buckets[1][string(key(n%100))]; got != string(key(n)) {
			t.Errorf("key %d has %x, want %x", n%100, got, n)
		}
	}
	if st := j.Stats(); st.Number != commits {
		t.Errorf("%+v", st)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// slowDir lets something else happen at the end of each sync of a file.
type slowDir struct {
	disk
	meanwhile func()
}

func (d slowDir) Create(name string) (journal.File, error) {
	f, err := d.disk.Create(name)
	return slowFile{f, d.meanwhile}, err
}

type slowFile struct {
	journal.File
	meanwhile func()
}

func (f slowFile) Sync() error {
	err := f.File.Sync()
	f.meanwhile()
	return err
}

// TestCheckpointBesideASync: while a sync is under way the journal appends more and
// begins a checkpoint, on a processor of its own. Commits known to be durable stay so,
// and all of them are there after a loss of power.
func TestCheckpointBesideASync(t *testing.T) {
	d := simdisk.New(rand.New(rand.NewPCG(1, 0)))
	base := newBase()
	var j *journal.Journal
	var stepped chan error
	number, appended, durable := uint64(0), false, journal.Number(0)
	add := func() {
		var b journal.Batch
		number++
		b.Put(1, key(number%7), key(number))
		if _, err := j.Append(&b); err != nil {
			t.Error(err)
		}
	}
	dir := slowDir{disk{d}, func() {
		if j == nil || stepped != nil || !journal.Appends(j) {
			return // of the first start, of the checkpoint, or not to be disturbed
		}
		appended = true
		add()
		stepped = make(chan error, 1)
		go func() {
			more, err := true, error(nil)
			for more && err == nil {
				more, err = j.Step()
			}
			stepped <- err
		}()
		// The checkpoint comes as far as it can by itself.
		for range 10_000 {
			runtime.Gosched()
		}
		durable = max(durable, j.Stats().Durable)
	}}
	opened, err := journal.Open(dir, base, journal.Options{Owner: owner})
	if err != nil {
		t.Fatal(err)
	}
	for j = opened; number < 40; {
		add()
		if err := j.Sync(); err != nil {
			t.Fatal(err)
		}
		if stepped != nil {
			if err := <-stepped; err != nil {
				t.Fatal(err)
			}
			stepped = nil
		}
		if got := j.Stats().Durable; got < durable {
			t.Fatalf("commit %d was durable, and is not any more: %d is", durable, got)
		}
		durable = j.Stats().Durable
	}
	if !appended {
		t.Error("nothing came during a sync")
	}
	if err := j.Sync(); err != nil {
		t.Fatal(err)
	}
	d.CutHard()
	if j, err = journal.Open(disk{d}, base, journal.Options{Owner: owner}); err != nil {
		t.Fatal(err)
	}
	if got := j.Stats().Number; got != journal.Number(number) {
		t.Errorf("the log ends with commit %d of %d", got, number)
	}
}
