package peer

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/samya-db/samya/site/core"
)

// cable passes bytes on to a listener, until it is cut: from then on both ends hear
// nothing, not even that it is cut.
type cable struct {
	net.Listener
	to   string
	cut  chan struct{}
	over chan struct{}
	all  sync.WaitGroup
}

// layCable returns a cable to an address.
func layCable(t *testing.T, to string) *cable {
	t.Helper()
	lis, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cable{Listener: lis, to: to, cut: make(chan struct{}), over: make(chan struct{})}
	c.all.Go(c.accept)
	t.Cleanup(func() {
		_ = lis.Close()
		close(c.over)
		c.all.Wait()
	})
	return c
}

func (c *cable) accept() {
	for {
		near, err := c.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", c.to)
		if err != nil {
			_ = near.Close()
			continue
		}
		c.all.Go(func() { c.pass(near, far) })
		c.all.Go(func() { c.pass(far, near) })
		c.all.Go(func() {
			<-c.over
			_ = near.Close()
			_ = far.Close()
		})
	}
}

// pass passes on the bytes of an end.
func (c *cable) pass(to io.Writer, from io.Reader) {
	b := make([]byte, 1<<16)
	for {
		n, err := from.Read(b)
		select {
		case <-c.cut:
			<-c.over
			return
		default:
		}
		if n > 0 {
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// TestSilentMemberIsGivenUp: a link to a silent member, over a connection that does not
// break, is down before long, though nothing is sent.
func TestSilentMemberIsGivenUp(t *testing.T) {
	t.Parallel() // It takes 13 s, and does nothing.
	eu, _ := inside(asEU)
	address, _ := listening(t, eu)
	c := layCable(t, address)
	links := make(chan int, 100)
	us, _ := inside(func(cfg *Config) {
		cfg.Address = func(core.SiteID) string { return c.Addr().String() }
		cfg.Connected = func(s []core.SiteID) { links <- len(s) }
	})
	running(t, us)
	timeout := time.After(2 * limit)
	for want := 1; want >= 0; want-- {
		select {
		case n := <-links:
			if n != want {
				t.Fatalf("%d links, want %d", n, want)
			}
		case <-timeout:
			t.Fatalf("there are not %d links", want)
		}
		if want == 1 {
			close(c.cut)
		}
	}
}
