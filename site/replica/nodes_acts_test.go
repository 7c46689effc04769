package replica_test

import (
	"github.com/samya-db/samya/internal/simdisk"
	"github.com/samya-db/samya/site/journal"
	"github.com/samya-db/samya/site/journal/journaltest"
	"github.com/samya-db/samya/site/replica"
)

// step has something happen: mostly some machine acts.
func (w *world) step() {
	if w.model.err != nil {
		return
	}
	if w.chance(60) && w.store.Deliver() {
		return
	}
	if w.chance(5) && w.seed%8 == 0 {
		w.copy, w.copyFirst, w.copyLast = w.store.Copy(), w.model.first, w.model.last()
	}
	m := w.machines[w.r.IntN(len(w.machines))]
	if m.busy {
		return
	}
	switch {
	case w.chance(20):
		w.note("  %s loses its power", m.name)
		w.hit("cuts")
		m.end(true)
	case w.chance(15):
		w.note("  %s is killed", m.name)
		w.hit("kills")
		m.end(false)
	case w.chance(8):
		m.burn()
	case w.chance(25):
		m.disk.CutIn(1 + w.r.IntN(8))
	case w.chance(8):
		m.disk.Fail([]simdisk.Op{simdisk.Write, simdisk.Sync, simdisk.Other}[w.r.IntN(3)], errDisk)
	case m.log == nil:
		if w.chance(400) {
			w.note("%s opens", m.name)
			w.act(m, m.open)
		}
	default:
		w.act(m, m.something)
	}
}

// burn replaces the disk of the machine by an empty one, if the data survives that: some
// other disk has what was trimmed, and every loss of a disk before is known.
func (m *machine) burn() {
	others := false
	for _, o := range m.w.machines {
		if o.unknown() {
			return
		}
		others = others || o != m && o.through()+1 >= m.w.model.first
	}
	if !others {
		return
	}
	m.end(false)
	m.empty()
	m.w.clock++
	m.burnt, m.phase = m.w.clock, complete
	m.w.hit("burns")
	m.w.note("  the disk of %s is replaced", m.name)
}

// something is the next act of an open machine.
func (m *machine) something() error {
	if m.phase != complete {
		return m.copies()
	}
	r := m.w.r
	if m.leads() {
		switch n := r.IntN(100); {
		case n < 45:
			return m.commit()
		case n < 60:
			return m.confirm()
		case n < 75:
			return m.carry()
		case n < 83:
			return m.tell()
		case n < 93:
			_, err := m.log.Trim()
			return err
		case n < 95:
			return m.lead(r.IntN(2) == 0)
		default:
			return m.look()
		}
	}
	switch n := r.IntN(100); {
	case n < 45:
		_, err := m.log.Follow(r.IntN(4))
		return err
	case n < 65:
		return m.carry()
	case n < 77:
		return m.tell()
	case n < 87:
		return m.look()
	case n < 95:
		return m.lead(true)
	default:
		return m.lead(false)
	}
}

// commit appends some commits, and mostly syncs them: then they are in the store.
func (m *machine) commit() error {
	var b journal.Batch
	w := m.w
	for range 1 + w.r.IntN(3) {
		c := w.make(m, &b)
		n, err := m.log.Append(&b)
		if err != nil {
			return err
		}
		if len(m.waits) == 0 {
			m.from = n
		}
		if want := m.from + journal.Number(len(m.waits)); n != want {
			w.model.fail("%s appends commit %d, want %d", m.name, n, want)
		}
		m.waits = append(m.waits, c)
	}
	if w.chance(200) {
		return nil
	}
	if len(m.waits) > 1 {
		w.hit("batches")
	}
	from, waits := m.from, m.waits
	m.waits = nil
	w.note("%s commits %d to %d", m.name, from, from+journal.Number(len(waits))-1)
	err := m.log.Sync()
	if err != nil {
		if m.log.Failed() == nil {
			w.model.fail("%s goes on behind a commit whose outcome is not known: %v", m.name, err)
		}
		return err
	}
	for i, c := range waits {
		if n := from + journal.Number(i); w.model.commit(n) != c {
			w.model.fail("%s: commit %d is acknowledged, and is not in the store", m.name, n)
		}
		w.hit("commits")
	}
	return nil
}

