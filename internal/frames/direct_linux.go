//go:build linux && (amd64 || arm64)

package frames

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
)

// direct is a connection whose system calls the scheduler does not see. A read or write of
// a socket that does not wait is over sooner than the scheduler's work around it: before a
// call that may wait, an idle scheduler begins to watch all threads, 20 times in a
// millisecond.
type direct struct {
	net.Conn
	in, out direction
}

// direction is one direction of a connection.
type direction struct {
	// busy is held during a call. It guards the fields below.
	busy sync.Mutex
	raw  syscall.RawConn
	// step makes a system call for what is left of b, and reports whether the socket was
	// ready. It is made once, as each function value takes memory.
	step func(fd uintptr) bool
	// once is step that does not wait for the socket to be ready.
	once func(fd uintptr) bool
	// b are the bytes to be read or written, and n how many were.
	b   []byte
	n   int
	err error
}

// quick returns a connection with cheaper reads and writes where the system has a way to them.
func quick(c net.Conn) net.Conn {
	s, ok := c.(syscall.Conn)
	if !ok {
		return c
	}
	raw, err := s.SyscallConn()
	if err != nil || !isSocket(raw) {
		return c
	}
	d := &direct{Conn: c}
	d.in.raw, d.out.raw = raw, raw
	d.in.step, d.out.step = d.in.receive, d.out.send
	d.out.once = func(fd uintptr) bool {
		d.out.send(fd)
		return true
	}
	return d
}

// isSocket reports whether raw takes the system calls of sockets.
func isSocket(raw syscall.RawConn) bool {
	var err error
	if failed := raw.Control(func(fd uintptr) {
		_, err = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_TYPE)
	}); failed != nil {
		return false
	}
	return err == nil
}

// receive reads once.
func (d *direction) receive(fd uintptr) bool {
	for {
		n, errno := receive(fd, d.b)
		switch errno {
		case 0:
			d.n = n
		case syscall.EINTR:
			continue
		case syscall.EAGAIN:
			return false
		default:
			d.err = os.NewSyscallError("recvfrom", errno)
		}
		return true
	}
}

// send writes until all is written, or the socket takes no more.
func (d *direction) send(fd uintptr) bool {
	for d.n < len(d.b) {
		n, errno := send(fd, d.b[d.n:])
		switch errno {
		case 0:
			d.n += n
		case syscall.EINTR:
		case syscall.EAGAIN:
			return false
		default:
			d.err = os.NewSyscallError("sendto", errno)
			return true
		}
	}
	return true
}

// done returns the outcome of a call, and forgets its bytes. d.busy is held.
func (d *direction) done(err error) (int, error) {
	n, failed := d.n, d.err
	d.b, d.n, d.err = nil, 0, nil
	if failed != nil {
		err = failed
	}
	return n, err
}

// Read implements net.Conn.
func (d *direct) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	d.in.busy.Lock()
	defer d.in.busy.Unlock()
	d.in.b = b
	n, err := d.in.done(d.in.raw.Read(d.in.step))
	if n == 0 && err == nil {
		return 0, io.EOF
	}
	return n, err
}

// Write implements net.Conn.
func (d *direct) Write(b []byte) (int, error) {
	d.out.busy.Lock()
	defer d.out.busy.Unlock()
	d.out.b = b
	return d.out.done(d.out.raw.Write(d.out.step))
}

// attempt implements attempter.
func (d *direct) attempt(b []byte) (int, error) {
	if !d.out.busy.TryLock() {
		return 0, nil
	}
	defer d.out.busy.Unlock()
	d.out.b = b
	return d.out.done(d.out.raw.Write(d.out.once))
}

// CloseWrite closes the half of the connection that writes, if it can be closed alone.
func (d *direct) CloseWrite() error { return closeWrite(d.Conn) }
