package transports

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"

	"github.com/samya-db/samya/internal/frames"
	"github.com/samya-db/samya/internal/grpccodec"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// streamWorkers is the number of workers of a gRPC server, as at a site.
const streamWorkers = 256

// usualServer are the settings of a site. The codec takes buffers from a pool.
var usualServer = []grpc.ServerOption{
	grpc.NumStreamWorkers(streamWorkers),
	grpc.ForceServerCodecV2(grpccodec.Codec()),
	grpc.MaxRecvMsgSize(maxMessage),
	grpc.StaticStreamWindowSize(streamBytes), grpc.StaticConnWindowSize(connBytes),
	grpc.KeepaliveParams(keepalive.ServerParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}),
	grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
}

// usualClient are the settings of the Go client. Its stream has a codec of package mux,
// with buffers from a pool.
var usualClient = []grpc.DialOption{
	grpc.WithDisableServiceConfig(), grpc.WithDisableRetry(), grpc.WithIdleTimeout(0),
	grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.ForceCodecV2(grpccodec.Codec())),
	grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 5 * time.Second, PermitWithoutStream: true}),
}

// tunedServer and tunedClient add larger buffers, and fixed windows of the client, which
// then sends no pings to measure its connection. gRPC shares buffers for writing between
// connections anyway.
var (
	tunedServer = append(slices.Clone(usualServer), grpc.ReadBufferSize(bufferBytes), grpc.WriteBufferSize(bufferBytes))
	tunedClient = append(slices.Clone(usualClient),
		grpc.WithReadBufferSize(bufferBytes), grpc.WithWriteBufferSize(bufferBytes),
		grpc.WithStaticStreamWindowSize(streamBytes), grpc.WithStaticConnWindowSize(connBytes))
)

// serveGRPC serves the stream over gRPC with options.
func serveGRPC(options []grpc.ServerOption) func(context.Context, net.Listener, credentials.TransportCredentials) error {
	return func(ctx context.Context, l net.Listener, security credentials.TransportCredentials) error {
		s := grpc.NewServer(append(slices.Clone(options), grpc.Creds(security))...)
		samyav1.RegisterTokenServiceServer(s, service{})
		defer context.AfterFunc(ctx, s.Stop)()
		return s.Serve(l)
	}
}

// connectGRPC connects over gRPC with options.
func connectGRPC(options []grpc.DialOption) func(context.Context, string, credentials.TransportCredentials) (grpc.ClientConnInterface, func() error, error) {
	return func(_ context.Context, addr string, security credentials.TransportCredentials) (grpc.ClientConnInterface, func() error, error) {
		conn, err := grpc.NewClient("passthrough:///"+addr, append(slices.Clone(options), grpc.WithTransportCredentials(security))...)
		if err != nil {
			return nil, nil, fmt.Errorf("connect over gRPC: %w", err)
		}
		return conn, conn.Close, nil
	}
}

// serveFrames serves the stream over frames, beside gRPC.
func serveFrames(ctx context.Context, l net.Listener, security credentials.TransportCredentials) error {
	f := &frames.Server{Service: service{}, MaxMessage: maxMessage}
	err := serveGRPC(usualServer)(ctx, l, f.Credentials(security))
	f.Stop(ctx)
	return err
}

// connectFrames connects over frames.
func connectFrames(_ context.Context, addr string, security credentials.TransportCredentials) (grpc.ClientConnInterface, func() error, error) {
	conn, err := grpc.NewClient("passthrough:///"+addr, append(slices.Clone(usualClient), grpc.WithTransportCredentials(security))...)
	if err != nil {
		return nil, nil, fmt.Errorf("connect over gRPC: %w", err)
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("connect over frames: %w", err), conn.Close())
	}
	over := frames.New(streamless{conn}, frames.Options{
		Security: security, Authority: host, MaxMessage: maxMessage,
		Dial: func(ctx context.Context) (net.Conn, string, error) {
			c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
			return c, "", err
		},
	})
	return over, conn.Close, nil
}

// errFellBack: the stream would go over gRPC in the place of frames.
var errFellBack = errors.New("the server does not answer in frames")

// streamless is a connection over gRPC that carries no streams.
type streamless struct{ *grpc.ClientConn }

// NewStream implements grpc.ClientConnInterface.
func (streamless) NewStream(context.Context, *grpc.StreamDesc, string, ...grpc.CallOption) (grpc.ClientStream, error) {
	return nil, errFellBack
}