// confirm asks whether the machine leads: only a node that has led meanwhile is told so.
func (m *machine) confirm() error {
	w := m.w
	a := w.model.asked(m.log.Term())
	var err error
	if w.chance(300) {
		err = m.log.Beat(journaltest.Key(uint64(w.values)))
	} else {
		err = m.log.Confirm()
	}
	w.note("%s confirms term %d: %v", m.name, a.term, err)
	if err == nil && !a.led {
		w.model.fail("%s is told that term %d leads, it is term %d", m.name, a.term, w.model.term)
	}
	w.hit("confirms")
	return err
}

// carry carries some of the local log over to the base.
func (m *machine) carry() error {
	for range 1 + m.w.r.IntN(8) {
		if more, err := m.log.Step(); err != nil || !more {
			return err
		}
	}
	return nil
}

// whole carries all over, and compares the state.
func (m *machine) whole() error {
	for st := m.log.Stats(); st.Through < st.Number; st = m.log.Stats() {
		if _, err := m.log.Step(); err != nil {
			return err
		}
	}
	m.w.model.same(m, m.log.Last())
	return nil
}

// tell tells how far the machine's disk is.
func (m *machine) tell() error {
	m.w.clock++
	st := m.log.Stats()
	s := replica.Standing{Through: st.Through, Last: st.Number, Time: m.w.clock}
	switch m.phase {
	case wanting, waiting:
		s.Through, s.Copies = 0, true
	case following:
		s.Copies = true
	}
	m.w.note("%s tells %+v", m.name, s)
	err := m.log.Tell(s)
	if err == nil {
		m.w.hit("tells")
	}
	return err
}

// look reads who leads, for a later Lead.
func (m *machine) look() error {
	who, err := m.log.Leader()
	if err == nil {
		m.seen = who
	}
	return err
}

// lead tries to lead in place of the present leader, or of one seen earlier. A node that
// leads has all commits that were in the store when its term began.
func (m *machine) lead(fresh bool) error {
	w := m.w
	if len(m.waits) > 0 {
		return nil
	}
	if fresh {
		if err := m.look(); err != nil {
			return err
		}
	}
	w.runs++
	me := replica.Leader{Node: m.name, Run: uint64(w.runs)}
	w.note("%s tries to lead in place of term %d, as run %d", m.name, m.seen.Term, me.Run)
	won, err := m.log.Lead(m.seen, me)
	w.note("%s leads: %v, %v", m.name, won, err)
	if err != nil {
		return err
	}
	if !won {
		w.hit("lost")
		return nil
	}
	w.hit("leads")
	term := m.log.Term()
	if by := w.model.by[term]; by.Node != me.Node || by.Run != me.Run {
		w.model.fail("%s, run %d, leads term %d, which is that of %s, run %d", m.name, me.Run, term, by.Node, by.Run)
	}
	if n := m.log.Last(); n < w.model.led[term] {
		w.model.fail("%s leads term %d with commit %d, there was commit %d", m.name, term, n, w.model.led[term])
	}
	if w.chance(300) {
		return m.whole()
	}
	return nil
}

// copies has the machine go on with its copy of another node's base.
func (m *machine) copies() error {
	switch m.phase {
	case wanting:
		err := m.tell()
		if err == nil {
			m.phase = waiting
		}
		return err
	case waiting:
		for _, o := range m.w.machines {
			// One that has not got all that was trimmed is of no use.
			if o != m && !o.busy && o.log != nil && !o.out && !o.unknown() && o.through()+1 >= m.w.model.first {
				m.w.note("%s copies %s through commit %d, the log begins with %d", m.name, o.name, o.through(), m.w.model.first)
				return m.copyFrom(o)
			}
		}
		return nil
	}
	if err := m.tell(); err != nil {
		return err
	}
	for {
		more, err := m.log.Follow(1 + m.w.r.IntN(4))
		if err != nil {
			return err
		}
		if !more {
			break
		}
	}
	m.phase = complete
	return m.tell()
}

// catchUp takes the machine to the end of the log, if it need not wait for others.
func (m *machine) catchUp() error {
	for range 6 {
		if m.log == nil {
			if err := m.open(); err != nil {
				return err
			}
		}
		if m.phase != complete {
			if err := m.copies(); err != nil {
				return err
			}
			continue
		}
		if m.leads() {
			return nil
		}
		more, err := m.log.Follow(0)
		if err != nil || !more {
			return err
		}
	}
	return nil
}
