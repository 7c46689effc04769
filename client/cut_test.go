package client_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/samya-db/samya/client"
	"github.com/samya-db/samya/internal/wan"
	"github.com/samya-db/samya/site/sitetest"
)

// wire is the way to a server. It can swallow the server's answers, and break.
type wire struct {
	listener net.Listener
	swallow  atomic.Bool

	mu    sync.Mutex
	conns map[net.Conn]struct{}
	all   sync.WaitGroup
}

// newWire returns a wire to an address.
func newWire(tb testing.TB, to string) *wire {
	tb.Helper()
	l, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	w := &wire{listener: l, conns: map[net.Conn]struct{}{}}
	w.all.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				in.Close()
				continue
			}
			w.mu.Lock()
			w.conns[in], w.conns[out] = struct{}{}, struct{}{}
			w.mu.Unlock()
			w.all.Go(func() { w.carry(out, in, nil) })
			w.all.Go(func() { w.carry(in, out, &w.swallow) })
		}
	})
	tb.Cleanup(func() {
		l.Close()
		w.cut()
		w.all.Wait()
	})
	return w
}

// carry copies until either end breaks, except for swallowed bytes.
func (w *wire) carry(to, from net.Conn, swallow *atomic.Bool) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if swallow != nil && swallow.Load() {
			n = 0
		}
		if _, werr := to.Write(buf[:n]); err != nil || werr != nil {
			return
		}
	}
}

// cut breaks all connections.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.conns {
		c.Close()
	}
	clear(w.conns)
}

// TestAnswersCutOff: answers are lost on the way to callers, with their connections, over
// and over. In the end the clients hold as many tokens as are out by the books.
func TestAnswersCutOff(t *testing.T) {
	names := []string{"as", "eu", "us"}
	const limit = 9000
	cluster := sitetest.Start(t, names, nil)
	cluster.Create("acme/vm", limit)
	cfg := client.Config{Region: "eu", TryTime: 300 * time.Millisecond, ProbeInterval: 200 * time.Millisecond}
	var wires []*wire
	for _, n := range names {
		w := newWire(t, cluster.Site(n).GRPCAddr())
		wires = append(wires, w)
		cfg.Targets = append(cfg.Targets, client.Target{Address: w.listener.Addr().String(), Region: n})
	}
	c := newClient(t, cfg)

	var callers, faults sync.WaitGroup
	over := make(chan struct{})
	var cuts atomic.Int64
	faults.Go(func() {
		for {
			w := wires[rand.N(len(wires))]
			w.swallow.Store(true)
			if wan.Wait(t.Context(), rand.N(20*time.Millisecond)) != nil {
				return
			}
			w.cut()
			cuts.Add(1)
			w.swallow.Store(false)
			if wan.Wait(t.Context(), rand.N(100*time.Millisecond)) != nil {
				return
			}
			select {
			case <-over:
				return
			default:
			}
		}
	})
	var held, resumed, elsewhere atomic.Int64
	for range 20 {
		callers.Go(func() {
			var mine int64
			for cuts.Load() < 20 {
				ctx, cancel := context.WithTimeout(t.Context(), rand.N(2*time.Second))
				moved, site, err := moveOne(ctx, c, mine, nil)
				cancel()
				for errors.Is(err, client.ErrOutcomeUnknown) {
					resumed.Add(1)
					moved, site, err = moveOne(t.Context(), c, mine, err)
				}
				if err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, client.ErrUnavailable) {
					t.Error(err)
					return
				}
				if site != "" && site != "eu" {
					elsewhere.Add(1)
				}
				mine += moved
			}
			held.Add(mine)
		})
	}
	callers.Wait()
	close(over)
	faults.Wait()
	t.Logf("%d held, %d calls resumed, %d answered elsewhere, %d cuts", held.Load(), resumed.Load(), elsewhere.Load(), cuts.Load())
	if elsewhere.Load() == 0 {
		t.Error("no call went to another site: the faults do not bite")
	}
	sitetest.Eventually(t, "the books", func() error {
		u := cluster.Books("acme/vm")
		if u.GetAcquired() != held.Load() || u.GetAvailable()+u.GetAcquired() != limit {
			return fmt.Errorf("%d are out and %d left of %d; clients hold %d", u.GetAcquired(), u.GetAvailable(), limit, held.Load())
		}
		return nil
	})
}

// moveOne acquires five tokens, or gives forty back where fifty are held.
func moveOne(ctx context.Context, c *client.Client, held int64, before error) (moved int64, site string, err error) {
	if held < 50 {
		g, err := c.Acquire(ctx, "acme/vm", 5, client.Resume(before))
		return g.Tokens, g.Site, err
	}
	r, err := c.Release(ctx, "acme/vm", 40, client.Resume(before))
	return -r.Tokens, r.Site, err
}

// TestNothingIsLeftRunning: a client that was used and closed leaves nothing running,
// even with targets that are not there.
func TestNothingIsLeftRunning(t *testing.T) {
	cluster := sitetest.Start(t, []string{"us"}, nil)
	cluster.Create("acme/vm", 100)
	before := goleak.IgnoreCurrent()
	for range 3 {
		c, err := client.New(client.Config{
			Region:  "us",
			Targets: append(sites(cluster, "us"), client.Target{Address: sitetest.FreePort(t)}),
		})
		if err != nil {
			t.Fatal(err)
		}
		l, err := c.AcquireLease(t.Context(), "acme/vm", 1, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		held, _ := l.Keep(t.Context())
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if !errors.Is(context.Cause(held), client.ErrClosed) {
			t.Errorf("a kept lease ended with %v, want ErrClosed", context.Cause(held))
		}
		if ctx, stop := l.Keep(t.Context()); !errors.Is(context.Cause(ctx), client.ErrClosed) {
			t.Error("a lease is kept by a closed client")
			stop()
		}
		if err := c.Close(t.Context()); err != nil {
			t.Errorf("closing again: %v", err)
		}
	}
	// The site's ends of the connections take a moment, which Find gives them.
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
}

// TestKeep: a kept lease outlives its time to live. A lease that cannot be kept ends the
// context of the work under it.
func TestKeep(t *testing.T) {
	cluster := sitetest.Start(t, []string{"us"}, nil)
	cluster.Create("acme/vm", 100)
	w := newWire(t, cluster.Site("us").GRPCAddr())
	c := newClient(t, client.Config{Targets: []client.Target{{Address: w.listener.Addr().String()}}})
	l, err := c.AcquireLease(t.Context(), "acme/vm", 7, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	held, stop := l.Keep(t.Context())
	defer stop()
	if wan.Wait(held, 3*time.Second) != nil {
		t.Fatalf("the lease was lost: %v", context.Cause(held))
	}
	if u := cluster.Books("acme/vm"); u.GetAcquired() != 7 {
		t.Errorf("%d tokens are out after three times the lease's time to live, want 7", u.GetAcquired())
	}
	w.swallow.Store(true)
	<-held.Done()
	if !errors.Is(context.Cause(held), client.ErrLeaseNotFound) {
		t.Errorf("the lease ended with %v, want ErrLeaseNotFound", context.Cause(held))
	}
	sitetest.Eventually(t, "the tokens to come back", func() error {
		if n := cluster.Books("acme/vm").GetAcquired(); n != 0 {
			return fmt.Errorf("%d tokens are out", n)
		}
		return nil
	})
}
