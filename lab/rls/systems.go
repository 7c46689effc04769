package rls

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/devcluster/proc"
	"github.com/samya-db/samya/lab/compare"
	"github.com/samya-db/samya/lab/peers"
)

// The systems.
const (
	Site  = "samya, site"
	Samya = "samya, app manager"
	Echo  = "bare gRPC"
	Peer  = "envoyproxy/ratelimit, redis"
	// Hits is a Gubernator, asked in its own API.
	Hits = "Gubernator, in memory"
)

const (
	domain = "lab"
	// most is a limit that no load reaches.
	most  = 4_000_000_000
	grace = 5 * time.Second
)

// limits is the configuration of both services. A minute of samya's is not durable, as are
// the counters of redis.
var limits = fmt.Sprintf("domain: %s\ndescriptors:\n  - key: hot\n    rate_limit: {unit: minute, requests_per_unit: %d}\n", domain, most)

var ask = peers.Ask(domain, "hot", "key")

// system is a started system.
type system struct {
	name string
	addr string
	pids []int
	stop func(context.Context) error
	// hits says that it is a Gubernator.
	hits bool
}

// open connects to a system, and waits until it decides.
func (s *system) open(ctx context.Context) (compare.Driver, error) {
	if s.hits {
		h, err := peers.DialHits(s.addr, most)
		if err != nil {
			return nil, err
		}
		return hitter{h}, nil
	}
	client, end, err := peers.Dial(s.addr)
	if err != nil {
		return nil, err
	}
	ready, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	if err := peers.Answers(ready, client, ask); err != nil {
		return nil, errors.Join(err, end())
	}
	return &driver{client: client, end: end}, nil
}

// startSite starts a site that decides.
func startSite(ctx context.Context, bin, dir string) (*system, error) {
	c, err := startSamya(ctx, bin, dir, true)
	if err != nil {
		return nil, err
	}
	return &system{name: Site, addr: c.Site(0).GRPC, pids: []int{c.Site(0).PID()}, stop: c.Stop}, nil
}

// startAppManager starts a site, and an app manager that decides.
func startAppManager(ctx context.Context, bin, dir string) (*system, error) {
	c, err := startSamya(ctx, bin, dir, false)
	if err != nil {
		return nil, err
	}
	return &system{
		name: Samya, addr: c.AppManager(0).GRPC, pids: []int{c.Site(0).PID(), c.AppManager(0).PID()}, stop: c.Stop,
	}, nil
}

// startSamya starts a site with the limits, or a site and an app manager with the limits.
func startSamya(ctx context.Context, bin, dir string, inSite bool) (*proc.Cluster, error) {
	rules := filepath.Join(dir, "limits")
	if err := os.Mkdir(rules, 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(rules, "lab.yaml"), []byte(limits), 0o600); err != nil {
		return nil, err
	}
	cfg := proc.Config{
		Bin: bin, Dir: dir, Cluster: "rls", Sites: []string{"one"}, Grace: grace,
		SiteArgs: []string{"--log-level", "error", "--max-requests", "100000000"}, AppManagerArgs: []string{"--log-level", "error"},
	}
	serves := []string{"--ratelimit-config", rules, "--ratelimit-kind", "bucket"}
	if inSite {
		cfg.SiteArgs = append(cfg.SiteArgs, serves...)
	} else {
		cfg.AppManagers, cfg.AppManagerArgs = []string{"one"}, append(cfg.AppManagerArgs, serves...)
	}
	return proc.Start(ctx, cfg)
}

// startPeer starts redis and the service.
func startPeer(ctx context.Context, bin, dir string) (_ *system, err error) {
	programs := proc.NewPrograms()
	s := &system{name: Peer, stop: func(ctx context.Context) error { return programs.Stop(ctx, grace) }}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop(context.WithoutCancel(ctx)))
		}
	}()
	redis, server, err := peers.Redis(ctx, programs, dir)
	if err != nil {
		return nil, err
	}
	addr, service, err := peers.Ratelimit{Bin: bin, Dir: dir, Redis: redis, Rules: limits}.Start(ctx, programs, "ratelimit")
	if err != nil {
		return nil, err
	}
	s.addr, s.pids = addr, []int{server.PID(), service.PID()}
	return s, nil
}

