package core_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/predict"
	"github.com/samya-db/samya/redistribute"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/policy"
	"github.com/samya-db/samya/site/core/stored"
)

func TestConfigErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*core.Config)
		want   []string
		is     error
	}{
		"protocol":         {func(c *core.Config) { c.Protocol = "raft" }, append(policy.ProtocolNames(), "protocol", "raft"), policy.ErrUnknownName},
		"offer":            {func(c *core.Config) { c.Offer = "none" }, append(policy.OfferNames(), "offer", `"none"`), policy.ErrUnknownName},
		"trigger":          {func(c *core.Config) { c.Trigger = "x" }, append(policy.TriggerNames(), "trigger"), policy.ErrUnknownName},
		"want":             {func(c *core.Config) { c.Want = "x" }, append(policy.WantNames(), "want"), policy.ErrUnknownName},
		"wait":             {func(c *core.Config) { c.Wait = "x" }, append(policy.WaitNames(), "wait"), policy.ErrUnknownName},
		"admission":        {func(c *core.Config) { c.Admission = "x" }, append(policy.AdmissionNames(), "admission"), policy.ErrUnknownName},
		"policy":           {func(c *core.Config) { c.Policy = "x" }, append(redistribute.Names(), "policy"), redistribute.ErrUnknownPolicy},
		"forecast":         {func(c *core.Config) { c.Forecast = "x" }, append(predict.Names(), "forecast"), predict.ErrUnknownModel},
		"not a member":     {func(c *core.Config) { c.Self = "z" }, []string{"self", `"z"`}, nil},
		"members unsorted": {func(c *core.Config) { c.Members = []core.SiteID{"b", "a"} }, []string{"members"}, nil},
		"members twice":    {func(c *core.Config) { c.Members = []core.SiteID{"a", "a"} }, []string{"members"}, nil},
		"no members":       {func(c *core.Config) { c.Members = nil }, []string{"no member"}, nil},
		"rand":             {func(c *core.Config) { c.Rand = nil }, []string{"rand"}, nil},
		"patience":         {func(c *core.Config) { c.Window, c.Patience = 500, 500 }, []string{"patience", "500"}, nil},
		"horizon":          {func(c *core.Config) { c.Horizon = 289 }, []string{"forecast", "horizon 289"}, predict.ErrOption},
		"day":              {func(c *core.Config) { c.Day = 86401 }, []string{"forecast", "86401"}, predict.ErrOption},
		"back-off":         {func(c *core.Config) { c.Backoff, c.MaxBackoff = 50, 10 }, []string{"MaxBackoff", "10"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := core.Config{Self: "a", Members: []core.SiteID{"a", "b", "c"}, Rand: rand.New(rand.NewPCG(1, 1))}
			tc.change(&cfg)
			_, err := core.New(cfg, stored.Restored{})
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %s", err, want)
				}
			}
			if tc.is != nil && !errors.Is(err, tc.is) {
				t.Errorf("%q does not match %q", err, tc.is)
			}
		})
	}
}

func TestDayOfAConfig(t *testing.T) {
	for _, tc := range []struct {
		bin       core.Tick
		day, want int
	}{{0, 0, 17280}, {60_000, 0, 1440}, {7000, 0, 12343}, {1000, 0, 86400}, {999, 0, -1}, {1000, 60, 60}, {0, -1, -1}} {
		if got := (core.Config{Bin: tc.bin, Day: tc.day}).WithDefaults().Day; got != tc.want {
			t.Errorf("bins of %d ms, a day of %d: %d bins, want %d", tc.bin, tc.day, got, tc.want)
		}
	}
}

func TestAllErrorsOfAConfigAtOnce(t *testing.T) {
	_, err := core.New(core.Config{Self: "a", Members: []core.SiteID{"a"}, Offer: "x", Trigger: "y"}, stored.Restored{})
	for _, want := range []string{"offer", "trigger", "rand"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
}

func TestNamesAreSorted(t *testing.T) {
	for _, names := range [][]string{
		policy.AdmissionNames(), policy.OfferNames(), policy.TriggerNames(), policy.ProtocolNames(),
		policy.WantNames(), policy.WaitNames(),
	} {
		if len(names) == 0 || !slices.IsSorted(names) {
			t.Errorf("names %v", names)
		}
	}
}

// TestDamagedDataIsRefused restores records that do not fit together.
func TestDamagedDataIsRefused(t *testing.T) {
	entity := stored.Entity{Name: "e", Generation: 2, Limit: 5, Version: 1}
	books := stored.Books{Name: "e", Generation: 2}
	pledged := entity
	pledged.Protocol.Pledge = &avantan.Contribution{Site: "a", Offered: 3}
	for name, tc := range map[string]struct {
		from stored.Restored
		want string
	}{
		"no books":          {stored.Restored{Entities: []stored.Entity{entity}}, `"e"`},
		"books of another":  {stored.Restored{Entities: []stored.Entity{entity}, Books: []stored.Books{{Name: "e", Generation: 1}}}, `"e"`},
		"books of none":     {stored.Restored{Books: []stored.Books{books}}, "1 books for 0 entities"},
		"unexposed pledge":  {stored.Restored{Entities: []stored.Entity{pledged}, Books: []stored.Books{books}}, "Pledge"},
		"damaged catalogue": {stored.Restored{Catalogue: &stored.Catalogue{Protocol: pledged.Protocol}}, "catalogue"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := core.Config{Self: "a", Members: []core.SiteID{"a"}, Rand: rand.New(rand.NewPCG(1, 1))}
			if _, err := core.New(cfg, tc.from); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want one that says %s", err, tc.want)
			}
		})
	}
}
