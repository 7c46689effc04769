package appmgr

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/net/netutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	grpchealth "google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	"github.com/samya-db/samya/internal/access"
	"github.com/samya-db/samya/internal/grpccodec"
	"github.com/samya-db/samya/internal/membership"
)

// The bounds of a connection.
const (
	headerTime     = 5 * time.Second // bounds a handshake of TLS or gRPC
	bodyTime       = 10 * time.Second
	idleTime       = 2 * time.Minute  // above the minute and a half of many clients
	writeTime      = 90 * time.Second // above the longest wait and callTime
	maxHeader      = 16 << 10
	maxGRPCStreams = 4096 // calls under way on each connection
	grpcWorkers    = 256
	streamBytes    = 1 << 20 // unread, of a gRPC stream
	connBytes      = 4 << 20 // unread, of a gRPC connection
	leaveTime      = time.Second
)

// Manager is an app manager.
type Manager struct {
	cfg     Config
	log     *slog.Logger
	metrics *metrics
	guard   *guard
	access  *access.Guard
	router  *router
	service *service

	listening chan struct{}
	http      net.Listener
	grpc      net.Listener
}

// New makes an app manager, which does nothing before Run. Its error names the fields of
// cfg at fault.
func New(cfg Config) (*Manager, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("app manager settings: %w", err)
	}
	cfg = cfg.withDefaults()
	m, err := newMetrics(cfg.Registry)
	if err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	if err := cfg.Registry.Register(cfg.Build.Collector()); err != nil {
		return nil, fmt.Errorf("register build information: %w", err)
	}
	if cfg.Access == nil {
		if cfg.Access, err = access.Open(access.Config{TLS: cfg.TLS, Logger: cfg.Logger}); err != nil {
			return nil, fmt.Errorf("app manager settings: %w", err)
		}
	}
	if err := cfg.Registry.Register(cfg.Access); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	return &Manager{
		cfg: cfg, log: cfg.Logger, metrics: m, guard: newGuard(cfg.MaxConcurrent, m, cfg.Logger), access: cfg.Access,
		listening: make(chan struct{}),
	}, nil
}

// Listening is closed once Run listens; from then on the addresses are known.
func (m *Manager) Listening() <-chan struct{} { return m.listening }

// HTTPAddr returns the host:port of the HTTP API. It must not be called before Listening
// is closed.
func (m *Manager) HTTPAddr() string { return m.http.Addr().String() }

// GRPCAddr returns the host:port of the gRPC API. It must not be called before Listening
// is closed.
func (m *Manager) GRPCAddr() string { return m.grpc.Addr().String() }

// Run serves until ctx ends. Then it refuses new requests, lets the requests under way
// finish for up to Config.StopTimeout, and returns nil. It returns an error if it cannot
// serve. It may be called once.
func (m *Manager) Run(ctx context.Context) (err error) {
	if err := m.listen(ctx); err != nil {
		return err
	}
	// Requests, probes and gossip outlive ctx: they end once the requests under way have
	// finished.
	life, stopLife := context.WithCancel(context.WithoutCancel(ctx))
	defer stopLife()
	if m.cfg.Directory == nil {
		ms, err := membership.Start(context.WithoutCancel(ctx), m.cfg.Membership(membership.RoleAppMgr, m.GRPCAddr(), m.HTTPAddr()))
		if err != nil {
			return errors.Join(fmt.Errorf("find sites: %w", err), m.http.Close(), m.grpc.Close())
		}
		defer func() {
			if lerr := ms.Leave(leaveTime); lerr != nil {
				// The others find out by themselves, a little later.
				m.log.DebugContext(ctx, "leaving gossip", slog.Any("error", lerr))
			}
			err = errors.Join(err, ms.Close())
		}()
		m.cfg.Directory = gossiped{ms}
	}
	m.assemble()
	var loops sync.WaitGroup
	defer loops.Wait()
	defer stopLife()
	loops.Go(func() { m.router.run(life) })
	loops.Go(func() { m.access.Run(life) })
	if m.cfg.TLS != nil {
		loops.Go(func() { m.cfg.TLS.Run(life) })
	}
	return m.serve(ctx, life)
}

// assemble makes the parts that need the directory.
func (m *Manager) assemble() {
	m.router = newRouter(m.cfg, m.metrics)
	m.service = newService(m.cfg, m.router, m.guard)
}

func (m *Manager) listen(ctx context.Context) error {
	var lc net.ListenConfig
	h, err := lc.Listen(ctx, "tcp", m.cfg.HTTP)
	if err != nil {
		return fmt.Errorf("listen for HTTP: %w", err)
	}
	g, err := lc.Listen(ctx, "tcp", m.cfg.GRPC)
	if err != nil {
		return errors.Join(fmt.Errorf("listen for gRPC: %w", err), h.Close())
	}
	m.http, m.grpc = netutil.LimitListener(h, m.cfg.MaxConns), netutil.LimitListener(g, m.cfg.MaxConns)
	if m.cfg.TLS != nil {
		m.http = m.cfg.TLS.Listen(m.http, headerTime)
	}
	close(m.listening)
	return nil
}

