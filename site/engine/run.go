package engine

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/samya-db/samya/site/core"
)

// drive has the core step and commits what it gathers, in order, until ctx ends
// or the engine is broken.
func (e *Engine) drive(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for ctx.Err() == nil && !e.broken() {
		e.gather()
		if !e.commit() {
			e.rest(ctx, timer)
		}
	}
	// What was handed over by now is handled. At a stop the core can have gathered
	// more than one transaction.
	e.closing.Store(true)
	e.turn.Lock()
	if !e.broken() {
		e.handle()
	}
	e.ended = true
	e.turn.Unlock()
	for e.commit() {
	}
}

// handle steps the core with what was handed over and what time brings, and
// returns how many inputs that were. e.turn is held.
func (e *Engine) handle() int {
	c, now := e.cfg.Core, e.now()
	e.mu.Lock()
	taken := e.inbox
	e.inbox = e.taken[:0]
	e.mu.Unlock()
	// Serve leaves alone what this looks at.
	at := c.WakeAt()
	wakes := at != 0 && at <= now.Tick
	if len(taken) > 0 || wakes {
		e.parts.Alone(func() {
			for i, in := range taken {
				c.Step(now, in)
				taken[i] = nil
			}
			if at := c.WakeAt(); at != 0 && at <= now.Tick {
				c.Step(now, core.Wake{})
			}
		})
	}
	e.taken = taken
	e.gathered += len(taken)
	if err := c.Refused(); err != nil {
		e.mu.Lock()
		e.disowned = true
		e.mu.Unlock()
		e.fail(err)
	}
	return len(taken)
}

// mostGathered bounds the inputs that are handled beside one commit: what comes
// then waits in the inbox, which is bounded.
const mostGathered = 1 << 14

// help handles what was handed over, if a commit is under way and nobody else
// does: the committer need not then.
func (e *Engine) help() {
	if !e.turn.TryLock() {
		return
	}
	if e.syncing && e.gathered+e.parts.Gathered() < mostGathered {
		e.handle()
	}
	e.turn.Unlock()
}

// maxYields bounds how often one commit is put off for others to join.
const maxYields = 3

// gather lets those who were just answered ask again before the next commit
// begins, so that closed-loop callers share commits instead of taking turns in
// many: while fewer have asked than were answered last, it yields the processor
// as long as new inputs come, a few times at most. It never waits.
func (e *Engine) gather() {
	e.turn.Lock()
	defer e.turn.Unlock()
	e.handle()
	for range maxYields {
		before, served := e.gathered+e.parts.Gathered(), e.atParts.Load()
		if before >= e.last && served == 0 {
			return
		}
		e.turn.Unlock()
		runtime.Gosched()
		e.turn.Lock()
		if e.handle() == 0 && e.gathered+e.parts.Gathered() == before && served == 0 {
			return
		}
	}
}

// commit makes durable what the core has gathered, and sees that it leaves then.
// It reports whether there was anything and it may go on.
func (e *Engine) commit() bool {
	batch := <-e.spare
	e.turn.Lock()
	if e.broken() || !e.drain(batch) {
		e.turn.Unlock()
		e.spare <- batch
		return false
	}
	e.gathered, e.syncing = 0, true
	e.turn.Unlock()
	if !batch.Records.Empty() {
		began := time.Now()
		if err := e.cfg.Store.Commit(&batch.Records); err != nil {
			e.fail(fmt.Errorf("the site stops, as it could not make its state durable: %w", err))
			return false
		}
		e.cfg.Observer.Committed(len(batch.Records.Block.Records), time.Since(began))
	}
	e.turn.Lock()
	e.syncing = false
	waiting := e.gathered + e.parts.Gathered()
	e.turn.Unlock()
	e.last = len(batch.Replies)
	if e.finishesItself(waiting + e.Waiting()) {
		e.finish(batch)
		return true
	}
	e.unfinished.Add(1)
	e.durable <- batch
	return true
}

// drain takes what was gathered, if there is anything.
func (e *Engine) drain(batch *core.Effects) bool {
	pending := false
	e.parts.Alone(func() {
		e.parts.Tend()
		if pending = e.cfg.Core.Pending(); pending {
			e.cfg.Core.Drain(batch)
			e.parts.Drained()
		}
	})
	return pending
}

// maxFinished bounds the replies that the committer gives itself.
const maxFinished = 256

// finishesItself reports whether the committer lets the batch leave before it
// goes on, which saves waking the finisher: it is small, so many inputs wait for
// the next commit that it is better begun when those answered have asked again,
// and no batch before it is leaving still.
func (e *Engine) finishesItself(waiting int) bool {
	return e.last <= maxFinished && 2*waiting < e.last && e.unfinished.Load() == 0
}

// finish lets leave what is durable: messages, replies and events.
func (e *Engine) finish(batch *core.Effects) {
	e.mu.Lock()
	if !e.disowned {
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

func (e *Engine) leave(batch *core.Effects) {
	if len(batch.Messages) > 0 {
		e.cfg.Sender.Send(batch.Messages)
	}
	for i := range batch.Replies {
		if r := &batch.Replies[i]; r.Call != nil {
			c := r.Call.(*Call)
			c.To.Receive(c, r.Answer, nil)
		}
	}
	for _, ev := range batch.Events {
		e.cfg.Observer.Happened(ev)
	}
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
	e.idle.Store(true)
	// Whoever hands over something from here on sees that the committer is idle.
	if e.Waiting() == 0 && e.parts.Gathered() == 0 && !e.broken() {
		select {
		case <-e.work:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	e.idle.Store(false)
}
