package site_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/name"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site"
	"github.com/samya-db/samya/site/core/policy"
	"github.com/samya-db/samya/site/sitetest"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/types/known/durationpb"
)

// TestModesAreThoseOfTheCore: the API takes exactly the protocols of the core.
func TestModesAreThoseOfTheCore(t *testing.T) {
	if !slices.Equal(name.Modes(), policy.ProtocolNames()) {
		t.Errorf("modes %v, protocols %v", name.Modes(), policy.ProtocolNames())
	}
}

func TestModeAnswers(t *testing.T) {
	c := sitetest.Start(t, []string{"us"}, func(cfg *site.Config) { cfg.Protocol = "auto" })
	ctx, admin := t.Context(), c.Admin("us")
	check := func(want *samyav1.SiteMode, decided string) {
		t.Helper()
		m, err := admin.GetMode(ctx, &samyav1.GetModeRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if m.GetMode().GetProtocol() != decided || !m.GetComplete() || len(m.GetSites()) != 1 || m.GetSites()[0].String() != want.String() {
			t.Errorf("mode %v, want %q and %v", m, decided, want)
		}
	}
	check(&samyav1.SiteMode{Site: "us", Protocol: "auto", Configured: "auto", Known: true}, "")
	for _, tc := range []struct {
		protocol string
		expected uint64
		id       string
		want     apierr.Reason // empty: done
		version  uint64
	}{
		{protocol: "", want: apierr.InvalidField},
		{protocol: "paxos", want: apierr.InvalidField},
		{protocol: "star", id: "two words", want: apierr.InvalidField},
		{protocol: "star", expected: 1, want: apierr.VersionMismatch},
		{protocol: "star", id: "1", version: 1},
		{protocol: "star", id: "1", version: 1},
		{protocol: "auto", id: "1", want: apierr.RequestIDReused},
		{protocol: "majority", expected: 1, version: 2},
		{protocol: "star", id: "1", version: 1},
	} {
		resp, err := admin.SetMode(ctx, &samyav1.SetModeRequest{
			Protocol: tc.protocol, ExpectedVersion: tc.expected, RequestId: tc.id,
		})
		if tc.want != "" {
			if !errors.Is(apierr.FromGRPC(err), tc.want) {
				t.Errorf("%+v: %v", tc, err)
			}
			continue
		}
		if err != nil || resp.GetMode().GetProtocol() != tc.protocol || resp.GetMode().GetVersion() != tc.version {
			t.Errorf("%+v: %v, %v", tc, resp, err)
		}
	}
	check(&samyav1.SiteMode{Site: "us", Protocol: "majority", Version: 2, Configured: "auto", Known: true}, "majority")
	_, _, page := fetch(t, "GET", "http://"+c.Site("us").HTTPAddr()+"/metrics")
	for _, want := range []string{
		`samya_site_mode{mode="majority"} 1`, `samya_site_mode{mode="auto"} 0`, "samya_site_mode_version 2",
	} {
		if !strings.Contains(page, want+"\n") {
			t.Errorf("/metrics has no %s", want)
		}
	}
}

// TestSettingsOfTheUnvouched: a site that nobody has vouched for yet says so, and not
// that nothing was decided.
func TestSettingsOfTheUnvouched(t *testing.T) {
	c := sitetest.Start(t, []string{"eu", "us"}, nil)
	c.Stop("eu")
	c.Stop("us")
	c.Boot("us")
	for what, ask := range map[string]func() error{
		"mode": func() error {
			_, err := c.Admin("us").GetMode(t.Context(), &samyav1.GetModeRequest{})
			return err
		},
		"forecast": func() error {
			_, err := c.Admin("us").GetForecast(t.Context(), &samyav1.GetForecastRequest{})
			return err
		},
		"another forecast": func() error {
			_, err := c.Admin("us").SetForecast(t.Context(), &samyav1.SetForecastRequest{Model: "none"})
			return err
		},
	} {
		if err := ask(); err == nil || !errors.Is(apierr.FromGRPC(err), apierr.SiteUnavailable) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if rec := c.Site("us").Readyz(t.Context()); rec.Code != 503 || rec.Body.String() != "not ready: waiting for 1 of 1 members to vouch for this site's data\n" {
		t.Errorf("/readyz: %d %q", rec.Code, rec.Body)
	}
	resp, err := grpc_health_v1.NewHealthClient(c.Conn("us")).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	if err != nil || resp.GetStatus() != grpc_health_v1.HealthCheckResponse_NOT_SERVING {
		t.Errorf("health: %v, %v", resp, err)
	}
	// Other sites vouch by the service of peers.
	for name, want := range map[string]grpc_health_v1.HealthCheckResponse_ServingStatus{
		"samya.v1.TokenService": grpc_health_v1.HealthCheckResponse_NOT_SERVING, "samya.peer.v1.PeerService": grpc_health_v1.HealthCheckResponse_SERVING,
	} {
		resp, err := grpc_health_v1.NewHealthClient(c.Conn("us")).Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: name})
		if err != nil || resp.GetStatus() != want {
			t.Errorf("health of %s: %v, %v", name, resp, err)
		}
	}
}

