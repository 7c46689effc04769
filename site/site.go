// Package site is a site of a samya cluster: the shell that gives the core in package
// core a disk, a clock, peers and clients. It decides nothing about tokens; the core
// does.
package site

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime/debug"
	runtimemetrics "runtime/metrics"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/samya-db/samya/internal/access"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/frames"
	"github.com/samya-db/samya/internal/grpccodec"
	samyahealth "github.com/samya-db/samya/internal/health"
	"github.com/samya-db/samya/internal/membership"
	"github.com/samya-db/samya/internal/methods"
	"github.com/samya-db/samya/internal/node"
	"github.com/samya-db/samya/internal/versions"
	"github.com/samya-db/samya/kvpart/control"
	peerv1 "github.com/samya-db/samya/proto/samya/peer/v1"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/engine"
	"github.com/samya-db/samya/site/history"
	"github.com/samya-db/samya/site/partitions"
	"github.com/samya-db/samya/site/peer"
	"github.com/samya-db/samya/site/store"
	"golang.org/x/net/netutil"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/reflection"
)

// Site is a single site. Make it with New, run it with Run.
type Site struct {
	cfg   Config
	log   *slog.Logger
	store *store.Store
	// founded is the member set of the data directory, sites the members that the catalogue
	// decided last.
	founded store.Members
	sites   atomic.Pointer[memberSet]
	engine  *engine.Engine
	links   *peer.Links
	metrics *metrics
	access  *access.Guard
	// inspect returns the partitions' figures; nil without partitions.
	inspect func() partitions.Stats
	// began is when the site was made.
	began time.Time
	// run is the random id of this start.
	run message.Run
	// speaks is what the site tells of its versions.
	speaks atomic.Pointer[versions.Speaker]
	// closing is closed when the site stops, so that streams end.
	closing chan struct{}

	grpcListener, httpListener net.Listener
	grpcServer                 *grpc.Server
	// framed serves streams of operations over frames, on connections of grpcServer.
	framed     *frames.Server
	httpServer *http.Server
	health     *health.Server
	// services are the names of the services of grpcServer.
	services   []string
	membership *membership.Membership
	// front serves beside the site's own services, and inside is its way to the site; nil:
	// none.
	front  Front
	inside *Inside
	// observer notes the activity of entities, history the changes asked of this site. sums
	// are those over all entities.
	observer *observer
	history  *history.History
	sums     sums
}

// Run makes a site and runs it until ctx ends or it fails.
func Run(ctx context.Context, cfg Config) error {
	s, err := New(cfg)
	if err != nil {
		return err
	}
	return s.Run(ctx)
}

