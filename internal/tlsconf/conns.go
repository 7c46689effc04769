package tlsconf

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/credentials"
)

// ServerCredentials returns the credentials of a gRPC listener. A connection is closed
// when the certificate of its caller is no longer good.
func (s *Store) ServerCredentials() credentials.TransportCredentials {
	return &transport{credentials.NewTLS(s.Server()), s}
}

// ClientCredentials returns the credentials of gRPC connections to the named holder. A
// connection is closed when the certificate of its server is no longer good.
func (s *Store) ClientCredentials(to Identity) credentials.TransportCredentials {
	return &transport{credentials.NewTLS(s.Client(to)), s}
}

// DialCredentials returns the credentials of gRPC connections to hosts; see Dial. If host
// is empty, it is the host of the address.
func (s *Store) DialCredentials(host string) credentials.TransportCredentials {
	return &dialed{credentials.NewTLS(s.Dial(host)), s, host}
}

// dialed checks each connection's certificate against the connection's host.
type dialed struct {
	credentials.TransportCredentials
	store *Store
	host  string
}

// ClientHandshake implements credentials.TransportCredentials.
func (d *dialed) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	host := d.host
	if host == "" {
		host = authority
		if h, _, err := net.SplitHostPort(authority); err == nil {
			host = h
		}
	}
	if host == "" {
		return nil, nil, fmt.Errorf("%w: the address has no host to hold the certificate against", ErrIdentity)
	}
	conn, info, err := credentials.NewTLS(d.store.Dial(host)).ClientHandshake(ctx, authority, raw)
	if err != nil {
		return nil, nil, err
	}
	return d.store.watch(conn, info), info, nil
}

// Clone implements credentials.TransportCredentials.
func (d *dialed) Clone() credentials.TransportCredentials {
	return &dialed{d.TransportCredentials.Clone(), d.store, d.host}
}

// DialHTTP connects to a server of HTTP over TLS, for http.Transport.DialTLSContext. The
// certificate must be for host, or for the host of the address if host is empty.
func (s *Store) DialHTTP(host string) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		to := host
		if to == "" {
			h, _, err := net.SplitHostPort(addr)
			if err != nil {
				return nil, err
			}
			to = h
		}
		d := tls.Dialer{Config: s.Dial(to)}
		conn, err := d.DialContext(ctx, network, addr)
		if op, ok := errors.AsType[*net.OpError](err); err != nil && (!ok || op.Op != "dial") {
			// Without a handshake nothing was sent, as without a connection.
			err = &net.OpError{Op: "dial", Net: network, Err: err}
		}
		return conn, err
	}
}

// transport watches its connections for certificates that are no longer good.
type transport struct {
	credentials.TransportCredentials
	store *Store
}

// ServerHandshake implements credentials.TransportCredentials.
func (t *transport) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := t.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		return nil, nil, err
	}
	return t.store.watch(conn, info), info, nil
}

// ClientHandshake implements credentials.TransportCredentials.
func (t *transport) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := t.TransportCredentials.ClientHandshake(ctx, authority, raw)
	if err != nil {
		return nil, nil, err
	}
	return t.store.watch(conn, info), info, nil
}

// Clone implements credentials.TransportCredentials.
func (t *transport) Clone() credentials.TransportCredentials {
	return &transport{t.TransportCredentials.Clone(), t.store}
}

// watched is a connection to a peer with a certificate.
type watched struct {
	net.Conn
	store *Store
	chain []*x509.Certificate
	once  sync.Once
}

func (s *Store) watch(conn net.Conn, info credentials.AuthInfo) net.Conn {
	state, ok := info.(credentials.TLSInfo)
	if !ok || len(state.State.PeerCertificates) == 0 {
		return conn
	}
	w := &watched{Conn: conn, store: s, chain: state.State.PeerCertificates}
	s.mu.Lock()
	s.conns[w] = struct{}{}
	s.mu.Unlock()
	return w
}

// Close closes the connection and forgets it.
func (w *watched) Close() error {
	w.once.Do(func() {
		w.store.mu.Lock()
		delete(w.store.conns, w)
		w.store.mu.Unlock()
	})
	return w.Conn.Close()
}

// sweep closes the connections to peers with certificates that are no longer good.
func (s *Store) sweep() {
	s.mu.Lock()
	open := make([]*watched, 0, len(s.conns))
	for w := range s.conns {
		open = append(open, w)
	}
	s.mu.Unlock()
	for _, w := range open {
		if err := s.Good(w.chain); err != nil {
			s.log.Warn("a connection is closed", slog.String("remote", w.RemoteAddr().String()), slog.Any("error", err))
			_ = w.Close()
		}
	}
}

// Listen returns a listener that speaks TLS over l. handshake bounds the time of each
// handshake, even if the server allows more. It is for servers of HTTP, which ask Good
// before every request themselves.
func (s *Store) Listen(l net.Listener, handshake time.Duration) net.Listener {
	cfg := s.Server()
	cfg.NextProtos = []string{"http/1.1"}
	return tls.NewListener(&handshakeListener{l, handshake}, cfg)
}

// handshakeListener bounds the handshakes of the connections that it accepts.
type handshakeListener struct {
	net.Listener
	most time.Duration
}

// Accept implements net.Listener.
func (l *handshakeListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &handshakeConn{Conn: c, until: time.Now().Add(l.most)}, nil
}

// handshakeConn bounds the first deadline of a connection. http.Server sets the first
// deadline for the handshake, as late as the deadline of headers, and lifts it afterwards.
type handshakeConn struct {
	net.Conn
	until time.Time
	begun atomic.Bool
}

// SetReadDeadline implements net.Conn.
func (c *handshakeConn) SetReadDeadline(t time.Time) error {
	if !c.begun.Swap(true) && (t.IsZero() || t.After(c.until)) {
		t = c.until
	}
	return c.Conn.SetReadDeadline(t)
}
