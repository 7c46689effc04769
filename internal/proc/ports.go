package proc

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are drawn from below the range from which the usual kernels take the
// local ports of outgoing connections: while a killed process is down, such a
// connection must not come to sit on its port.
const (
	firstPort = 15000
	lastPort  = 31999
	portTries = 2000
)

// errNoPort says that no free port was found.
var errNoPort = errors.New("no free port found on 127.0.0.1")

// ports reserves ports of 127.0.0.1 by holding them, until release. Between
// the release and the child's bind another program can take one, which the
// caller finds out by the child's failure and answers with other ports.
type ports struct {
	held  []func() error
	taken map[int]bool
}

// next returns an address whose port is free for TCP and for UDP, and holds it.
func (p *ports) next(ctx context.Context) (string, error) {
	if p.taken == nil {
		p.taken = make(map[int]bool)
	}
	for range portTries {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		if p.taken[port] {
			continue
		}
		if addr, ok := p.hold(ctx, port); ok {
			return addr, nil
		}
	}
	var listen net.ListenConfig
	// The range is crowded or forbidden; any port will do.
	for range portTries {
		l, err := listen.Listen(ctx, "tcp", "127.0.0.1:0")
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
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
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
