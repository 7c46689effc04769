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
	for _, m := range w.machines {
		if m.disk.Dead() || m.log != nil && m.log.Failed() != nil {
			m.end(false)
		}
		m.disk.CutIn(0)
		for _, o := range []simdisk.Op{simdisk.Write, simdisk.Sync, simdisk.Other} {
			m.disk.Fail(o, nil)
		}
	}
	if w.chance(700) {
		w.copyBelow()
	}
	w.store.Restore(w.copy)
	w.hit("restored")
	w.note("the store is put back to commit %d", w.copyLast)
	w.model.restored(w.copy, w.copyFirst, w.copyLast)
	for _, m := range w.machines {
		m.burnt, m.waits = 0, nil
		w.refuses(m)
	}
}

// copyBelow takes a copy of the store while a node leads, which then goes on: the copy has
// the node as the leader.
func (w *world) copyBelow() {
	for _, m := range w.machines {
		w.act(m, m.catchUp)
		if m.log == nil || m.phase != complete {
			continue
		}
		w.act(m, func() error { return m.lead(true) })
		if !m.leads() {
			continue
		}
		w.act(m, m.commit)
		w.copy, w.copyFirst, w.copyLast = w.store.Copy(), w.model.first, w.model.last()
		for range 3 {
			if m.leads() {
				w.act(m, m.commit)
			}
		}
		return
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
		m.lost = m.log.Last()
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

// returns has a machine with lost commits come back, once the restored store has as many or
// more. The machine neither follows nor leads: the store has other commits.
func (w *world) returns(m, leader *machine) {
	// An earlier machine may have taken over before it found other commits.
	w.act(leader, leader.catchUp)
	w.act(leader, func() error { return leader.lead(true) })
	for more := w.r.IntN(3); leader.leads() && (w.model.last() < m.lost || more > 0); more-- {
		w.act(leader, leader.commit)
		if leader.leads() && w.chance(200) {
			w.act(leader, leader.trims)
		}
	}
	if w.model.err != nil {
		return
	}
	if !leader.leads() {
		w.model.fail("%s does not go on", leader.name)
		return
	}
	if err := m.openLog(); err != nil {
		w.model.fail("%s opens: %v", m.name, err)
		return
	}
	if len(m.spans.spans) == 0 {
		m.end(false) // it has a copy, and has not followed since
		return
	}
	w.hit("grown")
	var err error
	if w.chance(500) {
		_, err = m.log.Follow(0)
	} else {
		err = m.takeOver()
	}
	if !errors.Is(err, replica.ErrLost) && !errors.Is(err, replica.ErrBehind) {
		w.model.fail("%s has another commit %d than the store, which has %d: %v", m.name, m.log.Last(), w.model.last(), err)
	}
	m.end(false)
}

// trims carries over, tells so, and trims the log.
func (m *machine) trims() error {
	if err := errors.Join(m.carry(), m.tell()); err != nil {
		return err
	}
	_, err := m.log.Trim()
	return err
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
