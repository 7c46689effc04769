package local_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/samya-db/samya/devcluster/local"
	"github.com/samya-db/samya/devcluster/proc"
)

// deadline bounds every step of a test.
const deadline = 30 * time.Second

// config is a cluster of two regions that this program plays. It is taken down
// with the test.
func config(t *testing.T) local.Config {
	t.Helper()
	bin, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ports, err := proc.Claim(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cfg := local.Config{
		Dir: filepath.Join(t.TempDir(), "cluster"), Samya: bin, Cluster: "test",
		Regions:  map[string]local.Region{"eu": {Sites: 1, AppManagers: 1}, "us": {Sites: 2, AppManagers: 1}},
		SitePort: ports.First, AppManagerPort: ports.First + proc.StretchPorts/2,
	}
	t.Cleanup(func() {
		if err := local.Down(context.Background(), cfg.Dir, false); err != nil && !errors.Is(err, local.ErrForeign) {
			t.Error(err)
		}
		if err := ports.Release(); err != nil {
			t.Error(err)
		}
	})
	return cfg
}

// apply applies cfg, and returns the action on each process.
func apply(t *testing.T, cfg local.Config) map[string]string {
	t.Helper()
	did, err := try(t, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return did
}

func try(t *testing.T, cfg local.Config) (map[string]string, error) {
	t.Helper()
	did, _, err := told(t, cfg)
	return did, err
}

// told applies a configuration. It returns the last change of each process, and what
// sites waited for.
func told(t *testing.T, cfg local.Config) (did map[string]string, waits []string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	did = make(map[string]string)
	err = local.Apply(ctx, cfg, func(c local.Change) {
		if c.Did == "waits" {
			waits = append(waits, c.Name+": "+c.WaitsFor)
			return
		}
		if did[c.Name] == c.Did {
			t.Errorf("%s %s twice", c.Did, c.Name)
		}
		did[c.Name] = c.Did
	})
	return did, waits, err
}

func read(t *testing.T, cfg local.Config) local.State {
	t.Helper()
	s, err := local.Read(cfg.Dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestApplyChangesWhatDiffers(t *testing.T) {
	t.Setenv("SAMYA_TEST_SECRET", "yes")
	cfg := config(t)
	all := map[string]string{"eu-1": "started", "us-1": "started", "us-2": "started", "am-eu-1": "started", "am-us-1": "started"}
	if did := apply(t, cfg); !maps.Equal(did, all) {
		t.Errorf("did %v, want %v", did, all)
	}
	kept := func(but map[string]string) map[string]string {
		want := map[string]string{"eu-1": "kept", "us-1": "kept", "us-2": "kept", "am-eu-1": "kept", "am-us-1": "kept"}
		maps.Copy(want, but)
		return want
	}
	if did, want := apply(t, cfg), kept(nil); !maps.Equal(did, want) {
		t.Errorf("again: did %v, want %v", did, want)
	}
	cfg.Regions["us"] = local.Region{Sites: 2, AppManagers: 2}
	if did, want := apply(t, cfg), kept(map[string]string{"am-us-2": "started"}); !maps.Equal(did, want) {
		t.Errorf("scaled out: did %v, want %v", did, want)
	}
	cfg.Regions["us"] = local.Region{Sites: 2, AppManagers: 1}
	gone := read(t, cfg).Processes["am-us-2"]
	if did, want := apply(t, cfg), kept(map[string]string{"am-us-2": "stopped"}); !maps.Equal(did, want) {
		t.Errorf("scaled in: did %v, want %v", did, want)
	}
	if _, known := read(t, cfg).Processes["am-us-2"]; known || running(gone.PID) {
		t.Errorf("process %d of am-us-2 is known: %t, or runs", gone.PID, known)
	}
	cfg.SiteSettings = map[string]string{"latency": "none"}
	if did, want := apply(t, cfg), kept(map[string]string{"eu-1": "restarted", "us-1": "restarted", "us-2": "restarted"}); !maps.Equal(did, want) {
		t.Errorf("a setting: did %v, want %v", did, want)
	}
	cfg.Runs = map[string]int64{"eu-1": read(t, cfg).Processes["eu-1"].Number + 1}
	if did, want := apply(t, cfg), kept(map[string]string{"eu-1": "restarted"}); !maps.Equal(did, want) {
		t.Errorf("a later run: did %v, want %v", did, want)
	}
	if err := syscall.Kill(read(t, cfg).Processes["us-1"].PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool { return !read(t, cfg).Runs("us-1") })
	if did, want := apply(t, cfg), kept(map[string]string{"us-1": "started"}); !maps.Equal(did, want) {
		t.Errorf("a dead one: did %v, want %v", did, want)
	}
}

// TestSitesJoin: a configuration with more sites adds them to the running cluster. Others
// are left alone. The sites stay members: a later configuration must have them.
func TestSitesJoin(t *testing.T) {
	cfg := config(t)
	apply(t, cfg)
	cfg.Regions["us"] = local.Region{Sites: 3, AppManagers: 1}
	cfg.Regions["zz"] = local.Region{Sites: 1}
	kept := map[string]string{"eu-1": "kept", "us-1": "kept", "us-2": "kept", "am-eu-1": "kept", "am-us-1": "kept"}
	want := maps.Clone(kept)
	want["us-3"], want["zz-1"] = "joined", "joined"
	did, waits, err := told(t, cfg)
	if err != nil || !maps.Equal(did, want) {
		t.Errorf("did %v, want %v; %v", did, want, err)
	}
	if want := []string{"us-3: the members to admit it", "zz-1: the members to admit it"}; !slices.Equal(waits, want) {
		t.Errorf("it tells of waits for %q, want %q", waits, want)
	}
	log, err := os.ReadFile(filepath.Join(cfg.Dir, "logs", "am-eu-1.log"))
	if got, want := string(log), "POST {\"name\":\"us-3\"}\nPOST {\"name\":\"zz-1\"}\n"; err != nil || got != want {
		t.Errorf("asked for seats: %q, want %q; %v", got, want, err)
	}
	s := read(t, cfg)
	if !slices.Equal(s.Members, []string{"eu-1", "us-1", "us-2"}) || !slices.Equal(s.Joined, []string{"us-3", "zz-1"}) || len(s.Joining) > 0 {
		t.Errorf("members %v, joined %v, joining %v", s.Members, s.Joined, s.Joining)
	}
	want["us-3"], want["zz-1"] = "kept", "kept"
	if did := apply(t, cfg); !maps.Equal(did, want) {
		t.Errorf("again: did %v, want %v", did, want)
	}
	less := cfg
	less.Regions = maps.Clone(cfg.Regions)
	delete(less.Regions, "zz")
	if _, err := try(t, less); !errors.Is(err, local.ErrMembers) {
		t.Errorf("a site that joined is left out: %v", err)
	}
	nobody := cfg
	nobody.Regions = map[string]local.Region{"eu": {Sites: 1}, "us": {Sites: 4}, "zz": {Sites: 1}}
	if _, err := try(t, nobody); !errors.Is(err, local.ErrConfig) {
		t.Errorf("nobody could give a seat: %v", err)
	}
}

func TestDownLeavesNothing(t *testing.T) {
	cfg := config(t)
	apply(t, cfg)
	before := read(t, cfg)
	if err := local.Down(t.Context(), cfg.Dir, true); err != nil {
		t.Fatal(err)
	}
	for name, r := range before.Processes {
		if running(r.PID) {
			t.Errorf("%s runs still", name)
		}
	}
	if _, err := os.Stat(filepath.Join(cfg.Dir, "data", "us-1", "books")); err != nil {
		t.Errorf("the data was not kept: %v", err)
	}
	for name, did := range apply(t, cfg) {
		if did != "started" || read(t, cfg).Processes[name].Number != 2 {
			t.Errorf("%s was %s, run %d", name, did, read(t, cfg).Processes[name].Number)
		}
	}
	if err := local.Down(t.Context(), cfg.Dir, false); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(cfg.Dir); !os.IsNotExist(err) {
		t.Errorf("the directory is there: %v", err)
	}
	if err := local.Down(t.Context(), cfg.Dir, false); err != nil {
		t.Errorf("taking down what is not there: %v", err)
	}
}

// TestNobodyElsesProcess: a process id that belongs to another process by now is neither
// signalled nor counted.
func TestNobodyElsesProcess(t *testing.T) {
	cfg := config(t)
	apply(t, cfg)
	path := filepath.Join(cfg.Dir, "run.json")
	for name, forge := range map[string]func(*local.State){
		"start": func(s *local.State) { r := s.Processes["eu-1"]; r.Start = "1"; s.Processes["eu-1"] = r },
		"boot":  func(s *local.State) { s.Boot = "another" },
	} {
		t.Run(name, func(t *testing.T) {
			was, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			s := read(t, cfg)
			forge(&s)
			b, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			if s.Runs("eu-1") {
				t.Error("it counts as running")
			}
			if err := local.Down(t.Context(), cfg.Dir, true); err != nil {
				t.Fatal(err)
			}
			if !running(s.Processes["eu-1"].PID) {
				t.Error("it was signalled")
			}
			if err := os.WriteFile(path, was, 0o600); err != nil {
				t.Fatal(err)
			}
			apply(t, cfg)
		})
	}
}

func TestRefusals(t *testing.T) {
	cfg := config(t)
	apply(t, cfg)
	for name, c := range map[string]struct {
		change func(*local.Config)
		want   error
		text   string
	}{
		"members": {func(c *local.Config) { c.Regions["us"] = local.Region{Sites: 1} }, local.ErrMembers, "the cluster has eu-1, us-1, us-2"},
		"moved":   {func(c *local.Config) { c.Regions["as"] = local.Region{Sites: 1} }, local.ErrMembers, "eu-1 would move from"},
		"cluster": {func(c *local.Config) { c.Cluster = "other" }, local.ErrForeign, `holds the cluster "test"`},
		"fails":   {func(c *local.Config) { c.AppManagerSettings = map[string]string{"fails": "true"} }, nil, "it cannot go on"},
		"config":  {func(c *local.Config) { c.Dir = "relative" }, local.ErrConfig, "dir"},
		"program": {func(c *local.Config) { c.Samya = "/no/such/program" }, os.ErrNotExist, "read the program"},
	} {
		t.Run(name, func(t *testing.T) {
			changed := cfg
			changed.Regions = maps.Clone(cfg.Regions)
			c.change(&changed)
			_, err := try(t, changed)
			if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("error %v, want %v with %q", err, c.want, c.text)
			}
		})
	}
	foreign := t.TempDir()
	if err := os.WriteFile(filepath.Join(foreign, "letter"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	other := cfg
	other.Dir = foreign
	if _, err := try(t, other); !errors.Is(err, local.ErrForeign) {
		t.Errorf("a directory of somebody else's: %v", err)
	}
	if err := local.Down(t.Context(), foreign, false); !errors.Is(err, local.ErrForeign) {
		t.Errorf("taking somebody else's directory down: %v", err)
	}
	if entries, err := os.ReadDir(foreign); err != nil || len(entries) != 1 {
		t.Errorf("the foreign directory has %v, %v", entries, err)
	}
}

// TestConfigIsBounded: the configurations that Validate refuses.
func TestConfigIsBounded(t *testing.T) {
	good := local.Config{
		Dir: "/d", Samya: "/s", Cluster: "c", Regions: map[string]local.Region{"us": {Sites: 1}}, SitePort: 7001, AppManagerPort: 8080,
	}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for field, change := range map[string]func(*local.Config){
		"dir:":                        func(c *local.Config) { c.Dir = "/d/../" },
		"samya:":                      func(c *local.Config) { c.Samya = "samya" },
		"cluster:":                    func(c *local.Config) { c.Cluster = "-" },
		"regions: 0":                  func(c *local.Config) { c.Regions = nil },
		`regions: "us_1"`:             func(c *local.Config) { c.Regions = map[string]local.Region{"us_1": {Sites: 1}} },
		"regions: us: sites: 11":      func(c *local.Config) { c.Regions = map[string]local.Region{"us": {Sites: 11}} },
		"us: app_managers: -1":        func(c *local.Config) { c.Regions = map[string]local.Region{"us": {Sites: 1, AppManagers: -1}} },
		"no region has a site":        func(c *local.Config) { c.Regions = map[string]local.Region{"us": {}} },
		`site_settings: "data"`:       func(c *local.Config) { c.SiteSettings = map[string]string{"data": "/etc"} },
		`app_manager_settings: "-x"`:  func(c *local.Config) { c.AppManagerSettings = map[string]string{"-x": ""} },
		"site_port: 0":                func(c *local.Config) { c.SitePort = 0 },
		"app_manager_port: 65400":     func(c *local.Config) { c.AppManagerPort = 65400 },
		"site_port, app_manager_port": func(c *local.Config) { c.AppManagerPort = 7200 },
	} {
		c := good
		change(&c)
		if err := c.Validate(); !errors.Is(err, local.ErrConfig) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// TestLayoutIsStable: scaling moves no port of another process.
func TestLayoutIsStable(t *testing.T) {
	c := local.Config{
		Dir: "/d", Samya: "/s", Cluster: "c", SitePort: 7001, AppManagerPort: 8080,
		Regions: map[string]local.Region{"as": {Sites: 2, AppManagers: 3}, "us": {Sites: 1, AppManagers: 1}},
	}
	before := c.Processes()
	c.Regions["as"] = local.Region{Sites: 2, AppManagers: 10}
	after := c.Processes()
	seen := make(map[string]bool)
	for _, p := range after {
		for _, addr := range []string{p.GRPC, p.HTTP, p.Gossip} {
			if seen[addr] {
				t.Errorf("%s of %s is another's as well", addr, p.Name)
			}
			seen[addr] = true
		}
	}
	for _, p := range before {
		i := slices.IndexFunc(after, func(a local.Process) bool { return a.Name == p.Name })
		if i < 0 || !reflect.DeepEqual(after[i], p) {
			t.Errorf("%s is not as it was: %+v", p.Name, after)
		}
	}
}

func TestStubbornProcessIsKilled(t *testing.T) {
	cfg := config(t)
	cfg.SiteSettings = map[string]string{"stubborn": "true"}
	apply(t, cfg)
	before := read(t, cfg)
	// Done already: it does not wait for anybody to be polite.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := local.Down(ctx, cfg.Dir, false); err != nil {
		t.Fatal(err)
	}
	for name, r := range before.Processes {
		if running(r.PID) {
			t.Errorf("%s runs still", name)
		}
	}
}

// running reports whether a process runs, and is not waiting to be reaped.
func running(pid int) bool {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err == nil && !strings.Contains(string(b), ") Z ")
}

func until(t *testing.T, done func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.After(deadline); !done(); {
		select {
		case <-tick.C:
		case <-end:
			t.Fatal("it took too long")
		}
	}
}

// TestTLSIsSwitchedForAll: no process goes on as before when the others have switched TLS
// on or off. Certificates are made once.
func TestTLSIsSwitchedForAll(t *testing.T) {
	cfg := config(t)
	apply(t, cfg)
	before := read(t, cfg)
	cfg.TLS = true
	// This program, as samya, takes no flags of TLS: it fails. All other processes are
	// down by then.
	if _, err := try(t, cfg); err == nil || !strings.Contains(err.Error(), "flag provided but not defined: -tls-cert") {
		t.Fatalf("error %v, want one of the program that does not know TLS", err)
	}
	for name, r := range before.Processes {
		if running(r.PID) {
			t.Errorf("%s goes on without TLS", name)
		}
	}
	files := cfg.Credentials()
	first, err := os.ReadFile(files.Cert)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := try(t, cfg); err == nil {
		t.Fatal("it started")
	}
	if again, err := os.ReadFile(files.Cert); err != nil || string(again) != string(first) {
		t.Errorf("the certificate was made anew, %v", err)
	}
	cfg.TLS = false
	for name, did := range apply(t, cfg) {
		if did != "started" {
			t.Errorf("%s was %s", name, did)
		}
	}
}