// startGubernator starts a Gubernator.
func startGubernator(ctx context.Context, bin, dir string) (_ *system, err error) {
	programs := proc.NewPrograms()
	s := &system{name: Hits, hits: true, stop: func(ctx context.Context) error { return programs.Stop(ctx, grace) }}
	addr, p, err := peers.Gubernator(ctx, programs, bin, dir)
	if err != nil {
		return nil, errors.Join(err, s.stop(context.WithoutCancel(ctx)))
	}
	s.addr, s.pids = addr, []int{p.PID()}
	return s, nil
}

// hitter asks a Gubernator for each operation. All callers share a connection.
type hitter struct{ *peers.Hits }

var _ compare.Driver = hitter{}

// Acquire implements compare.Driver.
func (h hitter) Acquire(ctx context.Context, _ int, _ []compare.Request, granted []bool) (err error) {
	for i := range granted {
		if granted[i], err = h.Hit(ctx); err != nil {
			return err
		}
	}
	return nil
}

// EchoCommand is the argument with which a program runs [Serve] on the address that follows.
const EchoCommand = "rls-echo"

// startEcho starts this program as the bare server.
func startEcho(ctx context.Context, self, dir string) (*system, error) {
	addrs, err := proc.FreePorts(ctx, 1)
	if err != nil {
		return nil, err
	}
	programs := proc.NewPrograms()
	p, err := programs.Start(proc.Program{Name: "echo", Argv: []string{self, EchoCommand, addrs[0]}, Log: filepath.Join(dir, "echo.log")})
	if err != nil {
		return nil, err
	}
	return &system{
		name: Echo, addr: addrs[0], pids: []int{p.PID()}, stop: func(ctx context.Context) error { return programs.Stop(ctx, grace) },
	}, nil
}

// echo decides that each request may pass.
type echo struct {
	ratelimitv3.UnimplementedRateLimitServiceServer
}

// ShouldRateLimit answers as long an answer as a service does.
func (echo) ShouldRateLimit(_ context.Context, in *ratelimitv3.RateLimitRequest) (*ratelimitv3.RateLimitResponse, error) {
	out := &ratelimitv3.RateLimitResponse{OverallCode: ratelimitv3.RateLimitResponse_OK}
	for range in.GetDescriptors() {
		out.Statuses = append(out.Statuses, &ratelimitv3.RateLimitResponse_DescriptorStatus{
			Code: ratelimitv3.RateLimitResponse_OK, LimitRemaining: most - 1, DurationUntilReset: durationpb.New(30 * time.Second),
			CurrentLimit: &ratelimitv3.RateLimitResponse_RateLimit{Unit: ratelimitv3.RateLimitResponse_RateLimit_MINUTE, RequestsPerUnit: most},
		})
	}
	return out, nil
}

// Serve serves the bare server until ctx ends.
func Serve(ctx context.Context, addr string) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("rls echo: %w", err)
	}
	s := grpc.NewServer()
	ratelimitv3.RegisterRateLimitServiceServer(s, echo{})
	defer context.AfterFunc(ctx, s.Stop)()
	return s.Serve(l)
}

// driver asks for a decision for each operation. All callers share a connection, as do the
// requests of an Envoy.
type driver struct {
	client ratelimitv3.RateLimitServiceClient
	end    func() error
}

var _ compare.Driver = (*driver)(nil)

// Acquire implements compare.Driver.
func (d *driver) Acquire(ctx context.Context, _ int, _ []compare.Request, granted []bool) error {
	for i := range granted {
		a, err := d.client.ShouldRateLimit(ctx, ask)
		if err != nil {
			return err
		}
		granted[i] = a.GetOverallCode() == ratelimitv3.RateLimitResponse_OK
	}
	return nil
}

// Close implements compare.Driver.
func (d *driver) Close() error { return d.end() }
