package mux

import (
	"context"
	"slices"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// doUnary makes an operation as a separate call, to a server that has no Stream. Once
// such a call gets no answer another server may be behind the connection: the stream is
// tried again.
func (m *Mux) doUnary(
	ctx context.Context, op *samyav1.Operation, by time.Time, gone <-chan struct{},
) (*samyav1.Result, Fate, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if gone != nil {
		over := ctx.Done()
		go func() {
			select {
			case <-gone:
				cancel()
			case <-over:
			}
		}()
	}
	if !by.IsZero() {
		timed, stop := context.WithDeadline(ctx, by)
		defer stop()
		ctx = timed
	}
	defer context.AfterFunc(m.ctx, cancel)()
	result := &samyav1.Result{}
	var fate Fate
	var err error
	switch op := op.GetOperation().(type) {
	case *samyav1.Operation_Acquire:
		resp := &samyav1.AcquireResponse{}
		result.Result = &samyav1.Result_Acquire{Acquire: resp}
		fate, err = Invoke(ctx, m.conn, samyav1.TokenService_Acquire_FullMethodName, op.Acquire, resp, m.options...)
	case *samyav1.Operation_Release:
		resp := &samyav1.ReleaseResponse{}
		result.Result = &samyav1.Result_Release{Release: resp}
		fate, err = Invoke(ctx, m.conn, samyav1.TokenService_Release_FullMethodName, op.Release, resp, m.options...)
	default:
		return nil, Unsent, apierr.Invalid("operation", "missing")
	}
	switch {
	case err == nil:
	case fate == Answered:
		p := status.Convert(err).Proto()
		result.Result = &samyav1.Result_Failure{Failure: &samyav1.Failure{Code: p.GetCode(), Message: p.GetMessage(), Details: p.GetDetails()}}
	default:
		m.mu.Lock()
		defer m.mu.Unlock()
		m.unary = false
		select {
		case <-gone:
			err = ErrGone
		default:
		}
		if m.closed {
			err = ErrClosed
		}
		return nil, fate, err
	}
	return result, Answered, nil
}

// Invoke makes a unary call and returns its fate. Unlike the error of Do, its error is
// set also if the call was answered with a failure.
func Invoke(
	ctx context.Context, conn grpc.ClientConnInterface, method string, req, resp proto.Message, opts ...grpc.CallOption,
) (Fate, error) {
	var reached peer.Peer
	err := conn.Invoke(ctx, method, req, resp, slices.Concat([]grpc.CallOption{grpc.Peer(&reached)}, opts)...)
	switch {
	case err == nil || ofServer(status.Convert(err)):
		return Answered, err
	case reached.Addr == nil:
		// The call never had a connection to be sent on.
		return Unsent, err
	}
	return Lost, err
}

// Ended returns the fate of a stream that ended with an error: Answered if the error is
// provably the server's own, else Lost.
func Ended(err error) Fate {
	if ofServer(status.Convert(err)) {
		return Answered
	}
	return Lost
}

// ofServer reports whether the status is provably the server's own: gRPC itself makes no
// status with a reason of samya's. A call that the server does not know was not done
// either.
func ofServer(st *status.Status) bool {
	for _, d := range st.Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok && info.GetDomain() == apierr.Domain {
			return true
		}
	}
	return st.Code() == codes.Unimplemented
}
