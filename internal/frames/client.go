package frames

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

const (
	// openTime bounds the wait for a server's word that it speaks frames: several round
	// trips between two regions of the earth.
	openTime = 2 * time.Second
	// gRPCTime is how long streams go over gRPC after a server has not spoken frames, or a
	// connection of frames has ended before it brought an answer.
	gRPCTime = time.Minute
)

// errNotSpoken: the server does not speak frames.
var errNotSpoken = errors.New("frames: the server does not speak them")

// Conn is the part of a *grpc.ClientConn that an Over needs.
type Conn interface {
	grpc.ClientConnInterface
	GetState() connectivity.State
	WaitForStateChange(ctx context.Context, from connectivity.State) bool
	Connect()
}

// Options are the ways of an Over to its server.
type Options struct {
	// Dial makes a connection to the server behind the gRPC connection, in clear. The name
	// is the server's name in its answer to ListSites; empty: any.
	Dial func(ctx context.Context) (c net.Conn, name string, err error)
	// Security authenticates the server; nil: connections are in clear.
	Security credentials.TransportCredentials
	// Authority is the host that Security is told.
	Authority string
	// Caller tells the credential of each stream; nil for none.
	Caller credentials.PerRPCCredentials
	// MaxMessage bounds a message of the server, in bytes.
	MaxMessage int
}

// Over is a connection whose streams of operations go over frames, if the server speaks
// them, and over gRPC if not. All else goes over gRPC.
type Over struct {
	Conn
	o Options
	// until is until when streams go over gRPC, in nanoseconds since the Unix epoch.
	until atomic.Int64
}

// New returns conn with streams over frames.
func New(c Conn, o Options) *Over { return &Over{Conn: c, o: o} }

// NewStream implements grpc.ClientConnInterface.
func (o *Over) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if method == samyav1.TokenService_Stream_FullMethodName && time.Now().UnixNano() >= o.until.Load() && o.ready(ctx) {
		s, err := o.open(ctx)
		if err == nil {
			return s, nil
		}
		if ctx.Err() == nil {
			o.rest()
		}
	}
	return o.Conn.NewStream(ctx, desc, method, opts...)
}

// rest has streams go over gRPC for a while.
func (o *Over) rest() { o.until.Store(time.Now().Add(gRPCTime).UnixNano()) }

// ready waits until the gRPC connection is up. It reports false if it cannot be made: gRPC
// then tells why.
func (o *Over) ready(ctx context.Context) bool {
	for {
		switch state := o.GetState(); state {
		case connectivity.Ready:
			return true
		case connectivity.Idle, connectivity.Connecting:
			o.Connect()
			if !o.WaitForStateChange(ctx, state) {
				return false
			}
		case connectivity.TransientFailure, connectivity.Shutdown:
			return false
		}
	}
}

// open opens a stream over frames.
func (o *Over) open(ctx context.Context) (grpc.ClientStream, error) {
	begin, stop := context.WithTimeout(ctx, openTime)
	defer stop()
	raw, name, err := o.o.Dial(begin)
	if err != nil {
		return nil, fmt.Errorf("frames: connecting: %w", err)
	}
	raw = quick(raw)
	over := context.AfterFunc(begin, func() { _ = raw.Close() })
	secured, err := o.secure(begin, raw)
	if err != nil {
		_ = raw.Close()
		return nil, err
	}
	s, err := o.greet(begin, secured, name)
	if err == nil && !over() {
		err = context.Cause(begin)
	}
	if err != nil {
		_ = secured.Close()
		return nil, err
	}
	s.ctx = ctx
	unwatch, forget := s.conn.watch(), context.AfterFunc(ctx, func() { _ = s.conn.Close() })
	s.end = func() {
		unwatch()
		forget()
		_ = s.conn.Close()
	}
	return s, nil
}

// secure authenticates the server.
func (o *Over) secure(ctx context.Context, raw net.Conn) (net.Conn, error) {
	if o.o.Security == nil {
		return raw, nil
	}
	secured, _, err := o.o.Security.ClientHandshake(ctx, o.o.Authority, raw)
	if err != nil {
		return nil, fmt.Errorf("frames: securing the connection: %w", err)
	}
	return secured, nil
}

// greet finds out whether the server speaks frames.
func (o *Over) greet(ctx context.Context, raw net.Conn, name string) (*clientStream, error) {
	mine := greeting{most: o.o.MaxMessage}
	if o.o.Caller != nil {
		shown, err := o.o.Caller.GetRequestMetadata(ctx)
		if err != nil {
			return nil, fmt.Errorf("frames: the caller's credential: %w", err)
		}
		mine.authorization = shown["authorization"]
	}
	c := newConn(raw, o.o.MaxMessage)
	content := mine.appendTo(nil)
	if len(content) > maxHello {
		return nil, fmt.Errorf("frames: a greeting of %d bytes, at most %d", len(content), maxHello)
	}
	first := append([]byte(preface), 0, 0, 0, 0)
	putHeader(first[len(preface):], hello, len(content))
	if _, err := raw.Write(append(first, content...)); err != nil {
		return nil, fmt.Errorf("frames: greeting the server: %w", err)
	}
	answer := make([]byte, len(preface))
	if _, err := io.ReadFull(raw, answer); err != nil || string(answer) != preface {
		return nil, errors.Join(errNotSpoken, err)
	}
	k, content, err := c.next()
	if err != nil || k != hello {
		return nil, errors.Join(errNotSpoken, err)
	}
	theirs, err := readGreeting(content)
	if err != nil {
		return nil, err
	}
	if name != "" && theirs.name != name {
		return nil, fmt.Errorf("frames: connected to %q, not to %q", theirs.name, name)
	}
	c.theirs = theirs.most
	return &clientStream{conn: c, over: o}, nil
}

// clientStream is a stream as its caller sees it.
type clientStream struct {
	grpc.ClientStream
	ctx  context.Context //nolint:containedctx // it stands for the stream's
	conn *conn
	over *Over
	// end closes the connection, and ends all that watches it.
	end func()
	// heard: the server has sent a message.
	heard bool
}

// Context implements grpc.ClientStream.
func (s *clientStream) Context() context.Context { return s.ctx }

// SendMsg implements grpc.ClientStream: after io.EOF, RecvMsg tells why the stream ended.
func (s *clientStream) SendMsg(m any) error {
	err := s.conn.sendMessage(m)
	if _, good := status.FromError(err); good {
		return err
	}
	return io.EOF
}

// RecvMsg implements grpc.ClientStream.
func (s *clientStream) RecvMsg(m any) error {
	ended := false
	err := s.conn.receiveMessage(m, func(k kind, content []byte) error {
		if k != end {
			return fmt.Errorf("%w: a frame of kind %d amid a stream", errMalformed, k)
		}
		var st statuspb.Status
		if err := proto.Unmarshal(content, &st); err != nil {
			return fmt.Errorf("%w: a status: %w", errMalformed, err)
		}
		if ended = true; st.GetCode() == 0 {
			return io.EOF
		}
		return status.ErrorProto(&st)
	})
	if err == nil {
		s.heard = true
		return nil
	}
	s.end()
	switch {
	case ended:
		return err
	case s.ctx.Err() != nil:
		return status.FromContextError(s.ctx.Err()).Err()
	case !s.heard:
		// A proxy between may not let frames through.
		s.over.rest()
	}
	return status.Error(codes.Unavailable, fmt.Sprintf("the connection has ended: %v", err))
}
