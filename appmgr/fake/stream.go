package fake

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// Stream implements samyav1.TokenServiceServer: it answers each operation of a stream by
// itself, like a unary call.
func (f *Site) Stream(rpc samyav1.TokenService_StreamServer) error {
	if f.UnaryOnly {
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

func (f *Site) operate(ctx context.Context, op *samyav1.Operation) *samyav1.Result {
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
