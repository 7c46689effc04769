package appmgr

import (
	"context"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/samya-db/samya/appmgr/fake"
	"github.com/samya-db/samya/appmgr/route"
	"github.com/samya-db/samya/internal/node"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// rig is an app manager in region us with fake sites.
type rig struct {
	*Manager
	t         *testing.T // the bubble's own
	sites     map[string]*fake.Site
	directory *fake.Roster[route.SiteInfo]
}

// inBubble runs a test in simulated time, with the sites named up and found.
func inBubble(t *testing.T, names []string, change func(*Config), test func(*rig)) {
	t.Helper()
	fake.InBubble(t, names, func(t *testing.T, sites map[string]*fake.Site) {
		t.Helper()
		var infos []route.SiteInfo
		for _, n := range names {
			infos = append(infos, route.SiteInfo{Name: n, Region: n, Address: n})
		}
		r := &rig{t: t, sites: sites, directory: fake.NewRoster(infos...)}
		cfg := Config{
			Config: node.Config{
				Name: "am", Region: "us", Cluster: "test", HTTP: "127.0.0.1:0", GRPC: "127.0.0.1:0",
				Latency: func(_, to string) time.Duration { return fake.OneWay[to] },
			},
			Directory: r.directory,
			Dial:      func(ctx context.Context, addr string) (net.Conn, error) { return sites[addr].Dial(ctx) },
		}
		if change != nil {
			change(&cfg)
		}
		m, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		r.Manager = m
		if err := m.assemble(); err != nil {
			t.Fatal(err)
		}
		fake.While(m.router.Run, func() { test(r) })
	})
}
