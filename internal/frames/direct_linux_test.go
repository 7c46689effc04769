//go:build linux && (amd64 || arm64)

package frames

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/nettest"
	"google.golang.org/grpc"

	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// pair returns both ends of a connection by TCP.
func pair(t *testing.T) (client, server net.Conn) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if client, err = (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = client.Close(), server.Close() })
	return client, server
}

// isDirect fails the test unless a connection is direct.
func isDirect(t *testing.T, c net.Conn) *direct {
	t.Helper()
	d, ok := c.(*direct)
	if !ok {
		t.Fatalf("a connection of type %T", c)
	}
	return d
}

// TestDirect: direct connections do all that connections do, also at deadlines, and when
// they are closed during a call.
func TestDirect(t *testing.T) {
	nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
		a, b := pair(t)
		return isDirect(t, quick(a)), isDirect(t, quick(b)), func() { _, _ = a.Close(), b.Close() }, nil
	})
}

// TestDirectStall: a write that the other side does not take waits, is done once it is
// taken, and ends at its deadline.
func TestDirectStall(t *testing.T) {
	a, b := pair(t)
	from, to := isDirect(t, quick(a)), isDirect(t, quick(b))
	sent := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
	var writing sync.WaitGroup
	writing.Go(func() {
		if n, err := from.Write(sent); n != len(sent) || err != nil {
			t.Errorf("%d bytes were written: %v", n, err)
		}
		if err := from.CloseWrite(); err != nil {
			t.Error(err)
		}
	})
	got, err := io.ReadAll(to)
	if err != nil || !bytes.Equal(got, sent) {
		t.Errorf("%d bytes of %d came: %v", len(got), len(sent), err)
	}
	writing.Wait()
	if err := to.SetWriteDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	n, err := to.Write(sent)
	if !errors.Is(err, os.ErrDeadlineExceeded) || n == 0 || n == len(sent) {
		t.Errorf("%d bytes of %d were written: %v", n, len(sent), err)
	}
}

// TestDirectMemory: reads and writes take no memory.
func TestDirectMemory(t *testing.T) {
	a, b := pair(t)
	from, to := isDirect(t, quick(a)), isDirect(t, quick(b))
	text := []byte("text")
	if n := testing.AllocsPerRun(100, func() {
		if _, err := from.Write(text); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(to, text); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations for a write and a read", n)
	}
}

// TestIndirect: a connection without a socket stays as it is.
func TestIndirect(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if got := quick(a); got != a {
		t.Errorf("a pipe became a %T", got)
	}
	if got := quick(&limited{Conn: a}); got == nil {
		t.Error("no connection")
	} else if _, is := got.(*direct); is {
		t.Error("a limited pipe is direct")
	}
}

// TestDirectEnds: both ends of a stream are direct, also where the server limits its
// connections. gRPC keeps the connections that it has made.
func TestDirectEnds(t *testing.T) {
	r := newRig(t, settings{limit: 10})
	var dialled net.Conn
	o := r.over(nil)
	dial := o.o.Dial
	o.o.Dial = func(ctx context.Context) (net.Conn, string, error) {
		c, name, err := dial(ctx)
		dialled = c
		return c, name, err
	}
	s := r.stream(o)
	s.answers()
	client := s.rpc.(*grpc.GenericClientStream[samyav1.StreamRequest, samyav1.StreamResponse]).ClientStream.(*clientStream)
	if got := isDirect(t, client.conn.Conn); got.Conn != dialled {
		t.Errorf("the client's connection is over a %T", got.Conn)
	}
	r.framed.mu.Lock()
	defer r.framed.mu.Unlock()
	for c := range r.framed.conns {
		isDirect(t, c.Conn)
	}
}
