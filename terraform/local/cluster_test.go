package local_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/samya-db/samya/devcluster/local"
	"github.com/samya-db/samya/internal/tlsconf"
	"github.com/samya-db/samya/terraform/tofutest"
)

// entity and limit are used by the test's clients.
const (
	entity = "acme/vm"
	limit  = 1000
)

// outputs are the outputs of terraform/local.
type outputs struct {
	Endpoints   map[string][]string `json:"endpoints"`
	Directory   string              `json:"directory"`
	Credentials struct {
		CA          string `json:"ca"`
		Certificate string `json:"certificate"`
		Key         string `json:"key"`
	} `json:"credentials"`
}

// TestCluster brings five regions up with TLS, uses, changes, damages and destroys them.
func TestCluster(t *testing.T) {
	c := tofutest.Copy(t, "local", "")
	dir := filepath.Join(t.TempDir(), "cluster")
	sites, managers := freePorts(t)
	regions := map[string]local.Region{}
	for _, r := range []string{"asia-east2", "australia-southeast1", "europe-west2", "southamerica-east1", "us-west1"} {
		regions[r] = local.Region{Sites: 1, AppManagers: 2}
	}
	c.Vars = map[string]any{
		"samya": tofutest.Samya(t), "directory": dir, "site_port": sites, "app_manager_port": managers, "regions": regions,
	}
	// Whatever fails, no process stays.
	t.Cleanup(func() {
		if err := local.Down(context.Background(), dir, false); err != nil {
			t.Error(err)
		}
	})
	c.Must("init")
	c.Must("apply", "-auto-approve")
	if c.Planned() {
		t.Error("a plan after an apply is not empty")
	}
	u := &user{t: t, c: c}
	u.look()
	if n := len(u.pids()); n != 15 {
		t.Fatalf("%d processes run, want 15", n)
	}

	if _, err := u.at("us-west1").CreateEntity(t.Context(), entity, limit, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := u.as("us-west1", tlsconf.Files{CA: u.out.Credentials.CA}).GetEntity(t.Context(), entity); err == nil {
		t.Error("a caller without a certificate is answered")
	}
	u.acquire("us-west1", 150)
	u.acquire("europe-west2", 250)
	u.balance("after acquiring through two regions")

	// Scaling touches the scaled processes alone.
	before := u.pids()
	regions["us-west1"] = local.Region{Sites: 1, AppManagers: 4}
	regions["europe-west2"] = local.Region{Sites: 1, AppManagers: 1}
	c.Must("apply", "-auto-approve")
	u.look()
	u.changed(before, nil, []string{"am-us-west1-3", "am-us-west1-4"}, []string{"am-europe-west2-2"})
	u.balance("after scaling")

	// So does a setting.
	before = u.pids()
	c.Vars["app_manager_settings"] = map[string]string{"repeat-time": "2m"}
	c.Must("apply", "-auto-approve")
	u.look()
	all := slices.DeleteFunc(u.names(), func(n string) bool { return !strings.HasPrefix(n, "am-") })
	u.changed(before, all, nil, nil)
	u.acquire("us-west1", 10)
	u.balance("after a setting")

	// A site that was killed is a change of the plan, and comes back with its books.
	before = u.pids()
	kill(t, before["europe-west2-1"])
	u.gone("europe-west2-1")
	if !c.Planned() {
		t.Error("a plan sees nothing of a killed site")
	}
	c.Must("apply", "-auto-approve")
	u.changed(before, []string{"europe-west2-1"}, nil, nil)
	u.balance("after a killed site")
	if c.Planned() {
		t.Error("a plan after a killed site was started is not empty")
	}

	// Nothing runs, as after a reboot; the directories are there.
	before = u.pids()
	for _, pid := range before {
		kill(t, pid)
	}
	for name := range before {
		u.gone(name)
	}
	c.Must("apply", "-auto-approve")
	u.changed(before, u.names(), nil, nil)
	u.balance("after a reboot")
	u.release("us-west1", 160)
	u.release("europe-west2", 250)
	u.balance("after releasing all")

	before = u.pids()
	state, err := local.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	c.Must("destroy", "-auto-approve")
	for name, pid := range before {
		if runs(pid) {
			t.Errorf("%s still runs as %d", name, pid)
		}
		for _, addr := range []string{state.Processes[name].GRPC, state.Processes[name].HTTP, state.Processes[name].Gossip} {
			free(t, addr)
		}
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the directory of the cluster is still there: %v", err)
	}
	if left := c.Must("state", "list"); strings.TrimSpace(left) != "" {
		t.Errorf("the state still has %s", left)
	}
}

// TestVariables: the plan refuses a cluster that cannot run.
func TestVariables(t *testing.T) {
	samya := filepath.Join(t.TempDir(), "samya")
	if err := os.WriteFile(samya, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c := tofutest.Copy(t, "local", "")
	c.Must("init")
	for name, bad := range map[string]struct {
		vars map[string]any
		want string
	}{
		"cluster":    {map[string]any{"cluster": "Samya"}, "The name must be of a-z"},
		"no region":  {map[string]any{"regions": map[string]any{}}, "1 to 10 regions"},
		"region":     {map[string]any{"regions": map[string]any{"Us": map[string]any{}}}, "name of a region"},
		"managers":   {map[string]any{"regions": map[string]any{"us": map[string]any{"app_managers": 11}}}, "0 to 10"},
		"nodes":      {map[string]any{"regions": map[string]any{"us": map[string]any{"nodes": 4}}}, "must be 1 to 3"},
		"half":       {map[string]any{"regions": map[string]any{"us": map[string]any{"app_managers": 1.5}}}, "0 to 10"},
		"no site":    {map[string]any{"regions": map[string]any{"us": map[string]any{"sites": 0}}}, "must have a site"},
		"setting":    {map[string]any{"site_settings": map[string]string{"members": "a"}}, "that the layout does not decide"},
		"am setting": {map[string]any{"app_manager_settings": map[string]string{"--latency": "a"}}, "that the layout does not decide"},
		"program":    {map[string]any{"samya": "/no/such/program"}, "no such file"},
		"directory":  {map[string]any{"directory": "/"}, "directory of its own"},
		"port":       {map[string]any{"site_port": 65300}, "1 to 65236"},
		"ports":      {map[string]any{"app_manager_port": 7100}, "300 apart"},
	} {
		t.Run(name, func(t *testing.T) {
			c.Vars = map[string]any{"samya": samya}
			maps.Copy(c.Vars, bad.vars)
			out, err := c.Run("plan")
			if err == nil || !strings.Contains(strings.Join(strings.Fields(strings.ReplaceAll(out, "│", "")), " "), bad.want) {
				t.Errorf("error %v, want one with %q:\n%s", err, bad.want, out)
			}
		})
	}
}

// TestExamples brings each example up, on other ports, and takes it down.
func TestExamples(t *testing.T) {
	c := tofutest.Copy(t, "local", "")
	c.Must("init")
	examples, err := filepath.Glob(filepath.Join(c.Dir, "examples", "*.tfvars"))
	if err != nil || len(examples) == 0 {
		t.Fatalf("examples %v, %v", examples, err)
	}
	samya := tofutest.Samya(t)
	for _, example := range examples {
		t.Run(filepath.Base(example), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "cluster")
			sites, managers := freePorts(t)
			t.Cleanup(func() {
				if err := local.Down(context.Background(), dir, false); err != nil {
					t.Error(err)
				}
			})
			with := []string{
				"-auto-approve", "-var-file=" + example, "-var=samya=" + samya, "-var=directory=" + dir,
				fmt.Sprintf("-var=site_port=%d", sites), fmt.Sprintf("-var=app_manager_port=%d", managers),
			}
			c.Must(append([]string{"apply"}, with...)...)
			u := &user{t: t, c: c}
			u.look()
			if n := len(u.pids()); n == 0 {
				t.Error("nothing runs")
			}
			c.Must(append([]string{"destroy"}, with...)...)
			if _, err := os.Stat(dir); !os.IsNotExist(err) {
				t.Errorf("the directory of the cluster is still there: %v", err)
			}
		})
	}
}
