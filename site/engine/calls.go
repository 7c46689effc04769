package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
)

// Call is an input that wants an answer, handed over with Start. It is the input.Call of
// its input, which its maker sets. After its answer it may be handed over again, but
// not after it was cancelled or given up.
type Call struct {
	Input input.Input
	// To is told the answer, once.
	To Receiver
	// Traced, if not nil, gets the commit that made the answer durable, before To is told. It
	// is for requests whose traces are recorded.
	Traced *Committed

	// open is set from the hand-over until the answer or the cancel. While it is set,
	// the call is on the list of open calls.
	open         bool
	before, next *Call
}

// Committed is a commit that is over. It is zero if there was nothing to make durable.
type Committed struct {
	Began, Ended time.Time
	// Requests is the number of requests that the commit made durable together.
	Requests int
}

// Receiver is told the answers of calls.
type Receiver interface {
	// Receive takes the answer of a call, which is durable, or ErrStopped or ErrGivenUp.
	// It is called from the engine's goroutines, or from that of GiveUp, and must not
	// block or call the engine. Unless it returns nil, the engine calls Flush once it has no
	// further answers at hand.
	Receive(c *Call, a answer.Answer, err error) Flusher
}

// Flusher sends on answers that receivers were told.
type Flusher interface {
	// Flush has the answers sent. With now the calling goroutine may send them itself, if
	// it need not wait. Flush must not block or call the engine.
	Flush(now bool)
}

// flushers are to flush once all answers at hand are told.
type flushers []Flusher

// tell tells a receiver an answer.
func (f *flushers) tell(c *Call, a answer.Answer, err error) {
	if by := c.To.Receive(c, a, err); by != nil {
		*f = append(*f, by)
	}
}

// flush has all answers sent. The answers of many streams are sent by others, side by side.
func (f flushers) flush() {
	for _, by := range f {
		by.Flush(len(f) <= mostFlushed)
	}
}

// openCalls is a list, in a ring, of the calls that have no answer yet.
type openCalls struct{ ring Call }

func (o *openCalls) init() { o.ring.before, o.ring.next = &o.ring, &o.ring }

func (o *openCalls) add(c *Call) {
	last := o.ring.before
	c.open, c.before, c.next = true, last, &o.ring
	last.next, o.ring.before = c, c
}

// remove takes a call from the list, and reports whether it was on it.
func (o *openCalls) remove(c *Call) bool {
	if !c.open {
		return false
	}
	c.before.next, c.next.before = c.next, c.before
	c.open, c.before, c.next = false, nil, nil
	return true
}

// none reports whether the list is empty.
func (o *openCalls) none() bool { return o.ring.next == &o.ring }

// takeAll empties the list.
func (o *openCalls) takeAll() []*Call {
	var all []*Call
	for c := o.ring.next; c != &o.ring; c = o.ring.next {
		o.remove(c)
		all = append(all, c)
	}
	return all
}

// blocked is a Receiver whose caller is blocked in Do.
type blocked struct {
	Call
	answer answer.Answer
	err    error
	done   chan struct{}
}

// Receive implements Receiver.
func (b *blocked) Receive(_ *Call, a answer.Answer, err error) Flusher {
	b.answer, b.err = a, err
	b.done <- struct{}{}
	return nil
}

// blockedCall returns a call for a caller that blocks. The engine has its own pool, so
// that no channel leaves the bubble of a test in simulated time.
func (e *Engine) blockedCall() *blocked {
	if b, is := e.blockeds.Get().(*blocked); is {
		return b
	}
	b := &blocked{done: make(chan struct{}, 1)}
	b.To = b
	return b
}

// Do hands over the input that with makes for a call, and waits for the answer, which
// is durable. If ctx ends first, Do cancels the call and returns the cause: it is then
// unknown whether the request was done.
func (e *Engine) Do(ctx context.Context, with func(input.Call) input.Input) (answer.Answer, error) {
	return e.DoTraced(ctx, with, nil)
}

