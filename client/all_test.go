package client

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/status"

	"github.com/samya-db/samya/internal/apierr"
	apirefuse "github.com/samya-db/samya/internal/apierr/refuse"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// atomic runs an atomic batch at a fake target: in the books the batch is an acquire of
// the tokens of all its parts.
func (c *fakeConn) atomic(ctx context.Context, r *samyav1.BatchRequest, resp *samyav1.BatchResponse) error {
	whole := &samyav1.AcquireRequest{RequestId: r.GetRequestId(), Attempt: r.GetAttempt(), Tried: r.GetTried(), NotAfter: r.GetNotAfter(), Wait: r.GetWait()}
	for _, op := range r.GetOperations() {
		whole.Tokens += op.GetAcquire().GetTokens()
	}
	result := c.s.handle(&samyav1.Operation{Operation: &samyav1.Operation_Acquire{Acquire: whole}})
	switch {
	case result == nil:
		<-ctx.Done()
		return status.FromContextError(ctx.Err()).Err()
	case result.GetFailure() != nil:
		return apierr.FromFailure(result.GetFailure()).GRPCStatus().Err()
	case result.GetAcquire() == nil:
		// A target that knows no atomic batches.
		return nil
	}
	resp.Site, resp.RequestId = result.GetAcquire().GetSite(), result.GetAcquire().GetRequestId()
	for _, op := range r.GetOperations() {
		resp.Results = append(resp.Results, &samyav1.Result{Result: &samyav1.Result_Acquire{
			Acquire: &samyav1.AcquireResponse{Tokens: op.GetAcquire().GetTokens()},
		}})
	}
	return nil
}

var two = []Part{{"acme/vm", 2}, {"acme/seats", 3}}

// TestAcquireAllUnderFaults: an atomic batch is repeated after a lost or foreign answer,
// an unknown outcome and an overload. It counts once.
func TestAcquireAllUnderFaults(t *testing.T) {
	for title, answer := range map[string]func(eu *server, op *samyav1.Operation) *samyav1.Result{
		"lost": func(eu *server, op *samyav1.Operation) *samyav1.Result {
			eu.execute(op)
			return nil
		},
		"unknown": func(eu *server, op *samyav1.Operation) *samyav1.Result {
			eu.execute(op)
			return failed(apierr.Unknown(op.GetAcquire().GetRequestId(), "eu", nil))
		},
		"foreign": func(eu *server, op *samyav1.Operation) *samyav1.Result {
			eu.execute(op)
			return &samyav1.Result{Result: &samyav1.Result_Release{}}
		},
		"overloaded": func(*server, *samyav1.Operation) *samyav1.Result { return failed(apierr.Overload("eu", time.Second)) },
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			eu, us := w.site("eu", near), w.site("us", far)
			eu.answer = func(op *samyav1.Operation) *samyav1.Result { return answer(eu, op) }
			var came []*samyav1.AcquireRequest
			us.answer = func(op *samyav1.Operation) *samyav1.Result {
				came = append(came, op.GetAcquire())
				return us.execute(op)
			}
			bubble(t, w, nil, "eu", func(c *Client) {
				g, err := c.AcquireAll(t.Context(), two, RequestID("one"), Wait(0))
				if err != nil || g != (AllGrant{Site: "us", RequestID: "one"}) {
					t.Errorf("%s: %+v, %v", title, g, err)
				}
			})
			attempt, tried := uint32(2), []string{"eu"}
			if title == "overloaded" {
				attempt, tried = 0, nil
			}
			if len(came) != 1 || came[0].GetAttempt() != attempt || !slices.Equal(came[0].GetTried(), tried) || came[0].GetNotAfter() == nil {
				t.Errorf("%s: us was asked %v", title, came)
			}
			w.books(t, 5)
		})
	}
}

// TestAcquireAllResumed: resuming finds out an outcome that stays unknown.
func TestAcquireAllResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		eu := w.site("eu", near)
		eu.answer = func(op *samyav1.Operation) *samyav1.Result {
			eu.execute(op)
			return nil
		}
		bubble(t, w, nil, "eu", func(c *Client) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := c.AcquireAll(ctx, two, Wait(0))
			e, ok := errors.AsType[*Error](err)
			if !ok || !errors.Is(err, ErrOutcomeUnknown) || e.Attempt < 2 || e.RequestID == "" {
				t.Fatalf("%+v", err)
			}
			eu.answers(eu.execute)
			g, err := c.AcquireAll(t.Context(), two, Wait(0), Resume(err))
			if err != nil || g.RequestID != e.RequestID {
				t.Errorf("%+v, %v", g, err)
			}
		})
		w.books(t, 5)
	})
}

// TestAcquireAllRefused: a refusal names the entity that lacked the tokens. No target
// gets an invalid batch.
func TestAcquireAllRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		eu := w.site("eu", near)
		eu.answer = func(*samyav1.Operation) *samyav1.Result {
			return failed(apirefuse.NoTokens("", "eu", 5, 1, time.Second).LackedBy("acme", 5))
		}
		bubble(t, w, nil, "eu", func(c *Client) {
			_, err := c.AcquireAll(t.Context(), two)
			if e, ok := errors.AsType[*Error](err); !ok || !errors.Is(err, ErrOutOfTokens) || e.Lacking != "acme" || e.Left != 1 {
				t.Errorf("%+v", err)
			}
			n := eu.arrived()
			for title, ask := range map[string]func() (AllGrant, error){
				"none":       func() (AllGrant, error) { return c.AcquireAll(t.Context(), nil) },
				"too many":   func() (AllGrant, error) { return c.AcquireAll(t.Context(), make([]Part, MaxBatch+1)) },
				"no UTF-8":   func() (AllGrant, error) { return c.AcquireAll(t.Context(), []Part{{"\xff", 1}}) },
				"fewer":      func() (AllGrant, error) { return c.AcquireAll(t.Context(), two, AtLeast(1)) },
				"dry":        func() (AllGrant, error) { return c.AcquireAll(t.Context(), two, DryRun()) },
				"a holder":   func() (AllGrant, error) { return c.AcquireAll(t.Context(), two, Holder("h")) },
				"resumption": func() (AllGrant, error) { return c.AcquireAll(t.Context(), two, Resume(errors.New("x"))) },
			} {
				if _, err := ask(); !errors.Is(err, ErrInvalid) {
					t.Errorf("%s: %v", title, err)
				}
			}
			if eu.arrived() != n {
				t.Error("they were sent")
			}
		})
	})
}
