package failuretest

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	sdk "github.com/samya-db/samya/client"
	"github.com/samya-db/samya/internal/wan"
)

// memberCallers is how many callers the load has.
const memberCallers = 100

// memberCaller is a caller of the Go client, with what it holds.
type memberCaller struct {
	books  *memberAccounts
	client *sdk.Client
	rng    *rand.Rand
	// every is the time between two calls.
	every  time.Duration
	held   map[string]int64
	leases []*memberLease
}

// run makes calls at an even rate until ctx ends, then ends the leases.
func (c *memberCaller) run(ctx, calls context.Context) {
	next := time.Now().Add(time.Duration(c.rng.Int64N(int64(c.every))))
	for {
		// A caller that is late by much makes no calls in a burst.
		if late := time.Since(next); late > 2*time.Second {
			next = next.Add(late)
		}
		if wan.Wait(ctx, max(time.Until(next), 0)) != nil {
			break
		}
		next = next.Add(c.every)
		c.step(calls)
	}
	for len(c.leases) > 0 && calls.Err() == nil {
		c.expire()
		for _, l := range c.leases {
			if !l.left {
				c.endLease(calls, l)
				break
			}
		}
		_ = wan.Wait(calls, 10*time.Millisecond) // calls is looked at above
	}
}

// step makes a call.
func (c *memberCaller) step(ctx context.Context) {
	c.expire()
	e := memberEntities[c.rng.IntN(len(memberEntities))]
	// Together the callers want a fourth more than there is.
	share := max(1, e.limit*5/4/memberCallers)
	full := c.held[e.name] > share || c.held[e.name] > 0 && c.rng.IntN(3) == 0
	switch n := c.rng.IntN(20); {
	case n < 2:
		c.batch(ctx)
	case n < 3:
		c.acquireAll(ctx)
	case n < 8 && len(c.leases) > 0:
		l := c.leases[c.rng.IntN(len(c.leases))]
		switch {
		case l.left:
		case n < 5:
			c.renew(ctx, l)
		default:
			c.endLease(ctx, l)
		}
	case n < 11 && len(c.leases) < 3:
		c.lease(ctx, e.name, 1+c.rng.Int64N(3))
	case full:
		c.release(ctx, e.name, 1+c.rng.Int64N(c.held[e.name]))
	default:
		c.acquire(ctx, e.name, 1+c.rng.Int64N(share))
	}
}

// patiently makes a call, and goes on with it as long as its outcome is unknown and may be
// found out.
func (c *memberCaller) patiently(call func(again error) error) error {
	err := call(nil)
	for errors.Is(err, sdk.ErrOutcomeUnknown) {
		of, _ := errors.AsType[*sdk.Error](err)
		if of.Attempt == 0 || !time.Now().Before(of.NotAfter) {
			return err
		}
		c.books.count("calls resumed", 1)
		err = call(err)
	}
	return err
}

// wait is how long acquires wait for tokens.
func (c *memberCaller) wait() sdk.AcquireOption {
	return sdk.Wait(time.Duration(c.rng.IntN(2)) * 200 * time.Millisecond)
}

// failed reports whether a call failed, and notes why. Out of tokens is an answer. A call
// that may have come to a machine that was destroyed may have no outcome: only that machine
// knew. Everything else is a fault.
func (c *memberCaller) failed(what string, began time.Time, err error) bool {
	c.books.count("calls", 1)
	switch {
	case err == nil:
		return false
	case errors.Is(err, sdk.ErrOutOfTokens):
		c.books.count("out of tokens", 1)
	case unsure(err) && c.books.overlaps(began):
		c.books.count("unknown at the lost site", 1)
	default:
		c.books.fault("%s, begun %s ago: %v", what, time.Since(began).Round(time.Millisecond), err)
	}
	return true
}

// unsure reports whether a call may or may not have been done.
func unsure(err error) bool {
	return errors.Is(err, sdk.ErrOutcomeUnknown) || errors.Is(err, sdk.ErrRequestExpired)
}

