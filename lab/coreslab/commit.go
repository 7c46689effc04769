package coreslab

import "time"

// rest has the committer wait for work.
func (s *site) rest() {
	if len(s.inbox) > 0 || s.gathered() > 0 || len(s.stepped) > 0 {
		s.phase = working
		s.gather()
		return
	}
	s.phase = resting
	s.committer.park(func() {
		s.phase = working
		s.gather()
	})
}

// gather handles inputs until a commit is to begin.
func (s *site) gather() {
	r := s.committer
	s.turn.take(r, func() {
		s.handle(r, func(int) { s.join(0, true) })
	})
}

// join lets others join the commit. The committer has the turn. more tells that some came
// since the last yield.
func (s *site) join(yields int, more bool) {
	r, handled := s.committer, len(s.stepped)+s.gathered()
	if handled >= s.answered && s.atParts == 0 || yields >= mostYields || yields > 0 && !more {
		s.drain()
		return
	}
	s.turn.release()
	again := func() {
		r.work(s.c.Yield, func() {
			r.yield(func() {
				s.turn.take(r, func() {
					s.handle(r, func(n int) {
						s.join(yields+1, n > 0 || len(s.stepped)+s.gathered() != handled)
					})
				})
			})
		})
	}
	if s.unserved() {
		s.awaitParts(again)
		return
	}
	again()
}

// awaitParts waits for the calls at the shards.
func (s *site) awaitParts(then func()) {
	if !s.unserved() {
		then()
		return
	}
	s.phase = awaiting
	s.committer.park(func() {
		s.phase = working
		s.awaitParts(then)
	})
}

// batch is the effects of a commit: the calls to answer, by finisher.
type batch struct {
	calls int
	of    [][]call
}

// drain takes the effects of all calls. The committer has the turn.
func (s *site) drain() {
	r := s.committer
	s.alone(r, 0, func() {
		b := s.takeAll()
		if b.calls == 0 {
			s.resume()
			s.turn.release()
			s.rest()
			return
		}
		served := b.calls - len(s.stepped)
		work := s.c.Drain + float64(served)*s.c.Served + float64(len(s.stepped))*s.c.Stepped
		if forgets := b.calls; s.o.Forgets {
			if s.o.Design.has(OwnForgetting) {
				forgets = len(s.stepped)
			}
			work += float64(forgets) * s.c.Forget
		}
		encode := s.c.Append + float64(b.calls)*s.c.Encode
		if s.o.Design.has(OwnLog) {
			encode -= float64(served) * (s.c.Encode - s.c.Join)
		}
		s.stepped = nil
		r.work(work, func() {
			s.phase = syncing
			s.resume()
			s.turn.release()
			r.work(encode, func() { s.sync(b) })
		})
	})
}

// takeAll takes the calls of the shards and of the core.
func (s *site) takeAll() *batch {
	b := &batch{of: make([][]call, len(s.finishers))}
	for i, sh := range s.shards {
		at := i % len(b.of)
		b.of[at] = append(b.of[at], sh.served...)
		b.calls += len(sh.served)
		sh.served = nil
	}
	b.of[0] = append(b.of[0], s.stepped...)
	b.calls += len(s.stepped)
	return b
}

// sync makes a batch durable.
func (s *site) sync(b *batch) {
	times := s.c.Syncs
	if s.flying > 0 {
		times = s.c.Pairs
	}
	took := time.Duration(times[s.rnd.IntN(len(times))])
	if s.flying++; s.flying == 1 {
		s.since = s.m.now()
	}
	r := s.committer
	if !s.two() {
		// The committer sleeps in the system call.
		r.next = func() {
			s.synced(b)
			s.phase = working
			s.leave(b)
		}
		s.m.world.At(s.m.now()+took, func() { s.m.enqueue(r) })
		r.leave()
		return
	}
	s.m.world.At(s.m.now()+took, func() {
		s.synced(b)
		s.unfinished++
		s.hand(b)
		r.wake()
	})
	s.fly()
}

// fly begins the next commit once fewer than two are in flight.
func (s *site) fly() {
	if s.flying < 2 && s.unfinished < batches {
		s.committer.woken = false
		s.phase = working
		s.gather()
		return
	}
	s.committer.park(s.fly)
}

// synced notes the end of a sync.
func (s *site) synced(b *batch) {
	if s.flying--; s.flying == 0 {
		s.disk += s.m.now() - s.since
	}
	s.answered = b.calls
	s.commits++
	s.committed += b.calls
}

// leave lets a durable batch leave, and goes on.
func (s *site) leave(b *batch) {
	r := s.committer
	if waiting := len(s.stepped) + s.gathered() + len(s.inbox); b.calls <= mostFinished && 2*waiting < b.calls && s.unfinished == 0 {
		var all []call
		for _, of := range b.of {
			all = append(all, of...)
		}
		s.finish(r, all, s.rest)
		return
	}
	s.unfinished++
	r.work(s.hand(b), func() { s.room(s.rest) })
}

// room waits for unused memory of a batch.
func (s *site) room(then func()) {
	if s.unfinished < batches {
		then()
		return
	}
	s.committer.park(func() { s.room(then) })
}

// hand gives a batch to the finishers, and returns the cost of waking the finishers.
func (s *site) hand(b *batch) float64 {
	left, cost := new(int), 0.
	for i, of := range b.of {
		if len(of) == 0 {
			continue
		}
		*left++
		s.finishers[i].batches.push(finishing{of, left})
		cost += s.finishers[i].r.wake()
	}
	return cost
}

// finishing is a finisher's part of a batch; left counts the finishers that have some.
type finishing struct {
	calls []call
	left  *int
}

// finisher hands the answers of batches to their streams.
type finisher struct {
	s       *site
	r       *routine
	batches queue[finishing]
}

// look takes the next batch.
func (f *finisher) look() {
	if f.batches.len() == 0 {
		f.r.park(f.look)
		return
	}
	b := f.batches.pop()
	f.s.finish(f.r, b.calls, func() {
		if *b.left--; *b.left == 0 {
			f.s.unfinished--
			// The committer may wait for the memory.
			if f.s.phase == working || f.s.two() {
				f.s.committer.wake()
			}
		}
		f.look()
	})
}

// finish hands answers to their streams, and wakes these.
func (s *site) finish(r *routine, calls []call, then func()) {
	if len(calls) == 0 {
		then()
		return
	}
	n := min(chunk, len(calls))
	r.work(float64(n)*s.c.Finish, func() {
		cost := 0.
		for _, c := range calls[:n] {
			if c.conn.out = append(c.conn.out, c); len(c.conn.out) == 1 {
				cost += c.conn.sender.wake()
			}
		}
		r.work(cost, func() { s.finish(r, calls[n:], then) })
	})
}
