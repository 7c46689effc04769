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

	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/net/netutil"
	"google.golang.org/grpc"

	"github.com/samya-db/samya/appmgr/console"
	"github.com/samya-db/samya/appmgr/grpcapi"
	"github.com/samya-db/samya/appmgr/httpapi"
	"github.com/samya-db/samya/appmgr/limiter"
	"github.com/samya-db/samya/appmgr/ratelimit"
	"github.com/samya-db/samya/internal/access"
	"github.com/samya-db/samya/internal/frames"
	"github.com/samya-db/samya/internal/membership"
	"github.com/samya-db/samya/internal/metric"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

const (
	headerTime = 5 * time.Second // bounds a handshake of TLS
	leaveTime  = time.Second
)

// Manager is an app manager.
type Manager struct {
	cfg     Config
	log     *slog.Logger
	limiter *limiter.Limiter
	access  *access.Guard
	// console is nil if it is switched off.
	console http.Handler
	front

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
	if dir := cfg.RateLimits.Dir; dir != "" {
		// Run reads the rules. Their faults are told before.
		if _, err := ratelimit.ReadRules(dir); err != nil {
			return nil, fmt.Errorf("app manager settings: ratelimit-config: %w", err)
		}
	}
	g, err := limiter.New(cfg.MaxConcurrent, cfg.Registry, cfg.Logger)
	if err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	g.Trace(cfg.Traces)
	if cfg.Access == nil {
		if cfg.Access, err = access.Open(access.Config{TLS: cfg.TLS, Logger: cfg.Logger}); err != nil {
			return nil, fmt.Errorf("app manager settings: %w", err)
		}
	}
	to := metric.To(cfg.Registry)
	to.Register(cfg.Access, cfg.Build.Collector(), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if err := to.Err(); err != nil {
		return nil, fmt.Errorf("register metrics: %w", err)
	}
	m := &Manager{cfg: cfg, log: cfg.Logger, limiter: g, access: cfg.Access, listening: make(chan struct{})}
	if cfg.Console {
		if m.console, err = console.Handler(); err != nil {
			return nil, err
		}
	}
	return m, nil
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
	if err := m.assemble(); err != nil {
		return errors.Join(err, m.http.Close(), m.grpc.Close())
	}
	var loops sync.WaitGroup
	defer loops.Wait()
	defer stopLife()
	loops.Go(func() { m.run(life) })
	loops.Go(func() { m.access.Run(life) })
	if m.cfg.TLS != nil {
		loops.Go(func() { m.cfg.TLS.Run(life) })
	}
	return m.serve(ctx, life)
}

// assemble makes the parts that need the directory.
func (m *Manager) assemble() (err error) {
	m.front, err = newFront(&m.cfg, m.limiter, nil)
	return err
}

// grpcServer returns a server of gRPC, its health service, and its server of frames.
func (m *Manager) grpcServer() (*grpc.Server, *grpcapi.Checks, *frames.Server) {
	return grpcapi.NewServer(grpcapi.ServerConfig{
		Name:    m.cfg.Name,
		Service: m.service, Limiter: m.limiter, Access: m.access, RateLimits: m.limits, RateLimitQuotas: m.shares, Reachable: m.router.Reachable, TLS: m.cfg.TLS,
		MaxMessage: int(m.cfg.maxBulk()),
	})
}

// httpAPI configures the HTTP API.
func (m *Manager) httpAPI() httpapi.Config {
	var doctor Doctor
	if m.cfg.Doctor != nil {
		doctor = m.cfg.Doctor(Sight{
			Sites: func(ctx context.Context) (*samyav1.ListSitesResponse, error) {
				return m.service.ListSites(ctx, &samyav1.ListSitesRequest{})
			},
			Metrics: m.cfg.Registry, Address: m.HTTPAddr,
		})
	}
	return httpapi.Config{
		Doctor:  doctor,
		Service: m.service, Limiter: m.limiter, Access: m.access, RateLimits: m.limits, Policies: ratelimit.NewPolicies(m.service),
		Reachable: m.router.Reachable, Registry: m.cfg.Registry,
		MaxBody: m.cfg.MaxBody, MaxBulk: m.cfg.maxBulk(), Name: m.cfg.Name, Cluster: m.cfg.Cluster, Console: m.console,
		Traces: m.cfg.Traces,
	}
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
	m.http, m.grpc = netutil.LimitListener(h, m.cfg.MaxConns), frames.Limit(g, m.cfg.MaxConns)
	if m.cfg.TLS != nil {
		m.http = m.cfg.TLS.Listen(m.http, headerTime)
	}
	close(m.listening)
	return nil
}

// serve runs both servers until ctx ends or a server fails, then stops both.
func (m *Manager) serve(ctx, life context.Context) error {
	hs := httpapi.NewServer(life, m.httpAPI(), m.log)
	gs, hc, framed := m.grpcServer()
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
	m.log.InfoContext(ctx, "the app manager is stopping", slog.Int("requests", m.limiter.UnderWay()))
	m.limiter.Close()
	hc.Shutdown()
	m.stop(life, hs, gs, framed)
	servers.Wait()
	return err
}

// watch keeps the watchers of the gRPC health informed until ctx ends or a server fails.
func (m *Manager) watch(ctx context.Context, hc *grpcapi.Checks, failed <-chan error) error {
	tick := time.NewTicker(m.cfg.ProbeInterval / 2)
	defer tick.Stop()
	for {
		hc.Refresh()
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
func (m *Manager) stop(life context.Context, hs *http.Server, gs *grpc.Server, framed *frames.Server) {
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
	stopping.Go(func() { framed.Stop(ctx) })
	stopping.Go(func() {
		done := context.AfterFunc(ctx, gs.Stop)
		defer done()
		gs.GracefulStop()
	})
	stopping.Wait()
}