// TestModeSwitchesUnderLoad goes from majority to star, to auto and back while clients
// acquire and release everywhere. Meanwhile two sites are cut off from three and come
// back. The sites begin instances as the mode says, and in the end no token is lost and
// nothing is set aside.
func TestModeSwitchesUnderLoad(t *testing.T) {
	t.Parallel()
	c := sitetest.Start(t, five, func(cfg *site.Config) { cfg.Strategy = "instance" })
	c.Create("acme/load", 500)
	c.Create("acme/vm", 500)
	load := startLoad(t, c, "acme/load")
	three, two := []string{"as", "au", "eu"}, []string{"sa", "us"}
	var held int64
	// us starts with 100 tokens and needs a neighbour's. Where two sites are cut off they
	// have no majority to ask.
	short := func(want bool) {
		t.Helper()
		tokens := leftAt(c, "us") + 1
		_, err := c.Tokens("us").Acquire(t.Context(), &samyav1.AcquireRequest{
			Entity: "acme/vm", Tokens: tokens, Wait: durationpb.New(2500 * time.Millisecond),
		})
		switch {
		case err == nil:
			held += tokens
		case !errors.Is(apierr.FromGRPC(err), apierr.OutOfTokens):
			t.Fatalf("acquire: %v", err)
		}
		if (err == nil) != want {
			t.Errorf("acquire of %d at us: granted %v, want %v; books %v", tokens, err == nil, want, c.Books("acme/vm"))
		}
	}
	set := func(at, mode string) {
		t.Helper()
		sitetest.Eventually(t, "mode "+mode, func() error {
			_, err := c.Admin(at).SetMode(t.Context(), &samyav1.SetModeRequest{Protocol: mode, RequestId: "to-" + mode + "-at-" + at})
			return err
		})
	}
	known := func(mode string, sites []string) {
		t.Helper()
		for _, s := range sites {
			sitetest.Eventually(t, mode+" at "+s, func() error {
				m, err := c.Admin(s).GetMode(t.Context(), &samyav1.GetModeRequest{})
				if err != nil || m.GetSites()[0].GetProtocol() != mode {
					return fmt.Errorf("mode %v: %w", m, err)
				}
				return nil
			})
		}
		load.goesOn()
	}
	known("majority", five)
	c.Partition(three, two)
	load.goesOn()
	short(false)
	// The two cannot decide, and do not hear of the three's decision.
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, err := c.Admin("us").SetMode(ctx, &samyav1.SetModeRequest{Protocol: "auto"}); err == nil {
		t.Error("two sites of five decide on a mode")
	}
	set("eu", "star")
	known("star", three)
	known("majority", two)
	c.Heal()
	known("star", five)
	c.Partition(three, two)
	short(true)
	// An instance that the two begin under star ends under star, whatever the three
	// decide.
	set("as", "auto")
	known("auto", three)
	c.Heal()
	known("auto", five)
	c.Partition(three, two)
	short(true)
	set("au", "majority")
	c.Heal()
	known("majority", five)
	c.Partition(three, two)
	short(false)
	c.Heal()
	out := load.stop()
	for entity, out := range map[string]int64{"acme/load": out, "acme/vm": held} {
		sitetest.Eventually(t, "all that was set aside is back", func() error {
			u := c.Books(entity)
			if u.GetInTransit() != 0 || u.GetAcquired() != out || u.GetAvailable()+out != 500 {
				return fmt.Errorf("held %d, books %v", out, u)
			}
			return nil
		})
	}
}

// load are clients that acquire and release at every site.
type load struct {
	t       *testing.T
	ended   atomic.Bool
	clients sync.WaitGroup
	// answers counts the answers by site, out the tokens that the clients hold in all.
	answers []atomic.Int64
	out     atomic.Int64
}

func startLoad(t *testing.T, c *sitetest.Cluster, entity string) *load {
	t.Helper()
	l := &load{t: t, answers: make([]atomic.Int64, len(five))}
	for i, at := range five {
		l.clients.Go(func() {
			for n := int64(1); !l.ended.Load(); n++ {
				// Clients ask for more than a site's share, so that tokens have to move.
				tokens := 40 + 13*(n%7)
				_, err := c.Tokens(at).Acquire(t.Context(), &samyav1.AcquireRequest{
					Entity: entity, Tokens: tokens, Wait: durationpb.New(300 * time.Millisecond),
				})
				l.answers[i].Add(1)
				if err != nil && errors.Is(apierr.FromGRPC(err), apierr.OutOfTokens) {
					continue
				}
				if err != nil {
					t.Errorf("acquire at %s: %v", at, err)
					return
				}
				l.out.Add(tokens)
				if n%5 == 0 && l.out.Load() < 300 {
					// Some tokens do not come back.
					tokens--
				}
				if _, err := c.Tokens(at).Release(t.Context(), &samyav1.ReleaseRequest{Entity: entity, Tokens: tokens}); err != nil {
					t.Errorf("release at %s: %v", at, err)
					return
				}
				l.out.Add(-tokens)
			}
		})
	}
	t.Cleanup(func() { l.stop() })
	return l
}

// goesOn waits until every client has had a few more answers.
func (l *load) goesOn() {
	l.t.Helper()
	for i := range l.answers {
		want := l.answers[i].Load() + 3
		sitetest.Eventually(l.t, "answers at "+five[i], func() error {
			if got := l.answers[i].Load(); got < want {
				return fmt.Errorf("%d, want %d", got, want)
			}
			return nil
		})
	}
}

// stop ends the load and returns the tokens that its clients hold.
func (l *load) stop() int64 {
	l.ended.Store(true)
	l.clients.Wait()
	return l.out.Load()
}
