package client

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/connectivity"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/health"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

const near, far = 2 * time.Millisecond, 40 * time.Millisecond

// acquireAt acquires and expects the grant to come from a site.
func acquireAt(t *testing.T, c *Client, site string) {
	t.Helper()
	g, err := c.Acquire(t.Context(), "acme/vm", 1)
	if err != nil || g.Site != site {
		t.Errorf("granted %+v, %v; want site %s", g, err, site)
	}
}

func TestNearestFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.site("as", far)
		w.site("eu", near)
		w.site("us", 3*near)
		bubble(t, w, nil, "", func(c *Client) { acquireAt(t, c, "eu") })
		bubble(t, w, nil, "as", func(c *Client) { acquireAt(t, c, "as") })
		bubble(t, w, nil, "elsewhere", func(c *Client) { acquireAt(t, c, "eu") })
	})
}

func TestFailoverAndBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		eu, us := w.site("eu", near), w.site("us", far)
		bubble(t, w, nil, "eu", func(c *Client) {
			acquireAt(t, c, "eu")
			eu.set(connectivity.TransientFailure)
			acquireAt(t, c, "us")
			us.set(connectivity.TransientFailure)
			eu.set(connectivity.Ready)
			acquireAt(t, c, "eu")
			us.set(connectivity.Ready)
			if err := pause(t.Context(), 5*time.Second); err != nil {
				t.Fatal(err)
			}
			acquireAt(t, c, "eu")
		})
		w.books(t, 4)
	})
}

func TestServerDownAtStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		eu := w.site("eu", near)
		eu.set(connectivity.TransientFailure)
		bubble(t, w, nil, "", func(c *Client) {
			began := time.Now()
			_, err := c.Acquire(t.Context(), "acme/vm", 1)
			if !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrOutcomeUnknown) {
				t.Errorf("error %v, want ErrUnavailable", err)
			}
			if took := time.Since(began); took > siteWait+defaultTimeout || took < defaultTimeout {
				t.Errorf("gave up after %v", took)
			}
			go func() {
				if pause(t.Context(), 3*time.Second) == nil {
					eu.set(connectivity.Ready)
				}
			}()
			acquireAt(t, c, "eu")
		})
		w.books(t, 1)
	})
}

// TestRedial: while calls find no target, connections that could not be made are tried
// again soon, and calls go on once one is there.
func TestRedial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		eu := w.site("eu", near)
		eu.set(connectivity.TransientFailure)
		began := time.Now()
		dials := 0
		eu.redialled = func() {
			if dials++; time.Since(began) >= 1700*time.Millisecond {
				eu.set(connectivity.Ready)
			}
		}
		bubble(t, w, nil, "", func(c *Client) {
			acquireAt(t, c, "eu")
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("the call took %v, but the target was there after 1.7s", took)
			}
			if dials > 18 {
				t.Errorf("%d dials in 2s", dials)
			}
		})
		w.books(t, 1)
	})
}

// TestAnswersLost: the answer of an executed try is lost. The next attempt goes
// elsewhere, and undoes the execution.
func TestAnswersLost(t *testing.T) {
	for name, front := range map[string]bool{"at sites": false, "at app managers": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				eu, us := w.site("eu", near), w.site("us", far)
				if front {
					eu, us = w.manager("eu", near, "s1", "s2"), w.manager("us", far, "s2", "s1")
				}
				eu.answer = func(op *samyav1.Operation) *samyav1.Result {
					eu.execute(op)
					eu.cut()
					return nil
				}
				var seen []*samyav1.AcquireRequest
				us.answer = func(op *samyav1.Operation) *samyav1.Result {
					seen = append(seen, op.GetAcquire())
					return us.execute(op)
				}
				bubble(t, w, nil, "eu", func(c *Client) {
					for range 10 {
						if _, err := c.Acquire(t.Context(), "acme/vm", 3); err != nil {
							t.Error(err)
						}
					}
				})
				w.books(t, 30)
				for _, r := range seen {
					wantTried := []string{"eu"}
					if front {
						wantTried = nil
					}
					if r.GetAttempt() != 2 || !slices.Equal(r.GetTried(), wantTried) || r.GetNotAfter() == nil {
						t.Fatalf("the second site was asked %v, want attempt 2 behind %v", r, wantTried)
					}
				}
				if len(seen) != 10 {
					t.Errorf("%d calls came to the second site, want 10", len(seen))
				}
			})
		})
	}
}

