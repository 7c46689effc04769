package mux_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/samya-db/samya/internal/frames"
	"github.com/samya-db/samya/internal/grpccodec"
	"github.com/samya-db/samya/internal/mux"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// server serves streams over TCP like a site. It tells its window, answers the calls of a
// message in a single message, and a held call when it is let go.
type server struct {
	samyav1.UnimplementedTokenServiceServer
	window uint32
	// answer makes the result of an operation; nil holds it back until cancelled.
	answer func(*samyav1.Operation) *samyav1.Result

	mu       sync.Mutex
	messages int
	calls    int
}

func (s *server) Stream(stream samyav1.TokenService_StreamServer) error {
	if err := stream.Send(&samyav1.StreamResponse{Window: s.window}); err != nil {
		return err
	}
	held := map[uint64]bool{}
	for {
		in, err := stream.Recv()
		if err != nil {
			return nil //nolint:nilerr // the client has ended the stream
		}
		s.mu.Lock()
		s.messages++
		s.calls += len(in.GetCalls())
		s.mu.Unlock()
		out := &samyav1.StreamResponse{Replies: make([]*samyav1.Reply, 0, len(in.GetCalls()))}
		for _, c := range in.GetCalls() {
			if r := s.answer(c.GetOperation()); r != nil {
				out.Replies = append(out.Replies, &samyav1.Reply{Tag: c.GetTag(), Result: r})
			} else {
				held[c.GetTag()] = true
			}
		}
		if len(held) > int(s.window) {
			return fmt.Errorf("%d calls without an answer", len(held))
		}
		for _, tag := range in.GetCancels() {
			if held[tag] {
				delete(held, tag)
				out.Replies = append(out.Replies, &samyav1.Reply{Tag: tag, Result: failure(1, "cancelled")})
			}
		}
		if err := stream.Send(out); err != nil {
			return err
		}
	}
}

// granted answers an acquire at once.
func granted(op *samyav1.Operation) *samyav1.Result {
	a := op.GetAcquire()
	return &samyav1.Result{Result: &samyav1.Result_Acquire{Acquire: &samyav1.AcquireResponse{
		Tokens: a.GetTokens(), RequestId: a.GetRequestId(), Site: "us", Left: 1 << 40,
	}}}
}

func failure(code int32, message string) *samyav1.Result {
	return &samyav1.Result{Result: &samyav1.Result_Failure{Failure: &samyav1.Failure{Code: code, Message: message}}}
}

func acquire(id string) *samyav1.Operation {
	return &samyav1.Operation{Operation: &samyav1.Operation_Acquire{
		Acquire: &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 1, RequestId: id},
	}}
}

// listen serves s on a port of its own and returns a connection to it.
func listen(tb testing.TB, s samyav1.TokenServiceServer) *grpc.ClientConn {
	tb.Helper()
	conn, _ := serve(tb, s, nil)
	return conn
}

// listenFramed is listen, with a server that speaks frames and a connection whose streams
// go over them.
func listenFramed(tb testing.TB, s samyav1.TokenServiceServer) *frames.Over {
	tb.Helper()
	f := &frames.Server{Name: "site/us", Service: s, MaxMessage: 4 << 20}
	conn, address := serve(tb, s, f)
	return frames.New(conn, frames.Options{MaxMessage: 4 << 20, Dial: func(ctx context.Context) (net.Conn, string, error) {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		return c, "site/us", err
	}})
}

// serve serves s on a port of its own, over frames too unless f is nil. It returns a
// connection to it and its address.
func serve(tb testing.TB, s samyav1.TokenServiceServer, f *frames.Server) (*grpc.ClientConn, string) {
	tb.Helper()
	l, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	creds := insecure.NewCredentials()
	if f != nil {
		creds = f.Credentials(creds)
	}
	g := grpc.NewServer(grpc.Creds(creds), grpc.ForceServerCodecV2(grpccodec.Codec()))
	samyav1.RegisterTokenServiceServer(g, s)
	served := make(chan error, 1)
	go func() { served <- g.Serve(l) }()
	conn, err := grpc.NewClient("passthrough:///"+l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		conn.Close()
		g.Stop()
		if f != nil {
			over, cancel := context.WithCancel(context.Background())
			cancel()
			f.Stop(over)
		}
		if err := <-served; err != nil {
			tb.Errorf("serving: %v", err)
		}
	})
	return conn, l.Addr().String()
}

// listenNowhere returns a connection to a port that nobody listens on.
func listenNowhere(tb testing.TB) *grpc.ClientConn {
	tb.Helper()
	l, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	l.Close()
	conn, err := grpc.NewClient("passthrough:///"+l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { conn.Close() })
	return conn
}

// patience is the longest wait of a test for an answer that takes microseconds.
const patience = 10 * time.Second

// newMux returns a Mux that is closed with the test.
func newMux(tb testing.TB, conn grpc.ClientConnInterface) *mux.Mux {
	tb.Helper()
	m := mux.New(conn, mux.Options{})
	tb.Cleanup(func() {
		closed := make(chan error, 1)
		go func() { closed <- m.Close() }()
		select {
		case err := <-closed:
			if err != nil {
				tb.Errorf("closing: %v", err)
			}
		case <-time.After(patience):
			tb.Errorf("it is not closed after %v", patience)
		}
	})
	return m
}
