package doctor

import (
	"maps"
	"math"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// promtoolCase is a case of deploy/monitoring/alerts_test.yml.
type promtoolCase struct {
	Interval time.Duration
	Input    []struct{ Series, Values string } `yaml:"input_series"`
	Alerts   []struct {
		Alert    string        `yaml:"alertname"`
		At       time.Duration `yaml:"eval_time"`
		Expected []struct {
			Labels      map[string]string `yaml:"exp_labels"`
			Annotations map[string]string `yaml:"exp_annotations"`
		} `yaml:"exp_alerts"`
	} `yaml:"alert_rule_test"`
}

var (
	oneLabel = regexp.MustCompile(`([a-z_]+)="([^"]*)"`)
	oneRun   = regexp.MustCompile(`^(-?[0-9.]+)(?:([+-][0-9.]+))?x([0-9]+)$`)
)

// values expands the notation of promtool: 1+2x3 is 1 3 5 7, and _x3 three times none.
func values(t *testing.T, text string) (all []float64) {
	t.Helper()
	for run := range strings.FieldsSeq(text) {
		if none, ok := strings.CutPrefix(run, "_x"); ok {
			n, err := strconv.Atoi(none)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, slices.Repeat([]float64{math.NaN()}, n)...)
			continue
		}
		m := oneRun.FindStringSubmatch(run)
		if m == nil {
			t.Fatalf("values %q", run)
		}
		var n [3]float64
		for i, s := range m[1:] {
			if s != "" {
				var err error
				if n[i], err = strconv.ParseFloat(s, 64); err != nil {
					t.Fatal(err)
				}
			}
		}
		for i := range int(n[2]) + 1 {
			all = append(all, n[0]+float64(i)*n[1])
		}
	}
	return all
}

// looks are the looks that a case describes, through a time.
func (c *promtoolCase) looks(t *testing.T, through time.Duration) (all []Look) {
	t.Helper()
	type key struct{ job, instance, cluster, region string }
	type input struct {
		key
		metric string
		labels map[string]string
		values []float64
	}
	var inputs []input
	for _, in := range c.Input {
		metric, rest, _ := strings.Cut(in.Series, "{")
		labels := make(map[string]string)
		for _, m := range oneLabel.FindAllStringSubmatch(rest, -1) {
			labels[m[1]] = m[2]
		}
		k := key{labels["job"], labels["instance"], labels["cluster"], labels["region"]}
		for _, l := range []string{"job", "instance", "cluster", "region"} {
			delete(labels, l)
		}
		inputs = append(inputs, input{k, metric, labels, values(t, in.Values)})
	}
	began := time.Unix(1_700_000_000, 0)
	for n := 0; time.Duration(n)*c.Interval <= through; n++ {
		look := Look{At: began.Add(time.Duration(n) * c.Interval), Cluster: "prod"}
		at := make(map[key]int)
		for _, in := range inputs {
			if n >= len(in.values) || math.IsNaN(in.values[n]) {
				continue
			}
			if _, ok := at[in.key]; !ok {
				at[in.key] = len(look.Observations)
				look.Observations = append(look.Observations, Observation{
					Process: Process{Job: in.job, Instance: in.instance, Region: in.region, State: Answers},
				})
			}
			o := &look.Observations[at[in.key]]
			if in.metric == "up" {
				if in.values[n] == 0 {
					o.State = Silent
				}
				continue
			}
			o.Metrics = append(o.Metrics, Sample{in.metric, in.labels, in.values[n]})
		}
		all = append(all, look)
	}
	return all
}

func diagnose(t *testing.T, looks []Look) Report {
	t.Helper()
	d := NewDiagnosis()
	for _, l := range looks {
		if err := d.Add(l); err != nil {
			t.Fatal(err)
		}
	}
	r, err := d.Report()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func cases(t *testing.T) []promtoolCase {
	t.Helper()
	b, err := os.ReadFile("../deploy/monitoring/alerts_test.yml")
	if err != nil {
		t.Fatal(err)
	}
	var parsed struct{ Tests []promtoolCase }
	if err := yaml.Unmarshal(b, &parsed); err != nil {
		t.Fatal(err)
	}
	if len(parsed.Tests) == 0 {
		t.Fatal("no cases")
	}
	return parsed.Tests
}

// TestAlertsAsPrometheus: whoever has looked as long as Prometheus finds what Prometheus
// alerts of, with the same labels and texts: the cases that promtool judges.
func TestAlertsAsPrometheus(t *testing.T) {
	judged := make(map[string]int)
	for _, c := range cases(t) {
		for _, a := range c.Alerts {
			judged[a.Alert] |= 1 << min(len(a.Expected), 1)
			r := diagnose(t, c.looks(t, a.At))
			var got []Finding
			for _, f := range r.Findings {
				if f.ID == a.Alert {
					got = append(got, f)
				}
			}
			if len(got) != len(a.Expected) {
				t.Errorf("%s at %s: %d findings, want %d: %+v", a.Alert, a.At, len(got), len(a.Expected), got)
				continue
			}
			for i, want := range a.Expected {
				f := got[i]
				labels := maps.Clone(f.Labels)
				labels["severity"] = string(f.Severity)
				told := map[string]string{"summary": f.Summary, "description": f.Means, "runbook_url": f.Runbook}
				if !reflect.DeepEqual(labels, want.Labels) || !reflect.DeepEqual(told, want.Annotations) {
					t.Errorf("%s at %s:\ngot  %v %v\nwant %v %v", a.Alert, a.At, labels, told, want.Labels, want.Annotations)
				}
			}
		}
	}
	for _, r := range rules {
		if judged[r.id] != 3 {
			t.Errorf("%s has no case of both", r.id)
		}
	}
}

// TestShortForms: two looks find what each rule is about, while it is so, and nothing
// before it is. The only exception needs three starts of a process.
func TestShortForms(t *testing.T) {
	for _, c := range cases(t) {
		for _, a := range c.Alerts {
			if len(a.Expected) == 0 {
				continue
			}
			looks := c.looks(t, a.At)
			most := 0
			for n := range looks[1:] {
				of := 0
				for _, f := range diagnose(t, looks[n:n+2]).Findings {
					if f.ID == a.Alert {
						of++
					}
				}
				if n == 0 && of > 0 {
					t.Errorf("%s is found at first", a.Alert)
				}
				most = max(most, of)
			}
			want := len(a.Expected)
			if a.Alert == "SamyaRestarts" {
				want = 0
			}
			if most != want {
				t.Errorf("%s: %d findings, want %d", a.Alert, most, want)
			}
		}
	}
}
