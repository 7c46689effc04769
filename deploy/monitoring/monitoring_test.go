package monitoring

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/samya-db/samya/internal/apierr"
)

// rule is a rule of a file of rules.
type rule struct {
	Record, Alert, Expr, For string
	Labels, Annotations      map[string]string
}

// rules returns the rules of a file.
func rules(t *testing.T, file string) []rule {
	t.Helper()
	var parsed struct {
		Groups []struct{ Rules []rule }
	}
	unmarshal(t, file, &parsed)
	var all []rule
	for _, g := range parsed.Groups {
		all = append(all, g.Rules...)
	}
	if len(all) == 0 {
		t.Fatalf("no rules in %s", file)
	}
	return all
}

func unmarshal(t *testing.T, file string, into any) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(b, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// panel is a panel of the dashboard.
type panel struct {
	ID          int
	Type, Title string
	GridPos     struct{ H, W, X, Y int }
	Targets     []struct{ Expr, LegendFormat string }
	FieldConfig struct{ Defaults struct{ Unit string } }
}

func dashboard(t *testing.T) (panels []panel, variables []string) {
	t.Helper()
	b, err := os.ReadFile("dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels     []panel
		Templating struct {
			List []struct{ Type, Definition string }
		}
	}
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	for _, v := range d.Templating.List {
		if v.Type == "query" {
			variables = append(variables, v.Definition)
		}
	}
	if len(d.Panels) == 0 || len(variables) == 0 {
		t.Fatal("the dashboard has no panels or no variables")
	}
	return d.Panels, variables
}

// plain is an expression of the dashboard as Prometheus gets it.
var plain = strings.NewReplacer("$__rate_interval", "5m", "$cluster", ".*", "$region", ".*")

// targets returns the jobs and the labels of the example of a configuration.
func targets(t *testing.T) (jobs map[string]bool, labels map[string]bool) {
	t.Helper()
	var config struct {
		Scrape []struct {
			Job    string `yaml:"job_name"`
			Static []struct {
				Labels map[string]string
			} `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	unmarshal(t, "prometheus.yml", &config)
	jobs, labels = make(map[string]bool), map[string]bool{"job": true, "instance": true}
	for _, s := range config.Scrape {
		jobs[s.Job] = true
		for _, c := range s.Static {
			for l := range c.Labels {
				labels[l] = true
			}
		}
	}
	return jobs, labels
}

// judge holds the names that expressions may have.
type judge struct {
	exposed      exposed
	jobs, labels map[string]bool
	recorded     map[string][]string // labels by name
}

// check returns an error for each name in an expression that does not exist.
func (j *judge) check(expr string) error {
	e, err := read(plain.Replace(expr))
	if err != nil {
		return err
	}
	var errs []error
	known := maps.Clone(j.labels)
	for _, s := range e.selectors {
		seen, isExposed := j.exposed[s.metric]
		recorded, isRecorded := j.recorded[s.metric]
		if !isExposed && !isRecorded && s.metric != "up" {
			errs = append(errs, fmt.Errorf("no metric %s", s.metric))
			continue
		}
		own := make(map[string]bool)
		for l := range seen {
			own[l], known[l] = true, true
		}
		for _, l := range recorded {
			own[l], known[l] = true, true
		}
		for _, m := range s.matchers {
			if !own[m.label] && (isRecorded || !j.labels[m.label]) {
				errs = append(errs, fmt.Errorf("%s has no label %s", s.metric, m.label))
				continue
			}
			for _, v := range m.values() {
				if !j.value(seen, m.label, v) {
					errs = append(errs, fmt.Errorf("%s has no value %q of %s", s.metric, v, m.label))
				}
			}
		}
	}
	for _, l := range e.labels {
		if !known[l] {
			errs = append(errs, fmt.Errorf("no label %s to group by", l))
		}
	}
	return errors.Join(errs...)
}

// value reports whether a label may have a value.
func (j *judge) value(seen map[string]map[string]bool, label, value string) bool {
	switch {
	case value == ".*":
		return true
	case label == "job":
		return j.jobs[value]
	case label == "reason" && value != "OK":
		return slices.Contains(apierr.Reasons(), apierr.Reason(value))
	}
	return seen[label][value]
}

// TestNames: running processes expose every metric, label and value of a label that the
// rules and the dashboard name.
func TestNames(t *testing.T) {
	j := judge{exposed: scrape(t), recorded: make(map[string][]string)}
	j.jobs, j.labels = targets(t)
	check := func(where, expr string) {
		if err := j.check(expr); err != nil {
			t.Errorf("%s: %v", where, err)
		}
	}
	for _, r := range rules(t, "recording.yml") {
		check(r.Record, r.Expr)
		by, _, _ := strings.Cut(r.Record, ":")
		j.recorded[r.Record] = strings.Split(by, "_")
	}
	for _, r := range rules(t, "alerts.yml") {
		check(r.Alert, r.Expr)
	}
	panels, variables := dashboard(t)
	for _, p := range panels {
		for _, target := range p.Targets {
			check("panel "+p.Title, target.Expr)
		}
	}
	for _, v := range variables {
		expr, ok := strings.CutPrefix(v, "label_values(")
		at := strings.LastIndex(expr, ",")
		if !ok || at < 0 {
			t.Fatalf("variable %q", v)
		}
		check("variable "+v, "sum by ("+strings.Trim(expr[at+1:], " )")+") ("+expr[:at]+")")
	}
	for _, wrong := range []string{
		"samya_site_nothing", `samya_site_requests_total{why="OK"}`, `samya_site_requests_total{reason="BECAUSE"}`,
		"sum by (nothing) (samya_site_waiting)", `up{job="samya"}`, `samya_site_redistributions_total{outcome=~"applied|gone"}`,
		`cluster:samya_waited:ratio_rate5m{region="us"}`,
	} {
		if j.check(wrong) == nil {
			t.Errorf("%s is taken", wrong)
		}
	}
}

// TestDashboard: the panels have ids of their own and do not lie on each other. Every
// expression has a legend.
func TestDashboard(t *testing.T) {
	panels, _ := dashboard(t)
	ids := make(map[int]bool)
	taken := make(map[[2]int]string)
	for _, p := range panels {
		if p.ID == 0 || ids[p.ID] || p.Title == "" {
			t.Errorf("panel %d %q", p.ID, p.Title)
		}
		ids[p.ID] = true
		if p.Type != "row" && (len(p.Targets) == 0 || p.FieldConfig.Defaults.Unit == "") {
			t.Errorf("panel %q shows nothing, or has no unit", p.Title)
		}
		for _, target := range p.Targets {
			if target.Expr == "" || target.LegendFormat == "" {
				t.Errorf("panel %q: %+v", p.Title, target)
			}
		}
		g := p.GridPos
		if g.W < 1 || g.H < 1 || g.X < 0 || g.X+g.W > 24 {
			t.Errorf("panel %q at %+v", p.Title, g)
		}
		for x := g.X; x < g.X+g.W; x++ {
			for y := g.Y; y < g.Y+g.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" {
					t.Fatalf("panel %q lies on %q", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
}

// TestRunbooks: every alert has a severity, a text about the fault and a section in the
// runbooks. A test of package doctor sees that every section is an alert or another
// finding.
func TestRunbooks(t *testing.T) {
	b, err := os.ReadFile("../../docs/runbooks.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := make(map[string]bool)
	for line := range strings.Lines(string(b)) {
		if name, ok := strings.CutPrefix(line, "## Samya"); ok {
			sections["Samya"+strings.TrimSpace(name)] = true
		}
	}
	for _, r := range rules(t, "alerts.yml") {
		if !sections[r.Alert] {
			t.Errorf("no section for %s", r.Alert)
		}
		if s := r.Labels["severity"]; s != "critical" && s != "warning" {
			t.Errorf("%s is %q", r.Alert, s)
		}
		if r.Annotations["summary"] == "" || r.Annotations["description"] == "" ||
			!strings.HasSuffix(r.Annotations["runbook_url"], "/docs/runbooks.md#"+strings.ToLower(r.Alert)) {
			t.Errorf("%s says %v", r.Alert, r.Annotations)
		}
	}
}
