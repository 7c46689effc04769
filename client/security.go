package client

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/samya-db/samya/internal/tlsconf"
)

// tokenTime is how long a token of a file is used before the file is read again.
const tokenTime = 10 * time.Second

// TLSFiles names files in PEM.
type TLSFiles struct {
	// CA has the certificates of the CAs that vouch for targets.
	CA string
	// Cert and Key are a client certificate and its key, if the program shows a
	// certificate; empty for none.
	Cert, Key string
	// CRL has revocation lists of the CAs; empty for none.
	CRL string
	// ServerName is the host that the targets' certificates must be for; empty: the host
	// of each target's address.
	ServerName string
}

// Credentials returns credentials for Config.Security: TLS 1.3 to targets with
// certificates that the CAs vouch for. The files are read now and again every ten seconds
// until ctx ends, so that they can be exchanged.
func (f TLSFiles) Credentials(ctx context.Context) (credentials.TransportCredentials, error) {
	store, err := tlsconf.Open(tlsconf.Files{Cert: f.Cert, Key: f.Key, CA: f.CA, CRL: f.CRL}, nil)
	if err != nil {
		return nil, fmt.Errorf("TLS of a client: %w", err)
	}
	go store.Run(ctx)
	return store.DialCredentials(f.ServerName), nil
}

// TokenFile returns a function for Config.Token that reads the token from a file, again
// after ten seconds. White space around the token does not count.
func TokenFile(path string) func(context.Context) (string, error) {
	var mu sync.Mutex
	var token string
	var read time.Time
	return func(context.Context) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if token != "" && time.Since(read) < tokenTime {
			return token, nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("reading the token: %w", err)
		}
		t := strings.TrimSpace(string(b))
		if t == "" {
			return "", fmt.Errorf("reading the token: %s is empty", path)
		}
		token, read = t, time.Now()
		return token, nil
	}
}

// Bearer returns credentials that show a token with every call, for connections other
// than a Client's. If secure is true, they refuse connections in clear.
func Bearer(token func(context.Context) (string, error), secure bool) credentials.PerRPCCredentials {
	return bearer{token, secure}
}

// bearer shows a token with every call.
type bearer struct {
	token  func(context.Context) (string, error)
	secure bool
}

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (b bearer) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	token, err := b.token(ctx)
	if err != nil {
		return nil, err
	}
	return map[string]string{"authorization": "Bearer " + token}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials.
func (b bearer) RequireTransportSecurity() bool { return b.secure }
