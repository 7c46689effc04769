package terraform_test

import (
	"encoding/base64"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/samya-db/samya/terraform/tofutest"
)

// rendered is the output of modules/region for the machines of a region.
type rendered struct {
	SiteUserData       map[string]string          `json:"site_user_data"`
	AppManagerUserData string                     `json:"app_manager_user_data"`
	EtcdUserData       map[string]string          `json:"etcd_user_data"`
	SiteFiles          map[string]map[string]file `json:"site_files"`
	EtcdFiles          map[string]map[string]file `json:"etcd_files"`
	AppManagerFiles    map[string]file            `json:"app_manager_files"`
}

// file is a file of a machine.
type file struct {
	Content     string `json:"content"`
	Permissions string `json:"permissions"`
}

// region are the variables of a region that a test changes.
func region(more map[string]any) map[string]any {
	vars := map[string]any{
		"cluster": "samya", "region": "europe-west2", "founders": []string{"europe-west2-1"}, "seeds": []string{"10.64.32.10"},
		"addresses":   map[string]string{"europe-west2-1": "10.64.32.10"},
		"release":     map[string]string{"url": "https://example.com/samya", "sha256": strings.Repeat("0", 64)},
		"secrets":     map[string]string{"fetch": "printf %s \"$1\""},
		"data_device": "/dev/sdf",
	}
	maps.Copy(vars, more)
	return vars
}

// The machines of a region with a site of two nodes.
const (
	first    = "europe-west2-1"
	second   = first + "-b"
	etcdName = "etcd-europe-west2-1"
)

// withNodes are the variables of a region with a site of two nodes and an etcd of its own,
// and more.
func withNodes(more map[string]any) map[string]any {
	vars := map[string]any{
		"addresses": map[string]string{first: "10.64.32.10", second: "10.64.32.30"},
		"nodes":     map[string]map[string]string{first: {"site": first, "node": "a"}, second: {"site": first, "node": "b"}},
		"etcd": map[string]any{
			"endpoints": []string{"10.64.47.252:2379"}, "members": map[string]string{etcdName: "10.64.47.252"},
			"release": map[string]string{"url": "https://example.com/etcd", "sha256": strings.Repeat("1", 64)},
		},
	}
	maps.Copy(vars, more)
	return vars
}

// render makes the files of a region.
func render(t *testing.T, c *tofutest.Config, more map[string]any) rendered {
	t.Helper()
	c.Vars = region(more)
	if err := os.Remove(filepath.Join(c.Dir, "terraform.tfstate")); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	c.Must("apply", "-auto-approve")
	var r rendered
	c.Output(&r)
	return r
}

// program finds a program that a test runs. Where it is not installed the test is
// skipped, and fails in CI.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	return path
}

// TestUnits has systemd verify the units, and the shell read the scripts.
func TestUnits(t *testing.T) {
	c := tofutest.Copy(t, "modules/region", "")
	c.Must("init")
	dir := t.TempDir()
	paths := map[string]any{"paths": map[string]string{
		// Files that systemd looks for have to be there.
		"program": "/bin/true", "etcd": "/bin/true", "library": filepath.Join(dir, "lib"), "etc": dir,
	}}
	r, n := render(t, c, paths), render(t, c, withNodes(paths))
	analyze := program(t, "systemd-analyze")
	for kind, files := range map[string]map[string]file{
		"site": r.SiteFiles[first], "app manager": r.AppManagerFiles, "node": n.SiteFiles[second], "etcd": n.EtcdFiles[etcdName],
	} {
		t.Run(kind, func(t *testing.T) {
			var units []string
			at := t.TempDir()
			for path, f := range files {
				switch {
				case strings.HasPrefix(path, "/etc/systemd/system/"):
					path = filepath.Join(at, filepath.Base(path))
					units = append(units, path)
				case !strings.HasPrefix(path, dir):
					t.Fatalf("%s would be written here", path)
				}
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				mode, err := strconv.ParseUint(f.Permissions, 8, 32)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(f.Content), os.FileMode(mode)); err != nil {
					t.Fatal(err)
				}
				if strings.HasPrefix(f.Content, "#!/bin/sh\n") {
					if out, err := exec.Command("sh", "-n", path).CombinedOutput(); err != nil {
						t.Errorf("%s: %v\n%s", path, err, out)
					}
				}
			}
			slices.Sort(units)
			if len(units) != 3 {
				t.Fatalf("units %v, want three", units)
			}
			cmd := exec.Command(analyze, append([]string{"verify", "--man=no", "--generators=no", "--recursive-errors=no"}, units...)...)
			out, err := cmd.CombinedOutput()
			if err != nil || strings.TrimSpace(string(out)) != "" {
				t.Errorf("systemd-analyze verify: %v\n%s", err, out)
			}
			// The purpose of the check: systemd tells a line that it does not know.
			service := "samya.service"
			if kind == "etcd" {
				service = "etcd.service"
			}
			bad := strings.Replace(files["/etc/systemd/system/"+service].Content, "ProtectSystem=strict", "ProtectSystems=strict", 1)
			path := filepath.Join(at, "samya.service")
			if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
				t.Fatal(err)
			}
			if out, _ := exec.Command(analyze, "verify", "--man=no", path).CombinedOutput(); !strings.Contains(string(out), "ProtectSystems") {
				t.Errorf("a line that nobody knows passes:\n%s", out)
			}
		})
	}
}

