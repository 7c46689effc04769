package frames

import (
	"errors"
	"net"
	"syscall"
	"testing"
)

// given is a listener that accepts given connections.
type given struct {
	net.Listener
	conns chan net.Conn
}

var errRefused = errors.New("refused, as asked")

// Accept implements net.Listener.
func (g *given) Accept() (net.Conn, error) {
	if c := <-g.conns; c != nil {
		return c, nil
	}
	return nil, errRefused
}

// Close implements net.Listener.
func (g *given) Close() error { return nil }

// TestLimit: so many connections are open at a time, and no more. A connection counts once,
// and one that could not be accepted does not.
func TestLimit(t *testing.T) {
	g := &given{conns: make(chan net.Conn, 10)}
	l := Limit(g, 2)
	accept := func(t *testing.T) net.Conn {
		t.Helper()
		a, b := net.Pipe()
		t.Cleanup(func() { _, _ = a.Close(), b.Close() })
		g.conns <- a
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	open := l.(*limiter).open
	count := func(want int) {
		t.Helper()
		if len(open) != want {
			t.Fatalf("%d connections are open, not %d", len(open), want)
		}
	}
	first := accept(t)
	g.conns <- nil
	if _, err := l.Accept(); !errors.Is(err, errRefused) {
		t.Fatal(err)
	}
	count(1)
	second := accept(t)
	count(2)
	for range 2 {
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
	}
	count(1)
	accept(t)
	late := make(chan error)
	go func() {
		_, err := l.Accept()
		late <- err
	}()
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	last, _ := net.Pipe()
	g.conns <- last
	if err := <-late; err != nil {
		t.Fatal(err)
	}
	go func() {
		_, err := l.Accept()
		late <- err
	}()
	for range 2 {
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-late; !errors.Is(err, net.ErrClosed) {
		t.Errorf("a closed listener: %v", err)
	}
	count(2)
}

// TestLimitedDescriptor: a limited connection shows its descriptor, if it has one.
func TestLimitedDescriptor(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if _, err := (&limited{Conn: a}).SyscallConn(); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a pipe: %v", err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var conn syscall.Conn = &limited{Conn: c}
	if _, err := conn.SyscallConn(); err != nil {
		t.Errorf("a connection by TCP: %v", err)
	}
}
