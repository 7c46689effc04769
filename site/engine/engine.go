// Package engine carries out a core's effects: it feeds inputs to the core on
// one goroutine, commits what the core gathered in one transaction a batch on
// another, and only then sends messages and gives replies. It refuses to go on
// after a failed commit.
package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/samya-db/samya/site/core"
)

// Errors of Do and Submit.
var (
	// ErrBusy: too many inputs wait to be handled; nothing was done.
	ErrBusy = errors.New("too many requests wait to be handled")
	// ErrStopped: the engine has stopped. Of a request that was handed over
	// before, it is unknown whether it was done.
	ErrStopped = errors.New("the engine has stopped")
)

// Store makes records durable; see store.Store.
type Store interface {
	Commit(r *core.Records) error
}

// Sender sends messages to other sites, without blocking; it may lose them.
type Sender interface {
	Send(messages []core.Envelope)
}

// Observer is told what metrics count. It is called from the commit goroutine.
type Observer interface {
	// Committed: a transaction with that many requests took that long.
	Committed(requests int, took time.Duration)
	// Happened: see core.Event.
	Happened(e core.Event)
}

// Config is what an Engine is made of. All fields but MaxInbox are needed.
type Config struct {
	Core     *core.Core
	Store    Store
	Sender   Sender
	Observer Observer
	// MaxInbox bounds the inputs that wait to be handled; default 65536.
	MaxInbox int
}

// Engine runs one core.
type Engine struct {
	cfg   Config
	start time.Time

	mu      sync.Mutex
	inbox   []core.Input
	stopped bool
	// asking holds the calls that have no answer yet.
	asking map[*call]struct{}
	// signal holds one token when the loop has something to look at.
	signal chan struct{}

	// batches carries drained effects to the committer, spare brings them back
	// for reuse when they have been carried out.
	batches, spare chan *core.Effects
	// status is asked of the loop by Status.
	status chan chan core.Status
	done   chan struct{}

	failure error
}

// New makes an Engine; Run runs it.
func New(cfg Config) *Engine {
	if cfg.MaxInbox == 0 {
		cfg.MaxInbox = 65536
	}
	e := &Engine{
		cfg: cfg, start: time.Now(), asking: make(map[*call]struct{}),
		signal:  make(chan struct{}, 1),
		batches: make(chan *core.Effects, 1),
		spare:   make(chan *core.Effects, 1),
		status:  make(chan chan core.Status),
		done:    make(chan struct{}),
	}
	e.spare <- new(core.Effects)
	return e
}

// call is a Call whose caller is blocked in Do.
type call struct {
	answer core.Answer
	err    error
	done   chan struct{}
}

var calls = sync.Pool{New: func() any { return &call{done: make(chan struct{}, 1)} }}

// Do hands over the input that with makes for a call, and waits for its
// answer, which is durable. When ctx ends first the call is cancelled and its
// error returned: it is then unknown whether the request was done.
func (e *Engine) Do(ctx context.Context, with func(core.Call) core.Input) (core.Answer, error) {
	c := calls.Get().(*call)
	if err := e.submit(with(c), c); err != nil {
		calls.Put(c)
		return core.Answer{}, err
	}
	select {
	case <-c.done:
	case <-ctx.Done():
		if e.abandon(c) {
			return core.Answer{}, fmt.Errorf("waiting for an answer: %w", context.Cause(ctx))
		}
		// The answer was on its way.
		<-c.done
	}
	answer, err := c.answer, c.err
	c.answer, c.err = core.Answer{}, nil
	calls.Put(c)
	return answer, err
}

// abandon cancels a call that has no answer yet, and reports whether it had
// none. Such a call is never used again.
func (e *Engine) abandon(c *call) bool {
	e.mu.Lock()
	_, open := e.asking[c]
	if open {
		delete(e.asking, c)
		e.inbox = append(e.inbox, &core.Cancel{Call: c})
	}
	e.mu.Unlock()
	e.nudge()
	return open
}

// Submit hands over an input that needs no answer.
func (e *Engine) Submit(in core.Input) error { return e.submit(in, nil) }

func (e *Engine) submit(in core.Input, c *call) error {
	e.mu.Lock()
	switch {
	case e.stopped:
		e.mu.Unlock()
		return ErrStopped
	case len(e.inbox) >= e.cfg.MaxInbox:
		e.mu.Unlock()
		return ErrBusy
	}
	if c != nil {
		e.asking[c] = struct{}{}
	}
	e.inbox = append(e.inbox, in)
	first := len(e.inbox) == 1
	e.mu.Unlock()
	if first {
		e.nudge()
	}
	return nil
}

func (e *Engine) nudge() {
	select {
	case e.signal <- struct{}{}:
	default:
	}
}

// Waiting is how many inputs wait to be handled.
func (e *Engine) Waiting() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.inbox)
}

