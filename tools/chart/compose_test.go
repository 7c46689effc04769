package chart

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"go.yaml.in/yaml/v3"
)

// composeDir is the directory of the Compose file.
const composeDir = Root + "/deploy/compose"

// project reads the Compose file as `docker compose` does.
func project(t *testing.T, profiles, env []string) (*types.Project, error) {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{composeDir + "/compose.yaml"}, cli.WithEnv(env), cli.WithProfiles(profiles))
	if err != nil {
		t.Fatal(err)
	}
	return options.LoadProject(t.Context())
}

// TestCompose: the file is one of Compose, publishes ports to this machine alone, and
// mounts files that exist.
func TestCompose(t *testing.T) {
	if _, err := project(t, nil, nil); err == nil || !strings.Contains(err.Error(), "the image, such as samya:v1.2.3") {
		t.Errorf("without SAMYA_IMAGE: %v", err)
	}
	p, err := project(t, []string{"monitoring"}, []string{"SAMYA_IMAGE=samya:v1.2.3"})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Services) != 8 {
		t.Fatalf("%d services", len(p.Services))
	}
	published := 0
	for name, s := range p.Services {
		for _, port := range s.Ports {
			published++
			if port.HostIP != "127.0.0.1" {
				t.Errorf("%s publishes %s at %q", name, port.Published, port.HostIP)
			}
		}
		if s.Privileged || s.NetworkMode != "" || !slices.Contains(s.CapDrop, "ALL") || !slices.Contains(s.SecurityOpt, "no-new-privileges:true") {
			t.Errorf("%s has rights that it does not need", name)
		}
		for _, v := range s.Volumes {
			if v.Type == types.VolumeTypeBind {
				if _, err := os.Stat(v.Source); err != nil || !v.ReadOnly {
					t.Errorf("%s mounts %s: %v, read-only %t", name, v.Source, err, v.ReadOnly)
				}
			}
		}
		if strings.HasPrefix(s.Image, "samya") && (!s.ReadOnly || s.User != "65532:65532" || s.HealthCheck == nil || s.MemLimit == 0) {
			t.Errorf("%s has no check of its health, no bound of memory, or a root that it may write to", name)
		}
	}
	if published != 4 {
		t.Errorf("%d published ports", published)
	}
}

// TestComposeMonitoring: Prometheus reads the metrics of every process, under the names of
// jobs that the rules and the dashboard go by.
func TestComposeMonitoring(t *testing.T) {
	p, err := project(t, nil, []string{"SAMYA_IMAGE=samya:v1.2.3"})
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(composeDir + "/prometheus.yml")
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		ScrapeConfigs []struct {
			JobName       string                       `yaml:"job_name"`
			StaticConfigs []struct{ Targets []string } `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	if err := yaml.Unmarshal(b, &config); err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, c := range config.ScrapeConfigs {
		for _, s := range c.StaticConfigs {
			for _, target := range s.Targets {
				got = append(got, c.JobName+" "+target)
			}
		}
	}
	for name, s := range p.Services {
		job := map[string]string{"site": "samya-site", "appmgr": "samya-appmgr"}[s.Command[0]]
		for _, arg := range s.Command {
			if http, ok := strings.CutPrefix(arg, "--http="); ok {
				want = append(want, job+" "+name+http[strings.LastIndex(http, ":"):])
			}
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("Prometheus reads %v, want %v", got, want)
	}
}

// TestComposeProcesses runs the commands of the Compose file as processes of this machine,
// with its checks of health.
func TestComposeProcesses(t *testing.T) {
	t.Parallel()
	bin := samyaProgram(t)
	p, err := project(t, nil, []string{"SAMYA_IMAGE=samya:v1.2.3"})
	if err != nil {
		t.Fatal(err)
	}
	n, dir := newNetwork(), t.TempDir()
	// Addresses of the file become addresses of loopback; names of services lead to them.
	own := make(map[string]string)
	for name, s := range p.Services {
		own[s.Networks["samya"].Ipv4Address] = n.address()
		n.hosts[name] = own[s.Networks["samya"].Ipv4Address]
	}
	here := func(name string, args []string) []string {
		var line []string
		for _, arg := range args {
			for theirs, ours := range own {
				arg = strings.ReplaceAll(arg, theirs+":", ours+":")
			}
			line = append(line, n.resolve(strings.ReplaceAll(arg, "=/var/lib/samya", "="+filepath.Join(dir, name))))
		}
		return line
	}
	for name, s := range p.Services {
		start(t, name, "", bin, here(name, s.Command), []string{})
	}
	for name, s := range p.Services {
		check := here(name, s.HealthCheck.Test)
		eventually(t, name, func() error {
			if out, err := run(t, bin, check[2:]); err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		})
	}
	// Of the ports that the app manager publishes.
	address := "--addr=http://" + n.hosts["app-manager"] + ":" + p.Services["app-manager"].Ports[0].Published
	for _, line := range [][]string{{"sites"}, {"entity", "create", "acme/seats", "--limit=1000"}, {"acquire", "acme/seats", "30"}, {"release", "acme/seats", "30"}} {
		out, err := run(t, bin, append(line, address))
		if err != nil {
			t.Fatalf("%v: %v: %s", line, err, out)
		}
		t.Log(strings.TrimSpace(out))
	}
}
