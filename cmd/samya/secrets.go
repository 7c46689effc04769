package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/pflag"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/samya-db/samya/client"
	"github.com/samya-db/samya/internal/tlsconf"
)

// secrets are the credentials of commands that talk to a cluster, and the CAs that they
// trust.
type secrets struct {
	files      tlsconf.Files
	serverName string
	tokenFile  string
}

// flags defines the flags.
func (s *secrets) flags(f *pflag.FlagSet) {
	f.StringVar(&s.files.CA, "tls-ca", "", "file with the certificates of the CAs that are trusted, in PEM: has the connection encrypted")
	f.StringVar(&s.files.Cert, "tls-cert", "", "file with this process's certificate in PEM")
	f.StringVar(&s.files.Key, "tls-key", "", "file with the certificate's key in PEM")
	f.StringVar(&s.files.CRL, "tls-crl", "", "file with the CAs' revocation lists in PEM")
	f.StringVar(&s.serverName, "tls-server-name", "", "host in the certificate of the answering server (default: the host of the address)")
	f.StringVar(&s.tokenFile, "token-file", "", "file with a bearer token to show")
}

// store reads the TLS files; nil if there are none.
func (s *secrets) store() (*tlsconf.Store, error) {
	if !s.files.Set() {
		return nil, nil
	}
	if s.files.CA == "" {
		return nil, &usageError{errors.New("tls-ca: missing; whoever answers is held against it")}
	}
	store, err := tlsconf.Open(s.files, nil)
	if err != nil {
		return nil, &usageError{fmt.Errorf("tls: %w", err)}
	}
	return store, nil
}

// transport returns the address and the transport for HTTP requests. The address becomes
// https if there is a CA and the address has no scheme. The transport is nil for the
// default.
func (s *secrets) transport(addr string) (string, http.RoundTripper, error) {
	store, err := s.store()
	if err != nil {
		return "", nil, err
	}
	switch {
	case store != nil && addr == defaultAddr:
		addr = "https" + strings.TrimPrefix(addr, "http")
	case store != nil && !strings.Contains(addr, "://"):
		addr = "https://" + addr
	}
	if store == nil && s.tokenFile == "" {
		return addr, nil, nil
	}
	u, err := url.Parse(addr)
	if err != nil {
		return "", nil, &usageError{fmt.Errorf("addr: %w", err)}
	}
	transport := http.DefaultTransport
	if store != nil {
		if u.Scheme != "https" {
			return "", nil, &usageError{fmt.Errorf("addr: %s is not encrypted; pass https://%s, or no --tls-ca", addr, u.Host)}
		}
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.DialTLSContext, t.Proxy = store.DialHTTP(s.serverName), nil
		transport = t
	}
	if s.tokenFile == "" {
		return addr, transport, nil
	}
	if u.Scheme != "https" && !loopbackHost(u) {
		return "", nil, &usageError{fmt.Errorf("token-file: a token is not sent to another machine in clear; pass https://%s", u.Host)}
	}
	return addr, &withToken{transport, client.TokenFile(s.tokenFile)}, nil
}

func loopbackHost(u *url.URL) bool {
	if strings.Contains(u.Host, ":") && !strings.HasSuffix(u.Host, "]") {
		return tlsconf.Loopback(u.Host)
	}
	return tlsconf.Loopback(u.Host + ":80")
}

// dial returns the options for gRPC connections to an address.
func (s *secrets) dial(addr string) ([]grpc.DialOption, error) {
	store, err := s.store()
	if err != nil {
		return nil, err
	}
	opts := []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}
	if store != nil {
		opts[0] = grpc.WithTransportCredentials(store.DialCredentials(s.serverName))
	}
	if s.tokenFile == "" {
		return opts, nil
	}
	if store == nil && !tlsconf.Loopback(addr) {
		return nil, &usageError{errors.New("token-file: a token is not sent to another machine in clear; pass --tls-ca")}
	}
	return append(opts, grpc.WithPerRPCCredentials(client.Bearer(client.TokenFile(s.tokenFile), store != nil))), nil
}

// withToken sends a token with every request.
type withToken struct {
	http.RoundTripper
	token func(context.Context) (string, error)
}

// RoundTrip implements http.RoundTripper.
func (t *withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	token, err := t.token(r.Context())
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	return t.RoundTripper.RoundTrip(r)
}
