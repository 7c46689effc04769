package tlsconf_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/samya-db/samya/internal/devca"
	"github.com/samya-db/samya/internal/testfuzz"
	"github.com/samya-db/samya/internal/tlsconf"
)

var (
	us      = tlsconf.Identity{Kind: tlsconf.Site, Name: "us"}
	eu      = tlsconf.Identity{Kind: tlsconf.Site, Name: "eu"}
	billing = tlsconf.Identity{Kind: tlsconf.Client, Name: "billing"}
)

// authority makes a CA in a directory of the test's.
func authority(t *testing.T) (*devca.CA, string) {
	t.Helper()
	dir := t.TempDir()
	ca, err := devca.Create(dir, "test", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return ca, dir
}

func issue(t *testing.T, ca *devca.CA, dir string, id tlsconf.Identity, life time.Duration) tlsconf.Files {
	t.Helper()
	cert, key, err := ca.Issue(id, []string{"127.0.0.1"}, life)
	if err != nil {
		t.Fatal(err)
	}
	return tlsconf.Files{Cert: cert, Key: key, CA: filepath.Join(dir, devca.CertFile), CRL: filepath.Join(dir, devca.CRLFile)}
}

func open(t *testing.T, f tlsconf.Files) *tlsconf.Store {
	t.Helper()
	s, err := tlsconf.Open(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// shake has two ends shake hands, and returns the connections and both errors. The
// server says a word, so that the client learns whether its certificate was taken.
func shake(t *testing.T, server, client credentials.TransportCredentials) (s, c net.Conn, serverErr, clientErr error) {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer lis.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		raw, err := lis.Accept()
		if err != nil {
			serverErr = err
			return
		}
		_ = raw.SetDeadline(time.Now().Add(20 * time.Second))
		if s, _, serverErr = server.ServerHandshake(raw); serverErr != nil {
			raw.Close()
			return
		}
		_, serverErr = s.Write([]byte("x"))
	}()
	raw, err := net.Dial("tcp", lis.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = raw.SetDeadline(time.Now().Add(20 * time.Second))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if c, _, clientErr = client.ClientHandshake(ctx, "127.0.0.1", raw); clientErr == nil {
		_, clientErr = c.Read(make([]byte, 1))
	} else {
		raw.Close()
	}
	<-done
	t.Cleanup(func() { raw.Close() })
	return s, c, serverErr, clientErr
}

// TestHandshakes: the callers that either end lets in.
func TestHandshakes(t *testing.T) {
	ca, dir := authority(t)
	foreign, foreignDir := authority(t)
	site := issue(t, ca, dir, us, time.Hour)
	caller := issue(t, ca, dir, billing, time.Hour)
	stranger := issue(t, foreign, foreignDir, billing, time.Hour)
	stranger.CA, stranger.CRL = site.CA, ""
	expired := issue(t, ca, dir, tlsconf.Identity{Kind: tlsconf.Client, Name: "late"}, -time.Minute)
	revoked := issue(t, ca, dir, tlsconf.Identity{Kind: tlsconf.Client, Name: "gone"}, time.Hour)
	other := issue(t, ca, dir, eu, time.Hour)
	late := issue(t, ca, dir, tlsconf.Identity{Kind: tlsconf.Site, Name: "late"}, -time.Minute)
	gone := issue(t, ca, dir, tlsconf.Identity{Kind: tlsconf.Site, Name: "gone"}, time.Hour)
	fake := issue(t, foreign, foreignDir, us, time.Hour)
	fake.CA, fake.CRL = site.CA, ""
	for _, f := range []tlsconf.Files{revoked, gone} {
		b, err := os.ReadFile(f.Cert)
		if err != nil {
			t.Fatal(err)
		}
		if err := ca.Revoke(b); err != nil {
			t.Fatal(err)
		}
	}
	nobody := tlsconf.Files{CA: site.CA, CRL: site.CRL}
	for name, tc := range map[string]struct {
		server, client tlsconf.Files
		to             tlsconf.Identity
		refusedBy      string
		is             error
	}{
		"a good caller":                       {site, caller, us, "", nil},
		"a caller without a certificate":      {site, nobody, us, "", nil},
		"another site":                        {site, other, us, "", nil},
		"a caller of another CA":              {site, stranger, us, "server", nil},
		"a caller whose certificate is over":  {site, expired, us, "server", nil},
		"a caller whose certificate is taken": {site, revoked, us, "server", tlsconf.ErrRevoked},
		"another site answers":                {other, caller, us, "client", tlsconf.ErrIdentity},
		"an app manager of the name":          {site, caller, tlsconf.Identity{Kind: tlsconf.AppManager, Name: "us"}, "client", tlsconf.ErrIdentity},
		"a server of another CA":              {fake, nobody, us, "client", nil},
		"a server whose certificate is over":  {late, caller, tlsconf.Identity{Kind: tlsconf.Site, Name: "late"}, "client", nil},
		"a server whose certificate is taken": {gone, caller, tlsconf.Identity{Kind: tlsconf.Site, Name: "gone"}, "client", tlsconf.ErrRevoked},
		"a caller that serves":                {caller, nobody, billing, "client", nil},
	} {
		t.Run(name, func(t *testing.T) {
			server, client := open(t, tc.server), open(t, tc.client)
			_, _, serverErr, clientErr := shake(t, server.ServerCredentials(), client.ClientCredentials(tc.to))
			switch {
			case tc.refusedBy == "" && (serverErr != nil || clientErr != nil):
				t.Errorf("%v, %v", serverErr, clientErr)
			case tc.refusedBy == "server" && (serverErr == nil || clientErr == nil || tc.is != nil && !errors.Is(serverErr, tc.is)):
				t.Errorf("the server says %v, the client %v", serverErr, clientErr)
			case tc.refusedBy == "client" && (clientErr == nil || tc.is != nil && !errors.Is(clientErr, tc.is)):
				t.Errorf("the client says %v", clientErr)
			}
		})
	}
	t.Run("by host", func(t *testing.T) {
		_, _, _, err := shake(t, open(t, site).ServerCredentials(), open(t, nobody).DialCredentials(""))
		if err != nil {
			t.Error(err)
		}
		if _, _, _, err = shake(t, open(t, site).ServerCredentials(), open(t, nobody).DialCredentials("elsewhere")); err == nil {
			t.Error("another host is taken")
		}
	})
	t.Run("TLS 1.2", func(t *testing.T) {
		old := credentials.NewTLS(&tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12})
		if _, _, serverErr, _ := shake(t, open(t, site).ServerCredentials(), old); serverErr == nil {
			t.Error("TLS 1.2 is spoken")
		}
		if _, _, _, err := shake(t, credentials.NewTLS(func() *tls.Config {
			c := open(t, site).Server()
			c.MinVersion, c.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
			return c
		}()), open(t, caller).ClientCredentials(us)); err == nil {
			t.Error("TLS 1.2 is spoken to")
		}
	})
}

// TestASlowHandshakeEnds: a server of HTTP with patience for idle connections has none
// with a connection that does not shake hands. After the handshake, the server's own
// bounds hold.
func TestASlowHandshakeEnds(t *testing.T) {
	ca, dir := authority(t)
	store := open(t, issue(t, ca, dir, us, time.Hour))
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	const most = 200 * time.Millisecond
	ended := make(chan struct{}, 1)
	hs := &http.Server{
		ReadHeaderTimeout: time.Hour,
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateClosed {
				ended <- struct{}{}
			}
		},
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
	}
	served := make(chan error, 1)
	go func() { served <- hs.Serve(store.Listen(tcp, most)) }()
	silent, err := net.Dial("tcp", tcp.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	_ = silent.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := silent.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) || err == nil {
		t.Errorf("a silent connection goes on: %v", err)
	}
	<-ended
	client := open(t, issue(t, ca, dir, billing, time.Hour))
	conn, err := client.DialHTTP("127.0.0.1")(t.Context(), "tcp", tcp.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(2 * most))
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a connection ends that shook hands: %v", err)
	}
	if err := hs.Close(); err != nil {
		t.Error(err)
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
}

// TestReload: changed files are taken up, and files that are not in order are not. A
// connection let in by a certificate that is revoked since is cut off.
func TestReload(t *testing.T) {
	ca, dir := authority(t)
	site, caller := issue(t, ca, dir, us, time.Hour), issue(t, ca, dir, billing, time.Hour)
	server, client := open(t, site), open(t, caller)
	serverSide, clientSide, serverErr, clientErr := shake(t, server.ServerCredentials(), client.ClientCredentials(us))
	if err := errors.Join(serverErr, clientErr); err != nil {
		t.Fatal(err)
	}
	server.Look()
	if _, err := serverSide.Write([]byte("y")); err != nil {
		t.Fatalf("a good connection: %v", err)
	}
	if _, err := clientSide.Read(make([]byte, 1)); err != nil {
		t.Fatalf("a good connection: %v", err)
	}
	good, err := os.ReadFile(site.CRL)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(site.CRL, []byte("nonsense"), 0o644); err != nil {
		t.Fatal(err)
	}
	server.Look()
	if _, _, err, _ := shake(t, server.ServerCredentials(), client.ClientCredentials(us)); err != nil {
		t.Errorf("with a file out of order: %v", err)
	}
	if err := os.WriteFile(site.CRL, good, 0o644); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(caller.Cert)
	if err != nil {
		t.Fatal(err)
	}
	if err := ca.Revoke(b); err != nil {
		t.Fatal(err)
	}
	server.Look()
	_ = clientSide.SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, err := clientSide.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection of a certificate that is revoked goes on: %v", err)
	}
	if _, _, err, _ := shake(t, server.ServerCredentials(), client.ClientCredentials(us)); !errors.Is(err, tlsconf.ErrRevoked) {
		t.Errorf("after it was revoked: %v", err)
	}
	// A new certificate of the site is shown without a restart.
	ca.Replace = true
	issue(t, ca, dir, us, 2*time.Hour)
	server.Look()
	state := connState(t, server)
	if left := time.Until(state.PeerCertificates[0].NotAfter); left < 90*time.Minute {
		t.Errorf("the certificate shown ends in %v", left)
	}
	st := server.Stats()
	if e := st.Expiries[0]; e.What != "own" || e.Subject != "CN=us" || e.Left < 90*time.Minute || e.Left > 2*time.Hour {
		t.Errorf("%+v", e)
	}
	if st.Reloaded != 2 || st.Failed != 1 || len(st.Expiries) != 3 {
		t.Errorf("%+v", st)
	}
}

