package kvpart

import (
	"errors"
	"fmt"
	"sync/atomic"
)

// ErrNested says that the function of an Execute used its own store; nothing was done.
var ErrNested = errors.New("store used by its own transaction")

// nesting knows the goroutines that run functions of Execute.
type nesting struct {
	_     [64]byte     // a cache line of its own: every request reads count
	count atomic.Int64 // functions that run
	_     [64]byte
	// running has the goroutine of the function on each partition, 0 without a function.
	// A function runs alone on its partitions, and has the place of the first.
	running []atomic.Uintptr
}

// enter notes that the function of a transaction begins on a partition. It returns what
// leave takes.
func (n *nesting) enter(partition int32) *atomic.Uintptr {
	at := &n.running[partition]
	at.Store(goroutine())
	n.count.Add(1)
	return at
}

// leave notes the end of a function, before its partitions are free.
func (n *nesting) leave(at *atomic.Uintptr) {
	n.count.Add(-1)
	at.Store(0)
}

// inside reports whether the calling goroutine runs the function of a transaction. The
// entry of the own goroutine does not change meanwhile, so no lock is needed.
func (n *nesting) inside() bool { return n.count.Load() > 0 && n.find() }

func (n *nesting) find() bool {
	self := goroutine()
	for i := range n.running {
		if n.running[i].Load() == self {
			return true
		}
	}
	return false
}

// outside fails with ErrNested if the caller runs the function of a transaction of s.
func (s *Store) outside(what string) error {
	if s.nesting.inside() {
		return fmt.Errorf("%s: %w", what, ErrNested)
	}
	return nil
}
