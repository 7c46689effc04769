package kvpart

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/samya-db/samya/kvpart/engine"
	"github.com/samya-db/samya/kvpart/sched"
)

const (
	// moveMost is the most keys in a move request. bulkMost is about how many bytes are
	// copied at once.
	moveMost = 64
	bulkMost = 1 << 20
	// lookMost is the most entries the upkeep looks at in a step.
	lookMost = 512
	// clearMost is for how many keys, each time it is woken, the upkeep tries to remove
	// former copies.
	clearMost = 64
)

// upkeep closes engines of former generations once they are empty. It empties the oldest
// generation where there are too many.
type upkeep struct {
	store *Store
	clear int // keys with former copies to try before the next wake-up

	// emptying is the generation being emptied. The search goes on at key cursor.
	emptying *generation
	cursor   string
	entries  []*entry
	groups   [][]string // keys to move, by partition

	following following
	removal   patience      // of suspects, where values follow their keys
	owed      time.Duration // of rest
	turn      bool          // whether former copies come first
}

// loop runs steps until ctx ends.
func (u *upkeep) loop(ctx context.Context) {
	for {
		if !u.wait(ctx) {
			return
		}
		u.clear = clearMost
		for more := true; more && ctx.Err() == nil; {
			began := time.Now()
			more = u.step(ctx)
			if u.store.homes.eager {
				u.rest(ctx, time.Since(began))
			}
		}
	}
}

// wait waits until there may be work. It reports false if ctx ends before.
func (u *upkeep) wait(ctx context.Context) bool {
	var due <-chan time.Time
	if wait := u.again(); wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-u.store.homes.kick:
	case <-due:
	}
	return true
}

// step does a small part of the work, and reports whether there is more.
func (u *upkeep) step(ctx context.Context) bool {
	s := u.store
	if err := s.homes.retire(); err != nil {
		s.note("close a former generation", err)
	}
	// Writes may leave former copies as fast as the upkeep removes them: the tasks take
	// turns.
	u.turn = !u.turn
	return u.turn && u.clean(ctx) || u.follow() || u.clean(ctx) || u.shrink(ctx)
}

// clean removes some former copies, and reports whether there were any to try.
func (u *upkeep) clean(ctx context.Context) bool {
	s := u.store
	if s.homes.eager && u.tidy() {
		return true
	}
	key, ok := s.homes.some()
	if !ok || u.clear == 0 || u.removal.left() > 0 {
		return false
	}
	u.clear--
	o := s.newOp(opClear, true)
	o.req.One(key, sched.Create, o)
	if !u.do(ctx, o, "remove a former copy") {
		u.clear = 0
		u.removal.tell(s.homes.eager)
	}
	return true
}

// shrink empties a generation a little if there are too many, and reports whether there
// is more to do.
func (u *upkeep) shrink(ctx context.Context) bool {
	s := u.store
	g := s.homes.crowded()
	if g == nil || g == s.homes.present.Load() {
		u.emptying = nil
		return false
	}
	if g != u.emptying {
		u.emptying, u.cursor = g, ""
	}
	return u.empty(ctx, g)
}

// do runs an op, and reports whether it succeeded.
func (u *upkeep) do(ctx context.Context, o *op, doing string) bool {
	s := u.store
	o.req.Upkeep()
	back, err := s.do(ctx, o)
	if back {
		o.free()
	}
	if err != nil && ctx.Err() == nil {
		s.note(doing, err)
	}
	return err == nil
}

// empty moves the keys of a generation among the next lookMost keys of the store. After
// all keys it rests until it is woken: the keys left could not be moved.
func (u *upkeep) empty(ctx context.Context, g *generation) bool {
	s := u.store
	u.entries = s.sched.Entries(u.entries[:0], u.cursor, lookMost)
	if len(u.entries) == 0 {
		u.emptying = nil
		return false
	}
	u.cursor = u.entries[len(u.entries)-1].Key() + "\x00"
	if u.groups == nil {
		u.groups = make([][]string, s.sched.Partitions()+1)
	}
	for _, e := range u.entries {
		if atomic.LoadUint32(&e.Value.generation) == g.number {
			p := s.sched.Partition(e) + 1 // may be unplaced, -1
			u.groups[p] = append(u.groups[p], e.Key())
		}
	}
	ok := true
	for p, keys := range u.groups {
		for part := range slices.Chunk(keys, moveMost) {
			o := s.newOp(opMove, true)
			o.former = g
			o.keys = append(o.keys[:0], part...)
			slices.Sort(o.keys)
			o.req.Several(o.keys, sched.Alone, o)
			ok = ok && u.do(ctx, o, "empty a former generation")
		}
		u.groups[p] = keys[:0]
	}
	return ok
}

// move moves the entries of a request that are in a former generation to the present
// generation.
func (o *op) move(r *request) error {
	s := o.s
	var to *home
	var group []*entry
	size := 0
	for _, e := range r.Entries() {
		if e == nil {
			continue
		}
		s.arrive(e)
		if !e.Present || e.Value.home.gen != o.former {
			continue
		}
		if to == nil {
			to = s.homes.target(r.Partitions()[0])
			defer s.homes.drop(to)
		}
		if s.handOver(e, to) {
			continue
		}
		value, err := e.Value.home.engine.Get(e.Key(), nil)
		if err != nil {
			return e.Value.home.failed(err)
		}
		if s.durable {
			putStamp(value, markValue, s.homes.version.Add(1))
		}
		group = append(group, e)
		o.writes = append(o.writes, engine.Write{Key: e.Key(), Value: value})
		if size += len(value); size >= bulkMost {
			if err := o.copyTo(to, group); err != nil {
				return err
			}
			group, size = group[:0], 0
		}
	}
	return o.copyTo(to, group)
}

// copyTo moves a group of entries to another home. o.writes holds their values.
func (o *op) copyTo(to *home, group []*entry) error {
	if len(group) == 0 {
		return nil
	}
	s := o.s
	defer func() {
		clear(o.writes)
		o.writes = o.writes[:0]
	}()
	if err := to.engine.Apply(o.writes); err != nil {
		for _, e := range group {
			s.homes.suspect(e.Key(), to)
		}
		return to.failed(err)
	}
	former := make(map[*home][]engine.Write)
	for _, e := range group {
		from := e.Value.home
		former[from] = append(former[from], engine.Write{Key: e.Key(), Delete: true})
		to.keys.Add(1)
		e.Value.rehome(to, to.cell(e.Key()))
	}
	for from, removals := range former {
		err := from.engine.Apply(removals)
		if err != nil {
			s.note("remove former copies", from.failed(err))
		}
		for _, w := range removals {
			if err != nil {
				s.homes.suspect(w.Key, from)
			}
			s.homes.drop(from)
		}
	}
	return nil
}
