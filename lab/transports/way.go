package transports

import (
	"context"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// The ways.
const (
	// GRPC is gRPC with the settings of the Go client and of sites, where they use it.
	GRPC = "gRPC"
	// Tuned is gRPC with larger buffers and fixed windows at both ends.
	Tuned = "gRPC, tuned"
	// DRPC is storj.io/drpc, a lean library.
	DRPC = "drpc"
	// Frames are the frames of internal/frames.
	Frames = "frames"
)

const (
	// maxMessage bounds a message, in bytes, as at a site.
	maxMessage = 4 << 20
	// bufferBytes is the size of a large buffer of a connection.
	bufferBytes = 128 << 10
	// streamBytes and connBytes bound the unread bytes of a stream and of a connection, as
	// at a site.
	streamBytes, connBytes = 1 << 20, 4 << 20
)

// way is a way to carry the stream.
type way struct {
	name string
	// serve serves the stream on a listener until ctx ends.
	serve func(ctx context.Context, l net.Listener, security credentials.TransportCredentials) error
	// connect returns a connection to a server, and what closes the connection.
	connect func(ctx context.Context, addr string, security credentials.TransportCredentials) (grpc.ClientConnInterface, func() error, error)
}

// ways are all ways; GRPC, the first, is the measure of the others.
var ways = []way{
	{GRPC, serveGRPC(usualServer), connectGRPC(usualClient)},
	{Tuned, serveGRPC(tunedServer), connectGRPC(tunedClient)},
	{DRPC, serveDRPC, connectDRPC},
	{Frames, serveFrames, connectFrames},
}

// Ways returns the names of all ways.
func Ways() []string {
	names := make([]string, len(ways))
	for i := range ways {
		names[i] = ways[i].name
	}
	return names
}
