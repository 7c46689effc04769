package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/name"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// Lease is tokens held for a time, which ends unless the lease is renewed or committed.
// Its methods leave the Lease itself unchanged.
type Lease struct {
	// Name is the lease's name: its site, a slash and the id of the acquire.
	Name string
	// Entity is the entity of the tokens.
	Entity string
	// Tokens held when the lease was granted or renewed.
	Tokens int64
	// Expires is the time until which the lease holds its tokens at least, by this
	// machine's clock.
	Expires time.Time
	// TTL is the time to live when the lease was granted or renewed.
	TTL time.Duration
	// Share says that the holder grants tokens of a rate quota in place of the site: for a
	// bucket from a bucket of Tokens, full at first, which refills itself in each period; for
	// a window Tokens within any time as long as a window. An older site may not know of
	// shares.
	Share bool

	c *Client
}

// AcquireLease takes tokens of an entity as a lease with a time to live, 1s to 7 days.
// Unless the lease is renewed or committed the tokens go back by themselves. The error is
// an *Error.
func (c *Client) AcquireLease(ctx context.Context, entity string, tokens int64, ttl time.Duration, opts ...AcquireOption) (*Lease, error) {
	began := time.Now()
	result, err := c.move(ctx, newAcquire(entity, tokens, append([]AcquireOption{lease(ttl)}, opts...)))
	if err != nil {
		return nil, err
	}
	return c.lease(result.GetAcquire().GetLease(), ttl, began), nil
}

// lease makes a Lease of the lease l in the answer to a request made at asked.
func (c *Client) lease(l *samyav1.Lease, ttl time.Duration, asked time.Time) *Lease {
	// The site counted the remaining time after asked, so Expires is on the safe side.
	return &Lease{
		Name: l.GetName(), Entity: l.GetEntity(), Tokens: l.GetTokens(), TTL: ttl, Share: l.GetShare(),
		Expires: asked.Add(l.GetRemaining().AsDuration()), c: c,
	}
}

// LeaseNamed returns a lease that was granted earlier, with only its name and entity. It
// asks no site.
func (c *Client) LeaseNamed(lease, entity string) *Lease {
	return &Lease{Name: lease, Entity: entity, c: c}
}

// Renew gives the lease a time to live from now on, 1s to 7 days; 0: as long as before.
// It may be repeated at will. The error is an *Error, ErrLeaseNotFound once the lease has
// ended.
func (l *Lease) Renew(ctx context.Context, ttl time.Duration) (*Lease, error) {
	home, _, err := name.Lease("lease", l.Name)
	if err != nil {
		return nil, public(apierr.FromName(err))
	}
	req := &samyav1.RenewLeaseRequest{Lease: l.Name}
	if ttl != 0 {
		req.Ttl = durationpb.New(ttl)
	} else {
		ttl = l.TTL
	}
	began := time.Now()
	resp := &samyav1.RenewLeaseResponse{}
	if err := l.c.ask(ctx, question{
		method: samyav1.TokenService_RenewLease_FullMethodName, req: req, resp: resp, site: home, entity: l.Entity,
	}); err != nil {
		return nil, err
	}
	return l.c.lease(resp.GetLease(), ttl, began), nil
}

// Commit keeps tokens of the lease for good, at most its tokens, 0 for all. It gives the
// rest back and ends the lease. The error is an *Error.
func (l *Lease) Commit(ctx context.Context, tokens int64) (kept, returned int64, _ error) {
	home, _, err := name.Lease("lease", l.Name)
	if err != nil {
		return 0, 0, public(apierr.FromName(err))
	}
	id := ulid.Make().String()
	resp := &samyav1.CommitLeaseResponse{}
	if err := l.c.ask(ctx, question{
		method: samyav1.TokenService_CommitLease_FullMethodName, resp: resp, site: home, moves: true,
		req:    &samyav1.CommitLeaseRequest{Lease: l.Name, Tokens: tokens, RequestId: id},
		entity: l.Entity, requestID: id,
	}); err != nil {
		return 0, 0, err
	}
	return resp.GetTokens(), resp.GetReturned(), nil
}

// Return gives tokens of the lease back, at most its tokens, 0 for all. The error is an
// *Error.
func (l *Lease) Return(ctx context.Context, tokens int64, opts ...ReleaseOption) (Receipt, error) {
	home, _, err := name.Lease("lease", l.Name)
	if err != nil {
		return Receipt{}, public(apierr.FromName(err))
	}
	return l.c.Release(ctx, l.Entity, tokens, append([]ReleaseOption{ofLease(l.Name, home)}, opts...)...)
}

// keptTimes is how often a kept lease is renewed within its time to live.
const keptTimes = 3

// keeper is something that ends with the client: the renewals of a lease, or a watch.
type keeper struct {
	end context.CancelCauseFunc
}

// Keep renews the lease, with its present time to live, until the returned function is
// called, ctx ends or the client is closed. The returned context then ends. It also ends
// when the lease cannot be renewed in time: its cause is then the reason, such as
// ErrLeaseNotFound. Work that needs the tokens belongs under the returned context.
func (l *Lease) Keep(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	k := &keeper{end: end}
	if !l.c.keep(k, func() { end(l.keep(ctx)) }) {
		end(ErrClosed)
	}
	return ctx, func() { end(context.Canceled) }
}

// keep has k ended with the client, and runs work, if not nil, in the background before it
// lets go of k. It reports false if the client is closed.
func (c *Client) keep(k *keeper, work func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.keeps[k] = struct{}{}
	if work != nil {
		c.loops.Go(func() {
			work()
			c.unkeep(k)
		})
	}
	return true
}

// unkeep lets go of k.
func (c *Client) unkeep(k *keeper) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.keeps, k)
}

// keep renews the lease until ctx ends or the lease is lost, and returns the reason.
func (l *Lease) keep(ctx context.Context) error {
	held := *l
	var last error
	for {
		// A failed renewal is tried again within the remaining time, until that is over.
		timer := time.NewTimer(max(time.Until(held.Expires)/keptTimes, 10*time.Millisecond))
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-timer.C:
		}
		if !time.Now().Before(held.Expires) {
			return errors.Join(fmt.Errorf("lease %s could not be renewed in time: %w", l.Name, ErrLeaseNotFound), last)
		}
		rctx, cancel := context.WithDeadline(ctx, held.Expires)
		renewed, err := held.Renew(rctx, held.TTL)
		cancel()
		switch {
		case err == nil:
			held = *renewed
		case errors.Is(err, ErrLeaseNotFound), errors.Is(err, ErrClosed):
			return err
		}
		last = err
	}
}
