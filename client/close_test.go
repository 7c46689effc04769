package client

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// TestSiteStops: a site that is about to stop says that it has begun nothing. The next
// try needs no attempt number.
func TestSiteStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		eu, us := w.site("eu", near), w.site("us", far)
		eu.answer = func(*samyav1.Operation) *samyav1.Result { return refuse(apierr.ShuttingDown) }
		us.answer = func(op *samyav1.Operation) *samyav1.Result {
			if op.GetAcquire().GetAttempt() > 1 {
				t.Error("a request that was not begun was numbered")
			}
			return us.execute(op)
		}
		bubble(t, w, nil, "eu", func(c *Client) { acquireAt(t, c, "us") })
	})
}

func TestCloseWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		eu := w.site("eu", time.Second)
		bubble(t, w, nil, "", func(c *Client) {
			errs := make(chan error, 1)
			go func() {
				_, err := c.Acquire(t.Context(), "acme/vm", 1)
				errs <- err
			}()
			synctest.Wait()
			if err := c.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if err := <-errs; err != nil {
				t.Errorf("a call under way when the client was closed: %v", err)
			}
			if _, err := c.Acquire(t.Context(), "acme/vm", 1); !errors.Is(err, ErrClosed) || errors.Is(err, ErrOutcomeUnknown) {
				t.Errorf("after closing: %v, want ErrClosed", err)
			}
			if _, err := c.Entity(t.Context(), "acme/vm"); !errors.Is(err, ErrClosed) {
				t.Errorf("a read after closing: %v, want ErrClosed", err)
			}
			rs, err := c.Batch(t.Context(), AcquireOp("acme/vm", 1))
			if err != nil || !errors.Is(rs[0].Err, ErrClosed) {
				t.Errorf("a batch after closing: %v, %v, want ErrClosed", rs, err)
			}
		})
		if eu.arrived() != 1 {
			t.Errorf("%d calls arrived", eu.arrived())
		}
	})
}

func TestCloseGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		eu := w.site("eu", near)
		eu.answer = func(*samyav1.Operation) *samyav1.Result { return nil }
		bubble(t, w, nil, "", func(c *Client) {
			errs := make(chan error, 1)
			go func() {
				_, err := c.Acquire(t.Context(), "acme/vm", 1)
				errs <- err
			}()
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := c.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("closing: %v, want that of the context", err)
			}
			if err := <-errs; !errors.Is(err, ErrOutcomeUnknown) || !errors.Is(err, ErrClosed) {
				t.Errorf("a call under way: %v, want ErrOutcomeUnknown and ErrClosed", err)
			}
		})
	})
}

// TestCloseEndsQuestions: a unary call under way ends with its client, although its
// context goes on and no answer comes.
func TestCloseEndsQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		eu := w.site("eu", near)
		bubble(t, w, nil, "", func(c *Client) {
			eu.setSilent(true)
			errs := make(chan error, 1)
			began := time.Now()
			go func() {
				_, err := c.Entity(t.Context(), "acme/vm")
				errs <- err
			}()
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := c.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("closing: %v, want that of the context", err)
			}
			if err := <-errs; !errors.Is(err, ErrClosed) || time.Since(began) != time.Second {
				t.Errorf("a call under way: %v after %v, want ErrClosed after 1s", err, time.Since(began))
			}
		})
	})
}

func TestConfig(t *testing.T) {
	for what, cfg := range map[string]Config{
		"no targets":       {},
		"no address":       {Targets: []Target{{}}},
		"twice":            {Targets: []Target{{Address: "a"}, {Address: "a"}}},
		"too many":         {Targets: make([]Target, maxTargets+1)},
		"negative timeout": {Targets: []Target{{Address: "a"}}, Timeout: -1},
		"bad address":      {Targets: []Target{{Address: "a"}, {Address: "unix:\x00"}}},
	} {
		if c, err := New(cfg); err == nil {
			t.Errorf("%s: taken", what)
			_ = c.Close(t.Context())
		}
	}
}
