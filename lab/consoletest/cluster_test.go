package consoletest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/samya-db/samya/devcluster/load"
	"github.com/samya-db/samya/devcluster/proc"
	"github.com/samya-db/samya/internal/buildtest"
	"github.com/samya-db/samya/internal/httpapi"
	"github.com/samya-db/samya/internal/race"
)

// The tokens of the callers.
const (
	adminToken  = "token-of-kim-the-admin-0123456789abcdef"
	viewerToken = "token-of-vera-the-viewer-0123456789abcdef"
	clientToken = "token-of-the-load-0123456789abcdefghij"
)

// regions are the regions of the cluster, each with a site and an app manager.
var regions = []string{"as", "au", "eu", "sa", "us"}

// accessFile writes an access file with all callers.
func accessFile(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	text.WriteString("callers:\n")
	for _, c := range []struct{ name, role, prefixes, token string }{
		{"kim", "admin", "", adminToken},
		{"vera", "viewer", "", viewerToken},
		{"load", "client", `["*"]`, clientToken},
	} {
		sum := sha256.Sum256([]byte(c.token))
		fmt.Fprintf(&text, "  - {name: %s, role: %s, token_sha256: %s", c.name, c.role, hex.EncodeToString(sum[:]))
		if c.prefixes != "" {
			fmt.Fprintf(&text, ", prefixes: %s", c.prefixes)
		}
		text.WriteString("}\n")
	}
	path := filepath.Join(t.TempDir(), "access.yaml")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// start starts a cluster that is stopped with the test.
func start(t *testing.T, cfg proc.Config) *proc.Cluster {
	t.Helper()
	race.OtherProcesses(t)
	cfg.Dir = t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	c, err := proc.Start(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(context.Background()); err != nil {
			t.Errorf("stop the cluster: %v", err)
		}
	})
	return c
}

// program builds the program of this work tree.
func program(t *testing.T) string {
	t.Helper()
	bin, err := buildtest.Samya(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

// withToken shows a token in each request.
type withToken struct {
	token string
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (w withToken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+w.token)
	return w.next.RoundTrip(r)
}

// clientOf returns a client of an app manager for the holder of a token.
func clientOf(t *testing.T, addr, token string) *httpapi.Client {
	t.Helper()
	transport := load.NewTransport(256)
	t.Cleanup(transport.CloseIdleConnections)
	c, err := httpapi.New(addr, withToken{token, transport})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The entities of the cluster under load.
var entities = []httpapi.Creation{
	{Name: "acme", Limit: 8000},
	{Name: "acme/vm", Limit: 5000, Parent: "acme"},
	{Name: "acme/gpu", Limit: 600, Parent: "acme"},
	{Name: "acme/seats", Limit: 250, Parent: "acme"},
	{Name: "globex/licences", Limit: 900},
}

// create makes the entities of the cluster under load.
func create(t *testing.T, c *httpapi.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
	defer cancel()
	for _, e := range entities {
		if _, err := c.Create(ctx, e); err != nil {
			t.Fatalf("create %s: %v", e.Name, err)
		}
	}
}

// createMany makes n entities, many at a time.
func createMany(t *testing.T, c *httpapi.Client, n int) {
	t.Helper()
	const callers = 256
	group, ctx := errgroup.WithContext(t.Context())
	for first := range callers {
		group.Go(func() error {
			for i := first; i < n; i += callers {
				if _, err := c.CreateEntity(ctx, fmt.Sprintf("org-%03d/team-%02d/resource-%06d", i%1000, i%37, i), 1000, ""); err != nil {
					return fmt.Errorf("create entity %d: %w", i, err)
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
}

// day is the length of a compressed day: the demand of regions rises and falls shifted
// against each other.
const day = 90 * time.Second

// begin makes load until the test ends.
func begin(t *testing.T, cluster *proc.Cluster) {
	t.Helper()
	transport := load.NewTransport(256)
	cfg := load.Config{
		Entities: []load.Entity{{Name: "acme/vm", Share: 8}, {Name: "acme/gpu", Share: 1}, {Name: "acme/seats", Share: 1}},
		Rate:     400, MaxTokens: 12, Seed: 1, RequestPrefix: "console-", Transport: withToken{clientToken, transport}, Wait: time.Second,
	}
	for i, r := range regions {
		shift := 2 * math.Pi * float64(i) / float64(len(regions))
		cfg.Regions = append(cfg.Regions, load.Region{
			Name: r, Addr: cluster.AppManager(i).HTTP,
			Target: func(at time.Duration) float64 {
				return 950 * (0.95 + math.Sin(2*math.Pi*at.Seconds()/day.Seconds()+shift))
			},
		})
	}
	l, err := load.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = l.Run(ctx, nil) // ends with the test
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		transport.CloseIdleConnections()
	})
}
