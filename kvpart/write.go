package kvpart

import (
	"sync/atomic"

	"github.com/samya-db/samya/kvpart/engine"
)

// put writes the value of the op. A key that is not in the engine where its partition
// writes at present moves there with its first write.
func (s *Store) put(e *entry, partition int32, o *op) error {
	value := o.value
	here := s.homes.present.Load().home(partition)
	if e.Value.waits(here) {
		s.arrive(e)
	}
	if c := e.Value.cell; c != nil && e.Value.home == here {
		c.Set(value)
		return nil
	}
	if s.durable {
		value = o.buf
		putStamp(value, markValue, s.homes.version.Add(1))
	}
	if e.Value.home == here {
		if err := here.engine.Put(e.Key(), value); err != nil {
			return here.failed(err)
		}
		return nil
	}
	to := s.homes.target(partition)
	defer s.homes.drop(to)
	if s.handOver(e, to) {
		e.Value.cell.Set(value)
		return nil
	}
	if err := to.engine.Put(e.Key(), value); err != nil {
		s.homes.suspect(e.Key(), to)
		return to.failed(err)
	}
	s.settle(e, to)
	return nil
}

// handOver moves e and the memory of its value to a home. It reports false if an engine
// cannot do that.
func (s *Store) handOver(e *entry, to *home) bool {
	from := e.Value.home
	if from == nil || from == to || from.holder == nil || to.holder == nil {
		return false
	}
	c := from.holder.Take(e.Key())
	if c == nil {
		return false
	}
	to.holder.Give(e.Key(), c)
	to.keys.Add(1)
	e.Value.rehome(to, c)
	s.homes.drop(from)
	return true
}

// rehome records a new home and cell.
func (it *item) rehome(to *home, c *engine.Cell) {
	it.home, it.cell = to, c
	atomic.StoreUint32(&it.part, uint32(to.part))
	atomic.StoreUint32(&it.generation, to.gen.number)
}

// cell returns the cell of key, nil if the engine has no cells.
func (h *home) cell(key string) *engine.Cell {
	if h.holder == nil {
		return nil
	}
	return h.holder.Cell(key)
}

// settle makes to, which has a copy of e, its home.
func (s *Store) settle(e *entry, to *home) {
	from := e.Value.home
	to.keys.Add(1)
	e.Value.rehome(to, to.cell(e.Key()))
	if from != nil {
		if s.homes.eager && s.durable {
			// The copy has an older version; the upkeep removes it with others.
			s.homes.suspect(e.Key(), from)
			s.homes.drop(from)
			s.homes.wake()
			return
		}
		s.evict(e.Key(), from)
		return
	}
	e.Present = true
	s.live.Add(1)
}

// unsettle makes e absent; its copy is gone.
func (s *Store) unsettle(e *entry) {
	s.homes.drop(e.Value.home)
	e.Value.home, e.Value.cell = nil, nil
	atomic.StoreUint32(&e.Value.generation, 0)
	e.Present = false
	s.live.Add(-1)
}

// evict removes a stale copy of key, and reports whether that succeeded. A copy left
// after an error is harmless, but must be removed later.
func (s *Store) evict(key string, from *home) bool {
	err := from.engine.Delete(key)
	if err != nil {
		s.homes.suspect(key, from)
		s.note("remove a former copy", from.failed(err))
	}
	s.homes.drop(from)
	return err == nil
}

// remove removes a key.
func (s *Store) remove(e *entry) error {
	s.arrive(e)
	if err := s.homes.clear(e.Key(), e.Value.home); err != nil {
		return err
	}
	if !e.Present {
		return nil
	}
	h := e.Value.home
	if err := h.engine.Delete(e.Key()); err != nil {
		return h.failed(err)
	}
	s.unsettle(e)
	return nil
}

// commit carries out the writes of a transaction, all in one engine, which makes them
// atomic. A key removed from another engine leaves a mark there until its copy is
// removed.
func (o *op) commit(r *request) error {
	s, t, entries := o.s, o.tx, r.Entries()
	first := -1
	var to *home
	for i := range t.slots {
		if t.slots[i].state == untouched {
			continue
		}
		s.arrive(entries[i])
		h := entries[i].Value.home
		if first < 0 {
			first, to = i, h
		} else if h != to {
			to = nil
		}
		if t.slots[i].state == deleted {
			if err := s.homes.clear(entries[i].Key(), h); err != nil {
				return err
			}
		}
	}
	if first < 0 {
		return nil
	}
	if to != nil && to.gen == s.homes.present.Load() {
		to.keys.Add(1)
	} else {
		to = s.homes.target(r.Partitions()[0])
	}
	defer s.homes.drop(to)
	o.writes = o.writes[:0]
	for i := range t.slots {
		if w, ok := t.write(i, entries[i], to, s); ok {
			o.writes = append(o.writes, w)
		}
	}
	if err := to.engine.Apply(o.writes); err != nil {
		for i := range o.writes {
			s.homes.suspect(o.writes[i].Key, to)
		}
		return to.failed(err)
	}
	if s.homes.eager && s.homes.width > 1 && len(r.Partitions()) > 1 && !s.homes.strayed.Swap(true) {
		s.homes.wake()
	}
	for i, e := range entries {
		switch t.slots[i].state {
		case put:
			if e.Value.home != to {
				s.settle(e, to)
			}
		case deleted:
			s.vacate(e, to)
		case untouched:
		}
	}
	return nil
}

// write returns the write of a transaction to its key i in the engine of to.
func (t *tx) write(i int, e *entry, to *home, s *Store) (w engine.Write, ok bool) {
	state := t.slots[i].state
	w.Key = e.Key()
	switch {
	case state == put:
		w.Value = t.value(i, &s.homes, s.durable)
	case state == untouched || !e.Present:
		return w, false
	case e.Value.home == to:
		w.Delete = true
	case !s.durable:
		return w, false
	default:
		w.Value = make([]byte, stampSize)
		putStamp(w.Value, markGone, s.homes.version.Add(1))
	}
	return w, true
}

// vacate ends the removal of e by a transaction whose writes are in to.
func (s *Store) vacate(e *entry, to *home) {
	if !e.Present {
		return
	}
	h, key := e.Value.home, e.Key()
	if h != to {
		h.keys.Add(1) // evict drops a count, and so does unsettle
		removed := s.evict(key, h)
		if s.durable {
			to.keys.Add(1)
			if removed {
				s.evict(key, to)
			} else {
				s.homes.suspect(key, to)
				s.homes.drop(to)
			}
		}
	}
	s.unsettle(e)
}
