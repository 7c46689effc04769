package kvpart

import (
	"time"

	"github.com/samya-db/samya/kvpart/engine"
)

// A value that follows its key moves in steps. Only memory is used while the scheduler
// keeps other requests from the keys; engines write meanwhile.
//
//  1. A request on some keys (opTake) reads their values and marks them with a move.
//  2. The upkeep writes the copies to their new engine, with the versions they had.
//  3. A request on the keys (opArrive) makes the new engine their home. The former copies
//     are suspects from then on.
//  4. Suspects of some keys are taken (opCollect) and removed from their engine by the
//     upkeep, and a request ends that (opArrive).
//
// Between steps the keys are read as ever. A request that changes a key with a move waits
// until the engine has written, and ends the move itself: so nothing else uses a key in
// an engine that writes it. A crash leaves equal copies, or copies with older versions.

// The bounds of a move. They bound how long requests wait for it.
const (
	// takeMost is the most keys of a move, takeBytes about the most bytes.
	takeMost  = 64
	takeBytes = 256 << 10
	// takeLong is about the longest time for which a request reads values.
	takeLong = 500 * time.Microsecond
)

// move is a batch of copies on their way to an engine, or of former copies on their way
// out.
type move struct {
	// partition is where the keys belong.
	partition int
	// at is the engine that the upkeep writes. For copies it is their new home; the move
	// counts as a key there.
	at *home
	// leaves says that the copies are removed. Each counts as a key there.
	leaves bool
	writes []engine.Write
	bytes  int64
	// begun is the number of the keys asked for that the request has looked at.
	begun int
	// done is closed when the engine has written; then err is its error.
	done chan struct{}
	err  error
}

func newMove(partition int, leaves bool) *move {
	return &move{partition: partition, leaves: leaves, done: make(chan struct{})}
}

// write carries the writes out. From then on nobody waits for the move.
func (m *move) write() {
	defer close(m.done)
	if len(m.writes) == 0 {
		return
	}
	if err := m.at.engine.Apply(m.writes); err != nil {
		m.err = m.at.failed(err)
	}
}

// arrive ends the move of e, if any. It waits while an engine writes. The caller is alone
// on e.
func (s *Store) arrive(e *entry) {
	m := e.Value.move
	if m == nil {
		return
	}
	<-m.done
	e.Value.move = nil
	switch {
	case m.leaves:
		if m.err != nil {
			s.homes.suspect(e.Key(), m.at)
		}
		s.homes.drop(m.at)
	case m.err != nil:
		s.homes.suspect(e.Key(), m.at)
	default:
		from := e.Value.home
		s.homes.suspect(e.Key(), from)
		m.at.keys.Add(1)
		e.Value.rehome(m.at, nil)
		s.homes.drop(from)
		s.homes.followed.Add(1)
	}
}

// waits reports whether a write of e at its home here must wait for its move. The removal
// of a former copy is in another engine.
func (it *item) waits(here *home) bool {
	return it.move != nil && (!it.move.leaves || it.home != here)
}

// strays reports whether the value of e should move to the present engine of its
// partition, to.
func strays(e *entry, to *home) bool {
	return e != nil && e.Present && e.Value.home != to
}

// take reads the values of misplaced entries and marks the entries with the move. It
// stops at the bounds of a move. It leaves an entry if its value cannot be read.
func (o *op) take(r *request) (err error) {
	s, m := o.s, o.moving
	began := time.Now()
	for i, e := range r.Entries() {
		if m.bytes >= takeBytes || i > 0 && time.Since(began) > takeLong {
			break
		}
		m.begun = i + 1
		// A switch since the upkeep looked may have moved the key on.
		if e == nil || e.At(r.Epoch()) != m.partition {
			continue
		}
		s.arrive(e) // of a move that nobody has ended
		if m.at == nil {
			m.at = s.homes.target(int32(m.partition))
		}
		if !strays(e, m.at) {
			continue
		}
		if s.handOver(e, m.at) {
			s.homes.followed.Add(1)
			continue
		}
		value, failed := e.Value.home.engine.Get(e.Key(), nil)
		if failed != nil {
			err = e.Value.home.failed(failed)
			continue
		}
		m.writes = append(m.writes, engine.Write{Key: e.Key(), Value: value})
		m.bytes += int64(len(value))
		e.Value.move = m
	}
	return err
}

// collect takes suspects of the entries that are in one engine, and marks the entries
// with their removal. Keys without a value have none removed: their next writer could not
// be told to wait.
func (o *op) collect(r *request) error {
	s, m := o.s, o.moving
	for _, e := range r.Entries() {
		if e == nil || !e.Present {
			continue
		}
		s.arrive(e)
		h := s.homes.pick(e.Key(), e.Value.home, m.at)
		if h == nil {
			continue
		}
		m.at = h
		m.writes = append(m.writes, engine.Write{Key: e.Key(), Delete: true})
		e.Value.move = m
	}
	return nil
}

// arrived ends the move of all entries that still have it.
func (o *op) arrived(r *request) {
	for _, e := range r.Entries() {
		if e != nil && e.Value.move == o.moving {
			o.s.arrive(e)
		}
	}
}
