package journal_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/samya-db/samya/internal/simdisk"
	"github.com/samya-db/samya/site/journal"
)

// doubleFault is a journal on a disk on which a transaction of the base fails, and later
// the power.
type doubleFault struct {
	t       *testing.T
	name    string
	disk    *simdisk.Disk
	data    diskBase
	base    failAt
	journal *journal.Journal
	batch   journal.Batch
	// want is the acknowledged state.
	want state
	n    uint64
}

// open starts the process until the disk does not fail it.
func (f *doubleFault) open() {
	f.t.Helper()
	for {
		var err error
		f.journal, err = journal.Open(disk{f.disk}, &f.base, journal.Options{Owner: owner, ChunkBytes: 100, ReplayBytes: 100, MaxEntries: 4})
		if err == nil {
			return
		}
		if !errors.Is(err, syscall.EIO) {
			f.t.Fatalf("%s: %v", f.name, err)
		}
		f.disk.Kill()
	}
}

func (f *doubleFault) commit(n int) {
	f.t.Helper()
	for range n {
		f.n++
		op := journal.Op{Kind: journal.Put, Bucket: 1, Key: key(f.n % 7), Value: fmt.Append(nil, "value ", f.n)}
		f.batch.Reset()
		add(&f.batch, op)
		if err := f.journal.Commit(&f.batch); err != nil {
			f.t.Fatal(err)
		}
		apply(f.want, op)
	}
}

// carry carries the log over, unless the disk fails.
func (f *doubleFault) carry() {
	f.t.Helper()
	for more := true; more; {
		var err error
		if more, err = f.journal.Step(); errors.Is(err, syscall.EIO) {
			return
		}
		if err != nil {
			f.t.Fatal(err)
		}
	}
}

// TestFailedSyncOfTheBase has each transaction of the base fail in turn, in a checkpoint
// or in a start. The process starts again, and sees that transaction whether the disk has
// it or not. Then the power is lost, at once or after more commits: all acknowledged
// commits are there.
func TestFailedSyncOfTheBase(t *testing.T) {
	for _, where := range []string{"first start", "checkpoint", "start"} {
		for transaction := range 8 {
			for seed := range uint64(12) {
				d := simdisk.New(rand.New(rand.NewPCG(seed, uint64(transaction))))
				f := &doubleFault{
					t: t, name: fmt.Sprintf("%s, transaction %d, seed %d", where, transaction, seed),
					disk: d, data: diskBase{newBase(), d}, want: state{},
				}
				f.base = failAt{Base: f.data, disk: d, in: -1}
				failIn := func(here string) {
					if here == where {
						f.base.in = transaction
					}
				}
				failIn("first start")
				f.open()
				f.commit(20)
				failIn("checkpoint")
				if where != "start" {
					f.carry()
				}
				d.Kill()
				failIn("start")
				f.open()
				if seed%2 == 0 {
					f.commit(3)
				}
				if seed%3 == 0 {
					f.carry()
				}
				d.Cut()
				f.base.in = -1
				f.open()
				if !f.want.equal(f.data.buckets) {
					t.Fatalf("%s: got %v, want %v", f.name, f.data.buckets, f.want)
				}
			}
		}
	}
}

// failAt is a base that fails a single transaction, after in others; none if in is below
// 0.
type failAt struct {
	journal.Base
	disk *simdisk.Disk
	in   int
}

func (b *failAt) Apply(ops []journal.Op, through *journal.Number) error {
	if b.in == 0 {
		b.disk.Fail(simdisk.Other, syscall.EIO)
	}
	b.in--
	return b.Base.Apply(ops, through)
}

// numbered is a base that notes which of its transactions store a number.
type numbered struct {
	*memoryBase
	stored []bool
}

func (b *numbered) Apply(ops []journal.Op, through *journal.Number) error {
	b.stored = append(b.stored, through != nil)
	return b.memoryBase.Apply(ops, through)
}

// TestTheLastTransactionTellsTheNumber: a checkpoint of several transactions stores the
// number through which the base is complete with the last of them. Otherwise a crash
// between two of them would leave a base that vouches for commits that it does not have.
func TestTheLastTransactionTellsTheNumber(t *testing.T) {
	base := &numbered{memoryBase: newBase()}
	j, err := journal.Open(journal.OSDir(t.TempDir()), base, journal.Options{Owner: owner, ChunkBytes: 100})
	if err != nil {
		t.Fatal(err)
	}
	var b journal.Batch
	for n := range uint64(30) {
		b.Reset()
		b.Put(1, key(n), key(n))
		if err := j.Commit(&b); err != nil {
			t.Fatal(err)
		}
	}
	base.stored = nil
	steps(t, j)
	last := len(base.stored) - 1
	if last < 2 {
		t.Fatalf("%d transactions", last+1)
	}
	for i, stored := range base.stored {
		if stored != (i == last) {
			t.Errorf("transaction %d of %d stores a number: %t", i+1, last+1, stored)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}
