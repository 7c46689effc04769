package transports

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// ServeCommand is the argument with which a program runs [Serve] on the arguments that
// follow.
const ServeCommand = "transports-serve"

// window is the most calls without an answer, as at a site.
const window = 16384

// Serve serves the stream until ctx ends. The arguments are an address, the name of a way,
// and, for TLS, the files of a certificate and its key.
func Serve(ctx context.Context, args []string) error {
	if len(args) != 2 && len(args) != 4 {
		return fmt.Errorf("%s: %d arguments, want 2 or 4", ServeCommand, len(args))
	}
	at := slices.IndexFunc(ways, func(w way) bool { return w.name == args[1] })
	if at < 0 {
		return fmt.Errorf("%s: no way %q", ServeCommand, args[1])
	}
	security := insecure.NewCredentials()
	if len(args) == 4 {
		cert, err := tls.LoadX509KeyPair(args[2], args[3])
		if err != nil {
			return fmt.Errorf("%s: read the certificate: %w", ServeCommand, err)
		}
		security = credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert}})
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", args[0])
	if err != nil {
		return fmt.Errorf("%s: %w", ServeCommand, err)
	}
	return ways[at].serve(ctx, l, security)
}

// service is the server over gRPC and frames.
type service struct {
	samyav1.UnimplementedTokenServiceServer
}

// Stream implements samyav1.TokenServiceServer.
func (service) Stream(s samyav1.TokenService_StreamServer) error { return answer(s) }

// messages sends and receives messages of a stream.
type messages interface {
	SendMsg(m any) error
	RecvMsg(m any) error
}

// errNoAcquire: a call is no acquire.
var errNoAcquire = errors.New("the server answers acquires alone")

// answer tells the window, and answers each message of calls with one message, until the
// client ends the stream.
func answer(on messages) error {
	if err := on.SendMsg(&samyav1.StreamResponse{Window: window}); err != nil {
		return fmt.Errorf("tell the window: %w", err)
	}
	for {
		in := &samyav1.StreamRequest{}
		if err := on.RecvMsg(in); err != nil {
			return nil //nolint:nilerr // the client has ended the stream
		}
		out := &samyav1.StreamResponse{Replies: make([]*samyav1.Reply, 0, len(in.GetCalls()))}
		for _, c := range in.GetCalls() {
			a := c.GetOperation().GetAcquire()
			if a == nil {
				return errNoAcquire
			}
			out.Replies = append(out.Replies, &samyav1.Reply{Tag: c.GetTag(), Result: granted(a)})
		}
		if err := on.SendMsg(out); err != nil {
			return fmt.Errorf("send answers: %w", err)
		}
	}
}

// granted is an answer as long as a site's.
func granted(a *samyav1.AcquireRequest) *samyav1.Result {
	return &samyav1.Result{Result: &samyav1.Result_Acquire{Acquire: &samyav1.AcquireResponse{
		Tokens: a.GetTokens(), RequestId: a.GetRequestId(), Site: "us", Left: 1 << 40,
	}}}
}