// Status asks the core what it holds.
func (e *Engine) Status(ctx context.Context) (core.Status, error) {
	answer := make(chan core.Status, 1)
	select {
	case e.status <- answer:
		return <-answer, nil
	case <-ctx.Done():
		return core.Status{}, fmt.Errorf("asking the core: %w", context.Cause(ctx))
	case <-e.done:
		return core.Status{}, ErrStopped
	}
}

func (e *Engine) now() core.Now {
	t := time.Now()
	return core.Now{Tick: core.Tick(t.Sub(e.start).Milliseconds()) + 1, Wall: t.UnixMilli()}
}

// Run runs the engine until ctx ends, when it carries out what is gathered and returns nil, or a commit fails or
// the site's data is refused, when it returns why. Calls that have no answer by then get ErrStopped.
func (e *Engine) Run(ctx context.Context) error {
	var committer sync.WaitGroup
	committer.Go(e.commit)
	e.loop(ctx)
	close(e.batches)
	committer.Wait()
	e.mu.Lock()
	e.stopped = true
	e.inbox = nil
	for c := range e.asking {
		c.err = ErrStopped
		c.done <- struct{}{}
	}
	clear(e.asking)
	e.mu.Unlock()
	close(e.done)
	return e.failure
}

// loop feeds the core.
func (e *Engine) loop(ctx context.Context) {
	var taken []core.Input
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	c := e.cfg.Core
	for {
		now := e.now()
		taken = e.take(taken)
		e.step(taken)
		if at := c.WakeAt(); at != 0 && at <= now.Tick {
			c.Step(now, core.Wake{})
		}
		if err := c.Refused(); err != nil {
			e.fail(err)
			return
		}
		if c.Pending() {
			select {
			case batch := <-e.spare:
				taken = e.gather(taken)
				c.Drain(batch)
				e.batches <- batch
				continue
			default:
			}
		}
		e.arm(timer, c.WakeAt(), now.Tick)
		select {
		case <-e.signal:
		case <-timer.C:
		case answer := <-e.status:
			answer <- c.Status()
		case <-ctx.Done():
			e.finish()
			return
		}
		if e.broken() {
			return
		}
	}
}

// finish handles what was handed over, and has carried out what the core has
// gathered: at a stop that can be more than one transaction.
func (e *Engine) finish() {
	e.step(e.take(nil))
	if e.cfg.Core.Refused() != nil {
		return
	}
	for e.cfg.Core.Pending() && !e.broken() {
		select {
		case batch := <-e.spare:
			e.cfg.Core.Drain(batch)
			e.batches <- batch
		case <-e.signal:
			// A failed commit brings no batch back.
		}
	}
}

func (e *Engine) step(taken []core.Input) {
	now := e.now()
	for i, in := range taken {
		e.cfg.Core.Step(now, in)
		taken[i] = nil
	}
}

// maxYields bounds how often one commit is put off for others to join.
const maxYields = 3

// gather lets those who were just answered ask again before the next commit
// begins, so that closed-loop callers share commits instead of taking turns in
// many: it yields the processor while new inputs come, a few times at most. It
// never waits.
func (e *Engine) gather(taken []core.Input) []core.Input {
	for range maxYields {
		runtime.Gosched()
		if taken = e.take(taken); len(taken) == 0 {
			break
		}
		e.step(taken)
	}
	return taken
}

func (e *Engine) take(into []core.Input) []core.Input {
	e.mu.Lock()
	defer e.mu.Unlock()
	taken := e.inbox
	e.inbox = into[:0]
	return taken
}

func (e *Engine) arm(timer *time.Timer, at, now core.Tick) {
	wait := time.Hour
	if at != 0 {
		wait = time.Duration(max(at, now+1)-now) * time.Millisecond
	}
	timer.Reset(wait)
}

func (e *Engine) broken() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stopped
}

// commit carries out batches, in order. After a failure, or once the core is
// refused, it carries out none.
func (e *Engine) commit() {
	for batch := range e.batches {
		if e.broken() {
			continue
		}
		if !batch.Records.Empty() {
			began := time.Now()
			if err := e.cfg.Store.Commit(&batch.Records); err != nil {
				e.fail(fmt.Errorf("the site stops, as it could not make its state durable: %w", err))
				continue
			}
			e.cfg.Observer.Committed(len(batch.Records.Block.Records), time.Since(began))
			if e.broken() {
				continue
			}
		}
		if len(batch.Messages) > 0 {
			e.cfg.Sender.Send(batch.Messages)
		}
		e.answer(batch.Replies)
		for _, ev := range batch.Events {
			e.cfg.Observer.Happened(ev)
		}
		batch.Reset()
		e.spare <- batch
		e.nudge()
	}
}

// answer gives replies to those who still wait for theirs.
func (e *Engine) answer(replies []core.Reply) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range replies {
		c := replies[i].Call.(*call)
		if _, open := e.asking[c]; open {
			delete(e.asking, c)
			c.answer = replies[i].Answer
			c.done <- struct{}{}
		}
	}
}

func (e *Engine) fail(err error) {
	e.mu.Lock()
	if e.failure == nil {
		e.failure = err
	}
	e.stopped = true
	e.mu.Unlock()
	e.nudge()
}
