package local_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/samya-db/samya/devcluster/local"
	"github.com/samya-db/samya/terraform/tofutest"
)

// TestNodes has a site of a single process go over to two nodes, while tokens are out. Another
// apply changes nothing, and a killed node comes back.
func TestNodes(t *testing.T) {
	etcd, err := exec.LookPath("etcd")
	if err != nil {
		t.Skip("needs etcd")
	}
	c := tofutest.Copy(t, "local", "")
	dir := filepath.Join(t.TempDir(), "cluster")
	sites, managers := freePorts(t)
	regions := map[string]local.Region{"europe-west2": {Sites: 1, AppManagers: 1}, "us-west1": {Sites: 1, AppManagers: 1}}
	c.Vars = map[string]any{
		"samya": tofutest.Samya(t), "etcd": etcd, "directory": dir, "site_port": sites, "app_manager_port": managers, "regions": regions,
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
	before := u.pids()
	regions["us-west1"] = local.Region{Sites: 1, AppManagers: 1, Nodes: 2}
	c.Must("apply", "-auto-approve")
	u.look()
	u.changed(before, []string{"us-west1-1"}, []string{"us-west1-1-b", "us-west1-etcd-a", "us-west1-etcd-b", "us-west1-etcd-c"}, nil)
	u.balance("after going over to nodes")
	if c.Planned() {
		t.Error("a plan after an apply is not empty")
	}
	before = u.pids()
	kill(t, before["us-west1-1-b"])
	u.gone("us-west1-1-b")
	c.Must("apply", "-auto-approve")
	u.changed(before, []string{"us-west1-1-b"}, nil, nil)
	u.release("us-west1", 150)
	u.balance("after releasing all")
	c.Must("destroy", "-auto-approve")
}