// TestCloudConfig reads the user data of machines as cloud-init does.
func TestCloudConfig(t *testing.T) {
	c := tofutest.Copy(t, "modules/region", "")
	c.Must("init")
	r := render(t, c, withNodes(map[string]any{"serve_address": "any"}))
	for name, machine := range map[string]struct {
		text  string
		files map[string]file
		run   []string
	}{
		"site":        {r.SiteUserData["europe-west2-1"], r.SiteFiles["europe-west2-1"], []string{"install", "disk"}},
		"app manager": {r.AppManagerUserData, r.AppManagerFiles, []string{"install", "node"}},
		"node":        {r.SiteUserData[second], r.SiteFiles[second], []string{"install", "disk"}},
		"etcd":        {r.EtcdUserData[etcdName], r.EtcdFiles[etcdName], []string{"install", "disk"}},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.HasPrefix(machine.text, "#cloud-config\n") {
				t.Errorf("it begins %.20q", machine.text)
			}
			var doc struct {
				Users []any `yaml:"users"`
				Files []struct {
					Path, Permissions, Owner, Encoding, Content string
				} `yaml:"write_files"`
				Run [][]string `yaml:"runcmd"`
			}
			d := yaml.NewDecoder(strings.NewReader(machine.text))
			d.KnownFields(true)
			if err := d.Decode(&doc); err != nil {
				t.Fatalf("%v\n%s", err, machine.text)
			}
			if len(doc.Files) != len(machine.files) {
				t.Errorf("%d files, want %d", len(doc.Files), len(machine.files))
			}
			for _, f := range doc.Files {
				content, err := base64.StdEncoding.DecodeString(f.Content)
				if want := machine.files[f.Path]; err != nil || f.Encoding != "b64" || string(content) != want.Content || f.Permissions != want.Permissions {
					t.Errorf("%s: %v, %s, %q", f.Path, err, f.Permissions, content)
				}
			}
			var run []string
			for _, command := range doc.Run {
				if base := filepath.Base(command[0]); command[0] != "systemctl" {
					run = append(run, base)
					if machine.files[command[0]].Permissions != "0755" {
						t.Errorf("%s cannot be run", command[0])
					}
				} else if service := command[len(command)-1]; len(command) > 2 && machine.files["/etc/systemd/system/"+service].Content == "" {
					t.Errorf("%s is started, and is not there", service)
				}
			}
			if !slices.Equal(run, machine.run) {
				t.Errorf("runs %v, want %v", run, machine.run)
			}
			if cloudInit, err := exec.LookPath("cloud-init"); err == nil {
				path := filepath.Join(t.TempDir(), "user-data")
				if err := os.WriteFile(path, []byte(machine.text), 0o600); err != nil {
					t.Fatal(err)
				}
				if out, err := exec.Command(cloudInit, "schema", "--config-file", path).CombinedOutput(); err != nil {
					t.Errorf("cloud-init schema: %v\n%s", err, out)
				}
			}
		})
	}
}

// TestFirewall: every port that a process opens has a rule, and no other port has.
func TestFirewall(t *testing.T) {
	c := tofutest.Copy(t, "modules/region", "")
	c.Must("init")
	r := render(t, c, withNodes(nil))
	var out struct {
		Firewall map[string]struct {
			Of    string `json:"of"`
			Ports []int  `json:"ports"`
			From  string `json:"from"`
		} `json:"firewall"`
	}
	c.Output(&out)
	listens := regexp.MustCompile(`--(?:listen-client-urls|listen-peer-urls|http|grpc|gossip)=(?:https://)?\$\{(?:ADDRESS|SERVE)\}:(\d+)`)
	for of, unit := range map[string]string{
		"site":        r.SiteFiles[second]["/etc/systemd/system/samya.service"].Content,
		"app_manager": r.AppManagerFiles["/etc/systemd/system/samya.service"].Content,
		"etcd":        r.EtcdFiles[etcdName]["/etc/systemd/system/etcd.service"].Content,
	} {
		opened := make(map[string]bool)
		for _, m := range listens.FindAllStringSubmatch(unit, -1) {
			opened[m[1]] = false
		}
		if want := map[string]int{"site": 3, "app_manager": 3, "etcd": 2}[of]; len(opened) != want {
			t.Fatalf("%s listens on %v, want %d ports", of, opened, want)
		}
		for name, rule := range out.Firewall {
			for _, port := range rule.Ports {
				text := strconv.Itoa(port)
				if _, ok := opened[text]; rule.Of == of && !ok {
					t.Errorf("%s lets %s in, where nobody listens", name, text)
				} else if rule.Of == of {
					opened[text] = true
				}
			}
			if rule.Of == "site" && rule.From == "clients" {
				t.Errorf("%s lets clients come to sites", name)
			}
			if rule.Of == "etcd" && rule.From != "site" && rule.From != "etcd" {
				t.Errorf("%s lets %s come to etcd", name, rule.From)
			}
		}
		for port, ruled := range opened {
			if !ruled {
				t.Errorf("no rule lets anybody come to port %s of %s", port, of)
			}
		}
	}
}
