package tlsconf

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/url"
	"os"
	"testing"
	"time"

	"google.golang.org/grpc/credentials"
)

// TestGoodLongAfterItsEnd: a certificate that nobody has asked after since is not good
// however long ago it has ended.
func TestGoodLongAfterItsEnd(t *testing.T) {
	ca := sign(t, nil, "ca", 1, true, 10_000*time.Hour)
	leaf := sign(t, ca, "leaf", 2, false, 10*time.Minute)
	for _, after := range []time.Duration{time.Nanosecond, time.Second, time.Minute, time.Hour, 2 * time.Hour, 5000 * time.Hour} {
		now := epoch
		s, _ := trusting(t, &now, ca.list(t), ca)
		if err := s.Good(chainOf(leaf)); err != nil {
			t.Fatal(err)
		}
		now = epoch.Add(10*time.Minute + after)
		if err := s.Good(chainOf(leaf)); err == nil {
			t.Errorf("%v after its end a certificate is good", after)
		}
	}
}

// pipe is a connection that notes that it was closed.
type pipe struct {
	net.Conn
	closed int
}

func (p *pipe) Close() error         { p.closed++; return nil }
func (p *pipe) RemoteAddr() net.Addr { return &net.TCPAddr{} }

// TestConnectionsAreSwept: each look closes all connections with certificates that are
// not good any more, and no others. Files may have changed, stand or be at fault.
func TestConnectionsAreSwept(t *testing.T) {
	ca := sign(t, nil, "ca", 1, true, 24*time.Hour)
	between := sign(t, ca, "between", 2, true, 20*time.Minute)
	short := sign(t, ca, "short", 3, false, 10*time.Minute)
	below := sign(t, between, "below", 4, false, 24*time.Hour)
	long := sign(t, ca, "long", 5, false, 24*time.Hour)
	now := epoch
	s, write := trusting(t, &now, ca.list(t), ca)
	chains := [][]*x509.Certificate{
		chainOf(short), chainOf(short), chainOf(below, between), chainOf(below, between), chainOf(long), chainOf(long), nil,
	}
	pipes := make([]*pipe, len(chains))
	conns := make([]net.Conn, len(chains))
	for i, chain := range chains {
		pipes[i] = new(pipe)
		conns[i] = s.watch(pipes[i], credentials.TLSInfo{State: tls.ConnectionState{PeerCertificates: chain}})
	}
	for _, step := range []struct {
		what string
		at   time.Duration
		do   func()
		open []bool
	}{
		{"nothing", 0, func() {}, []bool{true, true, true, true, true, true, true}},
		{"what ends, with the same files", 10*time.Minute + time.Second, func() {}, []bool{false, false, true, true, true, true, true}},
		{"what is between ends, with files at fault", 20*time.Minute + time.Second, func() {
			if err := os.WriteFile(s.files.CRL, []byte("nonsense"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, []bool{false, false, false, false, true, true, true}},
		{"what is revoked", 21 * time.Minute, func() { write(ca.list(t, 5), ca) }, []bool{false, false, false, false, false, false, true}},
	} {
		now = epoch.Add(step.at)
		step.do()
		s.Look()
		left := 0
		for i, open := range step.open {
			if pipes[i].closed > 0 == open {
				t.Errorf("%s: connection %d was closed %d times", step.what, i, pipes[i].closed)
			}
			if open && len(chains[i]) > 0 {
				left++
			}
		}
		if len(s.conns) != left {
			t.Errorf("%s: %d connections are kept, want %d", step.what, len(s.conns), left)
		}
	}
	for _, c := range conns {
		_ = c.Close()
	}
}

// named gives a certificate a name of samya's and a host.
func named(id Identity, host string, use ...x509.ExtKeyUsage) func(*x509.Certificate) {
	return func(c *x509.Certificate) {
		c.URIs, c.DNSNames, c.ExtKeyUsage = []*url.URL{id.URI()}, []string{host}, use
	}
}

// showing returns a store that shows a certificate.
func showing(t *testing.T, now *time.Time, ca, own *signer) *Store {
	t.Helper()
	s, _ := trusting(t, now, ca.list(t), ca)
	with := *s.current.Load()
	with.own = &tls.Certificate{Certificate: [][]byte{own.cert.Raw}, PrivateKey: own.key, Leaf: own.cert}
	s.current.Store(&with)
	return s
}

// TestAllConnectionsAreWatched: a connection that either end has made, whatever for, is
// known until it is closed.
func TestAllConnectionsAreWatched(t *testing.T) {
	ca := sign(t, nil, "ca", 1, true, 24*time.Hour)
	us, caller := Identity{Site, "us"}, Identity{Client, "billing"}
	now := epoch
	server := showing(t, &now, ca, sign(t, ca, "us", 2, false, time.Hour, named(us, "us.test")))
	for what, of := range map[string]func(*Store) credentials.TransportCredentials{
		"by name":         func(s *Store) credentials.TransportCredentials { return s.ClientCredentials(us) },
		"by name, cloned": func(s *Store) credentials.TransportCredentials { return s.ClientCredentials(us).Clone() },
		"by host":         func(s *Store) credentials.TransportCredentials { return s.DialCredentials("us.test") },
		"by host, cloned": func(s *Store) credentials.TransportCredentials { return s.DialCredentials("us.test").Clone() },
		"by the address":  func(s *Store) credentials.TransportCredentials { return s.DialCredentials("") },
	} {
		t.Run(what, func(t *testing.T) {
			client := showing(t, &now, ca, sign(t, ca, "billing", 3, false, time.Hour, named(caller, "billing.test")))
			near, far := net.Pipe()
			defer near.Close()
			defer far.Close()
			shaken := make(chan net.Conn, 1)
			go func() {
				c, _, err := server.ServerCredentials().Clone().ServerHandshake(far)
				if err != nil {
					t.Error(err)
					_ = far.Close()
				}
				shaken <- c
			}()
			conn, _, err := of(client).ClientHandshake(context.Background(), "us.test:443", near)
			if err != nil {
				_ = near.Close()
				<-shaken
				t.Fatal(err)
			}
			other := <-shaken
			if len(client.conns) != 1 || len(server.conns) != 1 {
				t.Errorf("the client knows of %d connections, the server of %d", len(client.conns), len(server.conns))
			}
			// The pipe has no room for the last message of a connection.
			_, _ = near.Close(), far.Close()
			_, _ = conn.Close(), other.Close()
			if len(client.conns) != 0 || len(server.conns) != 0 {
				t.Errorf("the client keeps %d connections, the server %d", len(client.conns), len(server.conns))
			}
		})
	}
}

// TestWhatIsLetIn: each end checks the other's certificate for its use and at the store's
// time, and takes up no earlier session.
func TestWhatIsLetIn(t *testing.T) {
	const clients, servers = x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth
	us := Identity{Site, "us"}
	ca := sign(t, nil, "ca", 1, true, 24*time.Hour)
	now := epoch
	s, _ := trusting(t, &now, ca.list(t), ca)
	ends := map[string]*tls.Config{"server": s.Server(), "client": s.Client(us), "dial": s.Dial("us.test")}
	for _, tc := range []struct {
		what                 string
		use                  []x509.ExtKeyUsage
		at                   time.Duration
		server, client, dial bool
	}{
		{"for both", []x509.ExtKeyUsage{clients, servers}, 0, true, true, true},
		{"for clients", []x509.ExtKeyUsage{clients}, 0, true, false, false},
		{"for servers", []x509.ExtKeyUsage{servers}, 0, false, true, true},
		{"at its end", []x509.ExtKeyUsage{clients, servers}, time.Hour, true, true, true},
		{"after its end", []x509.ExtKeyUsage{clients, servers}, time.Hour + time.Second, false, false, false},
		{"before it begins", []x509.ExtKeyUsage{clients, servers}, -2 * time.Hour, false, false, false},
	} {
		now = epoch.Add(tc.at)
		leaf := sign(t, ca, "us", 2, false, time.Hour, named(us, "us.test", tc.use...))
		for end, want := range map[string]bool{"server": tc.server, "client": tc.client, "dial": tc.dial} {
			err := ends[end].VerifyConnection(tls.ConnectionState{PeerCertificates: chainOf(leaf)})
			if (err == nil) != want {
				t.Errorf("a certificate %s at a %s: %v", tc.what, end, err)
			}
		}
	}
	now = epoch
	for name, host := range map[Identity]string{{Site, "eu"}: "us.test", {Client, "us"}: "eu.test"} {
		leaf := sign(t, ca, "other", 3, false, time.Hour, named(name, host))
		state := tls.ConnectionState{PeerCertificates: chainOf(leaf)}
		if err := ends["client"].VerifyConnection(state); !errors.Is(err, ErrIdentity) {
			t.Errorf("%s answers for %s: %v", name, us, err)
		}
		if err := ends["dial"].VerifyConnection(state); (err == nil) != (host == "us.test") {
			t.Errorf("%s answers for us.test: %v", host, err)
		}
	}
	if !ends["server"].SessionTicketsDisabled {
		t.Error("sessions may be taken up again")
	}
}
