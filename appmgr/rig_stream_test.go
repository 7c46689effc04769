package appmgr

import (
	"context"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/health"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// Stream implements samyav1.TokenServiceServer: it answers each operation of a stream by
// itself, like a unary call.
func (f *fakeSite) Stream(rpc samyav1.TokenService_StreamServer) error {
	if f.unaryOnly {
		return status.Error(codes.Unimplemented, "no streams here")
	}
	var mu sync.Mutex
	cancels := map[uint64]context.CancelFunc{}
	send := func(resp *samyav1.StreamResponse) {
		mu.Lock()
		defer mu.Unlock()
		for _, r := range resp.GetReplies() {
			delete(cancels, r.GetTag())
		}
		// A stream that has ended takes no answers.
		_ = rpc.Send(resp)
	}
	send(&samyav1.StreamResponse{Window: 64})
	for {
		r, err := rpc.Recv()
		if err != nil {
			return nil //nolint:nilerr // the client has ended the stream
		}
		for _, c := range r.GetCalls() {
			ctx, cancel := context.WithCancel(rpc.Context())
			if ms := c.GetTimeoutMs(); ms > 0 {
				ctx, cancel = context.WithTimeout(rpc.Context(), time.Duration(ms)*time.Millisecond)
			}
			mu.Lock()
			cancels[c.GetTag()] = cancel
			mu.Unlock()
			go func() {
				defer cancel()
				result := f.operate(ctx, c.GetOperation())
				send(&samyav1.StreamResponse{Replies: []*samyav1.Reply{{Tag: c.GetTag(), Result: result}}})
			}()
		}
		mu.Lock()
		for _, tag := range r.GetCancels() {
			if cancel, open := cancels[tag]; open {
				cancel()
			}
		}
		mu.Unlock()
	}
}

func (f *fakeSite) operate(ctx context.Context, op *samyav1.Operation) *samyav1.Result {
	var err error
	switch op := op.GetOperation().(type) {
	case *samyav1.Operation_Acquire:
		resp, aerr := f.Acquire(ctx, op.Acquire)
		if resp == nil && aerr == nil {
			return &samyav1.Result{Result: &samyav1.Result_Release{Release: &samyav1.ReleaseResponse{}}}
		}
		if err = aerr; err == nil {
			return &samyav1.Result{Result: &samyav1.Result_Acquire{Acquire: resp}}
		}
	case *samyav1.Operation_Release:
		resp, rerr := f.Release(ctx, op.Release)
		if err = rerr; err == nil {
			return &samyav1.Result{Result: &samyav1.Result_Release{Release: resp}}
		}
	}
	st := status.Convert(err).Proto()
	return &samyav1.Result{Result: &samyav1.Result_Failure{Failure: &samyav1.Failure{
		Code: st.GetCode(), Message: st.GetMessage(), Details: st.GetDetails(),
	}}}
}

// TestSiteWithoutStreams: unary calls reach a site that has no streams yet.
func TestSiteWithoutStreams(t *testing.T) {
	inBubble(t, []string{"us"}, nil, func(r *rig) {
		r.sites["us"].unaryOnly = true
		for range 2 {
			if resp, err := r.service.Acquire(r.t.Context(), take); err != nil || resp.GetSite() != "us" {
				r.t.Errorf("%v, %v", resp, err)
			}
		}
		back := &samyav1.ReleaseRequest{Entity: "acme/vm", Tokens: 3}
		if resp, err := r.service.Release(r.t.Context(), back); err != nil || resp.GetSite() != "us" || resp.GetRequestId() == "" {
			r.t.Errorf("%v, %v", resp, err)
		}
	})
}

// TestDelayedSite: calls to a far site do not wait for each other.
func TestDelayedSite(t *testing.T) {
	inBubble(t, []string{"eu"}, nil, func(r *rig) {
		began := time.Now()
		var calls sync.WaitGroup
		for range 50 {
			calls.Go(func() {
				if _, err := r.service.Acquire(r.t.Context(), &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 1}); err != nil {
					r.t.Error(err)
				}
			})
		}
		calls.Wait()
		if took := time.Since(began); took != 2*oneWay["eu"] {
			r.t.Errorf("50 calls at once took %v, a round trip is %v", took, 2*oneWay["eu"])
		}
	})
}

// TestForeignOperation: a request that cannot be sent is the caller's fault, and says
// nothing about the site.
func TestForeignOperation(t *testing.T) {
	inBubble(t, []string{"us"}, nil, func(r *rig) {
		large := &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 1}
		large.ProtoReflect().SetUnknown(append([]byte{0xfa, 0x3f, 0xa0, 0x9c, 0x01}, make([]byte, 20_000)...))
		_, err := r.service.Acquire(r.t.Context(), large)
		if apierr.ReasonOf(err) != apierr.BodyTooLarge {
			r.t.Errorf("a request that holds too much: %v", err)
		}
		if got := r.router.link("us").state().Reach; got != health.Up {
			r.t.Errorf("the site counts as %d", got)
		}
	})
}

// TestForeignAnswer: the outcome of a request is unknown if its answer does not belong to
// it.
func TestForeignAnswer(t *testing.T) {
	inBubble(t, []string{"us"}, nil, func(r *rig) {
		r.sites["us"].acquire = func(context.Context, *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) { return nil, nil }
		_, err := r.service.Acquire(r.t.Context(), take)
		if apierr.ReasonOf(err) != apierr.OutcomeUnknown {
			r.t.Errorf("%v", err)
		}
	})
}
