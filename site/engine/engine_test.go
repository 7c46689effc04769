package engine_test

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	kvcontrol "github.com/samya-db/samya/kvpart/control"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/stored"
	"github.com/samya-db/samya/site/engine"
)

// world is a store, a sender and an observer that keep a log. A commit takes
// as long as the test likes.
type world struct {
	mu  sync.Mutex
	log []string
	// gate, if not nil, lets a commit end with each value it yields.
	gate chan error
	// refusal is the answer of Confirm.
	refusal error
	// durable are the requests committed, in order.
	durable []stored.Request
	// forecasts counts the forecasts of each commit that has some.
	forecasts []int
}

func (w *world) note(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, what)
}

func (w *world) logged() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.log)
}

// Confirm implements engine.Store.
func (w *world) Confirm() error { return w.refusal }

func (w *world) Commit(r *stored.Records) error {
	w.note("begin")
	if w.gate != nil {
		if err := <-w.gate; err != nil {
			w.note("failed")
			return err
		}
	}
	w.mu.Lock()
	w.durable = append(w.durable, r.Block.Records...)
	if n := len(r.Forecasts); n > 0 {
		w.forecasts = append(w.forecasts, n)
	}
	w.mu.Unlock()
	w.note("end")
	return nil
}

func (w *world) Send(messages []message.Envelope) { w.note(fmt.Sprint("send ", len(messages) > 0)) }
func (w *world) Committed(int, time.Duration)     {}
func (w *world) Happened(event.Event)             {}
func (w *world) requests() []stored.Request {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.durable)
}

// bubble runs a test with a clock of its own. Two collections empty the pool of calls: a
// channel must not wander from a bubble into another.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	runtime.GC()
	runtime.GC()
	synctest.Test(t, test)
}

// run starts an engine of a site that hears nothing of its two other members and has 100
// tokens of "e".
func run(t *testing.T, w *world, maxInbox int) (e *engine.Engine, stop func() error) {
	t.Helper()
	return runOn(t, w, maxInbox, stored.Restored{
		Entities: []stored.Entity{{Name: "e", Generation: 1, Initial: 300, Limit: 300, Version: 1}},
		Books:    []stored.Books{{Name: "e", Generation: 1, Left: 100}},
	})
}

// newEngine makes an engine, in which entities come to the partitions where they belong.
func newEngine(tb testing.TB, cfg engine.Config) *engine.Engine {
	tb.Helper()
	cfg.Partitions = cmp.Or(cfg.Partitions, 2)
	if cfg.Policy == nil {
		cfg.Policy = new(kvcontrol.Policy)
	}
	e, err := engine.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

// runOn starts an engine on data.
func runOn(t *testing.T, w *world, maxInbox int, data stored.Restored) (e *engine.Engine, stop func() error) {
	t.Helper()
	return runWith(t, w, w, maxInbox, data)
}

// runWith starts an engine on data, with a store of its own.
func runWith(t *testing.T, store engine.Store, w *world, maxInbox int, data stored.Restored) (e *engine.Engine, stop func() error) {
	t.Helper()
	c, err := core.New(core.Config{
		Self: "a", Members: []core.SiteID{"a", "b", "c"}, Rand: rand.New(rand.NewPCG(1, 2)), Sync: 1 << 40,
	}, data)
	if err != nil {
		t.Fatal(err)
	}
	e = newEngine(t, engine.Config{Core: c, Store: store, Sender: w, Observer: w, MaxInbox: maxInbox})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	return e, func() error {
		cancel()
		return <-done
	}
}

func acquire(n core.Tokens, id uint64, wait core.Tick) func(input.Call) input.Input {
	var key attempt.Key
	binary.BigEndian.PutUint64(key[:], id)
	return func(c input.Call) input.Input {
		return &input.Acquire{Call: c, Entity: "e", Tokens: n, Request: key, Wait: wait}
	}
}

// TestNothingLeavesBeforeItsCommit: no reply and no message leaves before its commit, nor
// does a read that reveals a state not durable yet, although the read itself stores
// nothing.
func TestNothingLeavesBeforeItsCommit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		t.Helper()
		w := &world{gate: make(chan error)}
		e, stop := run(t, w, 0)
		granted, read := make(chan answer.Answer, 1), make(chan answer.Answer, 1)
		go func() {
			a, _ := e.Do(t.Context(), acquire(40, 1, 0))
			granted <- a
		}()
		synctest.Wait()
		go func() {
			a, _ := e.Do(t.Context(), func(c input.Call) input.Input { return &input.Read{Call: c, Entity: "e"} })
			read <- a
		}()
		go func() { _, _ = e.Do(t.Context(), acquire(100, 2, 60_000)) }()
		<-time.After(time.Hour)
		if got := w.logged(); !slices.Equal(got, []string{"begin"}) || len(granted)+len(read) > 0 {
			t.Fatalf("before the commit has ended: %v, %d answers", got, len(granted)+len(read))
		}
		w.gate <- nil
		<-time.After(time.Second) // the committer may wait for the answered caller
		if a := <-granted; a.Code != answer.OK || a.Left != 60 {
			t.Errorf("granted %+v", a)
		}
		// The read shares its batch with the election of the acquire that waits.
		if got := w.logged(); !slices.Equal(got, []string{"begin", "end", "begin"}) || len(read) > 0 {
			t.Fatalf("before the second commit has ended: %v, %d answers", got, len(read))
		}
		w.gate <- nil
		synctest.Wait()
		if a := <-read; a.View().Left != 60 || a.View().Net != 40 {
			t.Errorf("read %+v", a)
		}
		if got := w.logged()[:5]; !slices.Equal(got, []string{"begin", "end", "begin", "end", "send true"}) {
			t.Errorf("order %v", got)
		}
		close(w.gate)
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestNothingLeavesUnconfirmed: a read leaves without a commit, but not if another node
// may have committed since it came. The engine ends then.
func TestNothingLeavesUnconfirmed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		t.Helper()
		other := errors.New("another node is active")
		w := &world{}
		e, stop := run(t, w, 0)
		read := func() error {
			_, err := e.Do(t.Context(), func(c input.Call) input.Input { return &input.Read{Call: c, Entity: "e"} })
			return err
		}
		if err := read(); err != nil {
			t.Fatal(err)
		}
		w.refusal = other
		before := len(w.logged())
		if err := read(); !errors.Is(err, engine.ErrStopped) {
			t.Errorf("a read that may be old: %v", err)
		}
		if got := w.logged()[before:]; len(got) > 0 {
			t.Errorf("%v has left", got)
		}
		if err := stop(); !errors.Is(err, other) {
			t.Errorf("the engine ends with %v", err)
		}
	})
}

