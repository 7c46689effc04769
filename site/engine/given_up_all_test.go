package engine_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/engine"
)

// ends is a Receiver that keeps what it is told.
type ends chan error

// Receive implements engine.Receiver.
func (c ends) Receive(_ *engine.Call, _ answer.Answer, err error) engine.Flusher {
	c <- err
	return nil
}

// TestGiveUp: a commit hangs. All calls are given up: the call in the commit, a call that
// waits for the next, and an acquire that waits for tokens. Each is told so once. A later
// call gets its own answer, and nobody waits for tokens any more.
func TestGiveUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		t.Helper()
		w := &world{gate: make(chan error)}
		e, stop := run(t, w, 0)
		e.GiveUp() // nothing is under way
		type end struct {
			answer answer.Answer
			err    error
		}
		do := func(n core.Tokens, id uint64, wait core.Tick) <-chan end {
			ended := make(chan end, 1)
			go func() {
				a, err := e.Do(t.Context(), acquire(n, id, wait))
				ended <- end{a, err}
			}()
			synctest.Wait()
			return ended
		}
		givenUp := []<-chan end{do(40, 1, 0), do(20, 2, 0), do(90, 3, 3_600_000)}
		started := make(ends, 2)
		c := &engine.Call{To: started}
		c.Input = acquire(1, 4, 0)(c)
		if err := e.Start([]*engine.Call{c}); err != nil {
			t.Fatal(err)
		}
		e.GiveUp()
		e.GiveUp()
		synctest.Wait()
		for i, ended := range givenUp {
			if len(ended) != 1 {
				t.Fatalf("call %d waits on", i+1)
			}
			if got := <-ended; !errors.Is(got.err, engine.ErrGivenUp) || got.answer != (answer.Answer{}) {
				t.Errorf("call %d is told %+v, %v", i+1, got.answer, got.err)
			}
		}
		if len(started) != 1 || !errors.Is(<-started, engine.ErrGivenUp) {
			t.Error("a call that was started is not told once that it was given up")
		}
		// As many as were given up: none may get the answer of another.
		var later []<-chan end
		for i := range givenUp {
			later = append(later, do(core.Tokens(1+i), uint64(5+i), 0))
		}
		close(w.gate)
		synctest.Wait()
		for i, ended := range later {
			if len(ended) != 1 {
				t.Fatalf("later call %d waits on", i+1)
			}
			if got := <-ended; got.err != nil || got.answer.Code != answer.OK || got.answer.Tokens != core.Tokens(1+i) {
				t.Errorf("later call %d is told %+v, %v", i+1, got.answer, got.err)
			}
		}
		// The tokens would serve the acquire that waited.
		if _, err := e.Do(t.Context(), func(c input.Call) input.Input {
			return &input.Release{Call: c, Entity: "e", Tokens: 60, Request: attempt.Key{9}}
		}); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		for _, r := range w.requests() {
			if r.Key == (attempt.Key{7: 3}) {
				t.Error("an acquire was served after it was given up")
			}
		}
		if len(started) != 0 {
			t.Error("a call is told twice")
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
