// Package engine carries out a core's effects: it feeds inputs to the core, commits the
// core's records, and only then sends messages and gives replies. It refuses to go on
// after a failed commit.
//
// Several partitions (package partitions) serve, side by side, requests that need only
// the books of their entities. A goroutine that hands over many requests has them
// served. All other inputs step the core, alone.
//
// Three things overlap. While a commit is under way, requests are served, and
// goroutines that hand over many other inputs step the core with them. Meanwhile the
// messages and replies of earlier commits leave, see Flusher. Everything done until a commit ends is
// in the next commit, which is a single transaction over all partitions.
package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/samya-db/samya/kvpart/control"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/stored"
	"github.com/samya-db/samya/site/partitions"
)

// Errors of Do, Start and Submit.
var (
	// ErrBusy: too many inputs wait to be handled; nothing was done.
	ErrBusy = errors.New("too many requests wait to be handled")
	// ErrStopped: the engine has stopped. It is unknown whether a request handed over
	// before was done.
	ErrStopped = errors.New("the engine has stopped")
	// ErrStalled: nothing can be made durable for the moment; nothing was done.
	ErrStalled = errors.New("the site cannot make anything durable")
	// ErrGivenUp: the call was given up, see GiveUp. It is unknown whether it was done.
	ErrGivenUp = errors.New("nothing was made durable for too long")
)

// Store makes records durable; see store.Store.
type Store interface {
	Commit(r *stored.Records) error
	// Confirm returns nil if nobody else can have committed for the site before the call.
	// What leaves without a commit waits for it.
	Confirm() error
}

// Sender sends messages to other sites, without blocking; it may lose them.
type Sender interface {
	Send(messages []message.Envelope)
}

// Observer is told of events for metrics, from several goroutines at once.
type Observer interface {
	// Committed: a transaction with that many requests took that long.
	Committed(requests int, took time.Duration)
	// Happened: see event.Event.
	Happened(e event.Event)
}

// Config is the configuration of an Engine. The fields up to Observer are needed.
type Config struct {
	Core     *core.Core
	Store    Store
	Sender   Sender
	Observer Observer
	// MaxInbox bounds the inputs that wait to be handled; default 65536.
	MaxInbox int
	// Partitions is the number of partitions that serve requests side by side. The
	// default is a partition for every two processors, since the traffic of requests
	// takes as much as serving them. A single partition serves nothing: a single
	// goroutine at a time that steps the core with all inputs is faster than several
	// that take turns.
	Partitions int
	// Policy says when entities go to other partitions; nil for never.
	Policy *control.Policy
	// Stalled, if not nil, returns why no inputs are taken for the moment, or nil.
	Stalled func() error
	// Spanned, if not nil, is told of the spans of event.SpanEnded with their times, and with the
	// commit that they rest on. It is called from several goroutines at once.
	Spanned func(s *event.Span, began, ended time.Time, on Committed)
	// Failed, if not nil, is told of failures without consequences.
	Failed func(error)
}

// Engine runs a single core.
type Engine struct {
	cfg   Config
	start time.Time

	// blockeds is the memory of calls whose callers blocked in Do.
	blockeds sync.Pool

	// mu guards the fields that callers touch. The holder of turn may lock it, not the
	// other way round. While it is held, the phase does not become stopped or later.
	mu      sync.Mutex
	inbox   []input.Input
	open    openCalls
	failure error

	// phase is not beside mu: callers read it without the lock.
	phase state
	// parts serve requests concurrently with the core; other inputs go through the
	// inbox.
	parts parts
	// atParts counts the inputs at the partitions right now: any of them may come back
	// to the inbox.
	atParts atomic.Int64

	// turn guards the core, except for the parts that partitions use; see
	// Partitions.Alone.
	turn sync.Mutex
	// taken is the memory of an inbox that was handled.
	taken []input.Input
	// stepped counts the inputs that stepped the core since it was last drained.
	stepped int

	// last is the last commit. The committer alone touches it.
	last committed
	// work holds one token when the committer was nudged.
	work chan struct{}
	// durable carries batches from the committer to the finisher. Both return a batch
	// by spare once its effects are carried out.
	durable, spare chan *batch
	// unfinished counts the batches that the finisher has.
	unfinished atomic.Int32
}

// parts are the methods of partitions.Partitions that an Engine uses. Packages that import this package
// do not see the generic types behind the interface, and do not compile these types anew.
type parts interface {
	Start()
	Close()
	Alone(fn func())
	Serve(now input.Now, in input.Input) bool
	Stepped(n int)
	Gathered() int
	Full() bool
	Drained()
	Tend()
	Stats() partitions.Stats
}

