package replica_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/samya-db/samya/internal/simdisk"
	"github.com/samya-db/samya/site/journal"
	"github.com/samya-db/samya/site/journal/journaltest"
	"github.com/samya-db/samya/site/replica"
)

// diskBase is a base on the disk of a node: its transactions are durable whole or not at
// all, and a failed sync may be taken back by a loss of power.
type diskBase struct {
	*journaltest.Base
	disk *simdisk.Disk
	// saved, if not nil, is the base on the disk, which programs see otherwise.
	saved *journaltest.Base
}

// Apply implements journal.Base.
func (b *diskBase) Apply(ops []journal.Op, through *journal.Number) error {
	var failed error
	err := b.disk.Do(func() { failed = b.Base.Apply(ops, through) }, func() func() {
		b.saved = b.Clone()
		return func() { b.Base, b.saved = b.saved, nil }
	})
	if err == nil {
		b.saved = nil
	}
	return errors.Join(err, failed)
}

// durable is the content of the disk.
func (b *diskBase) durable() *journaltest.Base {
	if b.saved != nil {
		return b.saved
	}
	return b.Base
}

// diskSpans are spans in a file, replaced whole or not at all.
type diskSpans struct {
	disk  *simdisk.Disk
	spans []replica.Span
}

// Load implements replica.Spans.
func (d *diskSpans) Load() ([]replica.Span, error) { return slices.Clone(d.spans), nil }

// Save implements replica.Spans.
func (d *diskSpans) Save(spans []replica.Span) error {
	return d.disk.Do(func() { d.spans = slices.Clone(spans) }, func() func() {
		before := d.spans
		return func() { d.spans = before }
	})
}

// The ways of a machine to data that its log does not reach back to.
const (
	complete = iota
	// wanting: the node knows that it needs a copy. It has yet to tell so.
	wanting
	// waiting: it has told, and waits for a node to copy from.
	waiting
	// following: it has a copy, and follows to the end of the log.
	following
)

// machine is a node of the site.
type machine struct {
	w    *world
	name string
	kv   replica.KV
	disk *simdisk.Disk
	base *diskBase
	// spans are in a file of the disk.
	spans diskSpans
	log   *replica.Log
	// busy says that a call of the log is under way.
	busy bool
	// waits are the commits that are appended and not synced, with their numbers.
	waits []*made
	from  journal.Number
	// seen is a leader that the node read at some time.
	seen replica.Leader
	// phase is how far it has come with a copy. exact is the commit from which on its
	// state can be compared: a copy may have parts of later commits.
	phase int
	exact journal.Number
	// burnt, unless 0, is when its disk was replaced by an empty one.
	burnt int64
	// out says that it has commits that a restored store lacks.
	out bool
	// lost is the last of them.
	lost journal.Number
}

func (w *world) newMachine(i int) *machine {
	m := &machine{w: w, name: string(rune('a' + i))}
	m.kv = w.store.At(w.fate)
	m.empty()
	return m
}

// empty gives the machine an empty disk.
func (m *machine) empty() {
	m.disk = simdisk.New(rand.New(rand.NewPCG(m.w.r.Uint64(), 3)))
	m.base = &diskBase{Base: journaltest.NewBase(), disk: m.disk}
	m.spans = diskSpans{disk: m.disk}
	m.exact = 0
}

// unknown reports whether the machine's disk was replaced, and it has not told since.
func (m *machine) unknown() bool {
	told, ok := m.w.model.told[m.name]
	return ok && told.Time < m.burnt
}

// through is the last commit that the machine's disk has in the base. While nobody knows
// that the disk is another, it counts as the disk before.
func (m *machine) through() journal.Number {
	if m.unknown() {
		return m.w.model.told[m.name].Through
	}
	n, _, _ := m.base.durable().Through()
	return n
}

// leads reports whether the machine believes to be active.
func (m *machine) leads() bool { return m.log != nil && m.log.Term() != 0 }

// errGivenUp ends calls that are given up.
var errGivenUp = errors.New("given up")

// wait is called before each repetition of a call.
func (m *machine) wait(attempt int, failure error) error {
	m.w.between()
	if m.w.calm {
		if attempt > patience {
			return fmt.Errorf("%d attempts: %w", attempt, failure)
		}
		return nil
	}
	if m.w.chance(120) {
		return fmt.Errorf("%w: %w", errGivenUp, failure)
	}
	return nil
}

// open opens the machine's log, and compares the base with the model.
func (m *machine) open() error {
	err := m.openLog()
	if err == nil {
		m.w.model.same(m, m.log.Last())
	}
	return err
}

// openLog opens the machine's log, which follows.
func (m *machine) openLog() error {
	origin, err := replica.Found(m.kv, keys, m.w.origin, m.wait)
	if err != nil {
		return err
	}
	local, err := m.openLocal()
	if err != nil {
		return err
	}
	m.waits = nil
	m.log, err = replica.New(local, replica.Options{
		KV: m.kv, Keys: keys, Node: m.name, Origin: origin, Wait: m.wait, PartBytes: m.w.partBytes, Spans: &m.spans,
	})
	return err
}

func (m *machine) openLocal() (*journal.Journal, error) {
	return journal.Open(disk{m.disk}, m.base, journal.Options{Owner: owner, ChunkBytes: m.w.chunk, ReplayBytes: m.w.chunk, MaxCommit: 1 << 20})
}

// end ends the process. power: the machine loses its power.
func (m *machine) end(power bool) {
	if m.log != nil {
		_ = m.log.Close()
	}
	m.log, m.waits = nil, nil
	if power || m.disk.Dead() {
		m.disk.Cut()
		m.base.saved = nil
		return
	}
	m.disk.Kill()
}

// copyFrom gives the machine a copy of another node's base, as that one is on its disk,
// with a log that goes on behind it.
func (m *machine) copyFrom(o *machine) error {
	base := o.base.durable().Clone()
	through, _, _ := base.Through()
	exact := max(o.log.Last(), o.exact)
	m.end(false)
	m.empty()
	if err := journal.Begin(disk{m.disk}, owner, through); err != nil {
		return err
	}
	m.base.Base, m.exact, m.phase = base, exact, following
	m.w.hit("copies")
	return nil
}

// judge takes the error of a call of the machine's log, and ends the process.
func (m *machine) judge(what string, err error) {
	model := m.w.model
	m.w.note("  %s: %s: %v", m.name, what, err)
	if m.log != nil && m.log.Last() > 0 && !m.out {
		if n := m.log.Last(); n > model.last() {
			model.fail("%s has commit %d, the store has %d", m.name, n, model.last())
		}
	}
	switch {
	case errors.Is(err, simdisk.ErrCut):
		m.end(true)
		return
	case errors.Is(err, errGivenUp):
		m.w.hit("givenUp")
	case errors.Is(err, errDisk):
		m.w.hit("diskErrors")
	case errors.Is(err, replica.ErrFenced):
		if m.log.Term() == model.term {
			model.fail("%s: %s: %v, and it leads", m.name, what, err)
		}
		m.w.hit("fenced")
	case errors.Is(err, replica.ErrBehind):
		if m.phase == following {
			model.fail("%s: %s: %v, and it has copied", m.name, what, err)
		}
		if m.log.Last()+1 >= model.first {
			model.fail("%s: %s: %v, the log begins with commit %d", m.name, what, err, model.first)
		}
		m.phase = wanting
		m.w.hit("behind")
	default:
		model.fail("%s: %s: %v", m.name, what, err)
	}
	m.end(false)
}
