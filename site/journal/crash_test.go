package journal_test

import (
	"errors"
	"maps"
	"math/rand/v2"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/samya-db/samya/internal/simdisk"
	"github.com/samya-db/samya/site/journal"
)

// disk is a simulated disk as the log sees it.
type disk struct{ *simdisk.Disk }

func (d disk) Create(name string) (journal.File, error) { return d.Disk.Create(name) }
func (d disk) Open(name string) (journal.File, error)   { return d.Disk.Open(name) }

// diskBase is a base on the same disk: each transaction is durable whole or not at all. A
// failed transaction may be seen until the power is lost.
type diskBase struct {
	*memoryBase
	disk *simdisk.Disk
}

func (b diskBase) Apply(ops []journal.Op, through *journal.Number) error {
	if b.disk.Full() {
		return syscall.ENOSPC
	}
	var failed error
	err := b.disk.Do(func() { failed = b.memoryBase.Apply(ops, through) }, func() func() {
		saved := *b.memoryBase
		saved.buckets = state(saved.buckets).clone()
		return func() { *b.memoryBase = saved }
	})
	return errors.Join(err, failed)
}

// state is the content of a base.
type state map[journal.Bucket]map[string]string

func (s state) equal(o state) bool {
	return maps.EqualFunc(s, o, func(a, b map[string]string) bool { return maps.Equal(a, b) })
}

func (s state) clone() state {
	c := make(state)
	for b, m := range s {
		c[b] = maps.Clone(m)
	}
	return c
}

// machine is a journal on a disk, and its possible states.
type machine struct {
	t       *rapid.T
	disk    *simdisk.Disk
	base    diskBase
	journal *journal.Journal
	batch   journal.Batch
	// states are the states after each commit, from commit number first on. acknowledged
	// is the last acknowledged commit.
	states       []state
	first        journal.Number
	acknowledged journal.Number
	restarts     int
}

func newMachine(t *rapid.T) *machine {
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	d := simdisk.New(r)
	m := &machine{t: t, disk: d, base: diskBase{newBase(), d}, states: []state{{}}}
	m.open()
	return m
}

func (m *machine) open() {
	for {
		j, err := journal.Open(disk{m.disk}, m.base, journal.Options{
			Owner: owner, ChunkBytes: 40, ReplayBytes: 40, MaxEntries: rapid.SampledFrom([]int{3, 1000}).Draw(m.t, "entries"),
		})
		if err == nil {
			m.journal = j
			break
		}
		if !m.disk.Dead() && !m.disk.Full() {
			m.t.Fatalf("opening: %v", err)
		}
		m.disk.Fill(false)
		m.lose()
	}
	// Commits beyond acknowledged are there in order, or not at all.
	n := m.journal.Stats().Number
	if n < m.acknowledged || n >= m.first+journal.Number(len(m.states)) {
		m.t.Fatalf("the log ends with commit %d; %d was acknowledged", n, m.acknowledged)
	}
	if want := m.states[n-m.first]; !want.equal(m.base.buckets) {
		m.t.Fatalf("after commit %d there are %v, want %v", n, m.base.buckets, want)
	}
	m.states, m.first, m.acknowledged = m.states[n-m.first:][:1], n, n
}

// lose ends the process, with or without a loss of power.
func (m *machine) lose() {
	if m.disk.Dead() || rapid.Bool().Draw(m.t, "power lost") {
		m.disk.Cut()
	} else {
		m.disk.Kill()
	}
	m.restarts++
}

// restart comes back after an end at any time.
func (m *machine) restart() {
	m.lose()
	if rapid.Bool().Draw(m.t, "lost again") {
		m.disk.CutIn(rapid.IntRange(1, 12).Draw(m.t, "call"))
	}
	m.open()
}

// append adds a commit and reports whether the journal took it.
func (m *machine) append() bool {
	m.batch.Reset()
	s := m.states[len(m.states)-1].clone()
	for range rapid.IntRange(1, 4).Draw(m.t, "operations") {
		op := drawOp(m.t)
		add(&m.batch, op)
		apply(s, op)
	}
	m.states = append(m.states, s)
	n, err := m.journal.Append(&m.batch)
	if err != nil {
		m.broken(err)
		return false
	}
	if want := m.first + journal.Number(len(m.states)) - 1; n != want {
		m.t.Fatalf("commit %d has number %d", want, n)
	}
	return true
}

