package access

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/credtest"
	"github.com/samya-db/samya/internal/methods"
	"github.com/samya-db/samya/internal/tlsconf"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// TestWithdrawnKey: a token let in a moment ago is refused after the look that finds its
// issuer's key gone, though the access file itself stands.
func TestWithdrawnKey(t *testing.T) {
	set := credtest.New(t)
	now := time.Now()
	g, err := Open(Config{File: set.AccessFile(), Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	shows := credentials{authorization: "Bearer " + set.JWT(nil)}
	for range 2 {
		if _, err := g.admit(samyav1.TokenService_Stream_FullMethodName, shows); err != nil {
			t.Fatal(err)
		}
	}
	set.AddKey("second")
	g.Look()
	if _, err := g.admit(samyav1.TokenService_Stream_FullMethodName, shows); err != nil {
		t.Errorf("with a further key: %v", err)
	}
	set.WithdrawKey()
	g.Look()
	if _, err := g.admit(samyav1.TokenService_Stream_FullMethodName, shows); apierr.ReasonOf(err) != apierr.Unauthenticated {
		t.Errorf("with its key gone: %v", err)
	}
}

// TestSweepEndsAll: each look ends all calls of callers that may not go on, with the
// reason, and no other calls. The state of the access file does not matter.
func TestSweepEndsAll(t *testing.T) {
	for what, file := range map[string]func(path string){
		"no file":              nil,
		"a file that stands":   func(string) {},
		"a file that changes":  func(path string) { accessFile(t, path, "client", "[zeta]") },
		"a file out of order":  func(path string) { accessFile(t, path, "client", "[acme,") },
		"a file that is gone":  func(path string) { _ = os.Remove(path) },
		"a file without lines": func(path string) { _ = os.WriteFile(path, nil, 0o600) },
	} {
		t.Run(what, func(t *testing.T) {
			cfg := Config{}
			if file != nil {
				cfg.File = filepath.Join(t.TempDir(), "access.yaml")
				accessFile(t, cfg.File, "client", "[acme]")
			}
			g, err := Open(cfg)
			if err != nil {
				t.Fatal(err)
			}
			over := errors.New("over")
			var ended, open []context.Context
			for i := range 6 {
				ctx, release := g.streaming(t.Context(), func() error {
					if i%2 == 0 {
						return over
					}
					return nil
				})
				defer release()
				if i%2 == 0 {
					ended = append(ended, ctx)
				} else {
					open = append(open, ctx)
				}
			}
			if file != nil {
				file(cfg.File)
			}
			g.Look()
			for _, ctx := range ended {
				if !errors.Is(context.Cause(ctx), over) {
					t.Errorf("a call whose caller may not go on: %v", context.Cause(ctx))
				}
			}
			for _, ctx := range open {
				if ctx.Err() != nil {
					t.Errorf("a call whose caller may go on: %v", context.Cause(ctx))
				}
			}
		})
	}
}

// opened is a stream of a caller.
type opened struct {
	grpc.ServerStream
	ctx context.Context //nolint:containedctx // it is that of the stream
}

func (o opened) Context() context.Context { return o.ctx }

// TestEndOfAStream: a stream of a caller that may not go on ends with that reason,
// whatever its handler makes of the end. Other streams end with the error of their
// handlers.
func TestEndOfAStream(t *testing.T) {
	handlers := map[string]error{"nothing": nil, "its own": apierr.New(apierr.Internal, "its own"), "the end": context.Canceled}
	for what, told := range handlers {
		for _, ends := range []bool{true, false} {
			path := filepath.Join(t.TempDir(), "access.yaml")
			accessFile(t, path, "client", "[acme]")
			g, err := Open(Config{File: path})
			if err != nil {
				t.Fatal(err)
			}
			ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs("authorization", "Bearer secret"))
			err = g.Stream(nil, opened{ctx: ctx}, &grpc.StreamServerInfo{FullMethod: samyav1.TokenService_Stream_FullMethodName},
				func(_ any, stream grpc.ServerStream) error {
					if ends {
						accessFile(t, path, "client", "[zeta]")
						g.Look()
						<-stream.Context().Done()
					}
					return told
				})
			switch {
			case ends && apierr.ReasonOf(err) != apierr.Unauthenticated:
				t.Errorf("a handler that tells %s: the stream ends with %v", what, err)
			case !ends && !errors.Is(err, told):
				t.Errorf("a handler that tells %s: %v", what, err)
			}
			if len(g.held) != 0 {
				t.Errorf("%d calls are still held", len(g.held))
			}
		}
	}
}

// chained returns a caller's chain of certificates with a certificate between the
// caller's and the CA, and a store. revoke revokes a serial number of the CA.
func chained(t *testing.T) (chain []*x509.Certificate, store *tlsconf.Store, revoke func(serial int64)) {
	t.Helper()
	dir := t.TempDir()
	files := tlsconf.Files{CA: filepath.Join(dir, "ca.pem"), CRL: filepath.Join(dir, "crl.pem")}
	var parent *x509.Certificate
	var secret *ecdsa.PrivateKey
	ca := struct {
		cert *x509.Certificate
		key  *ecdsa.PrivateKey
	}{}
	for serial, name := range []string{"ca", "between", "worker"} {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		template := &x509.Certificate{
			SerialNumber: big.NewInt(int64(serial + 1)), Subject: pkix.Name{CommonName: name}, IsCA: serial < 2,
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true,
			KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
		}
		if serial == 2 {
			template.URIs = []*url.URL{tlsconf.Identity{Kind: tlsconf.Client, Name: name}.URI()}
		}
		if parent == nil {
			parent, secret = template, key
		}
		der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, secret)
		if err != nil {
			t.Fatal(err)
		}
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		if serial == 0 {
			ca.cert, ca.key = cert, key
		} else {
			chain = append([]*x509.Certificate{cert}, chain...)
		}
		parent, secret = cert, key
	}
	write := func(path, kind string, der []byte) {
		var b bytes.Buffer
		_ = pem.Encode(&b, &pem.Block{Type: kind, Bytes: der})
		if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	revoke = func(serial int64) {
		der, err := x509.CreateRevocationList(rand.Reader, &x509.RevocationList{
			Number: big.NewInt(1), ThisUpdate: time.Now(), NextUpdate: time.Now().Add(time.Hour),
			RevokedCertificateEntries: []x509.RevocationListEntry{{SerialNumber: big.NewInt(serial), RevocationTime: time.Now()}},
		}, ca.cert, ca.key)
		if err != nil {
			t.Fatal(err)
		}
		write(files.CRL, "X509 CRL", der)
	}
	write(files.CA, "CERTIFICATE", ca.cert.Raw)
	revoke(77)
	store, err := tlsconf.Open(files, nil)
	if err != nil {
		t.Fatal(err)
	}
	return chain, store, revoke
}

// TestCertificateOfALongCall: a call by certificate ends if the CA revokes its own
// certificate or the certificate between it and the caller's. A good token does not save
// the call. Calls with a token alone go on.
func TestCertificateOfALongCall(t *testing.T) {
	for _, shows := range []string{"certificate", "token", "both"} {
		// The CA's list is not of the issuer of 3, the caller's own certificate.
		for serial, good := range map[int64]bool{1: false, 2: false, 3: true, 4: true} {
			chain, store, revoke := chained(t)
			path := filepath.Join(t.TempDir(), "access.yaml")
			accessFile(t, path, "client, certificate: worker", "[acme]")
			g, err := Open(Config{File: path, TLS: store})
			if err != nil {
				t.Fatal(err)
			}
			r := &http.Request{Header: http.Header{}, TLS: &tls.ConnectionState{}}
			if shows != "token" {
				r.TLS.PeerCertificates = chain
			}
			if shows != "certificate" {
				r.Header.Set("Authorization", "Bearer secret")
			}
			ctx, err := g.HTTP(r, samyav1.EntityService_WatchEntity_FullMethodName)
			if err != nil {
				t.Fatal(err)
			}
			ctx, release := g.Streaming(ctx, r)
			defer release()
			g.Look()
			if ctx.Err() != nil {
				t.Fatalf("it ends though nothing has changed: %v", context.Cause(ctx))
			}
			revoke(serial)
			store.Look()
			g.Look()
			good = good || shows == "token"
			if (ctx.Err() == nil) != good || (Over(ctx) == nil) != good {
				t.Errorf("by %s, serial %d revoked: %v", shows, serial, context.Cause(ctx))
			}
		}
	}
}

// TestRelayedScopes: a site goes by the whole scope that an app manager or another site tells
// of its caller, and believes nobody else.
func TestRelayedScopes(t *testing.T) {
	for _, scope := range []Scope{nil, {"acme"}, {"acme/"}, {"acme", "zeta/"}, {"acme", "beta", "zeta/vm"}} {
		relayed := Relay(context.WithValue(t.Context(), sessionKey{}, &session{caller: &principal{Name: "billing"}, scope: scope}))
		pairs, _ := metadata.FromOutgoingContext(relayed)
		for kind, believed := range map[tlsconf.Kind]bool{tlsconf.AppManager: true, tlsconf.Client: false, tlsconf.Site: true, "": false} {
			s := &session{caller: &principal{Name: "m", Kind: kind}}
			want, behalf := scope, "billing"
			if !believed {
				s.scope = Scope{"own"}
				want, behalf = s.scope, ""
			}
			s.relayed(metadata.NewIncomingContext(t.Context(), pairs))
			if !slices.Equal(s.scope, want) || s.scope.All() != want.All() || s.behalf != behalf {
				t.Errorf("a %q relays %v: %v on behalf of %q", kind, scope, s.scope, s.behalf)
			}
		}
	}
}

// TestSiftWithoutLimits: operations on entities of others are answered even without a
// rate.
func TestSiftWithoutLimits(t *testing.T) {
	g, err := Open(Config{})
	if err != nil {
		t.Fatal(err)
	}
	stream := &recorder{in: &samyav1.StreamRequest{Calls: []*samyav1.Call{
		{Tag: 1, Operation: acquireOf("acme2")}, {Tag: 2, Operation: acquireOf("acme/vm")}, {Tag: 3, Operation: acquireOf("acme")},
	}}}
	for scope, want := range map[string]string{"acme": "[2 3]", "acme/": "[2]", "acme2": "[1]", everything: "[1 2 3]"} {
		prefixes, err := newScope([]string{scope})
		if err != nil {
			t.Fatal(err)
		}
		caller := &principal{Name: "c", Role: methods.Client, Scope: prefixes}
		s := &session{guard: g, caller: caller, scope: caller.Scope, rule: methods.Rule{Least: methods.Client}}
		in := &samyav1.StreamRequest{}
		if err := (&guarded{ServerStream: stream, ctx: t.Context(), session: s}).RecvMsg(in); err != nil {
			t.Fatal(err)
		}
		var kept []uint64
		for _, c := range in.GetCalls() {
			kept = append(kept, c.GetTag())
		}
		if fmt.Sprint(kept) != want {
			t.Errorf("of the owner of %s %v go on, want %s", scope, kept, want)
		}
	}
}

// TestToldCaller: an open server takes the name that an app manager tells as a name alone; a
// name that is too long for the history is left out.
func TestToldCaller(t *testing.T) {
	for name, want := range map[string]string{"kim": "kim", "k\xffm": "k?m", strings.Repeat("k", maxTold+1): ""} {
		s := &session{caller: anonymous}
		s.relayed(metadata.NewIncomingContext(t.Context(), metadata.Pairs(callerKey, name, scopeKey, "acme")))
		if s.told != want || s.behalf != "" || s.scope != nil {
			t.Errorf("told %q: the name is %q, the behalf %q, the scope %v; want the name %q alone", name, s.told, s.behalf, s.scope, want)
		}
	}
}