// batch is a batch of effects, with the commit that made them durable.
type batch struct {
	core.Effects
	commit Committed
}

// batches is the number of batches of effects: one is gathered or committed, the others
// leave.
const batches = 3

// New makes an Engine; Run runs it. Its errors come from partitions.New.
func New(cfg Config) (*Engine, error) {
	cfg.MaxInbox = cmp.Or(cfg.MaxInbox, 65536)
	cfg.Partitions = cmp.Or(cfg.Partitions, 1) // more were not measured to be faster; see docs/partitions.md
	e := &Engine{
		cfg: cfg, start: time.Now(),
		work:    make(chan struct{}, 1),
		durable: make(chan *batch, batches),
		spare:   make(chan *batch, batches),
	}
	e.open.init()
	for range batches {
		e.spare <- new(batch)
	}
	var err error
	e.parts, err = partitions.New(partitions.Options{
		Core: cfg.Core, Count: cfg.Partitions, Policy: cfg.Policy, Most: mostGathered,
		Clock: func() time.Duration { return time.Since(e.start) }, Failed: cfg.Failed,
	})
	if err != nil {
		return nil, fmt.Errorf("making an engine: %w", err)
	}
	return e, nil
}

// Inspect returns the figures of the partitions.
func (e *Engine) Inspect() partitions.Stats { return e.parts.Stats() }

func (e *Engine) nudge() {
	select {
	case e.work <- struct{}{}:
	default:
	}
}

// quietLook is how often Quiet looks.
const quietLook = time.Millisecond

// Quiet waits until no call is without its answer, or ctx ends.
func (e *Engine) Quiet(ctx context.Context) {
	look := time.NewTicker(quietLook)
	defer look.Stop()
	for {
		e.mu.Lock()
		quiet := e.open.none() && len(e.inbox) == 0
		e.mu.Unlock()
		if quiet && e.unfinished.Load() == 0 {
			return
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		}
	}
}

// Waiting returns how many inputs wait to be handled.
func (e *Engine) Waiting() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.inbox)
}

// Status asks the core for its status. Its error is ErrStopped, or that ctx has ended.
func (e *Engine) Status(ctx context.Context) (core.Status, error) {
	if ctx.Err() != nil {
		return core.Status{}, fmt.Errorf("asking the core: %w", context.Cause(ctx))
	}
	e.turn.Lock()
	defer e.turn.Unlock()
	if e.phase.now() >= closing {
		return core.Status{}, ErrStopped
	}
	var st core.Status
	e.parts.Alone(func() { st = e.cfg.Core.Status() })
	return st, nil
}

func (e *Engine) now() input.Now {
	t := time.Now()
	since := t.Sub(e.start)
	return input.Now{Tick: core.Tick(since.Milliseconds()) + 1, Wall: t.UnixMilli(), Nanos: since.Nanoseconds()}
}

// Run runs the engine until ctx ends, and then carries out all gathered effects and
// returns nil. If a commit fails or the site's data is refused, Run returns the error.
// Calls without an answer by then get ErrStopped.
func (e *Engine) Run(ctx context.Context) error {
	var finisher sync.WaitGroup
	finisher.Go(func() {
		for batch := range e.durable {
			e.finish(batch)
			e.unfinished.Add(-1)
		}
	})
	e.parts.Start()
	e.drive(ctx)
	close(e.durable)
	finisher.Wait()
	e.parts.Close()
	e.mu.Lock()
	e.phase.end(stopped)
	e.inbox = nil
	unanswered := e.open.takeAll()
	e.mu.Unlock()
	var told flushers
	for _, c := range unanswered {
		told.tell(c, answer.Answer{}, ErrStopped)
	}
	told.flush()
	return e.failure
}

// broken reports whether the engine takes no more inputs.
func (e *Engine) broken() bool { return e.phase.now() >= stopped }

// fail ends the engine: to is failed or refused.
func (e *Engine) fail(to phase, err error) {
	e.mu.Lock()
	e.failure = cmp.Or(e.failure, err)
	e.phase.end(to)
	e.mu.Unlock()
}

// load is the engine's work right now, without the inbox. e.turn is held.
func (e *Engine) load() load {
	served := e.parts.Gathered()
	return load{atParts: int(e.atParts.Load()), handled: e.stepped + served, served: served, committed: e.last}
}
