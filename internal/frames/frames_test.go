package frames

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/credtest"
	"github.com/samya-db/samya/internal/tlsconf"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

func TestStreamOverFrames(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	t.Run("", func(t *testing.T) {
		r := newRig(t, settings{})
		o := r.over(nil)
		s := r.stream(o)
		s.answers()
		r.framedIs(1)
		if resp, err := samyav1.NewTokenServiceClient(o).Acquire(t.Context(), &samyav1.AcquireRequest{}); err != nil || resp.GetSite() != "us" {
			t.Errorf("a unary call: %v, %v", resp, err)
		}
		s.cancel()
		if _, err := s.rpc.Recv(); status.Code(err) != codes.Canceled {
			t.Errorf("after a cancel: %v", err)
		}
		if err := <-r.service.ended; status.Code(err) != codes.Canceled {
			t.Errorf("the handler is told: %v", err)
		}
		if ctx := <-r.service.began; ctx.Err() == nil {
			t.Error("the context of the handler has not ended")
		}
		r.framedIs(0)
	})
}

// TestOlderServer: streams to a server without frames go over gRPC, and frames are not
// tried at every stream.
func TestOlderServer(t *testing.T) {
	r := newRig(t, settings{older: true})
	o := r.over(nil)
	for range 3 {
		s := r.stream(o)
		s.answers()
		s.cancel()
	}
	if r.dials != 1 {
		t.Errorf("frames were tried %d times within a moment", r.dials)
	}
	o.until.Store(time.Now().UnixNano() - 1)
	r.stream(o).answers()
	if r.dials != 2 {
		t.Errorf("frames were not tried again: %d", r.dials)
	}
}

// TestOtherServer: at the other end stands a server of another name.
func TestOtherServer(t *testing.T) {
	r := newRig(t, settings{})
	r.name = "site/eu"
	r.stream(r.over(nil)).answers()
	r.framedIs(0)
	if r.dials != 1 {
		t.Errorf("%d dials", r.dials)
	}
}

// TestNoServer: what gRPC cannot reach is not tried over frames, and gRPC tells why.
func TestNoServer(t *testing.T) {
	r := newRig(t, settings{})
	o := r.over(nil)
	r.grpc.Stop()
	if _, err := samyav1.NewTokenServiceClient(o).Stream(t.Context()); status.Code(err) != codes.Unavailable {
		t.Errorf("without a server: %v", err)
	}
	if r.dials != 0 {
		t.Error("frames were tried")
	}
}

// TestStatus: an error of the handler comes to the caller with its details, though calls
// are still on their way.
func TestStatus(t *testing.T) {
	r := newRig(t, settings{})
	s := r.stream(r.over(nil))
	s.answers()
	many := &samyav1.StreamRequest{}
	for range 1000 {
		many.Calls = append(many.Calls, &samyav1.Call{Operation: &samyav1.Operation{Operation: &samyav1.Operation_Acquire{Acquire: &samyav1.AcquireRequest{Entity: "fail"}}}})
	}
	for range 20 {
		_ = s.rpc.Send(many)
	}
	_, err := s.rpc.Recv()
	if got := apierr.ReasonOf(err); got != apierr.Overloaded {
		t.Errorf("told %v, %v", got, err)
	}
	r.framedIs(0)
}

// TestInterceptors: a stream passes the interceptors, in their order, with the peer and the
// token of its caller.
func TestInterceptors(t *testing.T) {
	set := credtest.New(t)
	var passed []string
	passing := func(name string) grpc.StreamServerInterceptor {
		return func(srv any, s grpc.ServerStream, info *grpc.StreamServerInfo, h grpc.StreamHandler) error {
			passed = append(passed, name+info.FullMethod)
			p, _ := peer.FromContext(s.Context())
			if tls, ok := p.AuthInfo.(credentials.TLSInfo); !ok || !tls.State.HandshakeComplete || p.Addr == nil {
				t.Errorf("the peer is %v", p)
			}
			if got := metadata.ValueFromIncomingContext(s.Context(), "authorization"); !slices.Equal(got, []string{"Bearer it"}) {
				t.Errorf("the token is %q", got)
			}
			if name == "2" {
				return apierr.New(apierr.PermissionDenied, "no stream for you")
			}
			return h(srv, s)
		}
	}
	r := newRig(t, settings{
		server: set.Open(set.Issue(tlsconf.Site, "us", time.Hour)).ServerCredentials(),
		client: set.Open(set.Issue(tlsconf.Client, "client", time.Hour)).ClientCredentials(tlsconf.Identity{Kind: tlsconf.Site, Name: "us"}),

		interceptors: []grpc.StreamServerInterceptor{passing("1"), passing("2")},
	})
	s := r.stream(r.over(shows{"authorization": "Bearer it"}))
	_, err := s.rpc.Recv()
	if apierr.ReasonOf(err) != apierr.PermissionDenied || !strings.Contains(err.Error(), "no stream for you") {
		t.Errorf("told %v", err)
	}
	if want := []string{"1" + samyav1.TokenService_Stream_FullMethodName, "2" + samyav1.TokenService_Stream_FullMethodName}; !slices.Equal(passed, want) {
		t.Errorf("passed %q", passed)
	}
	if r.dials != 1 || len(r.service.began) != 0 {
		t.Errorf("%d dials, %d streams begun", r.dials, len(r.service.began))
	}
}

// shows is a caller that shows header fields.
type shows map[string]string

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (s shows) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return s, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials.
func (s shows) RequireTransportSecurity() bool { return true }

