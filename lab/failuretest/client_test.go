package failuretest

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/devcluster/proc"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/sitetest"
)

// entity is the entity of all stories.
const entity = "acme/vm"

// client speaks to a site, over a connection that outlives the site's restarts.
type client struct {
	samyav1.TokenServiceClient
	samyav1.EntityServiceClient
	site *proc.Process
	conn *grpc.ClientConn

	mu    sync.Mutex
	local string // the latest connection's own address
}

// dial returns a client of a site; it is closed with the test.
func dial(t *testing.T, p *proc.Process) *client {
	t.Helper()
	c := &client{site: p}
	conn, err := grpc.NewClient("passthrough:///"+p.GRPC,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1, MaxDelay: 20 * time.Millisecond},
			MinConnectTimeout: time.Second,
		}),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
			if err == nil {
				c.mu.Lock()
				c.local = conn.LocalAddr().String()
				c.mu.Unlock()
			}
			return conn, err
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // nothing is under way on it any more
	c.conn = conn
	c.TokenServiceClient = samyav1.NewTokenServiceClient(conn)
	c.EntityServiceClient = samyav1.NewEntityServiceClient(conn)
	return c
}

// dialAll returns a client of every site.
func dialAll(t *testing.T, c *proc.Cluster) []*client {
	t.Helper()
	var clients []*client
	for _, p := range c.Sites() {
		clients = append(clients, dial(t, p))
	}
	return clients
}

// localAddr returns the address that the site sees the client at.
func (c *client) localAddr() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.local
}

// acquire takes tokens under an id, waiting for them at most so long.
func (c *client) acquire(ctx context.Context, id string, tokens int64, wait time.Duration) (*samyav1.AcquireResponse, error) {
	return c.Acquire(ctx, &samyav1.AcquireRequest{
		Entity: entity, Tokens: tokens, RequestId: id, Wait: durationpb.New(wait),
	})
}

// release gives tokens back under an id.
func (c *client) release(ctx context.Context, id string, tokens int64) (*samyav1.ReleaseResponse, error) {
	return c.Release(ctx, &samyav1.ReleaseRequest{Entity: entity, Tokens: tokens, RequestId: id})
}

// share reads the site's own share, waiting for the site if it is about to
// come back.
func (c *client) share(t *testing.T) *samyav1.Share {
	t.Helper()
	s, err := c.read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// read returns the site's own books of the entity.
func (c *client) read(ctx context.Context) (*samyav1.Share, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	resp, err := c.GetEntity(ctx, &samyav1.GetEntityRequest{Name: entity}, grpc.WaitForReady(true))
	if err != nil {
		return nil, fmt.Errorf("reading %s at %s: %w", entity, c.site.Name, err)
	}
	return resp.GetUsage().GetShares()[0], nil
}

// create creates the entity at the first site and waits until all have it.
func create(t *testing.T, limit int64, clients ...*client) {
	t.Helper()
	sitetest.Eventually(t, "creating "+entity, func() error {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		_, err := clients[0].CreateEntity(ctx, &samyav1.CreateEntityRequest{Name: entity, Limit: limit, RequestId: "create"})
		return err
	})
	for _, c := range clients {
		sitetest.Eventually(t, entity+" at "+c.site.Name, func() error {
			_, err := c.GetEntity(t.Context(), &samyav1.GetEntityRequest{Name: entity})
			return err
		})
	}
}

// books adds up the shares of the sites.
func books(t *testing.T, clients []*client) (left, offered, net int64) {
	t.Helper()
	for _, c := range clients {
		s := c.share(t)
		left, offered, net = left+s.GetLeft(), offered+s.GetOffered(), net+s.GetNet()
	}
	return left, offered, net
}

// settled waits until no site has tokens set aside, the clients' acquired tokens equal
// held, and the books add up to the limit.
func settled(t *testing.T, limit, held int64, clients ...*client) {
	t.Helper()
	sitetest.Eventually(t, "books", func() error {
		var left, offered, net int64
		for _, c := range clients {
			s, err := c.read(t.Context())
			if err != nil {
				return err // a site that recovers may refuse for a moment
			}
			left, offered, net = left+s.GetLeft(), offered+s.GetOffered(), net+s.GetNet()
		}
		if offered != 0 || net != held || left+net != limit {
			return fmt.Errorf("left %d, offered %d, acquired %d; want offered 0, acquired %d, limit %d",
				left, offered, net, held, limit)
		}
		return nil
	})
}