// New opens a site's data and its listeners, so that it reports their errors before
// anything starts. The caller must call Run or Close.
func New(cfg Config) (*Site, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configuring the site: %w", err)
	}
	s := &Site{cfg: cfg, log: cfg.Logger, run: message.Run(rand.Uint64() | 1), closing: make(chan struct{}), began: time.Now()}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.access = s.cfg.Access
	if s.access == nil {
		var err error
		if s.access, err = access.Open(access.Config{TLS: s.cfg.TLS, Relays: true}); err != nil {
			return nil, fmt.Errorf("configuring the site: %w", err)
		}
	}
	if err := s.open(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Site) open() error {
	var err error
	if s.store = s.cfg.Data; s.store == nil {
		if s.store, err = store.Open(s.cfg.StoreOptions()); err != nil {
			return fmt.Errorf("opening the data directory %s: %w", s.cfg.DataDir, err)
		}
	}
	s.founded = s.store.Members()
	allocated := allocatedBytes()
	restored, err := s.store.Load()
	if err != nil {
		return fmt.Errorf("reading the data directory %s: %w", s.cfg.DataDir, err)
	}
	s.sites.Store(firstMembers(s.founded, &restored))
	collect, takeover := s.cfg.timings()
	c, err := core.New(core.Config{
		Self: core.SiteID(s.cfg.Name), Members: s.founded.Sites, Joining: s.joining(),
		Protocol: s.cfg.Protocol, Strategy: s.cfg.Strategy, Policy: s.cfg.Policy, Offer: s.cfg.Offer, Trigger: s.cfg.Trigger,
		Want: s.cfg.Want, Wait: s.cfg.WaitFor,
		Forecast: s.cfg.Forecast, Admission: s.cfg.Admission,
		Bin: core.Tick(s.cfg.ForecastBin.Milliseconds()), Horizon: s.cfg.ForecastHorizon,
		Retention: s.cfg.RequestRetention.Milliseconds(), MaxRequests: s.cfg.MaxRequests, TenantSegments: s.cfg.TenantSegments,
		Window: core.Tick(collect.Milliseconds()), Patience: core.Tick(takeover.Milliseconds()),
		Skew: s.cfg.ClockSkew.Milliseconds(),
		Rand: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())),
		Run:  s.run, Unvouched: s.cfg.Unvouched,
		Versions: s.cfg.Versions, Traces: s.cfg.Traces != nil,
	}, restored)
	if err != nil {
		return err
	}
	s.speaks.Store(new(c.Status().Versions))
	s.links = peer.New(peer.Config{
		Cluster: s.cfg.Cluster, Self: core.SiteID(s.cfg.Name),
		Members: s.founded.Sites, MembersVersion: s.founded.Version, Term: s.cfg.Term,
		Address: s.address, TLS: s.cfg.TLS, Latency: s.latency(), Fault: s.fault(),
		Receive: func(from core.SiteID, messages []message.Envelope) {
			// A batch that finds the engine busy is lost, as the protocol allows.
			if err := s.engine.Submit(input.Deliver{From: from, Messages: messages}); err != nil {
				s.log.Debug("messages are dropped", "peer", string(from), "error", err)
			}
		},
		Versions: func() versions.Speaker { return *s.speaks.Load() }, Speaks: s.hears,
		Connected: s.reachable, CopyBase: itself{Site: s}.copyBase, Logger: s.log,
	})
	if missing := c.Status().Missing; missing > 0 {
		s.log.Info("the site waits for other members to vouch for its data", "missing", missing)
	}
	if s.engine, err = engine.New(s.engineConfig(c)); err != nil {
		return err
	}
	s.inspect, s.observer = s.engine.Inspect, &observer{Site: s}
	s.history = s.cfg.openHistory(s.log)
	s.metrics = newMetrics(s)
	var listen net.ListenConfig
	if s.grpcListener, err = listen.Listen(context.Background(), "tcp", s.cfg.GRPC); err != nil {
		return fmt.Errorf("listening for gRPC: %w", err)
	}
	if s.httpListener, err = listen.Listen(context.Background(), "tcp", s.cfg.HTTP); err != nil {
		return fmt.Errorf("listening for HTTP: %w", err)
	}
	conns := cmp.Or(s.cfg.MaxConns, node.DefaultMaxConns)
	s.grpcListener, s.httpListener = frames.Limit(s.grpcListener, conns), netutil.LimitListener(s.httpListener, conns)
	if s.cfg.TLS != nil {
		s.httpListener = s.cfg.TLS.Listen(s.httpListener, headerPatience)
	}
	s.serveOn()
	if allocatedBytes()-allocated > muchLoaded {
		debug.FreeOSMemory()
	}
	if s.inside, s.front, err = newFront(s); err != nil {
		return err
	}
	s.services = slices.Collect(maps.Keys(s.grpcServer.GetServiceInfo()))
	// Until the core says that the data is vouched for.
	tellHealth(s, healthv1.HealthCheckResponse_NOT_SERVING)
	return nil
}

// tellHealth tells the health of the site as a whole, whose name is empty, and of each service that
// needs its data. Other services serve as long as the site listens: other sites vouch by them.
func tellHealth(s *Site, status healthv1.HealthCheckResponse_ServingStatus) {
	s.health.SetServingStatus("", status)
	for _, name := range s.services {
		of := status
		if name == peerv1.PeerService_ServiceDesc.ServiceName || name == samyav1.SiteService_ServiceDesc.ServiceName || strings.HasPrefix(name, "grpc.") {
			of = healthv1.HealthCheckResponse_SERVING
		}
		s.health.SetServingStatus(name, of)
	}
}

func (s *Site) engineConfig(c *core.Core) engine.Config {
	cfg := engine.Config{
		Core: c, Store: s.store, Sender: s.links, Observer: s, Partitions: s.cfg.Partitions,
		Failed: func(err error) { s.log.Warn("entities were not assigned anew", "error", err) },
	}
	if s.cfg.Traces != nil {
		cfg.Spanned = coreSpans{s.cfg.Traces}.spanned
	}
	if !s.cfg.Fixed {
		cfg.Policy = new(control.Policy)
	}
	if s.cfg.Nodes != nil {
		cfg.Stalled = s.cfg.Nodes.Stalled
	}
	return cfg
}

// muchLoaded is how many bytes, allocated by a load, are worth a garbage collection. The
// entities read take as much memory as the core made of them, blocks of requests leave
// garbage, and the next collection may be a long time away.
const muchLoaded = 16 << 20

// allocatedBytes is the number of bytes of heap that the process ever allocated.
func allocatedBytes() uint64 {
	sample := []runtimemetrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	runtimemetrics.Read(sample)
	return sample[0].Value.Uint64()
}

func (s *Site) latency() func(core.SiteID) time.Duration {
	if s.cfg.Latency == nil {
		return nil
	}
	return func(to core.SiteID) time.Duration { return s.cfg.Latency(s.cfg.Region, s.region(to)) }
}

