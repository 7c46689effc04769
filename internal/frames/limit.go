package frames

import (
	"errors"
	"net"
	"sync"
	"syscall"
)

// Limit returns a listener that has at most n connections open at a time. Unlike those of
// other such listeners, its connections show their descriptors, see syscall.Conn.
func Limit(l net.Listener, n int) net.Listener {
	return &limiter{Listener: l, open: make(chan struct{}, n), closed: make(chan struct{})}
}

// limiter is the listener of Limit.
type limiter struct {
	net.Listener
	// open has a token for each open connection.
	open   chan struct{}
	closed chan struct{}
	once   sync.Once
}

// Accept implements net.Listener.
func (l *limiter) Accept() (net.Conn, error) {
	select {
	case l.open <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.open
		return nil, err
	}
	return &limited{Conn: c, by: l}, nil
}

// Close implements net.Listener.
func (l *limiter) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// limited is a connection that counts until it is closed.
type limited struct {
	net.Conn
	by   *limiter
	once sync.Once
}

// Close implements net.Conn.
func (l *limited) Close() error {
	err := l.Conn.Close()
	l.once.Do(func() { <-l.by.open })
	return err
}

// SyscallConn implements syscall.Conn.
func (l *limited) SyscallConn() (syscall.RawConn, error) {
	if c, ok := l.Conn.(syscall.Conn); ok {
		return c.SyscallConn()
	}
	return nil, errors.ErrUnsupported
}

// CloseWrite closes the half of the connection that writes, if it can be closed alone.
func (l *limited) CloseWrite() error { return closeWrite(l.Conn) }

// closeWrite closes the half of a connection that writes, if it can be closed alone.
func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
