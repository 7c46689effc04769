package reads

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
	"github.com/samya-db/samya/appmgr/route"
	"github.com/samya-db/samya/internal/health"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is the reads of an app manager in region us with fake sites.
type rig struct {
	service   *Reads
	router    *route.Router
	limiter   *limiter.Limiter
	t         *testing.T // the bubble's own
	sites     map[string]*fake.Site
	directory *fake.Roster[route.SiteInfo]
}

// inBubble runs a test in simulated time, with the sites named up and found.
func inBubble(t *testing.T, names []string, change func(*route.Config), test func(*rig)) {
	t.Helper()
	fake.InBubble(t, names, func(t *testing.T, sites map[string]*fake.Site) {
		t.Helper()
		var infos []route.SiteInfo
		for _, n := range names {
			infos = append(infos, route.SiteInfo{Name: n, Region: n, Address: n})
		}
		r := &rig{t: t, sites: sites, directory: fake.NewRoster(infos...)}
		registry, log := prometheus.NewRegistry(), slog.New(slog.DiscardHandler)
		cfg := route.Config{
			Region: "us", Cluster: "test", Directory: r.directory, MaxPerSite: 4096, ProbeInterval: time.Second, ProbeTimeout: 2 * time.Second, TryTime: 2 * time.Second, RepeatTime: time.Minute,
			Dial:     func(ctx context.Context, addr string) (net.Conn, error) { return sites[addr].Dial(ctx) },
			Latency:  func(_, to string) time.Duration { return fake.OneWay[to] },
			Registry: registry, Logger: log,
		}
		if change != nil {
			change(&cfg)
		}
		var err error
		if r.router, err = route.New(cfg); err != nil {
			t.Fatal(err)
		}
		if r.limiter, err = limiter.New(8192, registry, log); err != nil {
			t.Fatal(err)
		}
		if r.service, err = New("am", cfg.Cluster, r.router, r.limiter, registry); err != nil {
			t.Fatal(err)
		}
		fake.While(r.router.Run, func() { test(r) })
	})
}

// health returns the health of a site as the router sees it.
func (r *rig) health(site string) health.Health {
	_, h, _ := r.router.State(site)
	return h
}