func (s *Site) fault() func(core.SiteID) bool {
	if s.cfg.Fault == nil {
		return nil
	}
	return func(to core.SiteID) bool { return s.cfg.Fault(string(to)) }
}

// Bounds of the listeners.
const (
	maxRequestBytes  = 4 << 20
	maxStreams       = 8192
	streamBytes      = 1 << 20 // unread, of a stream
	connBytes        = 4 << 20 // unread, of a connection
	streamWorkers    = 256
	maxHeaderBytes   = 16 << 10
	headerPatience   = 5 * time.Second
	shutdownPatience = 3 * time.Second
)

func (s *Site) serveOn() {
	creds := insecure.NewCredentials()
	if s.cfg.TLS != nil {
		creds = s.cfg.TLS.ServerCredentials()
	}
	s.framed = &frames.Server{
		Name: s.cfg.answersAs(), Service: tokens{Site: s}, MaxMessage: maxRequestBytes, Passing: true,
		Interceptors: []grpc.StreamServerInterceptor{s.metrics.countStream, s.access.Stream},
	}
	s.grpcServer = grpc.NewServer(append(s.cfg.Traces.Server(),
		grpc.Creds(s.framed.Credentials(creds)), grpc.ConnectionTimeout(headerPatience),
		// Workers keep their grown stacks from call to call.
		grpc.NumStreamWorkers(streamWorkers),
		grpc.ForceServerCodecV2(grpccodec.Codec()),
		grpc.MaxRecvMsgSize(maxRequestBytes), grpc.MaxConcurrentStreams(maxStreams),
		grpc.MaxHeaderListSize(maxHeaderBytes),
		// Fixed, or gRPC goes on measuring each connection with pings.
		grpc.StaticStreamWindowSize(streamBytes), grpc.StaticConnWindowSize(connBytes),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 30 * time.Second, Timeout: 10 * time.Second}),
		grpc.ChainUnaryInterceptor(s.metrics.count, s.access.Unary, tellClock),
		grpc.ChainStreamInterceptor(s.framed.Interceptors...),
	)...)
	s.health = health.NewServer()
	register(s.grpcServer, s)
	samyav1.RegisterSiteServiceServer(s.grpcServer, itself{Site: s})
	peerv1.RegisterPeerServiceServer(s.grpcServer, s.links)
	reflection.Register(s.grpcServer)

	mux := http.NewServeMux()
	mux.Handle("GET /livez", s.guarded(methods.Alive, http.HandlerFunc(s.livez)))
	mux.Handle("GET /readyz", s.guarded(methods.Alive, http.HandlerFunc(s.readyz)))
	mux.Handle("GET /metrics", s.guarded(methods.Metrics, promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4, EnableOpenMetrics: true})))
	s.httpServer = &http.Server{
		Handler: mux, ReadHeaderTimeout: headerPatience, ReadTimeout: 2 * headerPatience,
		MaxHeaderBytes: maxHeaderBytes, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
}

// guarded lets authorized callers in.
func (s *Site) guarded(method string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, err := s.access.HTTP(r, method)
		if err != nil {
			apierr.WriteProblem(w, r, err)
			return
		}
		h.ServeHTTP(w, r.WithContext(ctx))
	})
}

// GRPCAddr returns the address of the gRPC listener.
func (s *Site) GRPCAddr() string { return s.grpcListener.Addr().String() }

// HTTPAddr returns the address of the HTTP listener.
func (s *Site) HTTPAddr() string { return s.httpListener.Addr().String() }

// livez says that the process runs.
func (s *Site) livez(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok\n") }

// tellClock adds the time of this machine's clock to the answer to a health check.
func tellClock(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if info.FullMethod == healthv1.Health_Check_FullMethodName {
		// Without the header callers take the clock for right.
		_ = grpc.SetHeader(ctx, metadata.Pairs(samyahealth.ClockHeader, samyahealth.ClockTold(time.Now())))
	}
	return handler(ctx, req)
}

// waiting describes the wait of a site for the word of missing members.
func (s *Site) waiting(missing int) string {
	if !s.seated() {
		return fmt.Sprintf("joining the cluster: %d sites have not told that they know this site as a member", missing)
	}
	if s.joining() {
		return fmt.Sprintf("waiting for %d of %d other members to hear of this site, or to vouch for its data", missing, len(s.members())-1)
	}
	return fmt.Sprintf("waiting for %d of %d members to vouch for this site's data", missing, len(s.members())-1)
}

// readyz reports whether the site answers clients: the core handles inputs, and members
// have vouched for the site's data.
func (s *Site) readyz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), time.Second)
	defer cancel()
	st, err := s.engine.Status(ctx)
	if err != nil {
		plain(w, http.StatusServiceUnavailable, "not ready: "+err.Error()+"\n")
		return
	}
	if st.Missing > 0 {
		plain(w, http.StatusServiceUnavailable, "not ready: "+s.waiting(st.Missing)+"\n")
		return
	}
	plain(w, http.StatusOK, "ok\n")
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	// A caller that has gone needs no answer.
	_, _ = w.Write([]byte(text))
}

