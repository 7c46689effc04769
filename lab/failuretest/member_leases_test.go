package failuretest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/samya-db/samya/client"
)

// memberLease is a lease that may not have ended.
type memberLease struct {
	*sdk.Lease
	books *memberAccounts
	home  string
	// left marks a lease that the caller leaves to expire.
	left bool

	mu      sync.Mutex
	counted int64 // tokens that count as out
	ending  *time.Timer
}

// leaseMargin is how long before its end a lease counts as out no more: longer than this
// program may be late.
const leaseMargin = time.Second

// count has as many tokens of the lease count as out, until shortly before its end.
func (l *memberLease) count(tokens int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ending != nil {
		l.ending.Stop()
	}
	if rest := time.Until(l.Expires) - leaseMargin; rest <= 0 {
		tokens = 0
	} else if tokens > 0 {
		l.ending = time.AfterFunc(rest, func() { l.count(0) })
	}
	if tokens > l.counted {
		l.books.gain(l.Entity, tokens-l.counted)
	} else {
		l.books.lose(l.Entity, l.counted-tokens)
	}
	l.counted = tokens
}

// lease takes tokens as a lease.
func (c *memberCaller) lease(ctx context.Context, of string, tokens int64) {
	began, wait := time.Now(), c.wait()
	ttl := time.Duration(4+c.rng.IntN(5)) * time.Second
	var got *sdk.Lease
	err := c.patiently(func(again error) (err error) {
		got, err = c.client.AcquireLease(ctx, of, tokens, ttl, wait, sdk.Resume(again))
		return err
	})
	c.books.count("operations", 1)
	if c.failed("lease", began, err) {
		return // of unknown outcome: it expires
	}
	c.books.count("leases", 1)
	home, _, _ := strings.Cut(got.Name, "/")
	l := &memberLease{Lease: got, books: c.books, home: home, left: c.rng.IntN(8) == 0}
	l.count(tokens)
	c.books.book(of, home, tokens)
	c.leases = append(c.leases, l)
}

// drop forgets a lease.
func (c *memberCaller) drop(l *memberLease) {
	c.leases = slices.DeleteFunc(c.leases, func(o *memberLease) bool { return o == l })
}

// expire forgets the leases whose time may be over: their tokens come back by themselves.
func (c *memberCaller) expire() {
	c.leases = slices.DeleteFunc(c.leases, func(l *memberLease) bool {
		if time.Now().Before(l.Expires) {
			return false
		}
		c.books.count("leases expired", 1)
		l.count(0)
		c.books.book(l.Entity, l.home, -l.Tokens)
		return true
	})
}

// endless reports whether a call on a lease may have failed so. The lease has ended if its
// time is over. A lease of a machine that was destroyed ends with the write-off; until then
// nobody can answer for the lease. While a machine is killed again and again, its leases end
// there unheard: a caller learns that nothing was done, after the time of the lease.
func (c *memberCaller) endless(what string, l *memberLease, began time.Time, err error) bool {
	c.books.count("calls", 1)
	c.books.count("operations", 1)
	switch {
	case err == nil:
		return true
	case errors.Is(err, sdk.ErrLeaseNotFound) && !time.Now().Before(l.Expires):
		c.books.count("lease calls too late", 1)
	case errors.Is(err, sdk.ErrUnavailable) && !time.Now().Before(l.Expires) && c.books.anyKilled(began):
		c.books.count("lease calls too late, at a site killed", 1)
	case c.books.isLost(l.home) && (errors.Is(err, sdk.ErrLeaseNotFound) || errors.Is(err, sdk.ErrUnavailable) ||
		unsure(err) || errors.Is(err, context.DeadlineExceeded)):
		c.books.count("lease calls at the lost site", 1)
	default:
		c.books.fault("%s of %s, begun %s ago, to expire in %s: %v", what, l.Name,
			time.Since(began).Round(time.Millisecond), time.Until(l.Expires).Round(time.Millisecond), err)
	}
	return false
}

// renew renews a lease. The lease goes on as before if the renewal has no answer.
func (c *memberCaller) renew(ctx context.Context, l *memberLease) {
	began := time.Now()
	renewed, err := l.Renew(ctx, 0)
	if c.endless("renewal", l, began, err) {
		c.books.count("leases renewed", 1)
		// The site may still count tokens whose return waits.
		renewed.Tokens = l.Tokens
		l.mu.Lock()
		l.Lease = renewed
		l.mu.Unlock()
		l.count(l.Tokens)
		return
	}
	if errors.Is(err, sdk.ErrLeaseNotFound) && time.Now().Before(l.Expires) {
		// Its machine is lost: the caller gives up the tokens.
		c.drop(l)
		l.count(0)
	}
}

// endLease commits a part of a lease, or gives back all or some of it.
func (c *memberCaller) endLease(ctx context.Context, l *memberLease) {
	began := time.Now()
	if c.rng.IntN(2) == 0 {
		c.drop(l)
		l.count(0)
		keep := 1 + c.rng.Int64N(l.Tokens)
		kept, _, err := l.Commit(ctx, keep)
		if !c.endless("commit", l, began, err) {
			c.books.book(l.Entity, l.home, -l.Tokens)
			return
		}
		c.books.count("leases committed", 1)
		c.books.book(l.Entity, l.home, kept-l.Tokens)
		c.books.gain(l.Entity, kept)
		c.held[l.Entity] += kept
		return
	}
	back := 1 + c.rng.Int64N(l.Tokens)
	c.books.book(l.Entity, l.home, -back)
	l.Tokens -= back
	l.mu.Lock()
	counted := min(l.counted, l.Tokens)
	l.mu.Unlock()
	l.count(counted)
	if l.Tokens == 0 {
		c.drop(l)
	}
	err := c.patiently(func(again error) error {
		_, err := l.Return(ctx, back, sdk.Resume(again))
		return err
	})
	if c.endless("return", l, began, err) {
		c.books.count("leases returned", 1)
		return
	}
	// What is not back yet comes back when the lease ends: nothing is booked for it again.
}
