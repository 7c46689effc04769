package site_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/name"
	"github.com/samya-db/samya/predict"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site"
	"github.com/samya-db/samya/site/sitetest"
)

// TestForecastsAreThoseThereAre: the API takes exactly the existing models.
func TestForecastsAreThoseThereAre(t *testing.T) {
	if !slices.Equal(name.Forecasts(), predict.Names()) {
		t.Errorf("taken are %v, there are %v", name.Forecasts(), predict.Names())
	}
}

func TestForecastAnswers(t *testing.T) {
	c := sitetest.Start(t, []string{"us"}, func(cfg *site.Config) { cfg.Forecast = "mean-rate" })
	ctx, admin := t.Context(), c.Admin("us")
	check := func(model string) {
		t.Helper()
		f, err := admin.GetForecast(ctx, &samyav1.GetForecastRequest{})
		want := &samyav1.SiteForecast{Site: "us", Model: model, Configured: "mean-rate", Known: true}
		if err != nil || !f.GetComplete() || len(f.GetSites()) != 1 || f.GetSites()[0].String() != want.String() {
			t.Errorf("%v, %v; want %v", f, err, want)
		}
	}
	check("mean-rate")
	for _, bad := range []string{"", "oracle"} {
		if _, err := admin.SetForecast(ctx, &samyav1.SetForecastRequest{Model: bad}); !errors.Is(apierr.FromGRPC(err), apierr.InvalidField) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	check("mean-rate")
	set, err := admin.SetForecast(ctx, &samyav1.SetForecastRequest{Model: "auto"})
	if err != nil || set.GetSites()[0].GetModel() != "auto" {
		t.Errorf("%v, %v", set, err)
	}
	check("auto")
	c.Stop("us")
	c.Boot("us")
	admin = c.Admin("us")
	check("mean-rate")
}

// TestForecastSwitchesUnderLoad: every model takes the place of the model before, at
// every site, while clients acquire and release. No client waits for it, and no token is
// lost.
func TestForecastSwitchesUnderLoad(t *testing.T) {
	t.Parallel()
	c := sitetest.Start(t, five, func(cfg *site.Config) { cfg.ForecastBin, cfg.ForecastHorizon = time.Second, 3 })
	c.Create("acme/load", 500)
	load := startLoad(t, c, "acme/load")
	for _, model := range []string{"mean-rate", "season-lad", "none", "auto", "random-walk", "auto"} {
		for _, at := range five {
			f, err := c.Admin(at).SetForecast(t.Context(), &samyav1.SetForecastRequest{Model: model})
			if err != nil || f.GetSites()[0].GetModel() != model {
				t.Errorf("%s at %s: %v, %v", model, at, f, err)
			}
		}
		load.goesOn()
	}
	out := load.stop()
	sitetest.Eventually(t, "all that was set aside is back", func() error {
		u := c.Books("acme/load")
		if u.GetInTransit() != 0 || u.GetAcquired() != out || u.GetAvailable()+out != 500 {
			return fmt.Errorf("held %d, books %v", out, u)
		}
		return nil
	})
}

// TestForecastSurvivesARestart: a stop stores the learnt state. A damaged state is
// dropped and counted, and the site serves.
func TestForecastSurvivesARestart(t *testing.T) {
	t.Parallel()
	var dir string
	c := sitetest.Start(t, []string{"us"}, func(cfg *site.Config) { dir, cfg.ForecastBin = cfg.DataDir, time.Second })
	c.Create("acme/vm", 500)
	acquire := func() {
		t.Helper()
		if _, err := c.Tokens("us").Acquire(t.Context(), &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 1}); err != nil {
			t.Fatal(err)
		}
	}
	// Until a bin has closed.
	began := time.Now()
	sitetest.Eventually(t, "a bin", func() error {
		acquire()
		if took := time.Since(began); took < 2*time.Second {
			return fmt.Errorf("only %v", took)
		}
		return nil
	})
	c.Stop("us")
	change := func(f func(b *bolt.Bucket) error) {
		t.Helper()
		db, err := bolt.Open(filepath.Join(dir, "site.db"), 0o600, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = db.Update(func(tx *bolt.Tx) error { return f(tx.Bucket([]byte("forecasts"))) })
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
	}
	dropped := func(want string) {
		t.Helper()
		c.Boot("us")
		sitetest.Eventually(t, "the site serves", func() error {
			_, err := c.Tokens("us").Acquire(t.Context(), &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 1})
			return err
		})
		sitetest.Eventually(t, "dropped "+want, func() error {
			_, _, page := fetch(t, "GET", "http://"+c.Site("us").HTTPAddr()+"/metrics")
			if !strings.Contains(page, "samya_forecast_dropped_total "+want+"\n") {
				return errors.New("another count")
			}
			return nil
		})
		c.Stop("us")
	}
	change(func(b *bolt.Bucket) error {
		if raw := b.Get([]byte("acme/vm")); len(raw) < 500 {
			return fmt.Errorf("stored are %d bytes", len(raw))
		}
		return nil
	})
	dropped("0")
	change(func(b *bolt.Bucket) error {
		raw := slices.Clone(b.Get([]byte("acme/vm")))
		raw[len(raw)/2] ^= 1
		return b.Put([]byte("acme/vm"), raw)
	})
	dropped("1")
	change(func(b *bolt.Bucket) error { return b.Put([]byte("acme/vm"), []byte("no message")) })
	dropped("1")
}
