package replica_test

import (
	"errors"

	"github.com/samya-db/samya/internal/simdisk"
	"github.com/samya-db/samya/site/journal"
	"github.com/samya-db/samya/site/replica"
)

// restore takes the store back to an earlier copy. Nodes that have later commits refuse to
// go on, whatever they do; the others go on.
func (w *world) restore() {
	w.calm = true
	w.store.Restore(w.copy)
	w.hit("restored")
	w.note("the store is put back to commit %d", w.copyLast)
	w.model.restored(w.copy, w.copyFirst, w.copyLast)
	for _, m := range w.machines {
		m.disk.CutIn(0)
		for _, o := range []simdisk.Op{simdisk.Write, simdisk.Sync, simdisk.Other} {
			m.disk.Fail(o, nil)
		}
		m.burnt = 0
		if m.waits = nil; m.log != nil && m.log.Failed() != nil {
			m.end(false)
		}
		w.refuses(m)
	}
}

// refuses has a machine with later commits than the store try all that it could do.
func (w *world) refuses(m *machine) {
	if m.leads() && m.log.Last() > w.model.last() {
		w.hit("restored under a leader")
		var err error
		if w.chance(500) {
			err = m.log.Confirm()
		} else {
			var b journal.Batch
			w.make(m, &b)
			if _, err = m.log.Append(&b); err == nil {
				err = m.log.Sync()
			}
		}
		if !errors.Is(err, replica.ErrLost) && !errors.Is(err, replica.ErrFenced) {
			w.model.fail("%s leads with commit %d, the store has %d: %v", m.name, m.log.Last(), w.model.last(), err)
		}
		m.end(false)
	}
	for _, follows := range []bool{true, false} {
		if m.log == nil {
			if err := m.openLog(); err != nil {
				w.model.fail("%s opens: %v", m.name, err)
				return
			}
		}
		if m.out = m.log.Last() > w.model.last(); !m.out {
			return
		}
		w.hit("lost commits")
		var err error
		if follows {
			_, err = m.log.Follow(0)
		} else {
			err = m.takeOver()
		}
		if !errors.Is(err, replica.ErrLost) {
			w.model.fail("%s has commit %d, the store has %d: %v", m.name, m.log.Last(), w.model.last(), err)
		}
		m.end(false)
	}
}

// takeOver leads in place of whoever does.
func (m *machine) takeOver() error {
	if err := m.look(); err != nil {
		return err
	}
	m.w.runs++
	_, err := m.log.Lead(m.seen, replica.Leader{Node: m.name, Run: uint64(m.w.runs)})
	return err
}
