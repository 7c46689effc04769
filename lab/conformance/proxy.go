package conformance

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
)

// Proxy passes connections on to an address. While it is mute it passes on what clients
// send, and breaks a connection instead of passing an answer back: the answer is lost, and
// the request may have been done.
type Proxy struct {
	listener net.Listener
	to       string
	mute     atomic.Bool
	handlers sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

// NewProxy makes a proxy before an address. With a configuration of TLS, clients speak TLS
// to the proxy, and the proxy speaks plainly to the address.
func NewProxy(ctx context.Context, to string, security *tls.Config) (*Proxy, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	if security != nil {
		l = tls.NewListener(l, security)
	}
	p := &Proxy{listener: l, to: to, conns: map[net.Conn]struct{}{}}
	p.handlers.Go(p.accept)
	return p, nil
}

// Addr returns the address of the proxy.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Mute sets whether answers are lost.
func (p *Proxy) Mute(mute bool) { p.mute.Store(mute) }

// Close closes all connections.
func (p *Proxy) Close() error {
	err := p.listener.Close()
	p.mu.Lock()
	for c := range p.conns {
		_ = c.Close() // it may be closed already
	}
	p.mu.Unlock()
	p.handlers.Wait()
	return err
}

func (p *Proxy) accept() {
	for {
		from, err := p.listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			continue
		}
		p.handlers.Go(func() { p.pass(from) })
	}
}

// keep notes a connection, so that Close closes it.
func (p *Proxy) keep(c net.Conn) (done func()) {
	p.mu.Lock()
	p.conns[c] = struct{}{}
	p.mu.Unlock()
	return func() {
		p.mu.Lock()
		delete(p.conns, c)
		p.mu.Unlock()
		_ = c.Close() // it may be closed already
	}
}

func (p *Proxy) pass(from net.Conn) {
	defer p.keep(from)()
	to, err := new(net.Dialer).DialContext(context.Background(), "tcp", p.to)
	if err != nil {
		return
	}
	defer p.keep(to)()
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(to, from) // either side may break it off
		_ = to.(*net.TCPConn).CloseWrite()
	})
	buf := make([]byte, 32<<10)
	for {
		n, err := to.Read(buf)
		if p.mute.Load() {
			break
		}
		if n > 0 {
			if _, werr := from.Write(buf[:n]); werr != nil {
				break
			}
		}
		if err != nil {
			break
		}
	}
	_ = from.Close()
	_ = to.Close()
	both.Wait()
}
