package kvpart

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/samya-db/samya/kvpart/sched"
)

const (
	// restLeast is the least rest of the upkeep where values follow their keys.
	restLeast = time.Millisecond
	// strayRest is the least time between two searches that no switch demands.
	strayRest = time.Second
	// retryLeast and retryMost bound the time after which a failed move is tried again.
	retryLeast = time.Second
	retryMost  = time.Minute
)

// following makes values follow their keys to the engines of their partitions: a search
// looks at all keys in order, and moves the values that are elsewhere.
type following struct {
	// on says that a search is under way; cursor is the first key not yet looked at.
	on     bool
	cursor string
	// epoch is the epoch at which the search began. settled says that all requests of
	// earlier epochs had run.
	epoch   sched.Epoch
	settled bool
	// failed says that a move of the search failed, broken to which partitions.
	failed bool
	broken []bool
	// over says that the last search left nothing to do, as of epoch last.
	over  bool
	last  sched.Epoch
	ended time.Time // of the last search
	retry patience
	// groups are misplaced keys by partition; unset are keys without a partition.
	groups [][]string
	unset  []string
}

// patience is the time to wait after failures in a row.
type patience struct {
	wait   time.Duration // 0 if the last try succeeded
	failed time.Time
}

// tell notes the outcome of a try.
func (p *patience) tell(failed bool) {
	if !failed {
		p.wait = 0
		return
	}
	p.wait, p.failed = min(max(2*p.wait, retryLeast), retryMost), time.Now()
}

// left returns how long to wait for the next try.
func (p *patience) left() time.Duration {
	if p.wait == 0 {
		return 0
	}
	return max(p.wait-time.Since(p.failed), 0)
}

// due reports whether a search is under way or needed.
func (u *upkeep) due() bool {
	f := &u.following
	switch {
	case f.on:
		return true
	case !f.over || f.last != u.store.sched.Epoch():
		return f.retry.left() == 0
	}
	return u.store.homes.strayed.Load() && time.Since(f.ended) >= strayRest
}

// again returns the time after which there may be work without a kick, 0 for never.
func (u *upkeep) again() time.Duration {
	hs := &u.store.homes
	if !hs.eager {
		return 0
	}
	wait := time.Duration(math.MaxInt64)
	if u.following.retry.wait > 0 {
		wait = u.following.retry.left()
	}
	if u.removal.wait > 0 && hs.count.Load() > 0 {
		wait = min(wait, u.removal.left())
	}
	if hs.strayed.Load() {
		wait = min(wait, strayRest-time.Since(u.following.ended))
	}
	if wait == math.MaxInt64 {
		return 0
	}
	return max(wait, restLeast)
}

// follow moves a few values after their keys, and reports whether it did something.
func (u *upkeep) follow() bool {
	s, f := u.store, &u.following
	if !s.homes.eager || !u.due() {
		return false
	}
	if !f.on {
		n := s.sched.Partitions()
		f.on, f.cursor, f.failed = true, "", false
		f.groups, f.broken = slices.Grow(f.groups[:0], n)[:n], make([]bool, n)
		// In this order: a switch in between makes another search necessary.
		f.epoch = s.sched.Epoch()
		f.settled = s.sched.Settled()
		s.homes.strayed.Store(false)
	}
	for p, keys := range f.groups {
		if len(keys) > 0 {
			f.groups[p] = u.relocate(p, keys)
			return true
		}
	}
	if len(f.unset) > 0 {
		u.place()
		return true
	}
	u.entries = s.sched.Entries(u.entries[:0], f.cursor, lookMost)
	if len(u.entries) == 0 {
		f.end()
		if f.over {
			s.homes.arrived.Store(uint64(f.last))
		}
		return true
	}
	f.cursor = u.entries[len(u.entries)-1].Key() + "\x00"
	u.sort(u.entries)
	return true
}

// end ends a search. The search settles its epoch if nothing failed, and if no request of
// an earlier epoch may have written behind it.
func (f *following) end() {
	f.on, f.ended = false, time.Now()
	f.over, f.last = f.settled && !f.failed, f.epoch
	f.retry.tell(f.failed)
}

