package local_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/samya-db/samya/devcluster/local"
)

// TestNodes: a region of several nodes has an etcd, which starts before the sites; more
// nodes may come, and all but two may go.
func TestNodes(t *testing.T) {
	cfg := config(t)
	cfg.Etcd = cfg.Samya
	two := local.Region{Sites: 1, AppManagers: 1, Nodes: 2}
	cfg.Regions = map[string]local.Region{"eu": {Sites: 1}, "us": two}
	all := []string{"us-etcd-a", "us-etcd-b", "us-etcd-c", "eu-1", "us-1", "us-1-b", "am-us-1"}
	var order []string
	if err := local.Apply(t.Context(), cfg, func(c local.Change) { order = append(order, c.Name) }); err != nil || !slices.Equal(order, all) {
		t.Fatalf("started %v, want %v; %v", order, all, err)
	}
	want := make(map[string]string)
	for _, name := range all {
		want[name] = "kept"
	}
	if did := apply(t, cfg); !maps.Equal(did, want) {
		t.Errorf("again: did %v", did)
	}
	roles := map[string]string{"us-1": local.RoleActive, "us-1-b": local.RoleStandby}
	if got := local.Roles(t.Context(), read(t, cfg)); !maps.Equal(got, roles) {
		t.Errorf("roles %v, want %v", got, roles)
	}
	if s := read(t, cfg); !slices.Equal(s.Members, []string{"eu-1", "us-1"}) || s.Processes["us-1-b"].Node != "b" || s.Processes["us-1-b"].Site != "us-1" {
		t.Errorf("members %v, second node %+v", s.Members, s.Processes["us-1-b"])
	}
	us := two
	us.Nodes = 3
	cfg.Regions["us"], want["us-1-c"] = us, "started"
	if did := apply(t, cfg); !maps.Equal(did, want) {
		t.Errorf("a third: did %v", did)
	}
	cfg.Regions["us"], want["us-1-c"] = two, "stopped"
	if did := apply(t, cfg); !maps.Equal(did, want) {
		t.Errorf("two again: did %v", did)
	}
	us.Nodes = 1
	cfg.Regions["us"] = us
	if _, err := try(t, cfg); !errors.Is(err, local.ErrConfig) {
		t.Errorf("back to one process: %v", err)
	}
	cfg.Regions["us"] = two
	delete(want, "us-1-c")
	if did := apply(t, cfg); !maps.Equal(did, want) {
		t.Errorf("after a refusal: did %v", did)
	}
}

// TestSiteGoesOverToNodes: the first node brings the log of a site to etcd before another
// node starts.
func TestSiteGoesOverToNodes(t *testing.T) {
	cfg := config(t)
	cfg.Etcd = cfg.Samya
	cfg.Regions = map[string]local.Region{"us": {Sites: 1, AppManagers: 1}}
	apply(t, cfg)
	cfg.Regions["us"] = local.Region{Sites: 1, AppManagers: 1, Nodes: 2}
	var order []string
	if err := local.Apply(t.Context(), cfg, func(c local.Change) { order = append(order, c.Name+" "+c.Did) }); err != nil {
		t.Fatal(err)
	}
	want := []string{"us-etcd-a started", "us-etcd-b started", "us-etcd-c started", "us-1 restarted", "us-1-b started", "am-us-1 kept"}
	if !slices.Equal(order, want) {
		t.Errorf("did %v, want %v", order, want)
	}
}

// TestNodesLeave: all nodes of a site leave together, and a region without sites needs no
// etcd.
func TestNodesLeave(t *testing.T) {
	cfg := config(t)
	cfg.Etcd = cfg.Samya
	cfg.AppManagerSettings = map[string]string{"seats": "eu-1+us-1"}
	cfg.Regions = map[string]local.Region{"eu": {Sites: 1, AppManagers: 1}, "us": {Sites: 1, Nodes: 2}}
	apply(t, cfg)
	cfg.Regions = map[string]local.Region{"eu": {Sites: 1, AppManagers: 1}}
	cfg.Drain = true
	want := map[string]string{
		"eu-1": "kept", "am-eu-1": "kept", "us-1": "left", "us-1-b": "left",
		"us-etcd-a": "stopped", "us-etcd-b": "stopped", "us-etcd-c": "stopped",
	}
	did := make(map[string]string)
	if err := local.Apply(t.Context(), cfg, func(c local.Change) { did[c.Name] = c.Did }); err != nil || !maps.Equal(did, want) {
		t.Errorf("did %v, want %v; %v", did, want, err)
	}
	for _, name := range []string{"us-1", "us-1-b"} {
		if _, err := os.Stat(filepath.Join(cfg.Dir, "left", name)); err != nil {
			t.Errorf("the data of %s is not set aside: %v", name, err)
		}
	}
	if s := read(t, cfg); !slices.Equal(s.Gone, []string{"us-1"}) || len(s.Processes) != 2 {
		t.Errorf("gone %v, processes %v", s.Gone, s.Names())
	}
}

func TestNodesAreRefused(t *testing.T) {
	cfg := config(t)
	cfg.Etcd = filepath.Join(cfg.Dir, "none")
	cfg.Regions = map[string]local.Region{"us": {Sites: 1, Nodes: 2}}
	if err := local.Apply(context.Background(), cfg, nil); !errors.Is(err, local.ErrNoEtcd) {
		t.Errorf("without etcd: %v", err)
	}
	for name, r := range map[string]local.Region{"four nodes": {Sites: 1, Nodes: 4}, "too many sites": {Sites: 3, Nodes: 3}} {
		cfg.Regions["us"] = r
		if err := cfg.Validate(); !errors.Is(err, local.ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
