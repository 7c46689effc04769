// Package ctxlock takes locks on behalf of a context. It does not make waiting fair.
package ctxlock

import (
	"context"
	"runtime"
	"sync"
)

// Lock takes a lock, with share for reading. It fails if ctx ends before.
func Lock(ctx context.Context, mu *sync.RWMutex, share bool) error {
	if Try(mu, share) {
		return nil
	}
	if ctx.Done() == nil {
		lock(mu, share)
		return nil
	}
	return contend(ctx, mu, share)
}

// contend waits for a lock that somebody holds.
func contend(ctx context.Context, mu *sync.RWMutex, share bool) error {
	// Jobs are short as a rule. But where goroutines wait for processors, a yield takes
	// long.
	for range 4 {
		runtime.Gosched()
		if Try(mu, share) {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	got := make(chan struct{})
	go func() {
		lock(mu, share)
		select {
		case got <- struct{}{}:
		case <-ctx.Done():
			Unlock(mu, share)
		}
	}()
	select {
	case <-got:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Try takes a lock that is free.
func Try(mu *sync.RWMutex, share bool) bool {
	if share {
		return mu.TryRLock()
	}
	return mu.TryLock()
}

func lock(mu *sync.RWMutex, share bool) {
	if share {
		mu.RLock()
	} else {
		mu.Lock()
	}
}

// Unlock frees a lock.
func Unlock(mu *sync.RWMutex, share bool) {
	if share {
		mu.RUnlock()
	} else {
		mu.Unlock()
	}
}
