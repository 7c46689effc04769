package client

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/connectivity"

	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// node adds a target that is a node of a site.
func (w *world) node(site, address string, term int64) *server {
	s := w.site(address, near)
	s.name, s.sites, s.term = site, []string{site}, term
	return s
}

// runBy is the seat of a site that a node runs.
func runBy(site, address string, term int64) *samyav1.Member {
	m := seat(site, seatMember, "")
	m.Address, m.Term = address, term
	return m
}

// soon bounds the time in which a call goes on that waits at the old address of a site. A
// try alone may take 2 s.
const soon = 500 * time.Millisecond

// TestTakeOver: a call that waits at a node without an answer goes on as soon as a list names
// the node that has taken over. That node is a target then, whether the list or the
// configuration had named the first node.
func TestTakeOver(t *testing.T) {
	calls := map[string]func(context.Context, *Client) error{
		"an acquire": func(ctx context.Context, c *Client) error { _, err := c.Acquire(ctx, "acme/vm", 1); return err },
		"a batch": func(ctx context.Context, c *Client) error {
			rs, err := c.Batch(ctx, AcquireOp("acme/vm", 1))
			return errors.Join(err, rs[0].Err)
		},
		"an atomic batch": func(ctx context.Context, c *Client) error {
			_, err := c.AcquireAll(ctx, []Part{{Entity: "acme/vm", Tokens: 1}})
			return err
		},
		"a renewal": func(ctx context.Context, c *Client) error {
			_, err := c.LeaseNamed("eu/x", "acme/vm").Renew(ctx, time.Minute)
			return err
		},
	}
	for _, tc := range []struct {
		first, want   string
		before, after int64 // terms
	}{
		{"au", "au b.eu", 7, 9},
		{"a.eu", "a.eu au b.eu", 7, 9},
		{"au", "au b.eu", 0, 0}, // a site of a single process
	} {
		first, want := tc.first, tc.want
		for what, call := range calls {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.site("au", far)
				a := w.node("eu", "a.eu", tc.before)
				w.node("eu", "b.eu", tc.after)
				w.seat(1, seat("au", seatMember, ""), runBy("eu", "a.eu", tc.before))
				bubble(t, w, begins(first), "eu", func(c *Client) {
					hearing(t)
					a.setSilent(true)
					done := make(chan error, 1)
					go func() { done <- call(t.Context(), c) }()
					_ = pause(t.Context(), 100*time.Millisecond)
					began := time.Now()
					w.seat(1, seat("au", seatMember, ""), runBy("eu", "b.eu", tc.after))
					if err := <-done; err != nil || time.Since(began) > soon {
						t.Errorf("%s, from %s: %v after %v", what, first, err, time.Since(began))
					}
					hearing(t)
					if got := c.addresses(); got != want {
						t.Errorf("%s, from %s: the targets are %s, want %s", what, first, got, want)
					}
					if _, err := c.LeaseNamed("eu/x", "acme/vm").Renew(t.Context(), time.Minute); err != nil {
						t.Errorf("%s, from %s: a renewal afterwards: %v", what, first, err)
					}
				})
			})
		}
	}
}

// TestTakeOverOfADeadNode: a node of the configuration has long been down when another takes
// over. That node is a target until the first node runs the site again.
func TestTakeOverOfADeadNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.site("au", far)
		a := w.node("eu", "a.eu", 7)
		b := w.node("eu", "b.eu", 9)
		b.set(connectivity.TransientFailure)
		w.seat(1, seat("au", seatMember, ""), runBy("eu", "a.eu", 7))
		bubble(t, w, begins("a.eu"), "eu", func(c *Client) {
			targets := func(when, want string) {
				t.Helper()
				hearing(t)
				if got := c.addresses(); got != want {
					t.Errorf("%s the targets are %s, want %s", when, got, want)
				}
				_, err := c.LeaseNamed("eu/x", "acme/vm").Renew(t.Context(), time.Minute)
				if _, _, closed := b.counts(); (err == nil) != (when != "with no node") || closed > 1 {
					t.Errorf("%s a renewal: %v; %d connections to the second node are closed", when, err, closed)
				}
			}
			targets("at first", "a.eu au")
			a.set(connectivity.TransientFailure)
			targets("with no node", "a.eu au")
			b.set(connectivity.Ready)
			w.seat(1, seat("au", seatMember, ""), runBy("eu", "b.eu", 9))
			targets("after the take-over", "a.eu au b.eu")
			b.set(connectivity.TransientFailure)
			a.mu.Lock()
			a.term = 12
			a.mu.Unlock()
			a.set(connectivity.Ready)
			w.seat(1, seat("au", seatMember, ""), runBy("eu", "a.eu", 12))
			targets("with the first node back", "a.eu au")
			if _, _, closed := b.counts(); closed != 1 {
				t.Errorf("%d connections to the second node are closed", closed)
			}
		})
	})
}