// Run serves until ctx ends, and then returns nil. If the site cannot go on, Run
// returns the reason, above all a commit that failed. Run closes the site.
func (s *Site) Run(ctx context.Context) error {
	group, running := errgroup.WithContext(ctx)
	var err error
	gossip := s.cfg.Membership(membership.RoleSite, s.GRPCAddr(), s.HTTPAddr())
	gossip.Self.Versions = s.speaks.Load().Range
	s.membership, err = membership.Start(context.WithoutCancel(ctx), gossip)
	if err != nil {
		return errors.Join(fmt.Errorf("starting gossip: %w", err), s.Close())
	}
	// The engine outlives the listeners, so that it answers all calls they let in.
	engineCtx, stopEngine := context.WithCancel(context.WithoutCancel(ctx))
	defer stopEngine()
	linksCtx, stopLinks := context.WithCancel(engineCtx)
	defer stopLinks()
	group.Go(func() error {
		err := s.engine.Run(engineCtx)
		_, stale := errors.AsType[*core.StaleError](err)
		_, used := errors.AsType[*core.UsedNameError](err)
		_, out := errors.AsType[*core.OutError](err)
		if stale || used || out {
			return fmt.Errorf("the data in %s is refused: %w", s.cfg.DataDir, err)
		}
		return err
	})
	if s.cfg.Nodes != nil {
		group.Go(func() error { s.cfg.Nodes.Watch(engineCtx, s.engine.GiveUp); return nil })
	}
	group.Go(func() error { s.links.Run(linksCtx); return nil })
	group.Go(func() error { s.watch(linksCtx, gossip.Self); return nil })
	group.Go(func() error { s.access.Run(linksCtx); return nil })
	group.Go(func() error { s.observer.run(linksCtx); return nil })
	if s.cfg.TLS != nil {
		group.Go(func() error { s.cfg.TLS.Run(linksCtx); return nil })
	}
	if s.front != nil {
		group.Go(s.inside.serve)
		group.Go(func() error {
			s.front.Run(engineCtx, s.membership)
			s.inside.server.Stop()
			return nil
		})
	}
	group.Go(func() error { return ignoreClosed(s.grpcServer.Serve(s.grpcListener)) })
	group.Go(func() error { return ignoreClosed(s.httpServer.Serve(s.httpListener)) })
	group.Go(func() error {
		<-running.Done()
		s.log.Info("the site is stopping")
		s.health.Shutdown()
		if err := s.membership.Leave(time.Second); err != nil {
			s.log.Debug("leaving gossip", "error", err)
		}
		stopLinks()
		if err := s.engine.Submit(input.Stop{}); err != nil {
			s.log.Debug("the core was not told of the stop", "error", err)
		}
		close(s.closing)
		if s.front != nil {
			s.front.Close()
		}
		s.stopServing()
		stopEngine()
		return nil
	})
	s.log.Info("the site is up", "cluster", s.cfg.Cluster, "site", s.cfg.Name, "region", s.cfg.Region,
		"members", s.members(), "versions", s.speaks.Load().String(), "cluster_version", uint32(s.speaks.Load().Cluster), "grpc", s.GRPCAddr(), "http", s.HTTPAddr(), "gossip", s.membership.Addr())
	err = group.Wait()
	return errors.Join(err, s.Close())
}

func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) || errors.Is(err, grpc.ErrServerStopped) {
		return nil
	}
	return err
}

// stopServing lets the calls under way end, for a while.
func (s *Site) stopServing() {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownPatience)
	defer cancel()
	stopped := make(chan struct{})
	go func() {
		s.grpcServer.GracefulStop()
		s.framed.Stop(ctx)
		close(stopped)
	}()
	select {
	case <-stopped:
	case <-ctx.Done():
		s.grpcServer.Stop()
		<-stopped
	}
	if err := s.httpServer.Shutdown(ctx); err != nil {
		s.log.Debug("stopping HTTP", "error", err)
	}
}

// Close lets go of everything New opened. Run calls it by itself.
func (s *Site) Close() error {
	var errs []error
	if s.membership != nil {
		errs = append(errs, s.membership.Close())
	}
	for _, l := range []net.Listener{s.grpcListener, s.httpListener} {
		if l != nil {
			if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
				errs = append(errs, err)
			}
		}
	}
	if s.store != nil {
		errs = append(errs, s.store.Close())
	}
	if s.history != nil {
		errs = append(errs, s.history.Close())
	}
	return errors.Join(errs...)
}
