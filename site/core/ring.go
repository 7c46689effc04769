package core

import (
	"math/bits"

	"github.com/samya-db/samya/internal/portion"
	"github.com/samya-db/samya/internal/session"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/stored"
)

// ring holds the records of a session, each at its sequence. So a request of a session needs no
// search in uncached memory. A session's client acknowledges answers, and acknowledged records
// are dropped at once: the ring of a busy client has little more than the requests under way.
type ring struct {
	of session.ID
	// slots has the record of sequence s at s modulo its length, a power of two. A slot with
	// another key is free.
	slots []slot
	// first: requests of lower sequences are acknowledged. No record has a sequence of end or
	// higher.
	first, end uint64
	// records is the number of records, several those of requests of several entities.
	records, several int
	// tenant is the slot in which the places of the ring are counted.
	tenant portion.Slot
	// block is the sequence of the block of the last record.
	block uint64
	// moved says that the ring is in rings.moved.
	moved bool
	// before and next are rings with an older and a newer last record.
	before, next *ring
}

const (
	// ringHead is the memory of a ring itself, in records.
	ringHead = 4 // records
	// leastPlaces is the smallest length of a ring.
	leastPlaces = 8 // records
	// spareRing: a ring is halved when its records span less than an eighth of it.
	spareRing = 8
)

// get returns the slot of a sequence if it holds the record of the key; else nil.
func (r *ring) get(key *attempt.Key, sequence uint64) *slot {
	if sequence < r.first || sequence >= r.end {
		return nil
	}
	if s := r.place(sequence); *s.key() == *key {
		return s
	}
	return nil
}

// place is the slot of a sequence within reach.
func (r *ring) place(sequence uint64) *slot { return &r.slots[sequence&uint64(len(r.slots)-1)] }

// needs is the length that a ring needs for a sequence; 0 if it is beyond the longest.
func (r *ring) needs(sequence uint64, longest int) int {
	if sequence-r.first >= uint64(longest) { //nolint:gosec // positive
		return 0
	}
	span := sequence - r.first + 1
	return max(leastPlaces, len(r.slots), 1<<bits.Len64(span-1))
}

// spare reports whether the ring is far longer than it needs to be once the requests below first
// are acknowledged.
func (r *ring) spare(first uint64) bool {
	return len(r.slots) >= 2*leastPlaces && max(r.end, first)-first < uint64(len(r.slots)/spareRing)
}

// resize gives the ring another length, which must hold its records.
func (r *ring) resize(length int) {
	old := r.slots
	r.slots = make([]slot, length)
	for sequence := r.first; sequence < r.end; sequence++ {
		key := attempt.OfSession(r.of, sequence)
		if was := &old[sequence&uint64(len(old)-1)]; *was.key() == key {
			*r.place(sequence) = *was
		}
	}
}

// rings are a part of the rings of the sessions that a site knows.
type rings struct {
	of map[session.ID]*ring
	// recent is the ring that was last found.
	recent *ring
	// oldest and newest begin and end the list of rings by their last record.
	oldest, newest *ring
	// records and places are the sums over the rings.
	records, places int
	// moved are the rings with news for the next block.
	moved []*ring
	// acked is the last acknowledgement of a session without a ring.
	acked struct {
		of    session.ID
		below uint64
	}
	// strays counts for each session its records outside its ring: it has no ring, its ring
	// has no room, or the record fits no slot.
	strays map[session.ID]int
}

func newRings() *[stripes]rings {
	all := new([stripes]rings)
	for i := range all {
		all[i] = rings{of: make(map[session.ID]*ring), strays: make(map[session.ID]int)}
	}
	return all
}

// find returns the ring of a session, nil for none.
func (t *rings) find(of session.ID) *ring {
	if t.recent != nil && t.recent.of == of {
		return t.recent
	}
	r := t.of[of]
	if r != nil {
		t.recent = r
	}
	return r
}

// open adds the ring of a session.
func (t *rings) open(of session.ID, block uint64) *ring {
	r := &ring{of: of, block: block}
	if t.acked.of == of {
		r.first, r.end = t.acked.below, t.acked.below
	}
	t.of[of] = r
	t.append(r)
	t.tell(r)
	return r
}

// tell has the next block tell of a ring.
func (t *rings) tell(r *ring) {
	if !r.moved {
		r.moved = true
		t.moved = append(t.moved, r)
	}
}

// used notes that a ring has the newest record, which is in a block.
func (t *rings) used(r *ring, block uint64) {
	if r.block = block; t.newest != r {
		t.unlink(r)
		t.append(r)
	}
}

// put puts a record in a slot of a ring that is free.
func (t *rings) put(r *ring, at *slot, m *remembered, sequence, block uint64) {
	m.tenant = r.tenant
	at.pack(m)
	r.records++
	t.records++
	r.end = max(r.end, sequence+1)
	t.used(r, block)
}

// leave stops counting a record of a ring.
func (t *rings) leave(r *ring) {
	r.records--
	t.records--
}

// advance notes that the requests of a ring below a sequence are acknowledged.
func (t *rings) advance(r *ring, below uint64) {
	r.first, r.end = below, max(below, r.end)
	t.tell(r)
}

// serve acknowledges and adds a record for a shard, in place of acknowledge and addToRing: the
// record of a new request with a place in a ring. It changes nothing beside its part of the rings. It returns false if it has
// done nothing, as the request needs more, or is not new.
func (t *rings) serve(m *remembered, acked, block uint64) bool {
	of, sequence, ok := m.key.Session()
	if !ok || !m.narrow() || m.kind == stored.AllRequest || acked > sequence {
		return false
	}
	r := t.find(of)
	if r == nil || r.several > 0 || t.strayed(of) {
		return false
	}
	first := max(r.first, acked)
	if sequence < first || sequence-r.first >= uint64(len(r.slots)) || r.get(&m.key, sequence) != nil || first > r.first && r.spare(first) {
		return false
	}
	for s, end := r.first, min(first, r.end); s < end; s++ {
		if key := attempt.OfSession(of, s); r.get(&key, s) != nil {
			t.leave(r)
		}
	}
	if first > r.first {
		t.advance(r, first)
	}
	t.put(r, r.place(sequence), m, sequence, block)
	return true
}

// close drops an empty ring.
func (t *rings) close(r *ring) {
	delete(t.of, r.of)
	t.unlink(r)
	if t.recent == r {
		t.recent = nil
	}
}

// stray counts records of a session outside its ring, or takes them back.
func (t *rings) stray(of session.ID, n int) {
	if t.strays[of] += n; t.strays[of] == 0 {
		delete(t.strays, of)
	}
}

// strayed reports whether a session may have records outside its ring.
func (t *rings) strayed(of session.ID) bool { return len(t.strays) > 0 && t.strays[of] > 0 }

func (t *rings) append(r *ring) {
	r.before, r.next = t.newest, nil
	if t.newest == nil {
		t.oldest = r
	} else {
		t.newest.next = r
	}
	t.newest = r
}

func (t *rings) unlink(r *ring) {
	if r.before == nil {
		t.oldest = r.next
	} else {
		r.before.next = r.next
	}
	if r.next == nil {
		t.newest = r.before
	} else {
		r.next.before = r.before
	}
}