// sort notes the keys of misplaced entries by their partitions.
func (u *upkeep) sort(entries []*entry) {
	s, f := u.store, &u.following
	present := s.homes.present.Load()
	for _, e := range entries {
		generation := atomic.LoadUint32(&e.Value.generation)
		if generation == 0 {
			continue
		}
		p := s.sched.Partition(e)
		if p == sched.Unplaced {
			f.unset = append(f.unset, e.Key())
			continue
		}
		if f.broken[p] {
			continue
		}
		if generation != present.number || int(atomic.LoadUint32(&e.Value.part)) != present.home(int32(p)).part {
			f.groups[p] = append(f.groups[p], e.Key())
		}
	}
}

// place gives partitions to some keys that have none, and sorts them.
func (u *upkeep) place() {
	s, f := u.store, &u.following
	keys := f.unset[:min(len(f.unset), takeMost)]
	if err := u.request(opPlace, keys, nil); err != nil {
		f.failed = true
		s.note("place keys", err)
	}
	u.entries = u.entries[:0]
	for _, key := range keys {
		if e := s.sched.Entry(key); e != nil && s.sched.Partition(e) != sched.Unplaced {
			u.entries = append(u.entries, e)
		}
	}
	f.unset = slices.Delete(f.unset, 0, len(keys))
	u.sort(u.entries)
}

// relocate moves the values of some of keys, which belong to a partition, and returns the
// keys that are left.
func (u *upkeep) relocate(partition int, keys []string) []string {
	s, f := u.store, &u.following
	m := newMove(partition, false)
	batch := keys[:min(len(keys), takeMost)]
	err := u.carry(opTake, batch, m)
	if err != nil {
		f.failed = true
		s.note("move values after their keys", err)
	}
	if m.err != nil {
		// The engine may be broken: the next search tries again.
		f.broken[partition] = true
		return keys[:0]
	}
	return slices.Delete(keys, 0, max(m.begun, 1))
}

// carry begins a move of keys by a request of a kind, writes, and ends the move. Whatever
// fails, it goes on: some entries may be marked, and their writers wait.
func (u *upkeep) carry(kind opKind, keys []string, m *move) error {
	err := u.request(kind, keys, m)
	m.write()
	var arrived error
	if len(m.writes) > 0 {
		arrived = u.request(opArrive, keys, m)
	}
	// Entries that have not arrived still need their engine.
	if m.at != nil && !m.leaves && arrived == nil {
		u.store.homes.drop(m.at)
	}
	return errors.Join(err, m.err, arrived)
}

// request runs a request of the upkeep on keys. It does not end early: its op may have
// marked entries.
func (u *upkeep) request(kind opKind, keys []string, m *move) error {
	s := u.store
	o := s.newOp(kind, true)
	o.moving = m
	o.keys = append(o.keys[:0], keys...)
	o.req.Several(o.keys, sched.Alone, o)
	o.req.Upkeep()
	_, err := s.do(context.Background(), o)
	o.free()
	return err
}

// tidy removes suspects of some keys of a partition, and reports whether it did
// something. After a failure it waits a while.
func (u *upkeep) tidy() bool {
	s := u.store
	if s.homes.count.Load() == 0 || u.removal.left() > 0 {
		return false
	}
	p := sched.Unplaced
	keys := slices.DeleteFunc(s.homes.sample(4*takeMost), func(key string) bool {
		e := s.sched.Entry(key)
		if e == nil || atomic.LoadUint32(&e.Value.generation) == 0 {
			return true
		}
		at := s.sched.Partition(e)
		if p == sched.Unplaced {
			p = at
		}
		return at == sched.Unplaced || at != p
	})
	if len(keys) == 0 {
		return false
	}
	keys = keys[:min(len(keys), takeMost)]
	slices.Sort(keys)
	m := newMove(p, true)
	err := u.carry(opCollect, keys, m)
	u.removal.tell(err != nil)
	if err != nil {
		s.note("remove former copies", err)
	}
	return len(m.writes) > 0
}

// rest waits as long as the work took, so that the upkeep takes half of the time at most.
func (u *upkeep) rest(ctx context.Context, took time.Duration) {
	if u.owed += took; u.owed < restLeast {
		return
	}
	wait := time.NewTimer(u.owed)
	defer wait.Stop()
	u.owed = 0
	select {
	case <-wait.C:
	case <-ctx.Done():
	}
}
