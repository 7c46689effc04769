package sched

import (
	"context"
	"fmt"
	"slices"

	"github.com/samya-db/samya/kvpart/internal/ctxlock"
)

// patience is how often a request is tried without keeping new keys away.
const patience = 4

// Do runs r and waits for its end. If ctx ends before r runs, r is not done and Do fails
// with the context's error. If ctx ends while r runs, Do fails with ErrUnknown as well.
// In both cases the scheduler owns r until its End is called, perhaps before Do returns.
// The job must not use memory of a caller that is gone. In all other cases the caller
// owns r again. If the job panics, Do fails with a PanicError.
func (s *Scheduler[V]) Do(ctx context.Context, r *Request[V]) error {
	r.async = false
	if s.mode == Callers {
		return s.call(ctx, r)
	}
	if r.done == nil {
		r.done = make(chan struct{}, 1)
	}
	handed, err := s.enqueue(ctx, r, true)
	if !handed {
		return err
	}
	if done := ctx.Done(); done == nil {
		<-r.done
	} else {
		select {
		case <-r.done:
		case <-done:
			if r.phase.CompareAndSwap(waiting, skipped) {
				return fmt.Errorf("wait for a worker: %w", ctx.Err())
			}
			if r.phase.CompareAndSwap(running, orphan) {
				return fmt.Errorf("%w: %w", ErrUnknown, ctx.Err())
			}
			<-r.done
		}
	}
	if s.observer != nil && !r.unseen && len(r.entries) > 0 {
		s.observer.Observe(r.entries)
	}
	return r.err
}

// Start hands r over without waiting for its end, at which End is called. It waits while
// a queue is full. If it fails, r was not handed over and still belongs to the caller.
// The caller runs a request without entries. In Callers mode Start fails.
func (s *Scheduler[V]) Start(ctx context.Context, r *Request[V]) error {
	return s.start(ctx, r, true)
}

// TryStart is Start, but fails where Start would wait.
func (s *Scheduler[V]) TryStart(r *Request[V]) error {
	return s.start(context.Background(), r, false)
}

func (s *Scheduler[V]) start(ctx context.Context, r *Request[V], wait bool) error {
	if s.mode == Callers {
		return fmt.Errorf("%w: a start without workers", errOptions)
	}
	r.async = true
	_, err := s.enqueue(ctx, r, wait)
	return err
}

// lost ends a request of Do whose context ended before it was handed over.
func (s *Scheduler[V]) lost(r *Request[V], doing string, err error) error {
	err = fmt.Errorf("%s: %w", doing, err)
	s.abandon(r) // it may have made entries
	if !r.async {
		r.job.End(err)
	}
	return err
}

// resolve finds the entries of a request, and its partitions by the returned state. With
// pin it keeps new keys away until unpin.
func (s *Scheduler[V]) resolve(ctx context.Context, r *Request[V], wait, pin bool) (uint64, error) {
	state := s.state.Load()
	if state&(held|closed) != 0 {
		var err error
		if state, err = s.opened(ctx, r, wait); err != nil {
			return 0, err
		}
	}
	epoch := Epoch(state >> epochShift)
	r.pinned = pin && (r.kind == several || r.kind == ranging)
	if r.pinned {
		if err := ctxlock.Lock(ctx, &s.dir.fixed, true); err != nil {
			r.pinned = false
			return 0, s.lost(r, "wait for new keys", err)
		}
	}
	var b batch
	missing := false
	switch r.kind {
	case single:
		r.entries = r.first[:1]
		r.first[0] = s.dir.get(r.key)
		missing = r.first[0] == nil
	case several:
		r.version = s.dir.version.Load()
		r.entries = r.entries[:0]
		for _, key := range r.keys {
			e := s.dir.get(key)
			missing = missing || e == nil
			r.entries = append(r.entries, e)
		}
	case given:
		for _, e := range r.entries {
			if e.dead.Load() {
				return 0, ErrNoEntry
			}
		}
	case ranging:
		s.dir.index.RLock()
		r.version = s.dir.version.Load()
		r.entries = s.dir.collect(r.entries[:0], r.key, r.limit)
		s.dir.index.RUnlock()
	}
	if missing {
		if r.access == Create {
			s.unpin(r)
			if err := s.create(ctx, r, &b); err != nil {
				return 0, s.lost(r, "make a key", err)
			}
			missing = false
		} else if r.kind == single {
			return 0, ErrNoEntry
		}
	}
	// At dispatch an absent key must still be absent, and a range complete.
	r.versioned = missing || r.kind == ranging
	r.epoch = epoch
	s.class(r, &b)
	return state, nil
}

func (s *Scheduler[V]) unpin(r *Request[V]) {
	if r.pinned {
		r.pinned = false
		s.dir.fixed.RUnlock()
	}
}