// TestSilence: a site falls silent with its connections up. The next site is asked after
// a while. The silent site is left out once it answers no probes.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		eu := w.site("eu", near)
		w.site("us", far)
		bubble(t, w, nil, "eu", func(c *Client) {
			acquireAt(t, c, "eu")
			eu.setSilent(true)
			began := time.Now()
			// Sooner than a try would be over.
			if g, err := c.Acquire(t.Context(), "acme/vm", 1, Wait(time.Minute)); err != nil || g.Site != "us" {
				t.Errorf("granted %+v, %v", g, err)
			}
			if took := time.Since(began); took > health.SoftMisses*(probeTimeout+2*defaultProbeInterval) {
				t.Errorf("the next site was asked after %v", took)
			}
			if err := pause(t.Context(), 15*time.Second); err != nil {
				t.Fatal(err)
			}
			began = time.Now()
			acquireAt(t, c, "us")
			if took := time.Since(began); took > 4*far {
				t.Errorf("a site known to be silent was waited for: %v", took)
			}
			eu.setSilent(false)
			if err := pause(t.Context(), 10*time.Second); err != nil {
				t.Fatal(err)
			}
			acquireAt(t, c, "eu")
		})
		w.books(t, 4)
	})
}

// TestSlowCalls: a site answers probes and not calls. The next site is asked while there
// is time.
func TestSlowCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		eu := w.site("eu", near)
		w.site("us", far)
		eu.answer = func(*samyav1.Operation) *samyav1.Result { return nil }
		bubble(t, w, nil, "eu", func(c *Client) {
			began := time.Now()
			if g, err := c.Acquire(t.Context(), "acme/vm", 1, Wait(time.Second)); err != nil || g.Site != "us" {
				t.Errorf("granted %+v, %v", g, err)
			}
			if took := time.Since(began); took < time.Second+defaultTryTime || took > 2*time.Second+defaultTryTime {
				t.Errorf("the next site was asked after %v", took)
			}
		})
		w.books(t, 1)
	})
}

// TestRefusalsBehindUnclearAttempts: the refusal of a later attempt settles the earlier
// attempts only if it holds for all attempts.
func TestRefusalsBehindUnclearAttempts(t *testing.T) {
	for _, tc := range []struct {
		reason  apierr.Reason
		settles bool
	}{
		{apierr.OutOfTokens, true},
		{apierr.ExceedsLimit, true},
		{apierr.Superseded, true},
		{apierr.LeaseNotFound, true},
		{apierr.RequestExpired, false},
		{apierr.InvalidField, false},
		{apierr.EntityNotFound, false},
		{apierr.RequestIDReused, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			eu, us := w.site("eu", near), w.site("us", far)
			eu.answer = func(*samyav1.Operation) *samyav1.Result {
				eu.cut()
				return nil
			}
			us.answer = func(*samyav1.Operation) *samyav1.Result { return refuse(tc.reason) }
			bubble(t, w, nil, "eu", func(c *Client) {
				_, err := c.Acquire(t.Context(), "acme/vm", 1)
				if errors.Is(err, ErrOutcomeUnknown) == tc.settles || err == nil {
					t.Errorf("%s at the second site: %v", tc.reason, err)
				}
			})
		})
	}
}

func TestUnknownOutcomeAndResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		eu := w.site("eu", near)
		bubble(t, w, nil, "", func(c *Client) {
			eu.answers(func(op *samyav1.Operation) *samyav1.Result {
				eu.execute(op)
				return nil
			})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := c.Acquire(ctx, "acme/vm", 5)
			var e *Error
			if !errors.Is(err, ErrOutcomeUnknown) || !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &e) {
				t.Fatalf("error %v, want ErrOutcomeUnknown and the context's", err)
			}
			if e.RequestID == "" || e.Attempt != 2 || !slices.Equal(e.Tried, []string{"eu"}) || e.NotAfter.IsZero() || e.Entity != "acme/vm" {
				t.Errorf("error %+v does not tell how to go on", e)
			}
			eu.answers(eu.execute)
			// The fields kept of the error are enough.
			kept := &Error{RequestID: e.RequestID, Attempt: e.Attempt, NotAfter: e.NotAfter, Tried: e.Tried}
			if g, err := c.Acquire(t.Context(), "acme/vm", 5, Resume(kept)); err != nil || g.RequestID != e.RequestID {
				t.Errorf("resumed: %+v, %v", g, err)
			}
			w.books(t, 5)
			// Too late, the request is refused, and its outcome is not known.
			if err := pause(t.Context(), 2*time.Minute); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Acquire(t.Context(), "acme/vm", 5, Resume(kept)); !errors.Is(err, ErrRequestExpired) {
				t.Errorf("resumed too late: %v, want ErrRequestExpired", err)
			}
		})
		w.books(t, 5)
	})
}

