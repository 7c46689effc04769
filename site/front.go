package site

import (
	"context"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/samya-db/samya/internal/membership"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"google.golang.org/grpc"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/test/bufconn"
)

// Front serves another API in the process of a site, on the site's gRPC listener. Its calls
// of the site cross no network.
type Front interface {
	// Register adds the services of the front to the site's server.
	Register(to grpc.ServiceRegistrar)
	// Run runs the front until ctx ends. It finds other sites by gossip. No call of a service
	// is under way when ctx ends.
	Run(ctx context.Context, gossip *membership.Membership)
	// Close refuses further calls and ends the streams: the site is about to stop.
	Close()
}

// Inside is a site as the Front in its process sees it.
type Inside struct {
	tokens   tokens
	registry *prometheus.Registry
	listener *bufconn.Listener
	server   *grpc.Server
}

// insideBytes is the size of the buffer of a connection within the process, each way.
const insideBytes = 256 << 10

// newInside makes the way from a front to its site.
func newInside(s *Site) *Inside {
	unary, stream := s.access.Inside(s.cfg.Name)
	i := &Inside{
		tokens: tokens{Site: s}, registry: s.metrics.registry, listener: bufconn.Listen(insideBytes),
		server: grpc.NewServer(
			grpc.MaxRecvMsgSize(maxRequestBytes),
			grpc.ChainUnaryInterceptor(s.metrics.count, unary, tellClock), grpc.ChainStreamInterceptor(s.metrics.countStream, stream),
		),
	}
	register(i.server, s)
	return i
}

// Registry is the registry of the site's metrics.
func (i *Inside) Registry() *prometheus.Registry { return i.registry }

// Dial makes a connection to the site's API within the process, in clear. The callers of
// its calls have been let in before.
func (i *Inside) Dial(ctx context.Context) (net.Conn, error) { return i.listener.DialContext(ctx) }

// Acquire is a call of the site, as an app manager makes it.
func (i *Inside) Acquire(ctx context.Context, r *samyav1.AcquireRequest) (resp *samyav1.AcquireResponse, err error) {
	m := i.tokens.metrics
	defer func(began time.Time) { m.one(m.acquires, began, err, m.traces.Current(ctx)) }(time.Now())
	return i.tokens.Acquire(ctx, r)
}

// Release is a call of the site, as an app manager makes it.
func (i *Inside) Release(ctx context.Context, r *samyav1.ReleaseRequest) (resp *samyav1.ReleaseResponse, err error) {
	m := i.tokens.metrics
	defer func(began time.Time) { m.one(m.releases, began, err, m.traces.Current(ctx)) }(time.Now())
	return i.tokens.Release(ctx, r)
}

// Batch is a call of the site, as an app manager makes it.
func (i *Inside) Batch(ctx context.Context, r *samyav1.BatchRequest) (resp *samyav1.BatchResponse, err error) {
	m := i.tokens.metrics
	defer func(began time.Time) {
		m.one(m.of(samyav1.TokenService_Batch_FullMethodName), began, err, m.traces.Current(ctx))
	}(time.Now())
	return i.tokens.Batch(ctx, r)
}

// serve serves the connections of Dial until the server stops.
func (i *Inside) serve() error { return ignoreClosed(i.server.Serve(i.listener)) }

// register adds the services that app managers call.
func register(to grpc.ServiceRegistrar, s *Site) {
	samyav1.RegisterTokenServiceServer(to, tokens{Site: s})
	samyav1.RegisterEntityServiceServer(to, entities{Site: s})
	samyav1.RegisterClusterServiceServer(to, cluster{Site: s})
	healthv1.RegisterHealthServer(to, s.health)
}

// newFront makes the front of a site, if there is to be one, and adds its services to the
// site's server.
func newFront(s *Site) (*Inside, Front, error) {
	if s.cfg.Front == nil {
		return nil, nil, nil
	}
	inside := newInside(s)
	front, err := s.cfg.Front(inside)
	if err != nil {
		return nil, nil, err
	}
	front.Register(s.grpcServer)
	return inside, front, nil
}
