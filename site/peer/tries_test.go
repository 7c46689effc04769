package peer

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/samya-db/samya/site/core"
)

// counted is a context that counts the contexts that end with it.
type counted struct {
	context.Context
	done chan struct{}
	open atomic.Int64
}

// Done implements context.Context.
func (c *counted) Done() <-chan struct{} { return c.done }

// AfterFunc counts a child: package context calls it on a foreign context for each.
func (c *counted) AfterFunc(func()) (stop func() bool) {
	c.open.Add(1)
	return func() bool { return c.open.Add(-1) >= 0 }
}

// TestATryLeavesNothing: a member that is away for a month is tried a million times, and
// no try leaves anything behind.
func TestATryLeavesNothing(t *testing.T) {
	lis, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := lis.Addr().String()
	if err := lis.Close(); err != nil {
		t.Fatal(err)
	}
	_, k := inside(func(cfg *Config) { cfg.Address = func(core.SiteID) string { return address } })
	life := &counted{Context: context.Background(), done: make(chan struct{})}
	if err := k.connect(life); err == nil {
		t.Fatal("nobody listens, and the link was up")
	}
	if n := life.open.Load(); n != 0 {
		t.Errorf("%d contexts of the try are left", n)
	}
}