// acquire takes tokens for good.
func (c *memberCaller) acquire(ctx context.Context, of string, tokens int64) {
	began, wait := time.Now(), c.wait()
	var got sdk.Grant
	err := c.patiently(func(again error) (err error) {
		got, err = c.client.Acquire(ctx, of, tokens, wait, sdk.Resume(again))
		return err
	})
	c.books.count("operations", 1)
	c.acquired("acquire", began, of, tokens, got.Site, err)
}

// acquired books the outcome of an acquire.
func (c *memberCaller) acquired(what string, began time.Time, of string, tokens int64, site string, err error) {
	if c.failed(what, began, err) {
		if unsure(err) {
			c.books.unclear(of, tokens, 0)
		}
		return
	}
	c.books.count("granted", 1)
	c.books.gain(of, tokens)
	c.books.book(of, site, tokens)
	c.held[of] += tokens
}

// release gives tokens back that were taken for good.
func (c *memberCaller) release(ctx context.Context, of string, tokens int64) {
	began := time.Now()
	c.held[of] -= tokens
	c.books.lose(of, tokens)
	var got sdk.Receipt
	err := c.patiently(func(again error) (err error) {
		got, err = c.client.Release(ctx, of, tokens, sdk.Resume(again))
		return err
	})
	c.books.count("operations", 1)
	c.released("release", began, of, tokens, got.Site, got.Parked, err)
}

// released books the outcome of a release.
func (c *memberCaller) released(what string, began time.Time, of string, tokens int64, site string, parked bool, err error) {
	if c.failed(what, began, err) {
		if unsure(err) {
			c.books.unclear(of, 0, tokens)
		}
		return
	}
	c.books.count("released", 1)
	c.books.book(of, site, -tokens)
	if parked {
		c.books.count("parked", 1)
		c.books.park(of, site, tokens)
	}
}

// batch acquires and releases in a single call.
func (c *memberCaller) batch(ctx context.Context) {
	type part struct {
		of      string
		tokens  int64
		release bool
	}
	var parts []part
	var ops []sdk.Op
	for range 2 + c.rng.IntN(4) {
		e := memberEntities[c.rng.IntN(len(memberEntities))]
		if c.held[e.name] > 0 && c.rng.IntN(2) == 0 {
			p := part{e.name, 1 + c.rng.Int64N(c.held[e.name]), true}
			c.held[e.name] -= p.tokens
			c.books.lose(p.of, p.tokens)
			parts, ops = append(parts, p), append(ops, sdk.ReleaseOp(p.of, p.tokens))
			continue
		}
		p := part{e.name, 1 + c.rng.Int64N(2), false}
		parts, ops = append(parts, p), append(ops, sdk.AcquireOp(p.of, p.tokens, sdk.Wait(0)))
	}
	began := time.Now()
	results, err := c.client.Batch(ctx, ops...)
	if err != nil {
		c.books.fault("a batch of %d: %v", len(ops), err)
		return
	}
	c.books.count("operations", len(ops))
	for i, p := range parts {
		got, first := results[i], results[i].Err
		err := c.patiently(func(again error) error {
			if again == nil {
				return first
			}
			if p.release {
				r, err := c.client.Release(ctx, p.of, p.tokens, sdk.Resume(again))
				got.Site, got.Parked = r.Site, r.Parked
				return err
			}
			g, err := c.client.Acquire(ctx, p.of, p.tokens, sdk.Wait(0), sdk.Resume(again))
			got.Site = g.Site
			return err
		})
		if p.release {
			c.released("release of a batch", began, p.of, p.tokens, got.Site, got.Parked, err)
		} else {
			c.acquired("acquire of a batch", began, p.of, p.tokens, got.Site, err)
		}
	}
}

// acquireAll takes tokens of two entities, all or none.
func (c *memberCaller) acquireAll(ctx context.Context) {
	began, wait := time.Now(), c.wait()
	all := []sdk.Part{{Entity: memberEntities[2].name, Tokens: 1}, {Entity: memberEntities[3].name, Tokens: 2}}
	var got sdk.AllGrant
	err := c.patiently(func(again error) (err error) {
		got, err = c.client.AcquireAll(ctx, all, wait, sdk.Resume(again))
		return err
	})
	c.books.count("operations", 1)
	for _, p := range all {
		c.acquired("acquire of two entities", began, p.Entity, p.Tokens, got.Site, err)
	}
}
