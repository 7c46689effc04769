package frames

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/grpccodec"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// most bounds the messages of tests, in bytes.
const most = 1 << 20

// awhile is the longest wait of a test for what takes microseconds.
const awhile = 10 * time.Second

// service answers each call of a stream, and fails a call of "fail".
type service struct {
	samyav1.UnimplementedTokenServiceServer
	// began has the context of each stream, ended its error.
	began chan context.Context
	ended chan error
}

func newService() *service {
	return &service{began: make(chan context.Context, 10), ended: make(chan error, 10)}
}

var errFails = apierr.New(apierr.Overloaded, "as asked")

// Stream implements samyav1.TokenServiceServer.
func (s *service) Stream(rpc samyav1.TokenService_StreamServer) (err error) {
	s.began <- rpc.Context()
	defer func() { s.ended <- err }()
	for {
		in, err := rpc.Recv()
		if err != nil {
			return err
		}
		out := &samyav1.StreamResponse{}
		for _, c := range in.GetCalls() {
			if c.GetOperation().GetAcquire().GetEntity() == "fail" {
				return errFails
			}
			out.Replies = append(out.Replies, &samyav1.Reply{Tag: c.GetTag()})
		}
		if err := rpc.Send(out); err != nil {
			return err
		}
	}
}

// Acquire implements samyav1.TokenServiceServer.
func (s *service) Acquire(context.Context, *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
	return &samyav1.AcquireResponse{Site: "us"}, nil
}

// rig is a server of gRPC, of frames too unless it is older, and connections to it.
type rig struct {
	t       *testing.T
	service *service
	framed  *Server
	grpc    *grpc.Server
	address string
	// secured is what clients authenticate the server with.
	secured credentials.TransportCredentials
	dials   int
	name    string
}

// settings change a rig.
type settings struct {
	older            bool
	server, client   credentials.TransportCredentials
	interceptors     []grpc.StreamServerInterceptor
	connectionExpiry time.Duration
	// limit bounds the open connections, unless it is 0.
	limit int
}

func newRig(t *testing.T, set settings) *rig {
	t.Helper()
	r := &rig{t: t, service: newService(), secured: set.client, name: "site/us"}
	creds := set.server
	if creds == nil {
		creds = insecure.NewCredentials()
	}
	r.framed = &Server{Name: "site/us", Service: r.service, MaxMessage: most, Interceptors: set.interceptors}
	if !set.older {
		creds = r.framed.Credentials(creds)
	}
	opts := []grpc.ServerOption{grpc.Creds(creds), grpc.ForceServerCodecV2(grpccodec.Codec()), grpc.ChainStreamInterceptor(set.interceptors...)}
	if set.connectionExpiry > 0 {
		opts = append(opts, grpc.ConnectionTimeout(set.connectionExpiry))
	}
	r.grpc = grpc.NewServer(opts...)
	samyav1.RegisterTokenServiceServer(r.grpc, r.service)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.address = l.Addr().String()
	if set.limit > 0 {
		l = Limit(l, set.limit)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := r.grpc.Serve(l); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		r.grpc.Stop()
		now, cancel := context.WithCancel(context.Background())
		cancel()
		r.framed.Stop(now)
		serving.Wait()
	})
	return r
}

// over makes a connection to the rig, and streams over frames on it.
func (r *rig) over(caller credentials.PerRPCCredentials) *Over {
	r.t.Helper()
	secured := r.secured
	if secured == nil {
		secured = insecure.NewCredentials()
	}
	opts := []grpc.DialOption{grpc.WithTransportCredentials(secured), grpc.WithDefaultCallOptions(grpc.ForceCodecV2(grpccodec.Codec()))}
	if caller != nil {
		opts = append(opts, grpc.WithPerRPCCredentials(caller))
	}
	conn, err := grpc.NewClient("passthrough:///"+r.address, opts...)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = conn.Close() })
	return New(conn, Options{
		Dial: func(ctx context.Context) (net.Conn, string, error) {
			r.dials++
			c, err := new(net.Dialer).DialContext(ctx, "tcp", r.address)
			return c, r.name, err
		},
		Security: r.secured, Authority: r.address, Caller: caller, MaxMessage: most,
	})
}

// stream opens a stream that ends with the test.
func (r *rig) stream(o *Over) *stream {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), awhile)
	r.t.Cleanup(cancel)
	s, err := samyav1.NewTokenServiceClient(o).Stream(ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	return &stream{r.t, s, cancel}
}

// stream is a client's stream.
type stream struct {
	t      *testing.T
	rpc    samyav1.TokenService_StreamClient
	cancel context.CancelFunc
}

// call sends a call of an entity and returns the tag of the answer.
func (s *stream) call(entity string, tag uint64) (uint64, error) {
	s.t.Helper()
	call := &samyav1.Call{Tag: tag, Operation: &samyav1.Operation{Operation: &samyav1.Operation_Acquire{Acquire: &samyav1.AcquireRequest{Entity: entity}}}}
	if err := s.rpc.Send(&samyav1.StreamRequest{Calls: []*samyav1.Call{call}}); err != nil {
		s.t.Logf("sending: %v", err)
	}
	in, err := s.rpc.Recv()
	if err != nil {
		return 0, err
	}
	return in.GetReplies()[0].GetTag(), nil
}

// answers checks that calls are answered.
func (s *stream) answers() {
	s.t.Helper()
	for tag := uint64(1); tag < 4; tag++ {
		if got, err := s.call("e", tag); err != nil || got != tag {
			s.t.Fatalf("call %d: %d, %v", tag, got, err)
		}
	}
}

// framedIs checks how many connections of frames there are, once it is so.
func (r *rig) framedIs(want int) {
	r.t.Helper()
	r.eventually("connections of frames", func() bool { return r.framed.Open() == want })
}

// eventually waits until a condition holds.
func (r *rig) eventually(what string, holds func() bool) {
	r.t.Helper()
	look, late := time.NewTicker(time.Millisecond), time.After(awhile)
	defer look.Stop()
	for !holds() {
		select {
		case <-look.C:
		case <-late:
			r.t.Fatalf("%s: not so within %v", what, awhile)
		}
	}
}