// TestAddressOfAnotherName: a site of the configuration is a target once, though the list
// names another address of it, as long as no other node runs the site. So it is with an
// address of the configuration at which nobody has answered yet.
func TestAddressOfAnotherName(t *testing.T) {
	for term := range int64(2) {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			w.site("au", far)
			w.node("eu", "a.eu", term)
			w.node("eu", "10.0.0.1:7001", term)
			w.node("us", "b.us", term).set(connectivity.TransientFailure)
			w.seat(1, seat("au", seatMember, ""), runBy("eu", "10.0.0.1:7001", term), runBy("us", "b.us", term))
			bubble(t, w, begins("a.eu", "b.us"), "eu", func(c *Client) {
				hearing(t)
				if got := c.addresses(); got != "a.eu b.us au" {
					t.Errorf("with term %d the targets are %s", term, got)
				}
			})
		})
	}
}

// TestTakeOverOfAPausedNode: a node is paused, so that its connection stays and its calls
// hang. Nobody tells of the node that takes over: the client finds that node by itself, and
// calls go on there.
func TestTakeOverOfAPausedNode(t *testing.T) {
	const takeOver = 1700 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		a, b, c := w.node("eu", "a.eu", 7), w.node("eu", "b.eu", 9), w.node("eu", "c.eu", 0)
		b.set(connectivity.TransientFailure)
		c.set(connectivity.TransientFailure)
		var over time.Time
		dials := 0
		b.redialled = func() {
			if dials++; !over.IsZero() && !time.Now().Before(over) {
				b.set(connectivity.Ready)
			}
		}
		bubble(t, w, func(cfg *Config) { cfg.FixedTargets = true }, "eu", func(c *Client) {
			hearing(t)
			before := dials
			acquireAt(t, c, "eu")
			if dials != before {
				t.Error("another node is dialled though the first answers")
			}
			began := time.Now()
			a.setSilent(true)
			over = began.Add(takeOver)
			acquireAt(t, c, "eu")
			if took := time.Since(began); took < takeOver || took > takeOver+soon {
				t.Errorf("a call took %v, another node was there after %v", took, takeOver)
			}
			if n := dials - before; n > 18 {
				t.Errorf("%d dials", n)
			}
		})
		w.books(t, 2)
	})
}

// TestNodeOfAnEarlierTerm: a node that is cut off from its log answers, and does not know
// that another has taken over. It gets no calls as long as the other answers.
func TestNodeOfAnEarlierTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		a, b := w.node("eu", "a.eu", 7), w.node("eu", "b.eu", 9)
		b.set(connectivity.TransientFailure)
		bubble(t, w, func(cfg *Config) { cfg.FixedTargets = true }, "eu", func(c *Client) {
			hearing(t)
			acquireAt(t, c, "eu")
			b.set(connectivity.Ready)
			for range 5 {
				hearing(t)
				was := a.arrived()
				acquireAt(t, c, "eu")
				if a.arrived() != was {
					t.Error("a node of an earlier term is called")
				}
			}
			b.set(connectivity.TransientFailure)
			hearing(t)
			was := a.arrived()
			acquireAt(t, c, "eu")
			if a.arrived() == was {
				t.Error("a node is not called though no other answers")
			}
		})
	})
}

// TestNodeThatBeginsToListen: a node takes connections a little before it serves, while the
// node before refuses all calls. Calls go on soon after the node serves.
func TestNodeThatBeginsToListen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		a, b := w.node("eu", "a.eu", 7), w.node("eu", "b.eu", 9)
		b.setStarting(true)
		b.set(connectivity.TransientFailure)
		a.answer = func(*samyav1.Operation) *samyav1.Result {
			return failed(&apierr.Error{Reason: apierr.SiteUnavailable, RetryAfter: 10 * time.Millisecond})
		}
		bubble(t, w, func(cfg *Config) { cfg.FixedTargets = true }, "eu", func(c *Client) {
			hearing(t)
			began := time.Now()
			go func() {
				_ = pause(t.Context(), 100*time.Millisecond)
				b.set(connectivity.Ready)
				_ = pause(t.Context(), 60*time.Millisecond)
				b.setStarting(false)
			}()
			acquireAt(t, c, "eu")
			if took := time.Since(began); took > 300*time.Millisecond {
				t.Errorf("a call took %v, another node was there after 160 ms", took)
			}
		})
	})
}
