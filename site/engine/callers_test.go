package engine_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/stored"
	"github.com/samya-db/samya/site/engine"
)

// racer is a world in which callers give up just as their commits end.
type racer struct {
	world
	mu     sync.Mutex
	giveUp []context.CancelFunc
}

func (r *racer) Commit(records *stored.Records) error {
	r.mu.Lock()
	cancels := r.giveUp
	r.giveUp = nil
	r.mu.Unlock()
	for _, cancel := range cancels {
		if rand.N(2) == 0 {
			go cancel()
		}
	}
	return r.world.Commit(records)
}

// TestAnswersAsCallersGiveUp: many callers give up just as their answers become durable.
// Each gets its own answer, marked by its tokens, or the error that it gave up.
func TestAnswersAsCallersGiveUp(t *testing.T) {
	const callers, rounds = 8, 1500
	w := new(racer)
	e, stop := runWith(t, w, &w.world, 0, stored.Restored{
		Entities: []stored.Entity{{Name: "e", Generation: 1, Initial: 1 << 40, Limit: 1 << 40, Version: 1}},
		Books:    []stored.Books{{Name: "e", Generation: 1, Left: 1 << 40}},
	})
	all, end := context.WithTimeout(t.Context(), 30*time.Second)
	defer end()
	var answered, gaveUp atomic.Int64
	var wait sync.WaitGroup
	for caller := range callers {
		wait.Go(func() {
			for i := range rounds {
				mark := core.Tokens(1 + caller + callers*(i%100))
				ctx, cancel := context.WithCancel(all)
				w.mu.Lock()
				w.giveUp = append(w.giveUp, cancel)
				w.mu.Unlock()
				a, err := e.Do(ctx, acquire(mark, uint64(1+caller*rounds+i), 0))
				cancel()
				switch {
				case err == nil && a.Code == answer.OK && a.Tokens == mark:
					answered.Add(1)
				case errors.Is(err, context.Canceled) && all.Err() == nil:
					gaveUp.Add(1)
				default:
					t.Errorf("caller %d asked for %d and is told %+v, %v", caller, mark, a, err)
					end()
					return
				}
			}
		})
	}
	wait.Wait()
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	select {
	case err := <-stopped:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Error("it does not stop: it tells an answer that nobody takes")
	}
	if !t.Failed() && (answered.Load() == 0 || gaveUp.Load() == 0) {
		t.Errorf("%d calls were answered and %d gave up: they did not meet", answered.Load(), gaveUp.Load())
	}
}

// TestARefusedCoreTellsNothing: effects that a core has gathered when its data turns out
// to be refused do not leave, though their commit is done.
func TestARefusedCoreTellsNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		t.Helper()
		w := &world{gate: make(chan error)}
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
			_, err := e.Do(t.Context(), acquire(1, 1, 60_000))
			answered <- err
		}()
		synctest.Wait()
		// The messages that ask others to vouch may leave before the commit or after.
		before := w.logged()
		if !slices.Contains(before, "begin") || slices.Contains(before, "end") {
			t.Fatalf("%v, want a commit under way", before)
		}
		// So many inputs are handled beside the commit.
		asked := message.Mark{Incarnation: 9, Run: 5, Commits: 3}
		for range 64 {
			if err := e.Submit(input.Deliver{From: "b", Messages: []message.Envelope{{Vouch: &message.Vouch{
				Kind: message.VouchNo, From: "b", To: "a", Asked: asked, Known: message.Mark{Incarnation: 9, Run: 4, Commits: 4},
			}}}}); err != nil {
				break
			}
		}
		close(w.gate)
		if _, is := errors.AsType[*core.StaleError](<-done); !is {
			t.Error("it does not end as refused")
		}
		if err := <-answered; !errors.Is(err, engine.ErrStopped) {
			t.Errorf("the caller is told %v by a core that is refused", err)
		}
		for _, what := range w.logged()[len(before):] {
			if what == "send true" {
				t.Error("messages of a refused core leave")
			}
		}
	})
}
