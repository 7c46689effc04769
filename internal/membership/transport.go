package membership

import (
	"context"
	"net"
	"time"

	"github.com/hashicorp/memberlist"
)

// transport is memberlist's own, except that its dials and their connections end with
// ctx. Closing must not wait out the time-out of a seed that does not answer.
type transport struct {
	*memberlist.NetTransport
	ctx context.Context
}

// portTries bounds the tries to find a free port: a port that is free for TCP may be
// taken for UDP.
const portTries = 10

func newTransport(ctx context.Context, c *memberlist.Config) (*transport, error) {
	t, err := onPort(c.BindPort, func() (*memberlist.NetTransport, error) {
		return memberlist.NewNetTransport(&memberlist.NetTransportConfig{
			BindAddrs: []string{c.BindAddr},
			BindPort:  c.BindPort,
			Logger:    c.Logger,
		})
	})
	if err != nil {
		return nil, err
	}
	return &transport{NetTransport: t, ctx: ctx}, nil
}

// onPort listens on a port: once on a given port, at most portTries times on any port
// (0). It returns the last error.
func onPort[T any](port int, listen func() (T, error)) (T, error) {
	t, err := listen()
	for tries := 1; err != nil && port == 0 && tries < portTries; tries++ {
		t, err = listen()
	}
	return t, err
}

// DialTimeout implements memberlist.Transport.
func (t *transport) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	d := net.Dialer{Timeout: timeout}
	c, err := d.DialContext(t.ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, release: context.AfterFunc(t.ctx, func() { _ = c.Close() })}, nil
}

// DialAddressTimeout implements memberlist.NodeAwareTransport.
func (t *transport) DialAddressTimeout(a memberlist.Address, timeout time.Duration) (net.Conn, error) {
	return t.DialTimeout(a.Addr, timeout)
}

// conn is a dialed connection that the end of the transport's context closes.
type conn struct {
	net.Conn
	release func() bool
}

// Close closes the connection and forgets it.
func (c *conn) Close() error {
	c.release()
	return c.Conn.Close()
}
