// Package wangrpc delays gRPC calls by the round trip between the regions of caller
// and server. It does not delay streams: a message of a stream must not wait for
// the messages before, so the owner of a stream puts a [wan.DelayLine] under its
// Send instead.
package wangrpc

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/samya-db/samya/internal/wan"
)

// RoundTrip returns the round trip of a call of the full method, such as
// "/samya.v1.TokenService/Acquire", to the target of the connection. It is called
// once a call, by any number of goroutines.
type RoundTrip func(ctx context.Context, method, target string) time.Duration

// UnaryClientInterceptor returns an interceptor that waits half of the round trip
// before it sends a call, and half after the answer, good or bad. If the context
// ends before, the call ends with the context's status. In the first half the
// request was never sent. In the second half the caller does not know its outcome,
// as on a real network.
func UnaryClientInterceptor(roundTrip RoundTrip) grpc.UnaryClientInterceptor {
	return func(
		ctx context.Context, method string, req, reply any, conn *grpc.ClientConn,
		invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
	) error {
		oneWay := roundTrip(ctx, method, conn.Target()) / 2
		if err := wan.Wait(ctx, oneWay); err != nil {
			return status.FromContextError(err).Err()
		}
		answer := invoke(ctx, method, req, reply, conn, opts...)
		if err := wan.Wait(ctx, oneWay); err != nil {
			return status.FromContextError(err).Err()
		}
		return answer
	}
}
