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

// Lease is tokens held until a time, unless it is renewed or committed. Its methods
// change nothing in it.
type Lease struct {
	// Name is the lease's name: its site, a slash and the id of the acquire.
	Name string
	// Entity is the entity whose tokens it holds.
	Entity string
	// Tokens that it held when it was granted or renewed.
	Tokens int64
	// Expires is until when it holds them at least, by this machine's clock.
	Expires time.Time
	// TTL is its time to live when it was granted or renewed.
	TTL time.Duration

	c *Client
}

// AcquireLease takes tokens of an entity as a lease with a time to live, 1s to 7
// days: unless it is renewed or committed they go back by themselves. The error is
// an *Error.
func (c *Client) AcquireLease(ctx context.Context, entity string, tokens int64, ttl time.Duration, opts ...AcquireOption) (*Lease, error) {
	began := time.Now()
	result, err := c.move(ctx, newAcquire(entity, tokens, append([]AcquireOption{lease(ttl)}, opts...)))
	if err != nil {
		return nil, err
	}
	return c.lease(result.GetAcquire().GetLease(), ttl, began), nil
}

// lease makes a Lease of what the site told in an answer to what was asked at a
// time.
func (c *Client) lease(l *samyav1.Lease, ttl time.Duration, asked time.Time) *Lease {
	// The site counted what remains after it was asked.
	return &Lease{
		Name: l.GetName(), Entity: l.GetEntity(), Tokens: l.GetTokens(), TTL: ttl,
		Expires: asked.Add(l.GetRemaining().AsDuration()), c: c,
	}
}

// LeaseNamed returns a lease that was granted earlier, of which only its name and
// entity are known. It is not looked up.
func (c *Client) LeaseNamed(lease, entity string) *Lease {
	return &Lease{Name: lease, Entity: entity, c: c}
}

// Renew gives the lease a time to live from now on, 1s to 7 days; 0: as long as
// before. It may be repeated at will. The error is an *Error, ErrLeaseNotFound once
// the lease has ended.
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

// Commit keeps tokens of the lease for good, at most what it holds, 0 for all; gives
// the rest back; and ends the lease. The error is an *Error.
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

// Return gives tokens of the lease back, at most what it holds, 0 for all. The error
// is an *Error.
func (l *Lease) Return(ctx context.Context, tokens int64, opts ...ReleaseOption) (Receipt, error) {
	home, _, err := name.Lease("lease", l.Name)
	if err != nil {
		return Receipt{}, public(apierr.FromName(err))
	}
	return l.c.Release(ctx, l.Entity, tokens, append([]ReleaseOption{ofLease(l.Name, home)}, opts...)...)
}

// keptTimes is how often a kept lease is renewed within its time to live.
const keptTimes = 3

// keeper renews one lease.
type keeper struct {
	end context.CancelCauseFunc
}

// Keep renews the lease, with the time to live that it has, until the function
// returned is called, ctx ends or the client is closed. The context returned ends
// with that, and when the lease cannot be renewed in time: its cause is then what
// kept it, such as ErrLeaseNotFound. Work that needs the tokens belongs under it.
func (l *Lease) Keep(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	k := &keeper{end: end}
	l.c.mu.Lock()
	closed := l.c.closed
	if !closed {
		l.c.keeps[k] = struct{}{}
		l.c.loops.Go(func() {
			end(l.keep(ctx))
			l.c.mu.Lock()
			defer l.c.mu.Unlock()
			delete(l.c.keeps, k)
		})
	}
	l.c.mu.Unlock()
	if closed {
		end(ErrClosed)
	}
	return ctx, func() { end(context.Canceled) }
}

// keep renews until ctx ends or the lease is lost, and returns why.
func (l *Lease) keep(ctx context.Context) error {
	held := *l
	var last error
	for {
		// A renewal that fails is tried again in what is left, until it is over.
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
