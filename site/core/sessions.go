package core

import (
	"github.com/samya-db/samya/internal/portion"
	"github.com/samya-db/samya/internal/session"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/stored"
)

// This file has the part of the table of requests that concerns sessions. A record of a
// session lies in the ring of the session, if there is room, else among the other records: all
// rules hold for it there, but no acknowledgement drops it.

// stripes is the number of parts of the rings. Shards change a part under its own lock.
const stripes = 64

// stripeOf is the part of the rings with a session. Its id is random.
func stripeOf(of session.ID) int { return int(of[0]) % stripes }

func (t *requestTable) ringsOf(of session.ID) *rings { return &t.rings[stripeOf(of)] }

// inRing returns the slot of a session's record in its ring; nil if it has none there.
func (t *requestTable) inRing(key *attempt.Key) (*ring, *slot) {
	of, sequence, ok := key.Session()
	if !ok {
		return nil, nil
	}
	r := t.ringsOf(of).find(of)
	if r == nil {
		return nil, nil
	}
	return r, r.get(key, sequence)
}

// inRecall reports whether a key may have a record outside of rings.
func (t *requestTable) inRecall(key *attempt.Key) bool {
	of, _, ok := key.Session()
	return !ok || t.ringsOf(of).strayed(of)
}

// acknowledged reports whether the client of a session has acknowledged a request.
func (t *requestTable) acknowledged(key *attempt.Key) bool {
	if !key.InSession() {
		return false
	}
	return t.refuses(key)
}

// refuses is acknowledged for a key of a session.
func (t *requestTable) refuses(key *attempt.Key) bool {
	of, sequence, ok := key.Session()
	if !ok {
		return false
	}
	r := t.ringsOf(of).find(of)
	return r != nil && sequence < r.first
}

// acknowledge drops the records of requests that the client of a later request of the session
// has acknowledged: the requests of sequences below a bound. A client that names its own
// request, or a later request, is mistaken, and nothing is dropped.
func (t *requestTable) acknowledge(key *attempt.Key, below uint64) {
	of, sequence, ok := key.Session()
	if below == 0 || !ok || below > sequence {
		return
	}
	in := t.ringsOf(of)
	r := in.find(of)
	if r == nil {
		in.acked.of, in.acked.below = of, below
		return
	}
	if below <= r.first {
		return
	}
	for s, end := r.first, min(below, r.end); s < end; s++ {
		acked := attempt.OfSession(of, s)
		if at := r.get(&acked, s); at != nil {
			t.leaveRing(in, r, at)
		}
	}
	in.advance(r, below)
	if r.spare(below) {
		t.resize(in, r, len(r.slots)/2)
	}
}

// leaveRing stops counting a record of a ring. The slot is free, or about to have another record.
func (t *requestTable) leaveRing(in *rings, r *ring, at *slot) {
	in.leave(r)
	if gone := at.unpack(at); gone.kind == stored.AllRequest {
		t.dropParts(&gone)
		r.several--
	}
}

// reach returns the slot in a ring for a new record of the sequence; nil if it has no room.
func (t *requestTable) reach(in *rings, r *ring, sequence uint64) *slot {
	length := r.needs(sequence, t.longest)
	switch {
	case length == 0:
		return nil
	case length > len(r.slots):
		if !t.fits(r.tenant, length-len(r.slots)) {
			return nil
		}
		t.resize(in, r, length)
	}
	return r.place(sequence)
}

// fits reports whether the table has room for n more places of a tenant.
func (t *requestTable) fits(tenant portion.Slot, n int) bool {
	return t.held.Fits(t.held.Name(tenant), t.most, n)
}

// resize gives a ring another length, and counts the places for its tenant.
func (t *requestTable) resize(in *rings, r *ring, length int) {
	more := length - len(r.slots)
	t.held.More(r.tenant, more)
	in.places += more
	r.resize(length)
}

