package grpcapi

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/samya-db/samya/appmgr/fake"
	"github.com/samya-db/samya/appmgr/limiter"
	"github.com/samya-db/samya/appmgr/reads"
	"github.com/samya-db/samya/appmgr/route"
	"github.com/samya-db/samya/internal/health"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// repeatTime is how long the requests of a rig may be repeated beyond their wait.
const repeatTime = time.Minute

// config configures a rig.
type config struct {
	route.Config
	// MaxConcurrent bounds the requests under way.
	MaxConcurrent int
}

// rig is the service of an app manager in region us with fake sites.
type rig struct {
	service   *Service
	router    *route.Router
	limiter   *limiter.Limiter
	cfg       config
	t         *testing.T // the bubble's own
	sites     map[string]*fake.Site
	directory *fake.Roster[route.SiteInfo]
}

// inBubble runs a test in simulated time, with the sites named up and found.
func inBubble(t *testing.T, names []string, change func(*config), test func(*rig)) {
	t.Helper()
	fake.InBubble(t, names, func(t *testing.T, sites map[string]*fake.Site) {
		t.Helper()
		var infos []route.SiteInfo
		for _, n := range names {
			infos = append(infos, route.SiteInfo{Name: n, Region: n, Address: n})
		}
		r := &rig{t: t, sites: sites, directory: fake.NewRoster(infos...)}
		registry, log := prometheus.NewRegistry(), slog.New(slog.DiscardHandler)
		r.cfg = config{MaxConcurrent: 8192, Config: route.Config{
			Region: "us", Cluster: "test", Directory: r.directory, MaxPerSite: 4096, ProbeInterval: time.Second, ProbeTimeout: 2 * time.Second, TryTime: 2 * time.Second, RepeatTime: repeatTime,
			Dial:     func(ctx context.Context, addr string) (net.Conn, error) { return sites[addr].Dial(ctx) },
			Latency:  func(_, to string) time.Duration { return fake.OneWay[to] },
			Registry: registry, Logger: log,
		}}
		if change != nil {
			change(&r.cfg)
		}
		var err error
		if r.router, err = route.New(r.cfg.Config); err != nil {
			t.Fatal(err)
		}
		if r.limiter, err = limiter.New(r.cfg.MaxConcurrent, registry, log); err != nil {
			t.Fatal(err)
		}
		in, err := reads.New("am", r.cfg.Cluster, r.router, r.limiter, registry)
		if err != nil {
			t.Fatal(err)
		}
		r.service = New(in, r.router, r.limiter, r.cfg.MaxConcurrent)
		fake.While(r.router.Run, func() { test(r) })
	})
}

// placed is a try as it came to a site.
type placed struct {
	Site           string
	Attempt, Relay uint32
	Tried          []string
	NotAfter       time.Time
}

// note wraps the sites' answers to acquires, and returns the tries in order of arrival.
func note(sites map[string]*fake.Site) *[]placed {
	tries := &[]placed{}
	for _, f := range sites {
		answer := f.OnAcquire
		f.OnAcquire = func(ctx context.Context, in *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
			*tries = append(*tries, placed{f.Name, in.GetAttempt(), in.GetRelay(), in.GetTried(), in.GetNotAfter().AsTime()})
			if answer == nil {
				return &samyav1.AcquireResponse{Tokens: in.GetTokens(), RequestId: in.GetRequestId(), Site: f.Name}, nil
			}
			return answer(ctx, in)
		}
	}
	return tries
}

// noteBatches wraps the sites' answers to atomic batches, and returns the tries in order
// of arrival.
func noteBatches(sites map[string]*fake.Site) *[]placed {
	tries := &[]placed{}
	for _, f := range sites {
		answer := f.OnBatch
		f.OnBatch = func(ctx context.Context, in *samyav1.BatchRequest) (*samyav1.BatchResponse, error) {
			*tries = append(*tries, placed{f.Name, in.GetAttempt(), in.GetRelay(), in.GetTried(), in.GetNotAfter().AsTime()})
			if answer == nil {
				return f.Granted(in), nil
			}
			return answer(ctx, in)
		}
	}
	return tries
}

// health returns the health of a site as the router sees it.
func (r *rig) health(site string) health.Health {
	_, h, _ := r.router.State(site)
	return h
}
