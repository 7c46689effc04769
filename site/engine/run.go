package engine

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
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
	// Handle every input handed over by now. At a stop the core can have gathered more
	// than a single transaction.
	e.closing.Store(true)
	for e.atParts.Load() > 0 {
		runtime.Gosched()
	}
	e.turn.Lock()
	if !e.broken() {
		e.handle()
	}
	e.ended = true
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

// mostGathered bounds the inputs handled beside a single commit. Later inputs wait in
// the inbox, which is bounded.
const mostGathered = 1 << 14

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
	if e.syncing && e.gathered+e.parts.Gathered() < mostGathered {
		e.handle()
	}
	e.turn.Unlock()
}

// serve has the partitions serve the inbox in its order, up to the first input that
// they do not serve, and puts back the rest. It reports whether there were inputs, and
// all were served.
func (e *Engine) serve() bool {
	if e.closing.Load() || e.parts.Full() {
		return false
	}
	memory := inboxes.Get().(*[]core.Input)
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
	if e.awaits.Load() && !e.unserved() {
		e.nudge()
	}
	if e.idle.Load() && e.idle.CompareAndSwap(true, false) {
		e.nudge()
	}
	return all
}

// inboxes is the memory of served inboxes.
var inboxes = sync.Pool{New: func() any { return new([]core.Input) }}

// maxYields bounds how often a commit is put off for others to join.
const maxYields = 3

// worthACommit is how many served requests do not wait for others to be served as well.
const worthACommit = 1024

// gather lets callers with a fresh answer ask again before the next commit begins, so
// that closed-loop callers share commits instead of taking turns in many. It waits for
// inputs that the partitions are serving. While fewer inputs have come than were
// answered last, it yields the processor as long as new inputs come, at most maxYields
// times.
func (e *Engine) gather() {
	e.turn.Lock()
	defer e.turn.Unlock()
	e.handle()
	for range maxYields {
		before := e.gathered + e.parts.Gathered()
		if before >= e.last && e.atParts.Load() == 0 {
			return
		}
		e.turn.Unlock()
		e.awaitParts()
		runtime.Gosched()
		e.turn.Lock()
		if e.handle() == 0 && e.gathered+e.parts.Gathered() == before {
			return
		}
	}
}

// awaitParts waits until no input is at the partitions, or they have served enough.
func (e *Engine) awaitParts() {
	for e.unserved() {
		e.awaits.Store(true)
		// Whoever leaves the parts from here on looks at awaits.
		if e.unserved() {
			<-e.work
		}
		e.awaits.Store(false)
	}
}

func (e *Engine) unserved() bool {
	return e.atParts.Load() > 0 && e.parts.Gathered() < worthACommit
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

// drain takes the gathered effects, and reports whether there are any.
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

// maxFinished bounds the replies that the committer itself gives.
const maxFinished = 256

// finishesItself reports whether the committer lets the batch leave before it goes on,
// which saves waking the finisher. The batch must be small, and no earlier batch may
// still be leaving. Few inputs may wait for the next commit, so that it better begins
// after the answered callers have asked again.
func (e *Engine) finishesItself(waiting int) bool {
	return e.last <= maxFinished && 2*waiting < e.last && e.unfinished.Load() == 0
}

// finish lets durable effects leave: messages, replies and events.
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
