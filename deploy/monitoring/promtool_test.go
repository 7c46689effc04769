package monitoring

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// promtool runs promtool. If it is not installed, the test is skipped, and fails in CI.
func promtool(t *testing.T, args ...string) {
	t.Helper()
	bin, err := exec.LookPath("promtool")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("needs promtool, of the package prometheus")
		}
		t.Skip("needs promtool")
	}
	if out, err := exec.CommandContext(t.Context(), bin, args...).CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// TestSyntax: promtool takes the rules, the example of a configuration, and all
// expressions of the dashboard.
func TestSyntax(t *testing.T) {
	promtool(t, "check", "rules", "recording.yml", "alerts.yml")
	promtool(t, "check", "config", "prometheus.yml")
	type recorded struct {
		Record string `yaml:"record"`
		Expr   string `yaml:"expr"`
	}
	type group struct {
		Name  string     `yaml:"name"`
		Rules []recorded `yaml:"rules"`
	}
	all := group{Name: "dashboard"}
	panels, _ := dashboard(t)
	for _, p := range panels {
		for i, target := range p.Targets {
			all.Rules = append(all.Rules, recorded{fmt.Sprintf("panel:%d:%d", p.ID, i), plain.Replace(target.Expr)})
		}
	}
	b, err := yaml.Marshal(map[string][]group{"groups": {all}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "dashboard.yml")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "check", "rules", file)
}

// TestAlerts: each alert is silent while all is well, and tells the fault when it fires.
// Each alert has a case of both.
func TestAlerts(t *testing.T) {
	var cases struct {
		Tests []struct {
			Alerts []struct {
				Alert    string `yaml:"alertname"`
				Expected []any  `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	unmarshal(t, "alerts_test.yml", &cases)
	silent, fires := make(map[string]bool), make(map[string]bool)
	for _, c := range cases.Tests {
		for _, a := range c.Alerts {
			if len(a.Expected) == 0 {
				silent[a.Alert] = true
			} else {
				fires[a.Alert] = true
			}
		}
	}
	for _, r := range rules(t, "alerts.yml") {
		if !silent[r.Alert] || !fires[r.Alert] {
			t.Errorf("%s: a case in which it is silent: %v, in which it fires: %v", r.Alert, silent[r.Alert], fires[r.Alert])
		}
	}
	promtool(t, "test", "rules", "alerts_test.yml")
}