// TestAnswersInOrder: of many callers at once, each hears the tokens left just after its
// own request, in the order in which the requests are durable.
func TestAnswersInOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		t.Helper()
		w := &world{}
		e, stop := run(t, w, 0)
		var all sync.WaitGroup
		answers := make([]answer.Answer, 120)
		for i := range answers {
			all.Go(func() {
				var err error
				if answers[i], err = e.Do(t.Context(), acquire(1, uint64(i), 0)); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		records := w.requests()
		if len(records) != len(answers) {
			t.Fatalf("%d records", len(records))
		}
		granted := 0
		for k, r := range records {
			a := answers[binary.BigEndian.Uint64(r.Key[:])]
			if (a.Code == answer.OutOfTokens) != (r.State == stored.Refused) || a.Tokens != r.Tokens || a.Left != r.Left || a.Left != core.Tokens(max(0, 99-k)) {
				t.Errorf("record %d: %+v, answered %+v", k, r, a)
			}
			if a.Code == answer.OK {
				granted++
			}
		}
		if granted != 100 {
			t.Errorf("%d granted", granted)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestFailedCommit: nothing of the failed batch or a later batch ever leaves, and the
// engine stops.
func TestFailedCommit(t *testing.T) {
	bubble(t, func(t *testing.T) {
		t.Helper()
		broken := errors.New("no space left")
		w := &world{gate: make(chan error)}
		e, stop := run(t, w, 0)
		var all sync.WaitGroup
		ask := func(id uint64, wait core.Tick) {
			all.Go(func() {
				if a, err := e.Do(t.Context(), acquire(60, id, wait)); !errors.Is(err, engine.ErrStopped) {
					t.Errorf("request %d: %+v, %v", id, a, err)
				}
			})
			synctest.Wait()
		}
		ask(1, 0)
		ask(2, 60_000)
		ask(3, 0)
		w.gate <- broken
		close(w.gate)
		all.Wait()
		synctest.Wait()
		if got := w.logged(); !slices.Equal(got, []string{"begin", "failed"}) {
			t.Errorf("after the failure: %v", got)
		}
		if _, err := e.Do(t.Context(), acquire(1, 4, 0)); !errors.Is(err, engine.ErrStopped) {
			t.Errorf("a later request: %v", err)
		}
		if err := e.Submit(input.Wake{}); !errors.Is(err, engine.ErrStopped) {
			t.Errorf("a later input: %v", err)
		}
		if _, err := e.Status(t.Context()); !errors.Is(err, engine.ErrStopped) {
			t.Errorf("status: %v", err)
		}
		if err := stop(); !errors.Is(err, broken) {
			t.Errorf("Run returned %v", err)
		}
	})
}

// TestInboxIsBounded: with too many inputs waiting, the next is refused and
// has no effect.
func TestInboxIsBounded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		t.Helper()
		w := &world{}
		const most = 5
		// The engine does not run yet.
		c, err := core.New(core.Config{Self: "a", Members: []core.SiteID{"a"}, Rand: rand.New(rand.NewPCG(1, 2))}, stored.Restored{})
		if err != nil {
			t.Fatal(err)
		}
		e := newEngine(t, engine.Config{Core: c, Store: w, Sender: w, Observer: w, MaxInbox: most})
		var all sync.WaitGroup
		busy, answered := 0, 0
		var mu sync.Mutex
		for i := range 12 {
			all.Go(func() {
				a, err := e.Do(t.Context(), acquire(1, uint64(i), 0))
				mu.Lock()
				defer mu.Unlock()
				switch {
				case errors.Is(err, engine.ErrBusy):
					busy++
				case err == nil && a.Code == answer.NotFound:
					answered++
				default:
					t.Errorf("%+v, %v", a, err)
				}
			})
		}
		synctest.Wait()
		if n := e.Waiting(); n != most {
			t.Errorf("%d wait", n)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- e.Run(ctx) }()
		all.Wait()
		if busy != 12-most || answered != most {
			t.Errorf("%d were busy, %d answered", busy, answered)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestCancelledCaller: a cancelled caller no longer waits for tokens; the tokens that
// come later are for others.
func TestCancelledCaller(t *testing.T) {
	bubble(t, func(t *testing.T) {
		t.Helper()
		w := &world{}
		e, stop := run(t, w, 0)
		why := errors.New("the user has gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := make(chan error, 1)
		go func() {
			_, err := e.Do(ctx, acquire(150, 1, 60_000))
			gone <- err
		}()
		synctest.Wait()
		if st, err := e.Status(t.Context()); err != nil || st.Waiting != 1 {
			t.Errorf("%+v, %v", st, err)
		}
		cancel(why)
		if err := <-gone; !errors.Is(err, why) {
			t.Errorf("got %v", err)
		}
		synctest.Wait()
		if st, err := e.Status(t.Context()); err != nil || st.Waiting != 0 || st.Requests != 0 {
			t.Errorf("%+v, %v", st, err)
		}
		if _, err := e.Do(ctx, acquire(1, 2, 0)); err != nil && !errors.Is(err, why) {
			t.Errorf("got %v", err)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestDeadlineIsKept: the time of a waiting acquire comes though nobody does anything
// else.
func TestDeadlineIsKept(t *testing.T) {
	bubble(t, func(t *testing.T) {
		t.Helper()
		w := &world{}
		e, stop := run(t, w, 0)
		began := time.Now()
		a, err := e.Do(t.Context(), acquire(150, 1, 7000))
		if took := time.Since(began); err != nil || a.Code != answer.OutOfTokens || took < 6990*time.Millisecond || took > 7010*time.Millisecond {
			t.Errorf("%+v, %v after %v", a, err, took)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestStop: calls that wait when the engine is stopped are told so, and calls under way
// are finished.
func TestStop(t *testing.T) {
	bubble(t, func(t *testing.T) {
		t.Helper()
		w := &world{gate: make(chan error)}
		e, stop := run(t, w, 0)
		under := make(chan error, 1)
		go func() {
			_, err := e.Do(t.Context(), acquire(1, 1, 0))
			under <- err
		}()
		synctest.Wait()
		waits := make(chan error, 1)
		go func() {
			_, err := e.Do(t.Context(), acquire(300, 2, 60_000))
			waits <- err
		}()
		synctest.Wait()
		stopped := make(chan error, 1)
		go func() { stopped <- stop() }()
		synctest.Wait()
		close(w.gate)
		if err := <-stopped; err != nil {
			t.Error(err)
		}
		if err := <-under; err != nil {
			t.Errorf("under way: %v", err)
		}
		if err := <-waits; !errors.Is(err, engine.ErrStopped) {
			t.Errorf("waiting: %v", err)
		}
	})
}

// TestRefusedDataEndsIt: a site ends at once, with its calls, when another site says that
// its data is older.
func TestRefusedDataEndsIt(t *testing.T) {
	bubble(t, func(t *testing.T) {
		t.Helper()
		w := &world{}
		c, err := core.New(core.Config{
			Self: "a", Members: []core.SiteID{"a", "b", "c"}, Rand: rand.New(rand.NewPCG(1, 2)), Run: 5, Unvouched: true,
		}, stored.Restored{
			Incarnation: 9, Commits: 3,
			Entities: []stored.Entity{{Name: "e", Generation: 1, Initial: 300, Limit: 300, Version: 1}},
			Books:    []stored.Books{{Name: "e", Generation: 1, Left: 100}},
		})
		if err != nil {
			t.Fatal(err)
		}
		e := newEngine(t, engine.Config{Core: c, Store: w, Sender: w, Observer: w})
		done, answered := make(chan error, 1), make(chan error, 1)
		go func() { done <- e.Run(t.Context()) }()
		go func() {
			_, err := e.Do(t.Context(), acquire(300, 2, 60_000))
			answered <- err
		}()
		synctest.Wait()
		asked := message.Mark{Incarnation: 9, Run: 5, Commits: 3}
		if err := e.Submit(input.Deliver{From: "b", Messages: []message.Envelope{{Vouch: &message.Vouch{
			Kind: message.VouchNo, From: "b", To: "a", Asked: asked, Known: message.Mark{Incarnation: 9, Run: 4, Commits: 4},
		}}}}); err != nil {
			t.Fatal(err)
		}
		if stale, is := errors.AsType[*core.StaleError](<-done); !is || stale.By != "b" || stale.Known.Commits != 4 {
			t.Errorf("ended with %v", stale)
		}
		if err := <-answered; !errors.Is(err, engine.ErrStopped) {
			t.Errorf("the caller is told %v", err)
		}
	})
}
