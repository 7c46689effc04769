package local_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/samya-db/samya/devcluster/local"
)

// left checks that a site has left: it does not run, and its data is set aside.
func left(t *testing.T, cfg local.Config, site string) {
	t.Helper()
	s := read(t, cfg)
	if s.Runs(site) || !slices.Contains(s.Gone, site) || slices.Contains(s.Leaving, site) || slices.Contains(s.Joined, site) {
		t.Errorf("%s: runs %t, gone %v, leaving %v, joined %v", site, s.Runs(site), s.Gone, s.Leaving, s.Joined)
	}
	if _, err := os.Stat(filepath.Join(cfg.Dir, "left", site, "books")); err != nil {
		t.Errorf("the data of %s was not set aside: %v", site, err)
	}
	if _, err := os.Stat(filepath.Join(cfg.Dir, "data", site)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the data of %s is where it was: %v", site, err)
	}
}

// TestSitesLeave: sites that are too many leave if that is told; sites that are replaced or
// lost leave in favour of others. No name is used twice, and other processes are left alone.
func TestSitesLeave(t *testing.T) {
	cfg := config(t)
	cfg.AppManagerSettings = map[string]string{"seats": "eu-1+us-1+us-2"}
	cfg.Regions = map[string]local.Region{"eu": {Sites: 1, AppManagers: 1}, "us": {Sites: 2}}
	apply(t, cfg)
	did := func(want map[string]string) {
		t.Helper()
		if did := apply(t, cfg); !maps.Equal(did, want) {
			t.Errorf("did %v, want %v", did, want)
		}
	}
	cfg.Regions["us"] = local.Region{Sites: 1}
	if _, err := try(t, cfg); !errors.Is(err, local.ErrMembers) {
		t.Errorf("a site leaves untold: %v", err)
	}
	cfg.Drain = true
	did(map[string]string{"eu-1": "kept", "us-1": "kept", "us-2": "left", "am-eu-1": "kept"})
	left(t, cfg, "us-2")

	cfg.Drain = false
	cfg.Regions["us"] = local.Region{Sites: 2}
	did(map[string]string{"eu-1": "kept", "us-1": "kept", "us-3": "joined", "am-eu-1": "kept"})
	did(map[string]string{"eu-1": "kept", "us-1": "kept", "us-3": "kept", "am-eu-1": "kept"})

	cfg.Leave = []string{"eu-1"}
	did(map[string]string{"eu-2": "joined", "eu-1": "left", "us-1": "kept", "us-3": "kept", "am-eu-1": "kept"})
	left(t, cfg, "eu-1")
	did(map[string]string{"eu-2": "kept", "us-1": "kept", "us-3": "kept", "am-eu-1": "kept"})

	if err := syscall.Kill(read(t, cfg).Processes["us-1"].PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool { return !read(t, cfg).Runs("us-1") })
	cfg.Lost = []string{"us-1"}
	did(map[string]string{"us-1": "left", "us-4": "joined", "eu-2": "kept", "us-3": "kept", "am-eu-1": "kept"})
	left(t, cfg, "us-1")

	log, err := os.ReadFile(filepath.Join(cfg.Dir, "logs", "am-eu-1.log"))
	want := `POST /us-2:drain{"heir":"us-1"}
POST {"name":"us-3"}
POST {"name":"eu-2"}
POST /eu-1:drain{"heir":"eu-2"}
DELETE /us-1?lost=true
POST {"name":"us-4"}
`
	if err != nil || string(log) != want {
		t.Errorf("asked: %q, want %q; %v", log, want, err)
	}
}

// TestLeavingGoesOn: a site that was told to leave leaves with the next command, if the first
// could not wait. A joining site that nobody wants any more gives its seat back.
func TestLeavingGoesOn(t *testing.T) {
	cfg := config(t)
	apply(t, cfg)
	cfg.Regions["us"] = local.Region{Sites: 1, AppManagers: 1}
	cfg.Drain = true
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if err := local.Apply(ctx, cfg, nil); err == nil || !strings.Contains(err.Error(), "have us-2 leave: the cluster does not know the site") {
		t.Errorf("a site that is not known: %v", err)
	}
	cfg.Drain = false
	cfg.AppManagerSettings = map[string]string{"seats": "eu-1+us-1+us-2"}
	if did := apply(t, cfg); did["us-2"] != "left" || did["us-1"] != "kept" {
		t.Errorf("did %v", did)
	}
	left(t, cfg, "us-2")
}

func TestLeavingIsRefused(t *testing.T) {
	cfg := config(t)
	cfg.AppManagerSettings = map[string]string{"seats": "eu-1+us-1+us-2"}
	early := cfg
	early.Leave = []string{"eu-1"}
	if _, err := try(t, early); !errors.Is(err, local.ErrConfig) {
		t.Errorf("a new cluster: %v", err)
	}
	apply(t, cfg)
	for what, c := range map[string]struct {
		change func(*local.Config)
		want   error
		text   string
	}{
		"nobody's": {func(c *local.Config) { c.Leave = []string{"eu-7"} }, local.ErrConfig, "eu-7 is no site"},
		"no manager": {func(c *local.Config) {
			c.Regions = map[string]local.Region{"eu": {Sites: 1}, "us": {Sites: 1}}
			c.Drain = true
		}, local.ErrConfig, "without an app manager"},
		"too many": {func(c *local.Config) {
			c.Leave = []string{"us-1"}
			c.Regions["us"] = local.Region{Sites: 10, AppManagers: 1}
		}, local.ErrConfig, "at most 10 sites ever"},
	} {
		changed := cfg
		changed.Regions = maps.Clone(cfg.Regions)
		c.change(&changed)
		if _, err := try(t, changed); err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want %v with %q", what, err, c.want, c.text)
		}
	}
	// The places of regions stay when one of them goes.
	cfg.Regions = map[string]local.Region{"us": {Sites: 2, AppManagers: 1}}
	cfg.AppManagerSettings = map[string]string{"seats": "eu-1+us-1+us-2"}
	cfg.Drain = true
	for _, eu := range []string{"left", ""} {
		if did := apply(t, cfg); did["eu-1"] != eu || did["us-1"] != "kept" || did["am-us-1"] != "kept" {
			t.Errorf("a region that goes: did %v", did)
		}
	}
}
