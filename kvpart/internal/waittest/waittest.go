// Package waittest has the helpers of tests of waiting: a context that tells when somebody is
// about to wait for its end, and a guard against waiting for ever. It knows no store.
package waittest

import (
	"context"
	"testing"
	"time"
)

// Context calls Do whenever somebody is about to wait for its end.
type Context struct {
	context.Context //nolint:containedctx // it is a context itself
	Do              func()
}

// Done calls Do.
func (c Context) Done() <-chan struct{} {
	c.Do()
	return c.Context.Done()
}

// patience is how long a call may take on a busy machine.
const patience = 20 * time.Second

// Returns fails the test if fn does not return.
func Returns(t *testing.T, doing string, fn func()) {
	t.Helper()
	returned := make(chan struct{})
	go func() { defer close(returned); fn() }()
	select {
	case <-returned:
	case <-time.After(patience):
		t.Fatalf("%s does not return", doing)
	}
}
