// Package etcd is etcd as the store of a site's log. It translates, and refuses to guess:
// an error is told as a refusal only if etcd certainly did nothing.
package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/samya-db/samya/site/replica"
)

// Config says where etcd is.
type Config struct {
	// Endpoints are the host:port or URLs of etcd's members; at least one.
	Endpoints []string
	// TLS has the certificates for etcd; nil: in clear.
	TLS *tls.Config
	// User and Password are for etcd's own authentication; empty: none.
	User, Password string
	// Timeout bounds each call; 0: 2 s. A call that takes longer has no answer, and is
	// repeated.
	Timeout time.Duration
}

// defaultTimeout is the default of Config.Timeout: several times etcd's election.
const defaultTimeout = 2 * time.Second

// Client is a connection to etcd. It implements replica.KV.
type Client struct {
	cfg    Config
	client *clientv3.Client
	leader leader
	ctx    context.Context //nolint:containedctx // a KV's calls have none: the client's end is theirs
	cancel context.CancelFunc
}

var _ replica.KV = (*Client)(nil)

// Open makes a client. It connects in the background.
func Open(cfg Config) (*Client, error) {
	if len(cfg.Endpoints) == 0 {
		return nil, errors.New("connecting to etcd: no endpoints")
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = defaultTimeout
	}
	ctx, cancel := context.WithCancel(context.Background())
	c := &Client{cfg: cfg, ctx: ctx, cancel: cancel}
	var err error
	if c.client, err = c.connect(cfg.Endpoints...); err != nil {
		cancel()
		return nil, fmt.Errorf("connecting to etcd: %w", err)
	}
	c.leader.follow(c)
	return c, nil
}

// connect returns a client of some of etcd's members.
func (c *Client) connect(endpoints ...string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{
		Endpoints: endpoints, TLS: c.cfg.TLS, Username: c.cfg.User, Password: c.cfg.Password,
		DialTimeout: c.cfg.Timeout, DialKeepAliveTime: c.cfg.Timeout, DialKeepAliveTimeout: c.cfg.Timeout,
		Context: c.ctx, Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.6, Jitter: .2, MaxDelay: time.Second},
			MinConnectTimeout: c.cfg.Timeout,
		})},
	})
}

// Close ends all calls.
func (c *Client) Close() error {
	c.cancel()
	c.leader.end()
	if err := c.client.Close(); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("closing the connection to etcd: %w", err)
	}
	return nil
}

// Do implements replica.KV.
func (c *Client) Do(t *replica.Txn) (*replica.Done, error) {
	ctx, cancel := context.WithTimeout(c.ctx, c.cfg.Timeout)
	defer cancel()
	client := c.leader.or(c.client)
	txn := client.Txn(ctx).If(guards(t.If)...).Then(changes(t.Then)...)
	// A transaction without changes is linearizable only if it has a read that is: Else.
	var reads []clientv3.Op
	for _, key := range t.Else {
		reads = append(reads, clientv3.OpGet(key))
	}
	resp, err := txn.Else(reads...).Commit()
	if err = judged("changing etcd", err); err != nil {
		c.leader.failed(client, err)
		return nil, err
	}
	done := &replica.Done{Held: resp.Succeeded, Rev: resp.Header.Revision}
	if !resp.Succeeded {
		for _, r := range resp.Responses {
			for _, kv := range r.GetResponseRange().GetKvs() {
				done.Found = append(done.Found, replica.Entry{Key: string(kv.Key), Value: kv.Value, Rev: kv.ModRevision})
			}
		}
	}
	return done, nil
}

func guards(all []replica.Guard) []clientv3.Cmp {
	var cmps []clientv3.Cmp
	for _, g := range all {
		if g.Rev == replica.Present {
			cmps = append(cmps, clientv3.Compare(clientv3.ModRevision(g.Key), ">", 0))
		} else {
			cmps = append(cmps, clientv3.Compare(clientv3.ModRevision(g.Key), "=", g.Rev))
		}
	}
	return cmps
}

func changes(all []replica.Change) []clientv3.Op {
	var ops []clientv3.Op
	for _, ch := range all {
		if ch.To != "" {
			ops = append(ops, clientv3.OpDelete(ch.Key, clientv3.WithRange(ch.To)))
		} else {
			ops = append(ops, clientv3.OpPut(ch.Key, string(ch.Value)))
		}
	}
	return ops
}

// Read implements replica.KV.
func (c *Client) Read(from, to string, limit int) ([]replica.Entry, error) {
	ctx, cancel := context.WithTimeout(c.ctx, c.cfg.Timeout)
	defer cancel()
	resp, err := c.client.Get(ctx, from, clientv3.WithRange(to), clientv3.WithLimit(int64(limit)))
	if err != nil {
		return nil, judged("reading from etcd", err)
	}
	entries := make([]replica.Entry, len(resp.Kvs))
	for i, kv := range resp.Kvs {
		entries[i] = replica.Entry{Key: string(kv.Key), Value: kv.Value, Rev: kv.ModRevision}
	}
	return entries, nil
}

// refusals are the errors after which etcd certainly did nothing.
var refusals = []error{
	rpctypes.ErrNoSpace, rpctypes.ErrRequestTooLarge, rpctypes.ErrTooManyOps, rpctypes.ErrPermissionDenied,
	rpctypes.ErrAuthFailed, rpctypes.ErrUserEmpty, rpctypes.ErrTooManyRequests,
}

// judged adds the action to an error, and replica.ErrRefused if etcd did nothing; nil for nil.
func judged(action string, err error) error {
	if err == nil {
		return nil
	}
	if slices.ContainsFunc(refusals, func(r error) bool { return errors.Is(err, r) }) {
		return fmt.Errorf("%s: %w: %w", action, replica.ErrRefused, err)
	}
	return fmt.Errorf("%s: %w", action, err)
}

// NoSpace reports whether an error says that etcd's space quota is used up.
func NoSpace(err error) bool { return errors.Is(err, rpctypes.ErrNoSpace) }

// Watch has told called at each change of a key in [from, to), until ctx ends or the watch
// breaks. It may be called more often. Nothing rests on it but speed.
func (c *Client) Watch(ctx context.Context, from, to string, told func()) {
	for r := range c.client.Watch(clientv3.WithRequireLeader(ctx), from, clientv3.WithRange(to)) {
		if r.Err() != nil {
			return
		}
		told()
	}
}

// Compact has etcd forget the values that were replaced or deleted before now. Without it
// the space of trimmed commits is never free again.
func (c *Client) Compact(ctx context.Context, from string) error {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	resp, err := c.client.Get(ctx, from, clientv3.WithCountOnly())
	if err != nil {
		return fmt.Errorf("compacting etcd: %w", err)
	}
	if _, err := c.client.Compact(ctx, resp.Header.Revision); err != nil && !errors.Is(err, rpctypes.ErrCompacted) {
		return fmt.Errorf("compacting etcd: %w", err)
	}
	return nil
}

// Size is how many bytes etcd's database takes at a member, and how many are in use.
type Size struct{ Total, InUse int64 }

// Sizes asks each member for its size.
func (c *Client) Sizes(ctx context.Context) ([]Size, error) {
	var sizes []Size
	for _, e := range c.client.Endpoints() {
		one, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
		st, err := c.client.Status(one, e)
		cancel()
		if err != nil {
			return nil, fmt.Errorf("asking etcd's member %s for its size: %w", e, err)
		}
		sizes = append(sizes, Size{st.DbSize, st.DbSizeInUse})
	}
	return sizes, nil
}
