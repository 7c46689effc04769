package transports

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"storj.io/drpc"
	"storj.io/drpc/drpcconn"
	"storj.io/drpc/drpcmanager"
	"storj.io/drpc/drpcserver"
)

// errSecured: drpc is measured in clear alone.
var errSecured = errors.New("drpc over TLS is not measured")

// drpcOptions have a message leave in a single write.
var drpcOptions = drpcmanager.Options{WriterBufferSize: bufferBytes}

// encoded is a message with generated code to write and read it.
type encoded interface {
	SizeVT() int
	MarshalToSizedBufferVT(into []byte) (int, error)
	UnmarshalVT(from []byte) error
}

// drpcEncoding has drpc use the generated code of messages.
type drpcEncoding struct{}

// Marshal implements drpc.Encoding.
func (e drpcEncoding) Marshal(m drpc.Message) ([]byte, error) { return e.MarshalAppend(nil, m) }

// MarshalAppend appends an encoded message. drpc uses it with a buffer of the stream.
func (drpcEncoding) MarshalAppend(b []byte, m drpc.Message) ([]byte, error) {
	e, ok := m.(encoded)
	if !ok {
		return nil, fmt.Errorf("encode a message of type %T", m)
	}
	begin, size := len(b), e.SizeVT()
	b = slices.Grow(b, size)[:begin+size]
	if _, err := e.MarshalToSizedBufferVT(b[begin:]); err != nil {
		return nil, fmt.Errorf("encode %T: %w", m, err)
	}
	return b, nil
}

// Unmarshal implements drpc.Encoding.
func (drpcEncoding) Unmarshal(b []byte, m drpc.Message) error {
	e, ok := m.(encoded)
	if !ok {
		return fmt.Errorf("decode a message of type %T", m)
	}
	return e.UnmarshalVT(b)
}

// drpcHandler serves each call as a stream of operations.
type drpcHandler struct{}

// HandleRPC implements drpc.Handler.
func (drpcHandler) HandleRPC(s drpc.Stream, _ string) error { return answer(drpcStream{stream: s}) }

// serveDRPC serves the stream over drpc.
func serveDRPC(ctx context.Context, l net.Listener, security credentials.TransportCredentials) error {
	if secured(security) {
		return errSecured
	}
	return drpcserver.NewWithOptions(drpcHandler{}, drpcserver.Options{Manager: drpcOptions}).Serve(ctx, l)
}

// connectDRPC connects over drpc.
func connectDRPC(ctx context.Context, addr string, security credentials.TransportCredentials) (grpc.ClientConnInterface, func() error, error) {
	if secured(security) {
		return nil, nil, errSecured
	}
	raw, err := (&net.Dialer{Timeout: startTime}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, nil, fmt.Errorf("connect over drpc: %w", err)
	}
	conn := drpcconn.NewWithOptions(raw, drpcconn.Options{Manager: drpcOptions})
	return drpcConn{conn}, conn.Close, nil
}

// secured reports whether connections have TLS.
func secured(by credentials.TransportCredentials) bool { return by.Info().SecurityProtocol == "tls" }

// drpcConn has package mux open its stream over drpc.
type drpcConn struct{ conn *drpcconn.Conn }

// Invoke implements grpc.ClientConnInterface.
func (c drpcConn) Invoke(ctx context.Context, method string, in, out any, _ ...grpc.CallOption) error {
	return c.conn.Invoke(ctx, method, drpcEncoding{}, in, out)
}

// NewStream implements grpc.ClientConnInterface.
func (c drpcConn) NewStream(ctx context.Context, _ *grpc.StreamDesc, method string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := c.conn.NewStream(ctx, method, drpcEncoding{})
	if err != nil {
		return nil, fmt.Errorf("open a stream over drpc: %w", err)
	}
	return drpcStream{stream: s}, nil
}

// drpcStream is a stream of drpc in the shape of gRPC. It has the methods that package mux
// and the server use.
type drpcStream struct {
	grpc.ClientStream
	stream drpc.Stream
}

// Context implements grpc.ClientStream.
func (s drpcStream) Context() context.Context { return s.stream.Context() }

// SendMsg implements grpc.ClientStream.
func (s drpcStream) SendMsg(m any) error { return s.stream.MsgSend(m, drpcEncoding{}) }

// RecvMsg implements grpc.ClientStream.
func (s drpcStream) RecvMsg(m any) error { return s.stream.MsgRecv(m, drpcEncoding{}) }