func TestLargeMessages(t *testing.T) {
	r := newRig(t, settings{})
	s := r.stream(r.over(nil))
	s.answers()
	long := strings.Repeat("e", most/2)
	if tag, err := s.call(long, 9); err != nil || tag != 9 {
		t.Errorf("half of the bound: %d, %v", tag, err)
	}
	s.answers()
	over := &samyav1.StreamRequest{Calls: []*samyav1.Call{{Operation: &samyav1.Operation{Operation: &samyav1.Operation_Acquire{Acquire: &samyav1.AcquireRequest{Entity: strings.Repeat("e", most)}}}}}}
	if err := s.rpc.Send(over); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a message beyond the bound of the server is sent: %v", err)
	}
}

// TestStop: a server that stops waits for streams to end, takes no more connections, and
// breaks off streams that last.
func TestStop(t *testing.T) {
	r := newRig(t, settings{})
	s := r.stream(r.over(nil))
	s.answers()
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	go func() {
		r.framed.Stop(ctx)
		close(stopped)
	}()
	r.eventually("the stop", r.framed.isStopped)
	s.answers()
	other := r.stream(r.over(nil))
	other.answers()
	r.framedIs(1)
	cancel()
	<-stopped
	if _, err := s.rpc.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("told %v", err)
	}
}

func (s *Server) isStopped() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopped
}

// TestBadClients: what is no stream over frames is closed, and gRPC goes on beside it.
func TestBadClients(t *testing.T) {
	frame := func(k kind, content string) string {
		b := make([]byte, headerBytes, headerBytes+len(content))
		putHeader(b, k, len(content))
		return string(b) + content
	}
	good := greeting{most: most}
	greets := preface + frame(hello, string(good.appendTo(nil)))
	for name, sends := range map[string]string{
		"no greeting":          preface + frame(message, ""),
		"a bad greeting":       preface + frame(hello, "\x08"),
		"a greeting of none":   preface + frame(hello, ""),
		"a long greeting":      preface + frame(hello, strings.Repeat("x", maxHello+1)),
		"no kind":              greets + frame(0, ""),
		"an unknown kind":      greets + frame(pong+1, ""),
		"a full ping":          greets + frame(ping, "x"),
		"two greetings":        greets + frame(hello, ""),
		"an end by a client":   greets + frame(end, ""),
		"a message beyond all": greets + "\x02\xff\xff\xff",
		"no message":           greets + frame(message, "\xff"),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, settings{})
			c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", r.address)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := io.WriteString(c, sends); err != nil {
				t.Fatal(err)
			}
			if err := c.SetReadDeadline(time.Now().Add(awhile)); err != nil {
				t.Fatal(err)
			}
			_, err = io.Copy(io.Discard, c)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("the connection stays: %v", err)
			}
			_ = c.Close()
			r.framedIs(0)
			r.stream(r.over(nil)).answers()
		})
	}
}

// TestClosed: whatever becomes of a connection, both sides close it as its security has made
// it. The store of certificates watches connections until then.
func TestClosed(t *testing.T) {
	server, client := &counting{TransportCredentials: insecure.NewCredentials()}, &counting{TransportCredentials: insecure.NewCredentials()}
	r := newRig(t, settings{server: server, client: client})
	mute, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", r.address)
	if err != nil {
		t.Fatal(err)
	}
	_ = mute.Close()
	o := r.over(nil)
	r.name = "site/eu" // the greeting fails
	s := r.stream(o)
	s.answers()
	s.cancel()
	o.until.Store(0)
	r.name = "site/us"
	s = r.stream(o)
	s.answers()
	s.cancel()
	r.framedIs(0)
	_ = o.Conn.(*grpc.ClientConn).Close()
	r.grpc.GracefulStop()
	r.eventually("closing", func() bool { return server.open.Load() == 0 && client.open.Load() == 0 })
	if server.made.Load() != 4 || client.made.Load() != 3 {
		t.Errorf("%d connections of the server, %d of the client", server.made.Load(), client.made.Load())
	}
}

// counting counts connections: all that its handshakes made, and the open connections.
type counting struct {
	credentials.TransportCredentials
	made, open atomic.Int64
}

func (c *counting) Clone() credentials.TransportCredentials { return c }

func (c *counting) count(conn net.Conn) net.Conn {
	c.made.Add(1)
	c.open.Add(1)
	return &counted{Conn: conn, by: c}
}

func (c *counting) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := c.TransportCredentials.ServerHandshake(raw)
	return c.count(conn), info, err
}

func (c *counting) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := c.TransportCredentials.ClientHandshake(ctx, authority, raw)
	return c.count(conn), info, err
}

// counted is a connection that is counted until it is closed.
type counted struct {
	net.Conn
	by   *counting
	once sync.Once
}

func (c *counted) Close() error {
	c.once.Do(func() { c.by.open.Add(-1) })
	return c.Conn.Close()
}

// TestShortBeginning: a connection that ends within the first bytes hurts nobody.
func TestShortBeginning(t *testing.T) {
	r := newRig(t, settings{connectionExpiry: 50 * time.Millisecond})
	for _, sends := range []string{"", "s", "samya/", "PRI", "GET / HT"} {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", r.address)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, sends); err != nil {
			t.Fatal(err)
		}
		if err := c.SetReadDeadline(time.Now().Add(awhile)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, c); err != nil && !strings.Contains(err.Error(), "reset") {
			t.Errorf("%q: %v", sends, err)
		}
		_ = c.Close()
	}
	r.stream(r.over(nil)).answers()
}
