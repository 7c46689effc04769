package frames

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

const (
	// helloTime bounds the time until the greeting of a client is there.
	helloTime = 5 * time.Second
	// farewell bounds the time in which a client closes its end after the end of a stream.
	farewell = time.Second
)

// Server serves streams over frames beside a gRPC server.
type Server struct {
	// Name is the name by which the server answers ListSites.
	Name string
	// Service has the stream.
	Service samyav1.TokenServiceServer
	// Interceptors are the gRPC server's interceptors of streams, the outermost first.
	Interceptors []grpc.StreamServerInterceptor
	// MaxMessage bounds a message of a client, in bytes.
	MaxMessage int
	// Passing says that Service keeps nothing but texts of a message once it receives the
	// next, or has ended. Messages then share memory.
	Passing bool

	mu      sync.Mutex
	conns   map[*conn]context.CancelFunc
	stopped bool
	open    sync.WaitGroup
}

// Credentials are credentials for the gRPC server: connections of frames go to s. The gRPC
// server bounds the time until the first bytes of a connection.
func (s *Server) Credentials(of credentials.TransportCredentials) credentials.TransportCredentials {
	return &fork{of, s}
}

// fork takes connections of frames out of a gRPC server.
type fork struct {
	credentials.TransportCredentials
	server *Server
}

// Clone implements credentials.TransportCredentials.
func (f *fork) Clone() credentials.TransportCredentials {
	return &fork{f.TransportCredentials.Clone(), f.server}
}

// ServerHandshake implements credentials.TransportCredentials. After an error the gRPC server
// closes the raw connection alone.
func (f *fork) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	fast := quick(raw)
	c, info, err := f.TransportCredentials.ServerHandshake(fast)
	if err != nil {
		return nil, nil, err
	}
	first := make([]byte, len(preface))
	n, err := io.ReadFull(c, first)
	if err != nil && n == 0 {
		return nil, nil, errors.Join(err, c.Close())
	}
	if string(first) != preface {
		if c == fast {
			c = raw
		}
		return &peeked{Conn: c, first: first[:n]}, info, nil
	}
	if !f.server.take(newConn(c, f.server.MaxMessage), info) {
		return nil, nil, errors.Join(grpc.ErrServerStopped, c.Close())
	}
	return nil, nil, credentials.ErrConnDispatched
}

// peeked is a connection whose first bytes were read already.
type peeked struct {
	net.Conn
	first []byte
}

// Read implements net.Conn.
func (p *peeked) Read(b []byte) (int, error) {
	if len(p.first) == 0 {
		return p.Conn.Read(b)
	}
	n := copy(b, p.first)
	p.first = p.first[n:]
	return n, nil
}

// take serves a connection. It reports false once the server has stopped.
func (s *Server) take(c *conn, info credentials.AuthInfo) bool {
	ctx := peer.NewContext(context.Background(), &peer.Peer{Addr: c.RemoteAddr(), LocalAddr: c.LocalAddr(), AuthInfo: info})
	ctx, cancel := context.WithCancel(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		cancel()
		return false
	}
	if s.conns == nil {
		s.conns = make(map[*conn]context.CancelFunc)
	}
	s.conns[c] = cancel
	s.open.Go(func() {
		defer s.leave(c)
		s.serve(ctx, c)
	})
	return true
}

func (s *Server) leave(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[c]()
	delete(s.conns, c)
}

// serve serves a connection until its end. Nobody is there to be told of errors.
func (s *Server) serve(ctx context.Context, c *conn) {
	defer func() { _ = c.Close() }()
	late := time.AfterFunc(helloTime, func() { _ = c.Close() })
	k, content, err := c.next()
	if !late.Stop() || err != nil || k != hello {
		return
	}
	g, err := readGreeting(content)
	if err != nil || g.most == 0 {
		return
	}
	c.theirs = g.most
	if s.Passing {
		c.calls = new(requests)
	}
	defer c.watch()()
	mine := greeting{most: s.MaxMessage, name: s.Name}
	if _, err := io.WriteString(c.Conn, preface); err != nil {
		return
	}
	if err := c.send(hello, mine.appendTo(nil)); err != nil {
		return
	}
	if g.authorization != "" {
		ctx = metadata.NewIncomingContext(ctx, metadata.Pairs("authorization", g.authorization))
	}
	ended, cancel := context.WithCancel(ctx)
	defer cancel()
	stream := &serverStream{conn: c, broken: cancel}
	stream.ctx = context.WithValue(ended, quickKey{}, stream)
	err = s.handle(stream)
	// A handler that has ended may have left a reader behind.
	if !stream.isOver() {
		c.sayEnd(err)
	}
}

