package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/stored"
)

// idle returns an engine that nobody runs.
func idle(t *testing.T, maxInbox int) *Engine {
	t.Helper()
	c, err := core.New(core.Config{Self: "a", Members: []core.SiteID{"a"}, Rand: rand.New(rand.NewPCG(1, 2))}, stored.Restored{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := New(Config{Core: c, MaxInbox: maxInbox, Partitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// ending is a context that ends as somebody waits for its end.
type ending struct {
	context.Context
	waited func()
}

func (e ending) Done() <-chan struct{} {
	e.waited()
	return e.Context.Done()
}

// TestAnswerAsItsCallerGivesUp: the engine has decided to tell a call its answer, and its
// caller gives up before the answer comes. The caller gets that answer, or the failure
// told in its stead. Reused memory holds nothing of it.
func TestAnswerAsItsCallerGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := idle(t, 0)
		for i, tc := range []struct {
			answer answer.Answer
			err    error
		}{
			{answer.Answer{Code: answer.OK, Tokens: 7, Left: 3}, nil},
			{answer.Answer{}, ErrStopped},
			{answer.Answer{Code: answer.NotFound}, nil},
			{answer.Answer{Code: answer.OK, Tokens: 9}, nil},
		} {
			var of *blocked
			with := func(c input.Call) input.Input {
				var key attempt.Key
				binary.BigEndian.PutUint64(key[:], uint64(i))
				of = c.(*Call).To.(*blocked)
				if of.answer != (answer.Answer{}) || of.err != nil || len(of.done) > 0 {
					t.Errorf("call %d begins with %+v, %v", i, of.answer, of.err)
				}
				return &input.Acquire{Call: c, Entity: "e", Tokens: 1, Request: key}
			}
			over, cancel := context.WithCancel(t.Context())
			cancel()
			a, err := e.Do(ending{over, func() {
				e.mu.Lock()
				e.open.remove(&of.Call)
				e.mu.Unlock()
				go func() {
					synctest.Wait()
					of.Receive(&of.Call, tc.answer, tc.err)
				}()
			}}, with)
			if a != tc.answer || !errors.Is(err, tc.err) {
				t.Errorf("call %d is told %+v, %v, want %+v, %v", i, a, err, tc.answer, tc.err)
			}
		}
	})
}

// TestInputsAreBounded: waiting inputs, inputs at partitions and new inputs are together
// no more than the inbox may hold. An engine that has stopped takes nothing at all.
func TestInputsAreBounded(t *testing.T) {
	for _, tc := range []struct {
		waiting int
		atParts int64
		more    int
		stopped bool
		want    error
	}{
		{0, 0, 5, false, nil},
		{0, 0, 6, false, ErrBusy},
		{4, 0, 1, false, nil},
		{5, 0, 1, false, ErrBusy},
		{3, 0, 3, false, ErrBusy},
		{0, 5, 1, false, ErrBusy},
		{2, 2, 1, false, nil},
		{2, 2, 2, false, ErrBusy},
		{5, 0, 1, true, ErrStopped},
		{0, 0, 1, true, ErrStopped},
	} {
		e := idle(t, 5)
		e.inbox = make([]input.Input, tc.waiting)
		if tc.stopped {
			e.phase.end(stopped)
		}
		e.atParts.Store(tc.atParts)
		calls := make([]*Call, tc.more)
		for i := range calls {
			calls[i] = new(Call)
			calls[i].Input = &input.Acquire{Call: calls[i], Entity: "e", Tokens: 1}
		}
		taken := 0
		if tc.want == nil {
			taken = tc.more
		}
		if err := e.Start(calls); !errors.Is(err, tc.want) {
			t.Errorf("%+v: %v", tc, err)
		}
		if n, open := e.Waiting(), len(e.open.takeAll()); n != tc.waiting+taken || open != taken {
			t.Errorf("%+v: %d wait, and %d calls are open", tc, n, open)
		}
	}
}

// leaving counts the effects that leave an engine.
type leaving struct{ messages, answers, events int }

// Confirm implements engine.Store.
func (l *leaving) Confirm() error { return nil }

func (l *leaving) Commit(*stored.Records) error     { return nil }
func (l *leaving) Send(messages []message.Envelope) { l.messages += len(messages) }
func (l *leaving) Committed(int, time.Duration)     {}
func (l *leaving) Happened(event.Event)             { l.events++ }

// Receive implements Receiver.
func (l *leaving) Receive(*Call, answer.Answer, error) Flusher {
	l.answers++
	return nil
}

// TestWhatLeaves: all durable effects leave, but none of a core refused by then, and no
// answer to a call that was given up. The memory comes back.
func TestWhatLeaves(t *testing.T) {
	for _, tc := range []struct {
		refused, givenUp bool
		want             leaving
	}{
		{false, false, leaving{messages: 2, answers: 1, events: 1}},
		{false, true, leaving{messages: 2, events: 1}},
		{true, false, leaving{}},
		{true, true, leaving{}},
	} {
		e, l := idle(t, 0), new(leaving)
		e.cfg.Store, e.cfg.Sender, e.cfg.Observer = l, l, l
		if tc.refused {
			e.phase.end(refused)
		}
		c := &Call{To: l}
		e.open.add(c)
		if tc.givenUp {
			e.open.remove(c)
		}
		batch := <-e.spare
		batch.Messages = make([]message.Envelope, 2)
		batch.Replies = []core.Reply{{Call: c}}
		batch.Events = make([]event.Event, 1)
		e.finish(batch)
		if *l != tc.want {
			t.Errorf("refused %v, given up %v: %+v leave, want %+v", tc.refused, tc.givenUp, *l, tc.want)
		}
		if len(e.spare) != batches || len(batch.Messages)+len(batch.Replies)+len(batch.Events) != 0 {
			t.Errorf("refused %v, given up %v: %d batches are there, one with %+v", tc.refused, tc.givenUp, len(e.spare), *batch)
		}
		if c.open != (tc.refused && !tc.givenUp) {
			t.Errorf("refused %v, given up %v: the call is open: %v", tc.refused, tc.givenUp, c.open)
		}
	}
}

// TestAnEngineAtItsEnd: an engine that has failed, or steps its core no more, tells
// nothing of the core. The first failure ends the engine.
func TestAnEngineAtItsEnd(t *testing.T) {
	first, second := errors.New("first"), errors.New("second")
	for what, end := range map[string]func(*Engine){
		"failed": func(e *Engine) { e.fail(failed, first); e.fail(failed, second) },
		"ended":  func(e *Engine) { e.phase.end(closing); e.failure = first },
	} {
		e := idle(t, 0)
		if _, err := e.Status(t.Context()); err != nil {
			t.Errorf("%s: before it %v", what, err)
		}
		end(e)
		if _, err := e.Status(t.Context()); !errors.Is(err, ErrStopped) {
			t.Errorf("%s: it tells, with %v", what, err)
		}
		if !errors.Is(e.failure, first) {
			t.Errorf("%s: it ends with %v", what, e.failure)
		}
	}
}