// DoTraced is Do. If traced is not nil, it gets the commit that made the answer durable.
func (e *Engine) DoTraced(ctx context.Context, with func(input.Call) input.Input, traced *Committed) (answer.Answer, error) {
	b := e.blockedCall()
	b.Traced = traced
	b.Input = with(&b.Call)
	if err := e.submit(b.Input, &b.Call); err != nil {
		b.Traced = nil
		e.blockeds.Put(b)
		return answer.Answer{}, err
	}
	select {
	case <-b.done:
	case <-ctx.Done():
		if e.Cancel(&b.Call) {
			return answer.Answer{}, fmt.Errorf("waiting for an answer: %w", context.Cause(ctx))
		}
		// The answer was on its way.
		<-b.done
	}
	a, err := b.answer, b.err
	if errors.Is(err, ErrGivenUp) {
		return a, err
	}
	b.answer, b.err, b.Input, b.Traced = answer.Answer{}, nil, nil, nil
	e.blockeds.Put(b)
	return a, err
}

// Start hands over calls, all or none; their receivers are told the answers. If the
// error is ErrBusy, ErrStalled or ErrStopped, nothing was done.
func (e *Engine) Start(calls []*Call) error {
	if len(calls) == 0 {
		return nil
	}
	if err := e.stalled(); err != nil {
		return err
	}
	e.mu.Lock()
	if err := e.refuses(len(calls)); err != nil {
		e.mu.Unlock()
		return err
	}
	for _, c := range calls {
		e.open.add(c)
		e.inbox = append(e.inbox, c.Input)
	}
	e.handedOver()
	return nil
}

// Submit hands over an input that needs no answer.
func (e *Engine) Submit(in input.Input) error { return e.submit(in, nil) }

func (e *Engine) submit(in input.Input, c *Call) error {
	if _, stop := in.(input.Stop); !stop {
		if err := e.stalled(); err != nil {
			return err
		}
	}
	e.mu.Lock()
	if err := e.refuses(1); err != nil {
		e.mu.Unlock()
		return err
	}
	if c != nil {
		e.open.add(c)
	}
	e.inbox = append(e.inbox, in)
	e.handedOver()
	return nil
}

// Cancel gives up a call, and reports whether it had no answer yet. Its receiver then
// gets no answer, and it is unknown whether the request was done.
func (e *Engine) Cancel(c *Call) bool {
	e.mu.Lock()
	if !e.open.remove(c) {
		e.mu.Unlock()
		return false
	}
	e.inbox = append(e.inbox, &input.Cancel{Call: c})
	e.handedOver()
	return true
}

// GiveUp gives up all calls without an answer, as Cancel does: a commit waits, and nobody
// knows for how long. The receivers get ErrGivenUp. The core may still know the calls, so
// none of them is used again.
func (e *Engine) GiveUp() {
	e.mu.Lock()
	given := e.open.takeAll()
	if len(given) == 0 {
		e.mu.Unlock()
		return
	}
	for _, c := range given {
		e.inbox = append(e.inbox, &input.Cancel{Call: c})
	}
	e.handedOver()
	var told flushers
	for _, c := range given {
		told.tell(c, answer.Answer{}, ErrGivenUp)
	}
	told.flush()
}

// cancelled reports whether the call of an unhandled input was given up. The core may
// have handled the input.Cancel before the input. e.mu is held.
func cancelled(in input.Input) bool {
	var call input.Call
	switch in := in.(type) {
	case *input.Acquire:
		call = in.Call
	case *input.AcquireAll:
		call = in.Call
	default:
		return false // it does not wait
	}
	c, ok := call.(*Call)
	return ok && !c.open
}

// stalled returns why no inputs are taken for the moment, or nil.
func (e *Engine) stalled() error {
	if e.cfg.Stalled == nil {
		return nil
	}
	if err := e.cfg.Stalled(); err != nil {
		return fmt.Errorf("%w: %w", ErrStalled, err)
	}
	return nil
}

// refuses returns why the engine does not take so many more inputs, or nil. e.mu is
// held.
func (e *Engine) refuses(more int) error {
	switch {
	case e.broken():
		return ErrStopped
	case len(e.inbox)+int(e.atParts.Load())+more > e.cfg.MaxInbox:
		return ErrBusy
	}
	return nil
}

// handedOver sees to the handling of new inputs in the inbox, and gives back e.mu.
func (e *Engine) handedOver() {
	l := load{waiting: len(e.inbox)}
	e.mu.Unlock()
	switch {
	case e.phase.now() == resting:
		e.wake()
	case l.helps():
		e.help()
	}
}
