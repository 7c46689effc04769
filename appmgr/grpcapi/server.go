package grpcapi

import (
	"context"
	"time"

	quotav3 "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	grpchealth "google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	"github.com/samya-db/samya/appmgr/limiter"
	"github.com/samya-db/samya/internal/access"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/frames"
	"github.com/samya-db/samya/internal/grpccodec"
	"github.com/samya-db/samya/internal/methods"
	"github.com/samya-db/samya/internal/tlsconf"
)

// The bounds of a connection.
const (
	connectTime    = 5 * time.Second // bounds a handshake
	idleTime       = 2 * time.Minute // above the minute and a half of many clients
	maxHeader      = 16 << 10
	maxGRPCStreams = 4096 // calls under way on each connection
	grpcWorkers    = 256
	unreadStream   = 1 << 20 // unread, of a gRPC stream
	unreadConn     = 4 << 20 // unread, of a gRPC connection
)

// ServerConfig configures a server of gRPC.
type ServerConfig struct {
	// Name is the name by which the server answers ListSites.
	Name    string
	Service *Service
	Limiter *limiter.Limiter
	Access  *access.Guard
	// Reachable reports whether any site can be reached.
	Reachable func() bool
	// RateLimits is Envoy's rate limit service.
	RateLimits ratelimitv3.RateLimitServiceServer
	// RateLimitQuotas is Envoy's rate limit quota service; nil: not served.
	RateLimitQuotas quotav3.RateLimitQuotaServiceServer
	// TLS encrypts the connections; nil: in clear.
	TLS *tlsconf.Store
	// MaxMessage bounds a message, in bytes.
	MaxMessage int
}

// NewServer returns a server of the public API, its health service, and the server of its
// streams over frames.
func NewServer(cfg ServerConfig) (*grpc.Server, *Checks, *frames.Server) {
	creds := insecure.NewCredentials()
	if cfg.TLS != nil {
		creds = cfg.TLS.ServerCredentials()
	}
	framed := &frames.Server{
		Name: cfg.Name, Service: cfg.Service, MaxMessage: cfg.MaxMessage,
		Interceptors: []grpc.StreamServerInterceptor{cfg.Limiter.Stream, cfg.Access.Stream},
	}
	gs := grpc.NewServer(append(cfg.Service.Traces.Server(),
		grpc.Creds(framed.Credentials(creds)),
		// Workers keep their grown stacks from call to call.
		grpc.NumStreamWorkers(grpcWorkers),
		grpc.ForceServerCodecV2(grpccodec.Codec()),
		// Fixed, or gRPC goes on measuring each connection with pings.
		grpc.StaticStreamWindowSize(unreadStream), grpc.StaticConnWindowSize(unreadConn),
		grpc.MaxRecvMsgSize(cfg.MaxMessage),
		grpc.MaxConcurrentStreams(maxGRPCStreams),
		grpc.MaxHeaderListSize(maxHeader),
		grpc.ConnectionTimeout(connectTime),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: idleTime, Time: time.Minute}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}),
		grpc.ChainUnaryInterceptor(cfg.Limiter.Unary, cfg.Access.Unary),
		grpc.ChainStreamInterceptor(framed.Interceptors...),
		grpc.UnknownServiceHandler(unknownMethod),
	)...)
	for _, d := range methods.Services() {
		gs.RegisterService(d, cfg.Service)
	}
	ratelimitv3.RegisterRateLimitServiceServer(gs, cfg.RateLimits)
	if cfg.RateLimitQuotas != nil {
		quotav3.RegisterRateLimitQuotaServiceServer(gs, cfg.RateLimitQuotas)
	}
	c := &Checks{Server: grpchealth.NewServer(), reachable: cfg.Reachable, names: []string{""}}
	for name := range gs.GetServiceInfo() {
		c.names = append(c.names, name)
	}
	healthpb.RegisterHealthServer(gs, c)
	reflection.Register(gs)
	c.SetServingStatus(healthpb.Health_ServiceDesc.ServiceName, healthpb.HealthCheckResponse_SERVING)
	return gs, c, framed
}

// Checks is the gRPC health service. The app manager as a whole, and each service that asks
// sites, serve while any site is reachable; the health service always serves.
type Checks struct {
	*grpchealth.Server
	reachable func() bool
	// names are the services that need a site; empty for the app manager as a whole.
	names []string
}

// Refresh tells the watchers of the health. After Shutdown it tells nobody.
func (c *Checks) Refresh() {
	s := healthpb.HealthCheckResponse_NOT_SERVING
	if c.reachable() {
		s = healthpb.HealthCheckResponse_SERVING
	}
	for _, name := range c.names {
		c.SetServingStatus(name, s)
	}
}

// Check implements healthpb.HealthServer, with the health of this moment.
func (c *Checks) Check(ctx context.Context, r *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	c.Refresh()
	return c.Server.Check(ctx, r)
}

// unknownMethod answers calls of methods that no service has.
func unknownMethod(_ any, stream grpc.ServerStream) error {
	m, _ := grpc.MethodFromServerStream(stream)
	return apierr.New(apierr.RouteNotFound, "no method %.128q", m)
}
