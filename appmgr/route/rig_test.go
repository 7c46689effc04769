package route

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/samya-db/samya/appmgr/fake"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is a router in region us with fake sites.
type rig struct {
	router    *Router
	t         *testing.T // the bubble's own
	sites     map[string]*fake.Site
	directory *fake.Roster[SiteInfo]
}

// inBubble runs a test in simulated time, with the sites named up and found.
func inBubble(t *testing.T, names []string, change func(*Config), test func(*rig)) {
	t.Helper()
	fake.InBubble(t, names, func(t *testing.T, sites map[string]*fake.Site) {
		t.Helper()
		var infos []SiteInfo
		for _, n := range names {
			infos = append(infos, SiteInfo{Name: n, Region: n, Address: n})
		}
		r := &rig{t: t, sites: sites, directory: fake.NewRoster(infos...)}
		cfg := Config{
			Region: "us", Cluster: "test", Directory: r.directory, MaxPerSite: 4096, ProbeInterval: time.Second, ProbeTimeout: 2 * time.Second, TryTime: 2 * time.Second, RepeatTime: time.Minute,
			Dial:     func(ctx context.Context, addr string) (net.Conn, error) { return sites[addr].Dial(ctx) },
			Latency:  func(_, to string) time.Duration { return fake.OneWay[to] },
			Registry: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler),
		}
		if change != nil {
			change(&cfg)
		}
		if cfg.Local != nil {
			cfg.Local.Calls = sites[cfg.Local.Site]
		}
		var err error
		if r.router, err = New(cfg); err != nil {
			t.Fatal(err)
		}
		fake.While(r.router.Run, func() { test(r) })
	})
}

// acquire makes the request, which gives its id and the wait of sites, and returns the
// site that answered.
func (r *rig) acquire(t *testing.T, in *samyav1.AcquireRequest) (string, error) {
	t.Helper()
	return r.within(t.Context(), in)
}

// within is acquire until a context ends.
func (r *rig) within(ctx context.Context, in *samyav1.AcquireRequest) (string, error) {
	wait := 5 * time.Second
	if in.GetWait() != nil {
		wait = in.GetWait().AsDuration()
	}
	c := Call{
		Site: in.GetSite(), RequestID: cmp.Or(in.GetRequestId(), "id-1"), Entity: in.GetEntity(),
		Moves: r.router.Movement(in, wait), Until: time.Now().Add(wait + 10*time.Second),
	}
	c.Moves.Operation = fake.AcquireOf(in)
	err := r.router.Do(ctx, c)
	return c.Moves.Result.GetAcquire().GetSite(), err
}