// create makes the entries that r lacks. It fails if ctx ends before.
func (s *Scheduler[V]) create(ctx context.Context, r *Request[V], b *batch) error {
	if err := ctxlock.Lock(ctx, &s.dir.fixed, false); err != nil {
		return err
	}
	defer s.dir.fixed.Unlock()
	s.dir.index.Lock()
	defer s.dir.index.Unlock()
	for i, e := range r.entries {
		if e != nil {
			continue
		}
		key := r.key
		if r.kind == several {
			key = r.keys[i]
		}
		if e = s.dir.get(key); e == nil {
			e = &Entry[V]{key: key}
			p := s.newHome(key, b)
			e.where.Store(pack(p, p, 0))
			s.dir.add(e)
		}
		r.entries[i] = e
	}
	return nil
}

// class finds the partitions of r.
func (s *Scheduler[V]) class(r *Request[V], b *batch) {
	r.parts = r.parts[:0]
	if s.classer != nil {
		r.parts = s.classer.Class(r, r.parts)
		return
	}
	if r.kind == single || r.kind == given && len(r.entries) == 1 {
		r.parts = append(r.parts, int32(s.home(r.entries[0], r.epoch, b)))
		return
	}
	last := int32(-1)
	for _, e := range r.entries {
		if e == nil {
			continue
		}
		if p := int32(s.home(e, r.epoch, b)); p != last && !slices.Contains(r.parts[:min(len(r.parts), 8)], p) {
			r.parts = append(r.parts, p)
			last = p
		}
	}
	if len(r.parts) > 1 {
		slices.Sort(r.parts)
		r.parts = slices.Compact(r.parts)
	}
}

// home returns the partition of e at an epoch. It places an unplaced entry.
func (s *Scheduler[V]) home(e *Entry[V], epoch Epoch, b *batch) int {
	for {
		w := e.where.Load()
		p := unpack(w, epoch)
		if p != Unplaced {
			return p
		}
		p = b.of(&s.place, e.key)
		e.where.CompareAndSwap(w, place(w, epoch, p))
	}
}

// current reports whether the findings of resolve still hold, with the partitions locked.
func (s *Scheduler[V]) current(r *Request[V], state uint64) bool {
	if s.state.Load() != state || r.versioned && s.dir.version.Load() != r.version {
		return false
	}
	for _, e := range r.entries {
		if e != nil && e.dead.Load() {
			return false
		}
	}
	return true
}

// enqueue hands r to workers, and reports whether they have it. If not, r has run or
// enqueue returns an error.
func (s *Scheduler[V]) enqueue(ctx context.Context, r *Request[V], wait bool) (bool, error) {
	r.forget()
	for try := 0; ; try++ {
		if err := ctx.Err(); err != nil {
			return false, s.lost(r, "hand over", err)
		}
		state, err := s.resolve(ctx, r, wait, try >= patience)
		if err != nil {
			return false, err
		}
		if len(r.parts) == 0 {
			ok := s.current(r, state)
			s.unpin(r)
			if !ok {
				continue
			}
			err := s.alone(r)
			if r.async {
				r.job.End(err)
				err = nil
			}
			return false, err
		}
		if r.async && s.observer != nil && !r.unseen && try == 0 {
			s.observer.Observe(r.entries)
		}
		r.ready()
		full, ok := s.append(r, state)
		if ok {
			return true, nil
		}
		if full == nil {
			continue
		}
		if !wait {
			s.abandon(r)
			return false, errFull
		}
		select {
		case <-full:
		case <-ctx.Done():
			return false, s.lost(r, "wait for room", ctx.Err())
		}
	}
}

// append appends r to the queues of its partitions. Otherwise it returns a channel to
// wait for, nil if r must be resolved anew.
func (s *Scheduler[V]) append(r *Request[V], state uint64) (<-chan struct{}, bool) {
	if s.threads != nil {
		return s.threads.append(r, state)
	}
	if len(r.parts) == 1 {
		return s.appendOne(r, state)
	}
	for _, i := range r.parts {
		s.parts[i].mu.Lock()
	}
	ok := s.current(r, state)
	s.unpin(r)
	var full <-chan struct{}
	for _, i := range r.parts {
		if full == nil && ok {
			full = s.parts[i].full()
		}
	}
	ok = ok && full == nil
	if ok {
		r.enter()
		s.appendAll(r)
	}
	// r is not finished before: finishing r takes these locks in turn.
	for _, i := range r.parts {
		s.parts[i].mu.Unlock()
	}
	return full, ok
}

func (s *Scheduler[V]) appendOne(r *Request[V], state uint64) (<-chan struct{}, bool) {
	p := s.parts[r.parts[0]]
	p.mu.Lock()
	ok := s.current(r, state)
	s.unpin(r)
	var full <-chan struct{}
	if ok {
		full = p.full()
	}
	if !ok || full != nil {
		p.mu.Unlock()
		return full, false
	}
	r.enter()
	wake := p.push(r)
	p.mu.Unlock()
	if wake {
		p.signal()
	}
	return nil, true
}

// enter notes at its entries that r waits.
func (r *Request[V]) enter() {
	for _, e := range r.entries {
		if e != nil {
			e.queued.Add(1)
		}
	}
}

// alone runs a request without entries.
func (s *Scheduler[V]) alone(r *Request[V]) (err error) {
	s.guard(r, &err)
	return err
}
