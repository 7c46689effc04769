package peer

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"

	peerv1 "github.com/samya-db/samya/proto/samya/peer/v1"
	"github.com/samya-db/samya/site/core"
)

// limit bounds a test's wait.
const limit = 30 * time.Second

// listening has a server take the links of others; over gets a token for each connection
// that ends.
func listening(t *testing.T, l *Links) (address string, over <-chan struct{}) {
	t.Helper()
	lis, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ends := make(connections, 1000)
	server := grpc.NewServer(grpc.StatsHandler(ends))
	peerv1.RegisterPeerServiceServer(server, l)
	var done sync.WaitGroup
	done.Go(func() { _ = server.Serve(lis) })
	t.Cleanup(func() {
		server.Stop()
		done.Wait()
	})
	return lis.Addr().String(), ends
}

// connections gets a token for each connection that ended.
type connections chan struct{}

// TagConn implements stats.Handler.
func (c connections) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (c connections) HandleConn(_ context.Context, s stats.ConnStats) {
	if _, ended := s.(*stats.ConnEnd); ended {
		c <- struct{}{}
	}
}

// TagRPC implements stats.Handler.
func (c connections) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC implements stats.Handler.
func (c connections) HandleRPC(context.Context, stats.RPCStats) {}

// running runs links until the test ends.
func running(t *testing.T, l *Links) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { l.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		done.Wait()
	})
}

// TestRefusedConnectionIsClosed: an attempt that fails leaves no connection behind.
func TestRefusedConnectionIsClosed(t *testing.T) {
	eu, _ := inside(func(c *Config) { c.Self, c.Cluster = "eu", "test" })
	address, over := listening(t, eu)
	us, _ := inside(func(c *Config) { c.Address = func(core.SiteID) string { return address } })
	running(t, us)
	timeout := time.After(limit)
	for n := range 3 {
		select {
		case <-over:
		case <-timeout:
			t.Fatalf("%d connections are closed", n)
		}
	}
}

// TestWhatWasHeardBeforeTheLinkIsForgotten: a member that was heard of while its link
// came up is not tried at once when that link breaks.
func TestWhatWasHeardBeforeTheLinkIsForgotten(t *testing.T) {
	eu, _ := inside(asEU)
	address, _ := listening(t, eu)
	heard := make(chan int, 100)
	var k *link
	us, k := inside(func(c *Config) {
		c.Address = func(core.SiteID) string {
			k.hear()
			return address
		}
		c.Connected = func([]core.SiteID) { heard <- len(k.heard) }
	})
	running(t, us)
	select {
	case n := <-heard:
		if n != 0 {
			t.Error("it is heard of again as soon as the link is up")
		}
	case <-time.After(limit):
		t.Fatal("no link")
	}
}
