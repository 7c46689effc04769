package engine

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/input"
)

// drive has the core step and commits what it gathers, in order, until ctx ends
// or the engine is broken.
func (e *Engine) drive(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for ctx.Err() == nil && !e.broken() {
		e.gather()
		e.hold(ctx, timer)
		if !e.commit() {
			e.rest(ctx, timer)
		}
	}
	// Handle every input handed over by now. At a stop the core can have gathered more
	// than a single transaction.
	e.phase.end(closing)
	for e.atParts.Load() > 0 {
		runtime.Gosched()
	}
	e.turn.Lock()
	if !e.broken() {
		e.handle()
	}
	e.turn.Unlock()
	for e.commit() {
	}
}

// handle steps the core with the inbox and with a wake that is due, and returns the
// number of inputs. e.turn is held.
func (e *Engine) handle() int {
	c, now := e.cfg.Core, e.now()
	e.mu.Lock()
	taken := e.inbox
	e.inbox = e.taken[:0]
	e.mu.Unlock()
	// Serve leaves alone the fields that this reads.
	at := c.WakeAt()
	wakes := at != 0 && at <= now.Tick
	if len(taken) > 0 || wakes {
		e.parts.Alone(func() {
			servable := 0
			for i, in := range taken {
				if core.Servable(in) {
					servable++
				}
				c.Step(now, in)
				taken[i] = nil
			}
			e.parts.Stepped(servable)
			if at := c.WakeAt(); at != 0 && at <= now.Tick {
				c.Step(now, input.Wake{})
			}
		})
	}
	e.taken = taken
	e.stepped += len(taken)
	if err := c.Refused(); err != nil {
		e.fail(refused, err)
	}
	return len(taken)
}

// help handles the inbox. With several partitions they serve it, as other goroutines
// may do at the same time. Otherwise, or for inputs that no partition serves, help
// steps the core if a commit is under way and no other goroutine has the turn. The
// committer need not do so then.
func (e *Engine) help() {
	if e.cfg.Partitions > 1 && e.serve() {
		return
	}
	if !e.turn.TryLock() {
		return
	}
	if e.phase.now().helped() && e.stepped+e.parts.Gathered() < mostGathered {
		e.handle()
	}
	e.turn.Unlock()
}

// serve has the partitions serve the inbox in its order, up to the first input that
// they do not serve, and puts back the rest. It reports whether there were inputs, and
// all were served.
func (e *Engine) serve() bool {
	if e.phase.now() >= closing || e.parts.Full() {
		return false
	}
	memory := inboxes.Get().(*[]input.Input)
	e.mu.Lock()
	ins := e.inbox
	e.inbox = *memory
	e.atParts.Add(int64(len(ins)))
	e.mu.Unlock()
	now, served := e.now(), 0
	for _, in := range ins {
		if !core.Servable(in) || !e.parts.Serve(now, in) {
			break
		}
		served++
	}
	if served < len(ins) {
		e.mu.Lock()
		left := slices.DeleteFunc(slices.Clone(ins[served:]), cancelled)
		e.inbox = append(left, e.inbox...)
		e.mu.Unlock()
	}
	e.atParts.Add(-int64(len(ins)))
	all := served == len(ins) && served > 0
	clear(ins)
	*memory = ins[:0]
	inboxes.Put(memory)
	switch e.phase.now() {
	case awaiting:
		if !e.unserved() {
			e.nudge()
		}
	case resting:
		e.wake()
	}
	return all
}

// inboxes is the memory of served inboxes.
var inboxes = sync.Pool{New: func() any { return new([]input.Input) }}

// gather handles inputs until a commit is to begin; see load.next.
func (e *Engine) gather() {
	e.turn.Lock()
	defer e.turn.Unlock()
	e.handle()
	for yields, more := 0, true; ; yields++ {
		l := e.load()
		next := l.next(yields, more)
		if next == begin {
			return
		}
		e.turn.Unlock()
		if next == awaitParts {
			e.awaitParts()
		}
		runtime.Gosched()
		e.turn.Lock()
		more = e.handle() > 0 || e.stepped+e.parts.Gathered() != l.handled
	}
}

// hold puts off a commit as long as answered callers come back; see load.hold.
func (e *Engine) hold(ctx context.Context, timer *time.Timer) {
	for before := -1; ; {
		e.turn.Lock()
		if before >= 0 && !e.broken() {
			e.handle()
		}
		l := e.load()
		e.turn.Unlock()
		l.waiting = e.Waiting()
		wait := l.hold(time.Since(e.last.ended), before)
		if wait == 0 || ctx.Err() != nil || !e.phase.move(working, holding) {
			return
		}
		before = l.all()
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		e.phase.move(holding, working)
	}
}

// awaitParts waits until no input is at the partitions, or they have served enough.
func (e *Engine) awaitParts() {
	for e.unserved() && e.phase.move(working, awaiting) {
		// A goroutine that leaves the partitions from here on nudges.
		if e.unserved() {
			<-e.work
		}
		e.phase.move(awaiting, working)
	}
}