// handle hands a stream through the interceptors to its handler.
func (s *Server) handle(stream grpc.ServerStream) error {
	info := &grpc.StreamServerInfo{FullMethod: samyav1.TokenService_Stream_FullMethodName, IsClientStream: true, IsServerStream: true}
	handler := func(srv any, stream grpc.ServerStream) error {
		return srv.(samyav1.TokenServiceServer).Stream(&grpc.GenericServerStream[samyav1.StreamRequest, samyav1.StreamResponse]{ServerStream: stream})
	}
	for _, with := range slices.Backward(s.Interceptors) {
		inner := handler
		handler = func(srv any, stream grpc.ServerStream) error { return with(srv, stream, info, inner) }
	}
	return handler(s.Service, stream)
}

// sayEnd tells the client the status, and gives it time to close its end: a connection
// closed with unread bytes loses the bytes that it has sent.
func (c *conn) sayEnd(err error) {
	b, encodeErr := proto.Marshal(status.Convert(err).Proto())
	if encodeErr != nil || len(b) > maxHello {
		b, _ = proto.Marshal(status.New(status.Code(err), "").Proto())
	}
	if err := c.send(end, b); err != nil {
		return
	}
	if err := closeWrite(c.Conn); err != nil {
		return
	}
	if err := c.SetReadDeadline(time.Now().Add(farewell)); err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, c.Conn)
}

// Stop ends all connections and waits for their handlers. Before, a server has its streams
// end by themselves, as with grpc.Server.GracefulStop; until ctx ends Stop waits for them.
func (s *Server) Stop(ctx context.Context) {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	done := make(chan struct{})
	go func() {
		s.open.Wait()
		close(done)
	}()
	select {
	case <-done:
		return
	case <-ctx.Done():
	}
	s.mu.Lock()
	for c, cancel := range s.conns {
		cancel()
		_ = c.Close()
	}
	s.mu.Unlock()
	<-done
}

// Open returns the number of open connections.
func (s *Server) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// serverStream is a stream as its handler sees it.
type serverStream struct {
	conn *conn
	ctx  context.Context //nolint:containedctx // it stands for the stream's
	// broken ends ctx.
	broken context.CancelFunc

	mu   sync.Mutex
	over bool // the connection is of no more use
}

var _ grpc.ServerStream = (*serverStream)(nil)

// SetHeader implements grpc.ServerStream: frames have no header fields.
func (s *serverStream) SetHeader(metadata.MD) error { return nil }

// SendHeader implements grpc.ServerStream.
func (s *serverStream) SendHeader(metadata.MD) error { return nil }

// SetTrailer implements grpc.ServerStream.
func (s *serverStream) SetTrailer(metadata.MD) {}

// Context implements grpc.ServerStream.
func (s *serverStream) Context() context.Context { return s.ctx }

// SendMsg implements grpc.ServerStream.
func (s *serverStream) SendMsg(m any) error {
	return s.ended(s.conn.sendMessage(m))
}

// ended turns an error of sending into that of SendMsg.
func (s *serverStream) ended(err error) error {
	if _, good := status.FromError(err); good {
		return err
	}
	s.breaks()
	return status.Errorf(codes.Canceled, "the connection has ended: %v", err)
}

// RecvMsg implements grpc.ServerStream. As on gRPC, the end of a connection is Canceled.
func (s *serverStream) RecvMsg(m any) error {
	err := s.conn.receiveMessage(m, func(k kind, _ []byte) error {
		return status.Errorf(codes.InvalidArgument, "frames: a frame of kind %d amid a stream", k)
	})
	if err == nil {
		return nil
	}
	if _, told := status.FromError(err); told {
		return err
	}
	s.breaks()
	return status.Errorf(codes.Canceled, "the connection has ended: %v", err)
}

func (s *serverStream) breaks() {
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	s.broken()
}

func (s *serverStream) isOver() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over
}
