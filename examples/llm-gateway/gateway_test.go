package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"
	"go.uber.org/goleak"

	"github.com/samya-db/samya/client"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site"
	"github.com/samya-db/samya/site/sitetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var regions = []string{"us", "eu", "as", "au", "sa"}

// start starts a gateway that asks the given addresses.
func start(t *testing.T, tune func(*gateway), addresses ...string) (*gateway, string) {
	t.Helper()
	backend := httptest.NewServer(standIn{})
	t.Cleanup(backend.Close)
	samya, err := connect(addresses, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := samya.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	g := &gateway{
		backend: backend.URL, bytesPerToken: 2, maxTokens: 100, log: slog.New(slog.DiscardHandler),
		budgets: budgets{samya: samya, wait: time.Second, ttl: 10 * time.Second},
	}
	if tune != nil {
		tune(g)
	}
	server := httptest.NewServer(g)
	t.Cleanup(func() {
		server.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return g, server.URL
}

// create creates an entity, and waits until all sites have it.
func create(t *testing.T, c *sitetest.Cluster, sites []string, name string, limit int64, rate client.Rate) {
	t.Helper()
	sitetest.Eventually(t, "creating "+name, func() error {
		_, err := c.Entities(sites[0]).CreateEntity(t.Context(), &samyav1.CreateEntityRequest{
			Name: name, Limit: limit, Per: rate.Per, Kind: rate.Kind, TimeZone: rate.TimeZone, RequestId: "create-" + name,
		})
		return err
	})
	for _, s := range sites {
		sitetest.Eventually(t, name+" at "+s, func() error {
			_, err := c.Entities(s).GetEntity(t.Context(), &samyav1.GetEntityRequest{Name: name})
			return err
		})
	}
}

// TestSharedBudgets: five regions, 60 ms apart, share the budgets of two teams, while most of
// the load moves from region to region. The team "bulk" uses up its day, the team "chat" its
// minutes.
func TestSharedBudgets(t *testing.T) {
	if testing.Short() {
		t.Skip("five sites under load")
	}
	cluster := sitetest.Start(t, regions, func(c *site.Config) {
		c.Latency = func(from, to string) time.Duration {
			if from == to {
				return 0
			}
			return 30 * time.Millisecond
		}
	})
	load := trace(t, "bulk", "chat")
	var total int64
	for _, c := range load {
		total += c.prompt + c.completion
	}
	var gateways []*gateway
	var urls []string
	for _, r := range regions {
		g, url := start(t, nil, cluster.Site(r).GRPCAddr())
		gateways, urls = append(gateways, g), append(urls, url)
	}
	// Each team wants half of the load.
	limits := map[string]map[string]int64{"bulk": {"day": total / 4, "minute": total}, "chat": {"day": total, "minute": total / 8}}
	for team, of := range limits {
		create(t, cluster, regions, entity(team, "day"), of["day"], client.Rate{Per: "1d", TimeZone: noonZone()})
		create(t, cluster, regions, entity(team, "minute"), of["minute"], client.Rate{Per: "1m", Kind: "bucket"})
	}

	var mu sync.Mutex
	refused := make(map[string]int)
	began := time.Now()
	play(t, load, urls, func(c call, a *answer) {
		switch a.status {
		case http.StatusOK:
			if used, told := usageOf(a.body); !told || used != c.prompt+c.completion {
				t.Errorf("%+v used %d: %s", c, used, a.body)
			}
		case http.StatusTooManyRequests:
			checkRefusal(t, a, map[string]string{"bulk": "day", "chat": "minute"}[c.team], limits[c.team])
			mu.Lock()
			defer mu.Unlock()
			refused[c.team]++
		default:
			t.Errorf("%d: %s", a.status, a.body)
		}
	})
	took := time.Since(began)

	for team, of := range limits {
		var sum usage
		for _, g := range gateways {
			g.mu.Lock()
			if u := g.teams[team]; u != nil {
				sum.Answered, sum.Settled, sum.Uncharged = sum.Answered+u.Answered, sum.Settled+u.Settled, sum.Uncharged+u.Uncharged
			}
			g.mu.Unlock()
		}
		t.Logf("%s: %d answered, %d refused, %d tokens settled; %d a day, %d a minute; %v", team, sum.Answered, refused[team], sum.Settled, of["day"], of["minute"], took)
		if sum.Settled > of["day"] || sum.Uncharged != 0 || refused[team] == 0 {
			t.Errorf("%s: settled %d of %d a day, %d uncharged, %d refused", team, sum.Settled, of["day"], sum.Uncharged, refused[team])
		}
		if most := of["minute"] + int64(float64(of["minute"])*took.Minutes()) + 1; sum.Settled > most {
			t.Errorf("%s: settled %d, at most %d within %v", team, sum.Settled, most, took)
		}
		// The books agree with the gateways.
		sitetest.Eventually(t, "the books of "+team, func() error {
			if books := cluster.Books(entity(team, "day")); books.GetAcquired() != sum.Settled || books.GetAvailable() != of["day"]-sum.Settled {
				return fmt.Errorf("%d are out and %d left of %d, the gateways settled %d", books.GetAcquired(), books.GetAvailable(), of["day"], sum.Settled)
			}
			return nil
		})
		if team == "bulk" && sum.Settled < of["day"]*9/10 {
			t.Errorf("only %d of %d were used", sum.Settled, of["day"])
		}
	}
}

// checkRefusal checks the fields and the document of a refusal.
func checkRefusal(t *testing.T, a *answer, policy string, limits map[string]int64) {
	t.Helper()
	var p problem
	if err := json.Unmarshal(a.body, &p); err != nil || a.header.Get("Content-Type") != problemType || p.Status != a.status ||
		p.Type != quotaExceeded || len(p.Violated) != 1 || p.Violated[0] != policy {
		t.Errorf("%v: %s", err, a.body)
	}
	after := a.header.Get("Retry-After")
	if after == "" || strings.Trim(after, "0123456789") != "" || after == "0" {
		t.Errorf("Retry-After: %q", after)
	}
	for field, keys := range map[string][]string{"RateLimit-Policy": {"q", "w"}, "RateLimit": {"r", "t"}} {
		list, err := httpsfv.UnmarshalList(a.header.Values(field))
		if err != nil || len(list) != 1 || list[0].(httpsfv.Item).Value != policy {
			t.Errorf("%s: %q, %v", field, a.header.Values(field), err)
			continue
		}
		for i, key := range keys {
			v, ok := list[0].(httpsfv.Item).Params.Get(key)
			n, whole := v.(int64)
			want := map[string]int64{"qday": limits["day"], "qminute": limits["minute"], "wday": 86400, "wminute": 60}
			if known, is := want[key+policy]; !ok || !whole || n < 0 || is && n != known || i == 1 && key == "t" && n > 86400 {
				t.Errorf("%s: %q", field, a.header.Values(field))
			}
		}
	}
}

// TestOneSite shows each answer, with a single site.
func TestOneSite(t *testing.T) {
	cluster := sitetest.Start(t, []string{"us"}, nil)
	addr := cluster.Site("us").GRPCAddr()
	plain, url := start(t, nil, addr)
	samya := plain.budgets.samya
	team := func(name string, day, minute int64) {
		t.Helper()
		create(t, cluster, []string{"us"}, entity(name, "day"), day, client.Rate{Per: "1d", TimeZone: noonZone()})
		// Nothing comes back during the test.
		create(t, cluster, []string{"us"}, entity(name, "minute"), minute, client.Rate{Per: "300d", Kind: "bucket"})
	}
	used := func(name string, day, minute int64) {
		t.Helper()
		if d, m := cluster.Books(entity(name, "day")).GetAcquired(), cluster.Books(entity(name, "minute")).GetAcquired(); d != day || m != minute {
			t.Errorf("%s used %d and %d, want %d and %d", name, d, m, day, minute)
		}
	}
	ask := func(url, name string, prompt int64, fields string, want int) *answer {
		t.Helper()
		a, err := send(t.Context(), url, call{team: name, prompt: prompt}, fields)
		if err != nil {
			t.Fatal(err)
		}
		if a.status != want {
			t.Fatalf("%d, want %d: %s", a.status, want, a.body)
		}
		if want >= 400 && want != 500 && a.header.Get("Content-Type") != problemType {
			t.Errorf("%v", a.header)
		}
		return a
	}

	t.Run("settles the tokens used", func(*testing.T) {
		team("a", 1000, 1000)
		ask(url, "a", 20, `, "max_tokens": 60`, 200) // half of max_tokens
		used("a", 50, 50)
		ask(url, "a", 20, "", 200) // half of --max-tokens
		used("a", 120, 120)
	})
	t.Run("all or none", func(t *testing.T) {
		team("b", 100, 1000)
		ask(url, "b", 10, `, "max_tokens": 100, "metadata": {"completion_tokens": "5"}`, 400) // more than a day has
		used("b", 0, 0)
		ask(url, "b", 10, `, "max_tokens": 60, "metadata": {"completion_tokens": "60"}`, 200)
		used("b", 70, 70)
		a := ask(url, "b", 10, `, "max_tokens": 60`, 429)
		if !strings.Contains(string(a.body), `"day"`) || a.header.Get("Retry-After") == "" || !strings.Contains(a.header.Get("RateLimit"), `"day";r=30;t=`) {
			t.Errorf("%v, %s", a.header, a.body)
		}
		used("b", 70, 70)
	})
	t.Run("an estimate that is too low", func(t *testing.T) {
		team("c", 1000, 110)
		_, low := start(t, func(g *gateway) { g.bytesPerToken = 50 }, addr)
		ask(low, "c", 100, `, "max_tokens": 20`, 200)
		used("c", 110, 110)
		_, low = start(t, func(g *gateway) { g.bytesPerToken, g.budgets.wait = 50, 0 }, addr)
		ask(low, "c", 100, `, "max_tokens": 20`, 429)
		used("c", 110, 110)
	})
	t.Run("a failing endpoint", func(t *testing.T) {
		team("d", 1000, 1000)
		ask(url, "d", 10, `, "metadata": {"fail": "now"}`, 500)
		used("d", 0, 0)
		charging, at := start(t, func(g *gateway) { g.chargeFailures = true }, addr)
		ask(at, "d", 10, `, "metadata": {"fail": "now"}`, 500)
		n := charging.teams["d"].Settled
		used("d", n, n)
		if n < 10 || n > 50 {
			t.Errorf("%d tokens of a prompt of 10", n)
		}
		charging.backend = "http://" + sitetest.FreePort(t)
		ask(at, "d", 10, "", 502)
		used("d", 2*n, 2*n)
	})
	t.Run("a team without budget", func(*testing.T) { ask(url, "nobody", 1, "", 403) })
	t.Run("bad requests", func(*testing.T) {
		ask(url, "a/day", 1, "", 401)
		for _, fields := range []string{`, "stream": true`, `, "max_tokens": 0`, `, "n": 1000`, `, "n": "x"`, `, {`} {
			ask(url, "a", 1, fields, 400)
		}
	})
	t.Run("API keys", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "keys")
		if err := os.WriteFile(file, []byte(`{"secret": "a"}`), 0o600); err != nil {
			t.Fatal(err)
		}
		keys, err := readKeys(file)
		if err != nil {
			t.Fatal(err)
		}
		g := &gateway{keys: keys}
		for key, want := range map[string]string{"Bearer secret": "a", "Bearer other": "", "": ""} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
			r.Header.Set("Authorization", key)
			r.Header.Set("X-Team", "b")
			if team, ok := g.team(r); team != want || ok != (want != "") {
				t.Errorf("%q is of %q, %v", key, team, ok)
			}
		}
	})
	t.Run("samya is unreachable", func(t *testing.T) {
		nowhere := sitetest.FreePort(t)
		_, closed := start(t, nil, nowhere)
		if a := ask(closed, "a", 10, "", 503); a.header.Get("Retry-After") == "" {
			t.Errorf("%v", a.header)
		}
		open, at := start(t, func(g *gateway) { g.failOpen = true }, nowhere)
		ask(at, "a", 10, `, "max_tokens": 20`, 200)
		if u := open.teams["a"]; u.Uncharged != 20 || u.Settled != 0 {
			t.Errorf("%+v", u)
		}
	})
	t.Run("creates budgets once", func(t *testing.T) {
		for range 2 {
			if err := plain.budgets.create(t.Context(), "new", 2000, 500); err != nil {
				t.Fatal(err)
			}
		}
		ask(url, "new", 10, "", 200)
		if _, err := samya.Entity(t.Context(), entity("other", "day")); !errors.Is(err, client.ErrEntityNotFound) {
			t.Error(err)
		}
	})
}

func TestPeriod(t *testing.T) {
	for per, want := range map[string]time.Duration{"10s": 10 * time.Second, "1m": time.Minute, "2d": 48 * time.Hour, "1month": 720 * time.Hour, "x": 0} {
		if got := period(per); got != want {
			t.Errorf("%s is %v", per, got)
		}
	}
}

// TestTeamsAreBounded: callers who name any team do not fill the memory.
func TestTeamsAreBounded(t *testing.T) {
	var g gateway
	for i := range maxTeams + 100 {
		g.count(fmt.Sprint(i), func(u *usage) { u.Refused++ })
	}
	if len(g.teams) != maxTeams || g.teams["0"].Refused != 1 {
		t.Errorf("%d teams", len(g.teams))
	}
}
