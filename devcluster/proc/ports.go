package proc

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// StretchPorts is the number of ports of a [Stretch], enough for every process of a
// local cluster.
const StretchPorts = 600

// Ports are drawn from below the range from which the usual kernels take the local ports
// of outgoing connections. Otherwise such a connection could take the port of a process
// that is down.
const (
	firstPort = 15000
	stretches = 28
	// anyTries bounds the requests to the kernel for a port.
	anyTries = 2000
)

// errNoPort says that no free port was found.
var errNoPort = errors.New("no free port found on 127.0.0.1")

// Stretch is a run of neighbouring ports of 127.0.0.1. While a process holds a stretch,
// no other process that uses this package hands out a port of it. So parallel tests
// never get the port of a process that is down for a moment.
type Stretch struct {
	// First is the first of the stretch's ports.
	First int
	// lock sits on the port before the first, for as long as the stretch is held.
	lock net.Listener
}

// Claim finds a stretch that no process holds. The stretch is held until
// [Stretch.Release] or the end of this process. Programs that do not use this package
// may sit on some of its ports.
func Claim(ctx context.Context) (*Stretch, error) {
	var listen net.ListenConfig
	for _, at := range rand.Perm(stretches) {
		lock := firstPort + at*(StretchPorts+1)
		l, err := listen.Listen(ctx, "tcp", loopback(lock))
		if err == nil {
			return &Stretch{First: lock + 1, lock: l}, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return nil, errNoPort
}

// Release lets other processes claim the stretch.
func (s *Stretch) Release() error { return s.lock.Close() }

// handedOut is the stretch from which this process hands out single ports.
// Ports come in turn, so that a port stays its owner's for as long as possible.
var handedOut struct {
	sync.Mutex
	stretch *Stretch
	next    int
}

// inTurn returns the port after the last returned port; false if this process has no
// stretch and can claim none.
func inTurn(ctx context.Context) (int, bool) {
	handedOut.Lock()
	defer handedOut.Unlock()
	if handedOut.stretch == nil {
		s, err := Claim(ctx)
		if err != nil {
			return 0, false
		}
		handedOut.stretch = s
	}
	port := handedOut.stretch.First + handedOut.next%StretchPorts
	handedOut.next++
	return port, true
}

// ports reserves ports of 127.0.0.1 by holding them, until release. Between
// the release and the child's bind a foreign program can take a port. The child
// fails then, and the caller tries other ports.
type ports struct {
	held  []func() error
	taken map[int]bool
}

// next returns an address with a port free for TCP and for UDP, and holds the port.
func (p *ports) next(ctx context.Context) (string, error) {
	if p.taken == nil {
		p.taken = make(map[int]bool)
	}
	for range StretchPorts {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		port, ok := inTurn(ctx)
		if !ok {
			break
		}
		if p.taken[port] {
			continue
		}
		if addr, ok := p.hold(ctx, port); ok {
			return addr, nil
		}
	}
	var listen net.ListenConfig
	// The range is crowded or forbidden; any port will do.
	for range anyTries {
		l, err := listen.Listen(ctx, "tcp", loopback(0))
		if err != nil {
			return "", fmt.Errorf("find a free port: %w", err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		if err := l.Close(); err != nil {
			return "", fmt.Errorf("find a free port: %w", err)
		}
		if p.taken[port] {
			continue
		}
		if addr, ok := p.hold(ctx, port); ok {
			return addr, nil
		}
	}
	return "", errNoPort
}

// hold binds the port for TCP and UDP, and reports whether both were free.
func (p *ports) hold(ctx context.Context, port int) (string, bool) {
	addr := loopback(port)
	var listen net.ListenConfig
	l, err := listen.Listen(ctx, "tcp", addr)
	if err != nil {
		return "", false
	}
	u, err := listen.ListenPacket(ctx, "udp", addr)
	if err != nil {
		_ = l.Close()
		return "", false
	}
	p.taken[port] = true
	p.held = append(p.held, l.Close, u.Close)
	return addr, true
}

// release lets go of all ports held.
func (p *ports) release() error {
	var errs []error
	for _, free := range p.held {
		errs = append(errs, free())
	}
	p.held = nil
	return errors.Join(errs...)
}

// loopback returns the address of a port.
func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