func connState(t *testing.T, server *tlsconf.Store) tls.ConnectionState {
	t.Helper()
	var state tls.ConnectionState
	look := credentials.NewTLS(&tls.Config{InsecureSkipVerify: true, VerifyConnection: func(cs tls.ConnectionState) error {
		state = cs
		return nil
	}})
	if _, _, _, err := shake(t, server.ServerCredentials(), look); err != nil {
		t.Fatal(err)
	}
	return state
}

// TestFilesAtFault: files that cannot be used are refused before anything starts.
func TestFilesAtFault(t *testing.T) {
	ca, dir := authority(t)
	foreign, foreignDir := authority(t)
	good := issue(t, ca, dir, us, time.Hour)
	theirs := issue(t, foreign, foreignDir, us, time.Hour)
	for name, f := range map[string]tlsconf.Files{
		"no CA":                {Cert: good.Cert, Key: good.Key},
		"a key alone":          {Key: good.Key, CA: good.CA},
		"another's key":        {Cert: good.Cert, Key: theirs.Key, CA: good.CA},
		"no such file":         {Cert: good.Cert, Key: good.Key, CA: good.CA + "x"},
		"a CA that is none":    {Cert: good.Cert, Key: good.Key, CA: good.Cert},
		"another CA's list":    {Cert: good.Cert, Key: good.Key, CA: good.CA, CRL: theirs.CRL},
		"a list that is none":  {Cert: good.Cert, Key: good.Key, CA: good.CA, CRL: good.CA},
		"a CA file without CA": {Cert: good.Cert, Key: good.Key, CA: good.CRL},
	} {
		if _, err := tlsconf.Open(f, nil); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// TestIdentities: the names that a certificate may have.
func TestIdentities(t *testing.T) {
	for uris, want := range map[string]string{
		"":                                           "client/cn",
		"https://example.com/x":                      "client/cn",
		"samya://site/us":                            "site/us",
		"samya://appmgr/am-us https://x.y":           "appmgr/am-us",
		"samya://client/a/b":                         "client/a/b",
		"samya://site/us samya://site/eu":            "",
		"samya://site/US":                            "",
		"samya://site/":                              "",
		"samya://root/x":                             "",
		"samya://site/us?x":                          "",
		"samya://site:1/us":                          "",
		"samya://me@site/us":                         "",
		"samya:site/us":                              "",
		"samya://site/us#x":                          "",
		"samya://client/..":                          "",
		"samya://client/a%2Fb":                       "",
		"samya://client/a samya://client/b":          "",
		"samya://client/" + strings.Repeat("a", 300): "",
	} {
		c := &x509.Certificate{}
		c.Subject.CommonName = "cn"
		for u := range strings.FieldsSeq(uris) {
			parsed, err := url.Parse(u)
			if err != nil {
				t.Fatal(err)
			}
			c.URIs = append(c.URIs, parsed)
		}
		id, err := tlsconf.IdentityOf(c)
		switch {
		case want == "" && !errors.Is(err, tlsconf.ErrIdentity):
			t.Errorf("%q names %s, %v", uris, id, err)
		case want != "" && (err != nil || id.String() != want):
			t.Errorf("%q names %s, %v, want %s", uris, id, err, want)
		}
	}
}

// FuzzHandshake: whatever comes in place of a handshake, the server refuses it and
// goes on.
func FuzzHandshake(tf *testing.F) {
	f := testfuzz.On(tf)
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add([]byte{0x16, 3, 1, 0, 5, 1, 0, 0, 1, 0})
	f.Add([]byte{})
	dir := f.TempDir()
	ca, err := devca.Create(dir, "test", time.Hour)
	if err != nil {
		f.Fatal(err)
	}
	cert, key, err := ca.Issue(us, []string{"127.0.0.1"}, time.Hour)
	if err != nil {
		f.Fatal(err)
	}
	s, err := tlsconf.Open(tlsconf.Files{Cert: cert, Key: key, CA: filepath.Join(dir, devca.CertFile)}, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(hello(f, s))
	f.Fuzz(func(t *testing.T, b []byte) {
		here, there := net.Pipe()
		go func() {
			_, _ = there.Write(b)
			there.Close()
		}()
		go func() {
			// The server's answer is of no interest.
			_, _ = io.Copy(io.Discard, there)
		}()
		if _, _, err := s.ServerCredentials().ServerHandshake(here); err == nil {
			t.Fatalf("%x is a handshake", b)
		}
		here.Close()
	})
}

// hello records the first bytes of a client.
func hello(tb testing.TB, s *tlsconf.Store) []byte {
	tb.Helper()
	here, there := net.Pipe()
	go func() {
		_ = tls.Client(here, s.Client(us)).Handshake()
	}()
	b := make([]byte, 1<<16)
	n, err := there.Read(b)
	if err != nil {
		tb.Fatal(err)
	}
	there.Close()
	here.Close()
	return b[:n]
}
