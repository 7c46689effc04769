package ctxlock_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/samya-db/samya/kvpart/internal/ctxlock"
	"github.com/samya-db/samya/kvpart/internal/waittest"
)

// Whoever waits for a lock gives up at the end of the context, and leaves no lock behind.
func TestLockUntilTheEnd(t *testing.T) {
	for _, share := range []bool{false, true} {
		var mu sync.RWMutex
		mu.Lock()
		ctx, cancel := context.WithCancel(t.Context())
		if err := ctxlock.Lock(waittest.Context{Context: ctx, Do: cancel}, &mu, share); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		mu.Unlock()
		if err := ctxlock.Lock(context.Background(), &mu, false); err != nil {
			t.Error(err)
		}
		ctxlock.Unlock(&mu, false)
	}
}

// A waiter gets the lock once it is free.
func TestLockOnceFree(t *testing.T) {
	for _, share := range []bool{false, true} {
		var mu sync.RWMutex
		mu.Lock()
		ctx, cancel := context.WithCancel(t.Context())
		free := sync.OnceFunc(mu.Unlock)
		if err := ctxlock.Lock(waittest.Context{Context: ctx, Do: free}, &mu, share); err != nil {
			t.Fatal(err)
		}
		if ctxlock.Try(&mu, false) {
			t.Error("two have the lock")
		}
		ctxlock.Unlock(&mu, share)
		cancel()
	}
}

// ended is a context that is found ended as soon as somebody looks.
type ended struct {
	context.Context
	asked atomic.Int64
}

func (e *ended) Err() error { return context.DeadlineExceeded }

func (e *ended) Done() <-chan struct{} {
	e.asked.Add(1)
	done := make(chan struct{})
	close(done)
	return done
}

// Yields take long where goroutines wait for processors: a waiter looks at its context
// after the first, and does not go on to wait.
func TestLockLooksAfterAYield(t *testing.T) {
	var mu sync.RWMutex
	mu.Lock()
	defer mu.Unlock()
	e := &ended{Context: t.Context()}
	if err := ctxlock.Lock(e, &mu, false); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if n := e.asked.Load(); n > 1 {
		t.Errorf("it waited for the end, %d times", n-1)
	}
}