func (e *Engine) unserved() bool {
	l := load{atParts: int(e.atParts.Load()), served: e.parts.Gathered()}
	return l.unserved()
}

// commit makes the core's gathered records durable, and sees that their effects leave
// then. It reports whether there was anything and the engine may go on.
func (e *Engine) commit() bool {
	batch := <-e.spare
	e.turn.Lock()
	if e.broken() || !e.drain(batch) {
		e.turn.Unlock()
		e.spare <- batch
		return false
	}
	e.stepped = 0
	e.phase.move(working, syncing)
	e.turn.Unlock()
	began := time.Now()
	if err := e.persist(batch); err != nil {
		e.fail(failed, fmt.Errorf("the site stops, as it could not make its state durable: %w", err))
		return false
	}
	e.last = committed{answered: len(batch.Replies), ended: time.Now()}
	e.last.took = e.last.ended.Sub(began)
	e.turn.Lock()
	e.phase.move(syncing, working)
	l := e.load()
	e.turn.Unlock()
	l.waiting = e.Waiting()
	e.last.beside = l.all()
	if l.itself(int(e.unfinished.Load())) {
		e.finish(batch)
		return true
	}
	e.unfinished.Add(1)
	e.durable <- batch
	return true
}

// persist makes a batch's records durable. A batch without records may leave once nobody
// else has committed for the site.
func (e *Engine) persist(batch *batch) error {
	batch.commit = Committed{}
	if batch.Records.Empty() {
		if len(batch.Messages)+len(batch.Replies) == 0 {
			return nil
		}
		return e.cfg.Store.Confirm()
	}
	began := time.Now()
	if err := e.cfg.Store.Commit(&batch.Records); err != nil {
		return err
	}
	batch.commit = Committed{Began: began, Ended: time.Now(), Requests: len(batch.Records.Block.Records)}
	e.cfg.Observer.Committed(batch.commit.Requests, batch.commit.Ended.Sub(began))
	return nil
}

// drain takes the gathered effects, and reports whether there are any.
func (e *Engine) drain(batch *batch) bool {
	pending := false
	e.parts.Alone(func() {
		e.parts.Tend()
		if pending = e.cfg.Core.Pending(); pending {
			e.cfg.Core.Drain(&batch.Effects)
			e.parts.Drained()
		}
	})
	return pending
}

// finish lets durable effects leave: messages, replies and events.
func (e *Engine) finish(batch *batch) {
	e.mu.Lock()
	if e.phase.now() != refused {
		for i := range batch.Replies {
			if r := &batch.Replies[i]; !e.open.remove(r.Call.(*Call)) {
				r.Call = nil
			}
		}
		e.mu.Unlock()
		e.leave(batch)
	} else {
		e.mu.Unlock()
	}
	batch.Reset()
	e.spare <- batch
}

func (e *Engine) leave(batch *batch) {
	if len(batch.Messages) > 0 {
		e.cfg.Sender.Send(batch.Messages)
	}
	var memory [mostFlushed]Flusher
	told := flushers(memory[:0])
	for i := range batch.Replies {
		if r := &batch.Replies[i]; r.Call != nil {
			if traced := r.Call.(*Call).Traced; traced != nil {
				*traced = batch.commit
			}
			told.tell(r.Call.(*Call), r.Answer, nil)
		}
	}
	told.flush()
	for _, ev := range batch.Events {
		if ev.Span != nil {
			e.spanned(ev.Span, batch.commit)
			continue
		}
		e.cfg.Observer.Happened(ev)
	}
}

// spanned tells of a span.
func (e *Engine) spanned(s *event.Span, on Committed) {
	if e.cfg.Spanned == nil {
		return
	}
	began, ended := e.start.Add(time.Duration(s.Began)), time.Now()
	if s.Ended != 0 {
		ended = e.start.Add(time.Duration(s.Ended))
	}
	e.cfg.Spanned(s, began, ended, on)
}

// rest waits until there is something to do.
func (e *Engine) rest(ctx context.Context, timer *time.Timer) {
	e.turn.Lock()
	at := e.cfg.Core.WakeAt()
	e.turn.Unlock()
	wait := time.Hour
	if at != 0 {
		now := e.now().Tick
		wait = time.Duration(max(at, now+1)-now) * time.Millisecond
	}
	timer.Reset(wait)
	if !e.phase.move(working, resting) {
		return
	}
	// A goroutine that hands over something from here on wakes the committer.
	if e.Waiting() == 0 && e.parts.Gathered() == 0 && !e.broken() {
		select {
		case <-e.work:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	e.phase.move(resting, working)
}

// wake ends the committer's rest.
func (e *Engine) wake() {
	if e.phase.move(resting, working) {
		e.nudge()
	}
}
