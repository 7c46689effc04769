// Package wangrpc holds gRPC calls back by the round trip between the regions
// of caller and server. It refuses to delay streams: what flows on one must not
// wait for what flowed before it, so a stream's owner puts a [wan.DelayLine]
// under its Send instead.
package wangrpc

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/samya-db/samya/internal/wan"
)

// RoundTrip returns the round trip of a call of the full method, such as
// "/samya.v1.TokenService/Acquire", to the target that the connection was made
// for. It is asked once a call, by any number of goroutines.
type RoundTrip func(ctx context.Context, method, target string) time.Duration

// UnaryClientInterceptor returns an interceptor that lets half of the round
// trip pass before a call is sent and half after its answer, good or bad, came
// back. If the context ends before, so does the call, with the context's status:
// in the first half the request was never sent, in the second its outcome is
// unknown to the caller, as on a real network.
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
