package load_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samya-db/samya/devcluster/ledger"
	"github.com/samya-db/samya/devcluster/load"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/httpapi"
	"github.com/samya-db/samya/internal/httpapi/httpapitest"
)

const entity = "acme/vm"

// level is a target curve that stays where it is.
func level(tokens float64) func(time.Duration) float64 {
	return func(time.Duration) float64 { return tokens }
}

// config makes load from two regions on the manager, 200 requests a second.
func config(m *httpapitest.Manager, tokens float64) load.Config {
	return load.Config{
		Entities: load.One(entity), Rate: 200, Seed: 1, RequestPrefix: "test-", Transport: m, InFlight: 32,
		Regions: []load.Region{
			{Name: "us", Addr: "http://us:8080", Target: level(tokens)},
			{Name: "eu", Addr: "http://eu:8080", Target: level(tokens)},
		},
	}
}

// run makes load for d of simulated time, in a synctest bubble.
func run(t *testing.T, cfg load.Config, d time.Duration) *load.Load {
	t.Helper()
	l, err := load.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	time.AfterFunc(d, func() { close(stop) })
	if err := l.Run(t.Context(), stop); err != nil {
		t.Errorf("run: %v", err)
	}
	return l
}

func TestHoldingsFollowTheTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := httpapitest.New()
		m.Create(entity, 5000)
		l := run(t, config(m, 400), 10*time.Second)
		s := l.Stats()
		if got := s.Total.Requests; got < 1800 || got > 2200 {
			t.Errorf("%d requests in 10 s, want about 2000", got)
		}
		if s.Total.Granted == 0 || s.Total.Released == 0 || s.Total.Refused != 0 || s.Total.Failed != 0 || s.Total.InFlight != 0 {
			t.Errorf("counts %+v", s.Total)
		}
		var held int64
		for _, r := range s.Regions {
			if math.Abs(float64(r.Held)-400) > 60 {
				t.Errorf("region %s holds %d, want about 400", r.Region, r.Held)
			}
			held += r.Held
		}
		if got := l.Ledger().Held(entity); got != held || got != m.Acquired(entity) {
			t.Errorf("the ledger says %d, the regions %d, the books %d", got, held, m.Acquired(entity))
		}
		if peak := l.Ledger().MaxAcquired(entity).Tokens; peak < held || peak > 5000 {
			t.Errorf("at most %d were out, %d are", peak, held)
		}
	})
}

func TestEveryEntityHasItsShareAndCountsAbove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := httpapitest.New()
		cfg := config(m, 400)
		cfg.Entities = []load.Entity{
			{Name: "acme/web/prod", Above: []string{"acme/web", "acme"}, Share: 3},
			{Name: "acme/web/test", Above: []string{"acme/web", "acme"}, Share: 2},
			{Name: "acme/mail", Above: []string{"acme"}, Share: 5},
		}
		for _, e := range cfg.Entities {
			m.Create(e.Name, 5000)
		}
		lossy(m, "acquire", "release")
		l := run(t, cfg, 20*time.Second)
		book := l.Ledger()
		for name, share := range map[string]float64{"acme/web/prod": 0.3, "acme/web/test": 0.2, "acme/mail": 0.5} {
			if got := book.Held(name); got != m.Acquired(name) || math.Abs(float64(got)-800*share) > 120 {
				t.Errorf("of %s the ledger says %d, the books %d, want about %.0f", name, got, m.Acquired(name), 800*share)
			}
		}
		web, mail := book.Held("acme/web/prod")+book.Held("acme/web/test"), book.Held("acme/mail")
		if got := book.Held("acme/web"); got != web {
			t.Errorf("%d of acme/web are out, of those below it %d", got, web)
		}
		if got := book.Held("acme"); got != web+mail {
			t.Errorf("%d of acme are out, of those below it %d", got, web+mail)
		}
		if peak := book.MaxAcquired("acme").Tokens; peak < web+mail {
			t.Errorf("at most %d of acme were out, %d are", peak, web+mail)
		}
		if p := book.Pending("acme"); p != (ledger.Pending{}) {
			t.Errorf("pending of acme: %+v", p)
		}
		var held int64
		for _, r := range l.Stats().Regions {
			held += r.Held
		}
		if held != web+mail {
			t.Errorf("the regions hold %d, the ledger says %d", held, web+mail)
		}
	})
}

func TestRefusalsMoveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := httpapitest.New()
		m.Create(entity, 300)
		l := run(t, config(m, 400), 10*time.Second)
		if s := l.Stats().Total; s.Refused == 0 || s.Failed != 0 {
			t.Errorf("counts %+v, want refusals and no failures", s)
		}
		if s := l.Stats(); s.Lacked[entity] != s.Total.Refused {
			t.Errorf("%v lacked tokens, %d acquires were refused", s.Lacked, s.Total.Refused)
		}
		if got := l.Ledger().Held(entity); got != m.Acquired(entity) {
			t.Errorf("the ledger says %d, the books %d", got, m.Acquired(entity))
		}
		if peak := l.Ledger().MaxAcquired(entity).Tokens; peak < 290 || peak > 300 {
			t.Errorf("at most %d of 300 were out", peak)
		}
	})
}

// lossy loses every tenth first answer to such a request, half of them before
// it is executed and half after.
func lossy(m *httpapitest.Manager, ops ...string) {
	var n atomic.Uint64
	m.Intercept = func(op string, r httpapi.Request, execute func() error) error {
		if r.Site != "" || !slices.Contains(ops, op) {
			return execute()
		}
		switch n.Add(1) % 20 {
		case 0:
			return apierr.Unknown(r.RequestID, m.SiteName, nil)
		case 10:
			if err := execute(); err != nil {
				return err
			}
			return apierr.Unknown(r.RequestID, m.SiteName, nil)
		}
		return execute()
	}
}

func TestUnknownOutcomesAreResolved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := httpapitest.New()
		m.Create(entity, 5000)
		lossy(m, "acquire", "release")
		l := run(t, config(m, 400), 10*time.Second)
		if s := l.Stats().Total; s.Unknown < 100 || s.Resolved != s.Unknown || s.Unresolved != 0 || s.InFlight != 0 {
			t.Errorf("counts %+v, want some hundred unknown outcomes, all resolved", s)
		}
		if got := l.Ledger().Held(entity); got != m.Acquired(entity) {
			t.Errorf("the ledger says %d, the books %d", got, m.Acquired(entity))
		}
	})
}

func TestDoubleExecutionIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := httpapitest.New()
		m.Create(entity, 5000)
		lossy(m, "acquire") // repeated releases would make up for repeated acquires
		m.Forgetful = true
		l := run(t, config(m, 400), 10*time.Second)
		if got := l.Ledger().Held(entity); got == m.Acquired(entity) {
			t.Errorf("requests were executed twice and ledger and books agree on %d", got)
		}
	})
}

func TestExceededLimitIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := httpapitest.New()
		m.Create(entity, 300)
		m.Boundless = true
		l := run(t, config(m, 400), 10*time.Second)
		if peak := l.Ledger().MaxAcquired(entity).Tokens; peak <= 300 {
			t.Errorf("at most %d were out, the limit of 300 was not kept", peak)
		}
	})
}

func TestRepeatsThatSettleNothingGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := httpapitest.New()
		m.Create(entity, 5000)
		var first, repeats atomic.Uint64
		m.Intercept = func(_ string, r httpapi.Request, execute func() error) error {
			switch {
			case r.Site == "" && first.Add(1) == 1:
				if err := execute(); err != nil {
					return err
				}
				return apierr.Unknown(r.RequestID, m.SiteName, nil)
			case r.Site != "" && repeats.Add(1) < 4:
				return apierr.New(apierr.SiteUnavailable, "down")
			}
			return execute()
		}
		cfg := config(m, 100)
		cfg.Regions = cfg.Regions[:1]
		l := run(t, cfg, 5*time.Second)
		if s := l.Stats().Total; s.Unknown != 1 || s.Resolved != 1 || repeats.Load() != 4 {
			t.Errorf("counts %+v after %d repeats, want one unknown outcome resolved by the fourth", s, repeats.Load())
		}
		if got := l.Ledger().Held(entity); got != m.Acquired(entity) {
			t.Errorf("the ledger says %d, the books %d", got, m.Acquired(entity))
		}
	})
}

func TestUnknownWithoutASiteStaysUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := httpapitest.New()
		m.Create(entity, 5000)
		m.Intercept = func(_ string, r httpapi.Request, execute func() error) error {
			if r.Site != "" {
				t.Errorf("repeated at %q, which may not be the site that executed it", r.Site)
			}
			if err := execute(); err != nil {
				return err
			}
			return apierr.Unknown(r.RequestID, "", nil)
		}
		cfg := config(m, 100)
		l := run(t, cfg, time.Second)
		s := l.Stats().Total
		if s.Unknown == 0 || s.Unresolved != s.Unknown || s.LastError == "" {
			t.Errorf("counts %+v, want all unknown", s)
		}
		low, high := l.Ledger().Bounds(entity)
		if got := m.Acquired(entity); low > got || high < got {
			t.Errorf("the ledger says %d..%d, the books %d", low, high, got)
		}
	})
}

func TestLatencyCountsFromDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := httpapitest.New()
		m.Create(entity, 5000)
		m.Intercept = func(_ string, _ httpapi.Request, execute func() error) error {
			<-time.After(30 * time.Millisecond)
			return execute()
		}
		cfg := config(m, 100)
		cfg.Regions = cfg.Regions[:1]
		cfg.InFlight = 4
		l := run(t, cfg, 5*time.Second)
		s := l.Stats()
		if s.Latency.P50 <= 31*time.Millisecond {
			t.Errorf("the median is %s: the wait for one of 4 workers at 200 requests/s of 30 ms is left out", s.Latency.P50)
		}
		if s.Total.Shed == 0 {
			t.Error("nothing was shed")
		}
		if w := l.Window(); w.Latency != s.Latency {
			t.Errorf("the first window has %+v, all requests %+v", w.Latency, s.Latency)
		}
		if w := l.Window(); w.Latency != (load.Latency{}) {
			t.Errorf("a window without requests has %+v", w.Latency)
		}
	})
}

func TestAbandonedRunReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := httpapitest.New()
		m.Create(entity, 5000)
		m.Intercept = func(_ string, r httpapi.Request, _ func() error) error {
			return apierr.Unknown(r.RequestID, m.SiteName, nil)
		}
		l, err := load.New(config(m, 100))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := l.Run(ctx, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("run: %v", err)
		}
		if s := l.Stats().Total; s.Unresolved == 0 {
			t.Errorf("counts %+v, want unresolved requests", s)
		}
	})
}

func TestConfigIsChecked(t *testing.T) {
	good := func() load.Config { return config(httpapitest.New(), 1) }
	tests := map[string]func(*load.Config){
		"no entity":      func(c *load.Config) { c.Entities = nil },
		"no name":        func(c *load.Config) { c.Entities[0].Name = "" },
		"no share":       func(c *load.Config) { c.Entities[0].Share = 0 },
		"no regions":     func(c *load.Config) { c.Regions = nil },
		"no rate":        func(c *load.Config) { c.Rate = 0 },
		"negative bound": func(c *load.Config) { c.MaxTokens = -1 },
		"bad address":    func(c *load.Config) { c.Regions[0].Addr = "ftp://x" },
		"no target":      func(c *load.Config) { c.Regions[1].Target = nil },
	}
	if _, err := load.New(good()); err != nil {
		t.Fatalf("the good one: %v", err)
	}
	for name, spoil := range tests {
		t.Run(name, func(t *testing.T) {
			cfg := good()
			spoil(&cfg)
			if _, err := load.New(cfg); err == nil {
				t.Error("taken")
			}
		})
	}
}