func (m *machine) sync() {
	if err := m.journal.Sync(); err != nil {
		m.broken(err)
		return
	}
	m.acknowledged = m.first + journal.Number(len(m.states)) - 1
}

func (m *machine) step() (more bool) {
	more, err := m.journal.Step()
	if err != nil {
		m.broken(err)
		return false
	}
	if !more && m.base.known {
		// The base has all commits up to Through, whatever else was logged.
		if st := m.journal.Stats(); st.Through == st.Number {
			if want := m.states[len(m.states)-1]; !want.equal(m.base.buckets) {
				m.t.Fatalf("after a checkpoint at %d there are %v, want %v", st.Through, m.base.buckets, want)
			}
		}
	}
	return more
}

// broken checks that nothing more can be done with a journal, and begins anew.
func (m *machine) broken(err error) {
	if !m.disk.Dead() && !errors.Is(err, syscall.EIO) && !errors.Is(err, syscall.ENOSPC) {
		m.t.Fatalf("without a cause: %v", err)
	}
	m.batch.Reset()
	m.batch.Put(1, []byte("never"), nil)
	if err := m.journal.Commit(&m.batch); err == nil {
		m.t.Fatal("a commit after a failure")
	}
	if _, err := m.journal.Step(); err == nil {
		m.t.Fatal("a step after a failure")
	}
	if rapid.Bool().Draw(m.t, "space again") {
		m.disk.Fill(false)
	}
	m.restart()
}

func drawOp(t *rapid.T) journal.Op {
	op := journal.Op{
		Kind: journal.Kind(rapid.IntRange(1, 3).Draw(t, "kind")), Bucket: journal.Bucket(rapid.IntRange(1, 2).Draw(t, "bucket")),
		Key: []byte{'a' + byte(rapid.IntRange(0, 9).Draw(t, "key"))},
	}
	if op.Kind == journal.Put {
		op.Value = make([]byte, rapid.SampledFrom([]int{0, 3, 30, 500, 1500, 50_000}).Draw(t, "length"))
		fill := rapid.Byte().Draw(t, "fill")
		for i := range op.Value {
			op.Value[i] = fill
		}
	}
	return op
}

func add(b *journal.Batch, op journal.Op) {
	switch op.Kind {
	case journal.Put:
		b.Put(op.Bucket, op.Key, op.Value)
	case journal.Delete:
		b.Delete(op.Bucket, op.Key)
	case journal.DeleteBelow:
		b.DeleteBelow(op.Bucket, op.Key)
	}
}

// TestCrashes ends the process and loses the power at any point of commits, checkpoints
// and starts, has calls fail and the disk full. Acknowledged commits are there, and other
// commits are there in order or not at all.
func TestCrashes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(t)
		t.Repeat(map[string]func(*rapid.T){
			"commit": func(*rapid.T) {
				for range rapid.IntRange(1, 5).Draw(t, "commits") {
					if !m.append() {
						return
					}
				}
				m.sync()
			},
			"append": func(*rapid.T) { m.append() },
			"step":   func(*rapid.T) { m.step() },
			"checkpoint": func(*rapid.T) {
				steps := 0
				for m.step() && steps < 1000 {
					steps++
				}
			},
			"cut": func(*rapid.T) { m.disk.CutIn(rapid.IntRange(1, 10).Draw(t, "call")) },
			"fail": func(*rapid.T) {
				m.disk.Fail(rapid.SampledFrom([]simdisk.Op{simdisk.Write, simdisk.Sync, simdisk.SyncNames, simdisk.Rename, simdisk.Remove, simdisk.Create, simdisk.Other}).Draw(t, "call"), syscall.EIO)
			},
			"fill":  func(*rapid.T) { m.disk.Fill(rapid.Bool().Draw(t, "full")) },
			"crash": func(*rapid.T) { m.restart() },
		})
		m.disk.CutIn(0)
		m.disk.Fill(false)
		m.lose()
		m.open()
		if names, err := m.disk.List(); err != nil || len(names) > 2 {
			t.Fatalf("files %v, %v", names, err)
		}
	})
}