// TestNothingDone: an acquire that cannot have been done returns the context's error
// alone.
func TestNothingDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.site("eu", near)
		bubble(t, w, nil, "", func(c *Client) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, err := c.Acquire(ctx, "acme/vm", 5)
			if !errors.Is(err, context.Canceled) || errors.Is(err, ErrOutcomeUnknown) {
				t.Errorf("error %v, want that of the context alone", err)
			}
		})
		w.books(t, 0)
	})
}

func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		eu := w.site("eu", near)
		eu.answer = func(*samyav1.Operation) *samyav1.Result { return nil }
		bubble(t, w, nil, "", func(c *Client) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			_, err := c.Acquire(ctx, "acme/vm", 5)
			if !errors.Is(err, context.Canceled) || !errors.Is(err, ErrOutcomeUnknown) {
				t.Errorf("error %v, want that of the context and ErrOutcomeUnknown", err)
			}
		})
	})
}

func TestOverload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		eu, us := w.site("eu", near), w.site("us", far)
		busy := func(d time.Duration) func(*samyav1.Operation) *samyav1.Result {
			return func(*samyav1.Operation) *samyav1.Result { return failed(apierr.Overload("eu", d)) }
		}
		bubble(t, w, nil, "eu", func(c *Client) {
			eu.answers(busy(2 * time.Second))
			acquireAt(t, c, "us")
			before := eu.arrived()
			acquireAt(t, c, "us")
			if eu.arrived() != before {
				t.Error("an overloaded site was asked before its time was over")
			}
			// All targets are overloaded: the next round waits as long as they ask for.
			us.answers(busy(3 * time.Second))
			began := time.Now()
			time.AfterFunc(time.Second, func() { eu.answers(eu.execute) })
			acquireAt(t, c, "eu")
			if took := time.Since(began); took < 3*time.Second || took > 4*time.Second {
				t.Errorf("the next round came after %v, want 3s", took)
			}
			// A pause beyond the deadline is of no use.
			eu.answers(busy(time.Minute))
			us.answers(busy(time.Minute))
			began = time.Now()
			_, err := c.Acquire(t.Context(), "acme/vm", 1)
			var e *Error
			if !errors.Is(err, ErrOverloaded) || !errors.As(err, &e) || e.RetryAfter != time.Minute {
				t.Errorf("error %+v, want ErrOverloaded with advice", err)
			}
			if took := time.Since(began); took > time.Second {
				t.Errorf("it took %v", took)
			}
		})
		w.books(t, 3)
	})
}

func TestDryRunsAreRepeatedAsTheyAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		eu := w.site("eu", near)
		eu.answer = func(op *samyav1.Operation) *samyav1.Result {
			if op.GetAcquire().GetAttempt() > 1 || op.GetAcquire().GetNotAfter() != nil {
				t.Errorf("asked %v", op)
			}
			if eu.arrived() < 3 {
				eu.cut()
				return nil
			}
			return result(op, "eu")
		}
		bubble(t, w, nil, "", func(c *Client) {
			if _, err := c.Acquire(t.Context(), "acme/vm", 1, DryRun()); err != nil {
				t.Error(err)
			}
		})
	})
}

// TestWindowFull: more callers than the stream's window wait for room, and none is lost.
func TestWindowFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.site("eu", near)
		bubble(t, w, nil, "", func(c *Client) {
			const callers = 1000
			errs := make(chan error, callers)
			for range callers {
				go func() {
					_, err := c.Acquire(t.Context(), "acme/vm", 1)
					errs <- err
				}()
			}
			for range callers {
				if err := <-errs; err != nil {
					t.Error(err)
				}
			}
		})
		w.books(t, 1000)
	})
}

func TestBatchUnderFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		eu := w.site("eu", near)
		w.site("us", far)
		// Some are refused for overload, others are done and said to be unknown.
		n := 0
		eu.answer = func(op *samyav1.Operation) *samyav1.Result {
			switch n++; n % 3 {
			case 0:
				return failed(apierr.Overload("eu", time.Second))
			case 1:
				eu.execute(op)
				return failed(apierr.Unknown(op.GetAcquire().GetRequestId(), "eu", nil))
			}
			return eu.execute(op)
		}
		bubble(t, w, nil, "eu", func(c *Client) {
			var ops []Op
			for range 30 {
				ops = append(ops, AcquireOp("acme/vm", 2))
			}
			rs, err := c.Batch(t.Context(), ops...)
			if err != nil {
				t.Fatal(err)
			}
			at := map[string]int{}
			for _, r := range rs {
				if r.Err != nil || r.Tokens != 2 {
					t.Errorf("result %+v", r)
				}
				at[r.Site]++
			}
			if at["eu"] != 10 || at["us"] != 20 {
				t.Errorf("done at %v, want 10 at eu and 20 at us", at)
			}
		})
		w.books(t, 60)
	})
}
