package local_test

import (
	"context"
	"maps"
	"path/filepath"
	"testing"

	"github.com/samya-db/samya/devcluster/local"
	"github.com/samya-db/samya/terraform/tofutest"
)

// TestSitesComeAndGo adds a site, replaces one and has one leave, while tokens are out. The
// plan says which; no other process is touched, and no token is lost.
func TestSitesComeAndGo(t *testing.T) {
	c := tofutest.Copy(t, "local", "")
	dir := filepath.Join(t.TempDir(), "cluster")
	sites, managers := freePorts(t)
	regions := map[string]local.Region{"europe-west2": {Sites: 1, AppManagers: 1}, "us-west1": {Sites: 1, AppManagers: 1}}
	c.Vars = map[string]any{
		"samya": tofutest.Samya(t), "directory": dir, "site_port": sites, "app_manager_port": managers, "regions": regions,
		// A site that leaves stays until it has forgotten its requests.
		"site_settings":        map[string]string{"request-retention": "20s", "clock-skew": "2s"},
		"app_manager_settings": map[string]string{"repeat-time": "5s"},
	}
	t.Cleanup(func() {
		if err := local.Down(context.Background(), dir, false); err != nil {
			t.Error(err)
		}
	})
	c.Must("init")
	c.Must("apply", "-auto-approve")
	u := &user{t: t, c: c}
	u.look()
	if _, err := u.at("us-west1").CreateEntity(t.Context(), entity, limit, ""); err != nil {
		t.Fatal(err)
	}
	u.acquire("us-west1", 150)
	u.acquire("europe-west2", 250)
	// step applies a change, which is planned, and touches these sites alone.
	step := func(what string, planned map[string]string, started, stopped []string) {
		t.Helper()
		planned["terraform_data.cluster"] = "delete,create"
		if got := c.Changes(); !maps.Equal(got, planned) {
			t.Errorf("%s: the plan is %v, want %v", what, got, planned)
		}
		before := u.pids()
		c.Must("apply", "-auto-approve")
		u.look()
		u.changed(before, nil, started, stopped)
		u.balance(what)
		if c.Planned() {
			t.Errorf("%s: a plan after it is not empty", what)
		}
	}
	regions["europe-west2"] = local.Region{Sites: 2, AppManagers: 1}
	step("a site is added", map[string]string{`terraform_data.site["europe-west2-2"]`: "create"}, []string{"europe-west2-2"}, nil)
	u.acquire("europe-west2", 100)
	c.Vars["replace"] = []string{"europe-west2-1"}
	step("a site is replaced", map[string]string{
		`terraform_data.site["europe-west2-1"]`: "delete", `terraform_data.site["europe-west2-3"]`: "create",
	}, []string{"europe-west2-3"}, []string{"europe-west2-1"})
	regions["europe-west2"] = local.Region{Sites: 1, AppManagers: 1}
	step("a site leaves", map[string]string{`terraform_data.site["europe-west2-3"]`: "delete"}, nil, []string{"europe-west2-3"})
	u.release("us-west1", 150)
	u.release("europe-west2", 350)
	u.balance("after releasing all")
	c.Must("destroy", "-auto-approve")
}
