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

// hookedDir calls back before and after each call on a directory and its files. A sync
// does not cover writes made after it and before it returns.
type hookedDir struct {
	disk
	at func()
}

func (d hookedDir) around(call func() error) error {
	d.at()
	err := call()
	d.at()
	return err
}

func (d hookedDir) file(open func() (journal.File, error)) (f journal.File, err error) {
	err = d.around(func() error { f, err = open(); return err })
	if err != nil {
		return nil, err
	}
	return hookedFile{f, d}, nil
}

func (d hookedDir) Create(name string) (journal.File, error) {
	return d.file(func() (journal.File, error) { return d.disk.Create(name) })
}

func (d hookedDir) Open(name string) (journal.File, error) {
	return d.file(func() (journal.File, error) { return d.disk.Open(name) })
}

func (d hookedDir) Rename(from, to string) error {
	return d.around(func() error { return d.disk.Rename(from, to) })
}

func (d hookedDir) Remove(name string) error {
	return d.around(func() error { return d.disk.Remove(name) })
}

func (d hookedDir) Sync() error { return d.around(d.disk.Sync) }

type hookedFile struct {
	journal.File
	dir hookedDir
}

func (f hookedFile) ReadAt(b []byte, at int64) (n int, err error) {
	err = f.dir.around(func() error { n, err = f.File.ReadAt(b, at); return err })
	return n, err
}

func (f hookedFile) WriteAt(b []byte, at int64) (n int, err error) {
	err = f.dir.around(func() error { n, err = f.File.WriteAt(b, at); return err })
	return n, err
}

func (f hookedFile) Sync() error { return f.dir.around(f.File.Sync) }

// hookedBase calls back before and after each transaction.
type hookedBase struct {
	diskBase
	at func()
}

func (b hookedBase) Apply(ops []journal.Op, through *journal.Number) error {
	b.at()
	err := b.diskBase.Apply(ops, through)
	b.at()
	return err
}

// interleaved is a run of a journal in which more is begun while calls are under way.
type interleaved struct {
	r       *rand.Rand
	disk    *simdisk.Disk
	base    hookedBase
	journal *journal.Journal
	batch   journal.Batch
	// states are the states after each commit, from commit number first on.
	states []state
	first  journal.Number
	// acknowledged is the last commit that a sync made durable.
	acknowledged journal.Number
	// points counts the calls back. The power is lost at call back cutAt, and the next
	// call fails at call back failAt; 0 for none. within is set while a call back runs
	// its own calls.
	points, cutAt, failAt int
	within                bool
	err                   error
}

// at is a call back: it begins another call, or loses the power.
func (v *interleaved) at() {
	if v.within || v.disk.Dead() {
		return
	}
	if v.points++; v.points == v.cutAt {
		v.disk.CutIn(1)
		return
	}
	if v.points == v.failAt {
		for _, o := range []simdisk.Op{simdisk.Write, simdisk.Sync, simdisk.Create, simdisk.Rename, simdisk.Remove, simdisk.SyncNames, simdisk.Other} {
			v.disk.Fail(o, syscall.EIO)
		}
		return
	}
	j := v.journal
	if j == nil || !journal.Appends(j) {
		return
	}
	v.within = true
	defer func() { v.within = false }()
	if v.r.IntN(3) == 0 {
		v.append()
	}
	if v.r.IntN(3) == 0 && journal.Syncs(j) {
		v.sync()
	}
}

func (v *interleaved) check(err error) {
	if err != nil && !errors.Is(err, simdisk.ErrCut) && (v.failAt == 0 || !errors.Is(err, syscall.EIO)) {
		v.err = errors.Join(v.err, err)
	}
}