// serve runs both servers until ctx ends or a server fails, then stops both.
func (m *Manager) serve(ctx, life context.Context) error {
	hs := m.httpServer(life)
	gs, hc := m.grpcServer()
	failed := make(chan error, 2)
	var servers sync.WaitGroup
	servers.Go(func() {
		if err := hs.Serve(m.http); !errors.Is(err, http.ErrServerClosed) {
			failed <- fmt.Errorf("serve HTTP: %w", err)
		}
	})
	servers.Go(func() {
		if err := gs.Serve(m.grpc); err != nil {
			failed <- fmt.Errorf("serve gRPC: %w", err)
		}
	})
	m.log.InfoContext(ctx, "serving", slog.String("http", m.HTTPAddr()), slog.String("grpc", m.GRPCAddr()))
	err := m.watch(ctx, hc, failed)
	m.log.InfoContext(ctx, "the app manager is stopping")
	m.guard.closing.Store(true)
	m.service.endStreams()
	hc.Shutdown()
	m.stop(life, hs, gs)
	servers.Wait()
	return err
}

// watch keeps the watchers of the gRPC health informed until ctx ends or a server fails.
func (m *Manager) watch(ctx context.Context, hc *checks, failed <-chan error) error {
	tick := time.NewTicker(m.cfg.ProbeInterval / 2)
	defer tick.Stop()
	for {
		hc.refresh()
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return err
		case <-tick.C:
		}
	}
}

// stop lets the requests under way finish, and cuts off requests that take longer than
// StopTimeout.
func (m *Manager) stop(life context.Context, hs *http.Server, gs *grpc.Server) {
	ctx, cancel := context.WithTimeout(life, m.cfg.StopTimeout)
	defer cancel()
	var stopping sync.WaitGroup
	stopping.Go(func() {
		if err := hs.Shutdown(ctx); err != nil {
			m.log.InfoContext(ctx, "cut off HTTP requests", slog.Any("error", err))
			// The listener is closed already; an error here has nothing to add.
			_ = hs.Close()
		}
	})
	stopping.Go(func() {
		done := context.AfterFunc(ctx, gs.Stop)
		defer done()
		gs.GracefulStop()
	})
	stopping.Wait()
}

func (m *Manager) httpServer(base context.Context) *http.Server {
	return &http.Server{
		Handler: m.handler(),
		// A client opens connections ahead of need. If the server ends a connection just as
		// the client sends its first request, nobody knows whether the request was executed.
		ReadHeaderTimeout: idleTime,
		WriteTimeout:      writeTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    maxHeader,
		BaseContext:       func(net.Listener) context.Context { return base },
		ErrorLog:          slog.NewLogLogger(m.log.Handler(), slog.LevelDebug),
	}
}

func (m *Manager) grpcServer() (*grpc.Server, *checks) {
	creds := insecure.NewCredentials()
	if m.cfg.TLS != nil {
		creds = m.cfg.TLS.ServerCredentials()
	}
	gs := grpc.NewServer(
		grpc.Creds(creds),
		// Workers keep their grown stacks from call to call.
		grpc.NumStreamWorkers(grpcWorkers),
		grpc.ForceServerCodecV2(grpccodec.Codec()),
		// Fixed, or gRPC goes on measuring each connection with pings.
		grpc.StaticStreamWindowSize(streamBytes), grpc.StaticConnWindowSize(connBytes),
		grpc.MaxRecvMsgSize(int(m.cfg.maxBulk())),
		grpc.MaxConcurrentStreams(maxGRPCStreams),
		grpc.MaxHeaderListSize(maxHeader),
		grpc.ConnectionTimeout(headerTime),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: idleTime, Time: time.Minute}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}),
		grpc.ChainUnaryInterceptor(m.guard.unary, m.access.Unary),
		grpc.ChainStreamInterceptor(m.guard.stream, m.access.Stream),
		grpc.UnknownServiceHandler(unknownMethod),
	)
	for _, d := range services {
		gs.RegisterService(d, m.service)
	}
	c := &checks{Server: grpchealth.NewServer(), router: m.router}
	healthpb.RegisterHealthServer(gs, c)
	reflection.Register(gs)
	return gs, c
}

// checks is the gRPC health service: serving while any site is reachable.
type checks struct {
	*grpchealth.Server
	router *router
}

// refresh tells the watchers of the health. After Shutdown it tells nobody.
func (c *checks) refresh() {
	s := healthpb.HealthCheckResponse_NOT_SERVING
	if c.router.reachable() {
		s = healthpb.HealthCheckResponse_SERVING
	}
	c.SetServingStatus("", s)
}

// Check implements healthpb.HealthServer, with the health of this moment.
func (c *checks) Check(ctx context.Context, r *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	c.refresh()
	return c.Server.Check(ctx, r)
}
