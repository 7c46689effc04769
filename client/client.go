package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/samya-db/samya/internal/mux"
	"github.com/samya-db/samya/internal/seats"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// Client makes calls to the nearest of its targets. Its methods may be called from
// several goroutines at once.
type Client struct {
	cfg     Config
	ranking atomic.Pointer[ranking]
	loops   sync.WaitGroup
	// ctx ends with the client, and ends calls that are still under way.
	ctx  context.Context
	stop context.CancelFunc

	// telling is held while a list changes the targets, choosing while anybody looks at
	// them.
	telling  sync.Mutex
	choosing sync.Mutex
	targets  []*target
	seats    *seats.Book // what sites told of the members
	retired  []*target   // with calls under way

	sessions sessions

	mu     sync.Mutex
	calls  int // under way
	closed bool
	idle   chan struct{} // closed once the client is closed and no call is under way
	keeps  map[*keeper]struct{}
}

// New makes a client and connects it in the background; it does not fail because a target
// is down. Close the client when it is no longer needed.
func New(cfg Config) (*Client, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	c := &Client{cfg: cfg, idle: make(chan struct{}), keeps: map[*keeper]struct{}{}}
	c.ctx, c.stop = context.WithCancel(context.Background())
	for _, info := range cfg.Targets {
		t, err := c.connect(info)
		if err != nil {
			return nil, errors.Join(err, c.shut())
		}
		c.targets = append(c.targets, t)
	}
	c.rerank()
	// What is learned from the first changes the targets.
	for _, t := range slices.Clone(c.targets) {
		c.follow(t)
	}
	return c, nil
}

// connect makes a target, whose connection is set up in the background.
func (c *Client) connect(info Target) (*target, error) {
	open := c.cfg.dial
	if open == nil {
		open = func(info Target) (connection, error) { return dial(info, &c.cfg) }
	}
	conn, err := open(info)
	if err != nil {
		return nil, fmt.Errorf("target %s: %w", info.Address, err)
	}
	t := &target{
		Target: info, home: c.cfg.Region != "" && info.Region == c.cfg.Region,
		conn: conn, mux: mux.New(c.cfg.streams(info, conn), mux.Options{}), changed: c.rerank, search: c.search, stop: func() {},
	}
	t.took = func(site string, term int64) bool { return c.took(t, site, term) }
	t.live()
	return t, nil
}

// follow measures a target, and learns from it, until it is retired or the client closed.
func (c *Client) follow(t *target) {
	ctx, stop := context.WithCancel(c.ctx)
	t.stop = stop
	c.loops.Go(func() { t.follow(ctx, c.cfg.ProbeInterval, c.cfg.Random) })
	if !c.cfg.FixedTargets {
		c.loops.Go(func() { c.learn(ctx, t) })
	}
}

// Close refuses further calls, stops keeping leases, and waits until the calls under way
// have ended or ctx ends. Calls under way then end with ErrClosed, and may have been
// done. Nothing of the client is left running. Closing it again does nothing.
func (c *Client) Close(ctx context.Context) error {
	c.mu.Lock()
	first := !c.closed
	c.closed = true
	if first && c.calls == 0 {
		close(c.idle)
	}
	for k := range c.keeps {
		k.end(ErrClosed)
	}
	c.mu.Unlock()
	var late error
	select {
	case <-c.idle:
	case <-ctx.Done():
		late = fmt.Errorf("closing with calls under way: %w", ctx.Err())
	}
	err := c.shut()
	<-c.idle
	return errors.Join(late, err)
}

// shut ends the probes and closes the targets.
func (c *Client) shut() error {
	c.stop()
	c.loops.Wait()
	c.choosing.Lock()
	all := append(slices.Clone(c.targets), c.retired...)
	c.choosing.Unlock()
	var errs []error
	for _, t := range all {
		// A second Close finds the target closed.
		if err := t.close(); err != nil && !isClosing(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// enter counts a call in; it fails once the client is closed.
func (c *Client) enter() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	c.calls++
	return nil
}

// leave counts a call out.
func (c *Client) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls--; c.closed && c.calls == 0 {
		close(c.idle)
	}
}

// Grant is the answer to an acquire.
type Grant struct {
	// Tokens granted: all tokens asked for, or fewer with AtLeast.
	Tokens int64
	// Left are the tokens left at the site just after the grant.
	Left int64
	// Site is the site that granted.
	Site string
	// RequestID is the request's id.
	RequestID string
}

// Acquire takes tokens of an entity, at least 1. It returns once the grant is
// durable. The error is an *Error.
func (c *Client) Acquire(ctx context.Context, entity string, tokens int64, opts ...AcquireOption) (Grant, error) {
	result, err := c.move(ctx, newAcquire(entity, tokens, opts))
	if err != nil {
		return Grant{}, err
	}
	return grant(result.GetAcquire()), nil
}

func grant(r *samyav1.AcquireResponse) Grant {
	return Grant{Tokens: r.GetTokens(), Left: r.GetLeft(), Site: r.GetSite(), RequestID: r.GetRequestId()}
}

// Receipt is the answer to a release.
type Receipt struct {
	// Tokens given back: all tokens of the request, or fewer if the lease held fewer.
	Tokens int64
	// Left are the tokens left at the site just after the release.
	Left int64
	// Site is the site that took the tokens.
	Site string
	// RequestID is the request's id.
	RequestID string
	// Parked: the release is durable, but not counted yet. It counts once another site
	// was asked that may have executed it or that granted the lease.
	Parked bool
}

// Release gives tokens back, at least 1. It returns once the release is durable. The
// error is an *Error.
func (c *Client) Release(ctx context.Context, entity string, tokens int64, opts ...ReleaseOption) (Receipt, error) {
	result, err := c.move(ctx, newRelease(entity, tokens, opts))
	if err != nil {
		return Receipt{}, err
	}
	return receipt(result.GetRelease()), nil
}

func receipt(r *samyav1.ReleaseResponse) Receipt {
	return Receipt{
		Tokens: r.GetTokens(), Left: r.GetLeft(), Site: r.GetSite(), RequestID: r.GetRequestId(), Parked: r.GetParked(),
	}
}

func newAcquire(entity string, tokens int64, opts []AcquireOption) *movement {
	m := &movement{attempt: 1, wait: siteWait, acquire: &samyav1.AcquireRequest{Entity: entity, Tokens: tokens}}
	for _, o := range opts {
		o.toAcquire(m)
	}
	return m
}

func newRelease(entity string, tokens int64, opts []ReleaseOption) *movement {
	m := &movement{attempt: 1, release: &samyav1.ReleaseRequest{Entity: entity, Tokens: tokens}}
	for _, o := range opts {
		o.toRelease(m)
	}
	return m
}

// deadline returns when a call with the given wait for tokens ends.
func (c *Client) deadline(ctx context.Context, wait time.Duration, now time.Time) time.Time {
	if d, ok := ctx.Deadline(); ok {
		return d
	}
	return now.Add(c.cfg.Timeout + wait)
}