// ringFor returns the ring for a record of a tenant's: the ring of its session, or a new
// ring if there is room; else nil.
func (t *requestTable) ringFor(in *rings, of session.ID, tenant portion.Slot) *ring {
	r := in.find(of)
	switch {
	case r == nil:
		if !t.fits(tenant, ringHead+leastPlaces) {
			return nil
		}
		r = in.open(of, t.next)
	case r.slots != nil:
		return r
	default:
		// It was restored without a record.
		t.held.Give(r.tenant, ringHead)
		in.places -= ringHead
	}
	r.tenant = tenant
	t.held.More(tenant, ringHead)
	in.places += ringHead
	return r
}

// addToRing adds a record to the ring of its session, where it may replace an earlier record,
// and takes over its place among the records of its tenant. It reports false if the record has no
// place in a ring: it has not been added.
func (t *requestTable) addToRing(m *remembered, parts []stored.Part) bool {
	of, sequence, ok := m.key.Session()
	if !ok || !m.narrow() {
		return false
	}
	in := t.ringsOf(of)
	if in.strayed(of) {
		if _, found := t.recall.find(&m.key); found {
			return false
		}
	}
	r := t.ringFor(in, of, m.tenant)
	if r == nil {
		return false
	}
	at := r.get(&m.key, sequence)
	switch {
	case sequence < r.first:
		// Nobody asks for it. It is on the disk alone.
		t.held.Give(m.tenant, 1)
		return true
	case at != nil:
		t.leaveRing(in, r, at)
	default:
		if at = t.reach(in, r, sequence); at == nil {
			return false
		}
	}
	counted := m.tenant
	in.put(r, at, m, sequence, t.next)
	if m.kind == stored.AllRequest {
		r.several++
	}
	if len(parts) > 0 {
		t.keepParts(m.key, parts, r.tenant)
	}
	t.held.Give(counted, 1)
	return true
}

// takeOut takes a record out of its ring, if it is there: a record with its key that has no
// place there follows.
func (t *requestTable) takeOut(key *attempt.Key) {
	if r, at := t.inRing(key); at != nil {
		t.leaveRing(t.ringsOf(r.of), r, at)
		*at = slot{}
	}
}

// expireRings drops the rings whose records all are in forgotten blocks: about as many records
// as most says.
func (t *requestTable) expireRings(most int) {
	kept := t.next
	if t.blocks.len() > 0 {
		kept = t.blocks.at(t.blocks.begin).sequence
	}
	for i := range t.rings {
		in := &t.rings[i]
		for r := in.oldest; r != nil && most > 0 && r.block < kept; r = in.oldest {
			for s := r.first; s < r.end && r.records > 0; s++ {
				key := attempt.OfSession(r.of, s)
				if at := r.get(&key, s); at != nil {
					t.leaveRing(in, r, at)
				}
			}
			places := ringHead + len(r.slots)
			t.held.Give(r.tenant, places)
			in.places -= places
			in.close(r)
			most -= places
		}
	}
}

// tellRings has a block tell of the rings that moved.
func (t *requestTable) tellRings(b *stored.Block) {
	for i := range t.rings {
		in := &t.rings[i]
		for j, r := range in.moved {
			if in.of[r.of] == r {
				b.Sessions = append(b.Sessions, stored.Session{ID: r.of, First: r.first})
			}
			r.moved, in.moved[j] = false, nil
		}
		in.moved = in.moved[:0]
	}
}

// restoreRings takes up the news of sessions in a block.
func (t *requestTable) restoreRings(b *stored.Block) {
	for _, s := range b.Sessions {
		if in := t.ringsOf(s.ID); in.find(s.ID) == nil {
			in.open(s.ID, t.next)
			t.held.More(portion.Nobody, ringHead)
			in.places += ringHead
		}
		last := attempt.OfSession(s.ID, session.MaxSequence)
		t.acknowledge(&last, min(s.First, session.MaxSequence))
	}
}