func (v *interleaved) append() {
	if v.journal.Failed() != nil {
		return
	}
	s := v.states[len(v.states)-1].clone()
	v.batch.Reset()
	for range 1 + v.r.IntN(2) {
		op := journal.Op{Kind: journal.Kind(1 + v.r.IntN(3)), Bucket: 1, Key: []byte{'a' + byte(v.r.IntN(9))}}
		if op.Kind == journal.Put {
			op.Value = make([]byte, 1+v.r.IntN(700))
			op.Value[0] = byte(v.r.Uint32())
		}
		add(&v.batch, op)
		apply(s, op)
	}
	// The commit may be there from now on, whatever Append returns.
	v.states = append(v.states, s)
	_, err := v.journal.Append(&v.batch)
	v.check(err)
}

func (v *interleaved) sync() {
	last := v.first + journal.Number(len(v.states)) - 1
	err := v.journal.Sync()
	if v.check(err); err == nil {
		v.acknowledged = max(v.acknowledged, last)
	}
}

// open starts on the disk, and checks the base.
func (v *interleaved) open(name string) error {
	v.journal = nil
	dir := hookedDir{disk{v.disk}, v.base.at}
	j, err := journal.Open(dir, v.base, journal.Options{Owner: owner, ChunkBytes: 300, ReplayBytes: 300, MaxEntries: 5})
	if err != nil {
		if v.disk.Dead() {
			return nil
		}
		return fmt.Errorf("%s: %w", name, err)
	}
	n := j.Stats().Number
	if n < v.acknowledged || n >= v.first+journal.Number(len(v.states)) {
		return fmt.Errorf("%s: the log ends with commit %d; %d was acknowledged", name, n, v.acknowledged)
	}
	if want := v.states[n-v.first]; !want.equal(v.base.buckets) {
		return fmt.Errorf("%s: after commit %d there is not what was committed", name, n)
	}
	v.states, v.first, v.acknowledged = v.states[n-v.first:][:1], n, n
	v.journal = j
	return nil
}

// run makes random calls, until the power is lost or all are done, and starts again.
func (v *interleaved) run() error {
	if err := v.open("the first start"); err != nil {
		return err
	}
	for n := 0; n < 14 && !v.disk.Dead(); n++ {
		switch do := v.r.IntN(8); {
		case do < 3:
			v.append()
			v.sync()
		case do < 4:
			v.append()
		case do < 7:
			for more := true; more && v.err == nil; {
				var err error
				more, err = v.journal.Step()
				v.check(err)
			}
		default:
			v.check(v.journal.Close())
			v.disk.Kill()
			if err := v.open("a start"); err != nil {
				return err
			}
		}
		if v.err != nil {
			return v.err
		}
	}
	points := v.points
	if v.r.IntN(2) == 0 {
		v.disk.CutHard()
	} else {
		v.disk.Cut()
	}
	v.cutAt = 0
	if err := v.open("after the loss of power"); err != nil {
		return err
	}
	// The work of that start has to be durable as well.
	v.append()
	v.sync()
	v.disk.CutHard()
	err := v.open("after another")
	v.points = points
	return errors.Join(err, v.err)
}

// TestInterleaved appends, syncs, carries over and starts, and in each call on the disk
// and the base begins more appends and syncs, where the journal allows them. The power is
// lost at each of these places in turn. Acknowledged commits are there, in order.
func TestInterleaved(t *testing.T) {
	run := func(seed uint64, cutAt int) (points int) {
		t.Helper()
		r := rand.New(rand.NewPCG(seed, 21))
		v := &interleaved{r: r, disk: simdisk.New(rand.New(rand.NewPCG(seed, uint64(cutAt)))), states: []state{{}}, cutAt: cutAt}
		v.base = hookedBase{diskBase{newBase(), v.disk}, v.at}
		if err := v.run(); err != nil {
			t.Fatalf("seed %d, power lost at %d: %v", seed, cutAt, err)
		}
		return v.points
	}
	from, all := rand.Uint64(), 0
	for seed := from; seed < from+8; seed++ {
		points := run(seed, 0)
		for cutAt := 1; cutAt <= points; cutAt++ {
			run(seed, cutAt)
		}
		all += points
	}
	t.Logf("the power was lost at %d places, of the seeds from %d on", all, from)
}
