package replay

import (
	"strings"
	"testing"
)

func TestGoals(t *testing.T) {
	summaries := func(change func(workload, setting string, m map[string]float64)) []Summary {
		var all []Summary
		for _, w := range []string{"fit", "tight", "burst", "over", "batch"} {
			for setting, m := range map[string]map[string]float64{
				"paper":             {"waited_percent": 4, "begun": 2400},
				"refuse":            {"p99_ms": 1.5, "p999_ms": 1.5},
				"transfer":          {"waited_percent": 1, "begun": 3600, "p999_ms": 3.5, "plenty_p99_ms": 3.5},
				"instance":          {"waited_percent": 1},
				"instance-constant": {"waited_percent": 2},
			} {
				if setting == "transfer" && (w == "fit" || w == "tight") {
					m["begun"] = 1920
				}
				if setting == "transfer" && w == "batch" {
					m["waited_percent"] = 0.088
				}
				change(w, setting, m)
				all = append(all, Summary{Workload: w, Setting: setting, Median: m})
			}
		}
		for _, c := range Crowds() {
			m := map[string]float64{"begun": 20 * float64(c.Bins)}
			change(c.Name, "transfer", m)
			all = append(all, Summary{Workload: c.Name, Setting: "transfer", Median: m})
		}
		return all
	}
	unmet := func(change func(workload, setting string, m map[string]float64)) string {
		goals, err := Goals(summaries(change), "transfer")
		if err != nil {
			t.Fatal(err)
		}
		if len(goals) != 20 {
			t.Errorf("%d goals", len(goals))
		}
		var list []string
		for _, g := range goals {
			if !g.Met {
				list = append(list, g.Workload+": "+g.What)
			}
		}
		return strings.Join(list, "; ")
	}
	if got := unmet(func(string, string, map[string]float64) {}); got != "" {
		t.Errorf("at their bounds: %s", got)
	}
	for name, tc := range map[string]struct {
		workload, setting, key string
		value                  float64
		want                   string
	}{
		"waits":            {"tight", "transfer", "waited_percent", 1.01, "tight: requests that wait"},
		"no waits at all":  {"fit", "paper", "waited_percent", 0, "fit: requests that wait"},
		"redistributions":  {"burst", "transfer", "begun", 3601, "burst: redistributions"},
		"none to compare":  {"burst", "paper", "begun", 0, "burst: redistributions"},
		"p99.9":            {"fit", "transfer", "p999_ms", 3.6, "fit: p99.9"},
		"of the paper's":   {"fit", "transfer", "begun", 1921, "fit: redistributions"},
		"false refusals":   {"burst", "transfer", "plenty_refused", 1, "burst: refused while"},
		"p99 of plenty":    {"tight", "transfer", "plenty_p99_ms", 3.6, "tight: p99 beyond"},
		"redistributing":   {"over", "transfer", "begun", 3601, "over: redistributions, of those under the paper's policies; over: redistributions a second"},
		"batches":          {"batch", "transfer", "waited_percent", 0.089, "batch: requests that wait, of"},
		"timing":           {"batch", "instance", "waited_percent", 1.1, "batch: requests that wait with"},
		"a storm":          {"crowd-50", "transfer", "begun", 481, "crowd-50: redistributions a second"},
		"left without":     {"crowd-20", "transfer", "timed_out", 1, "crowd-20: acquires that time out"},
		"constant is good": {"batch", "instance-constant", "waited_percent", 1.9, "batch: requests that wait with"},
	} {
		got := unmet(func(w, setting string, m map[string]float64) {
			if w == tc.workload && setting == tc.setting {
				m[tc.key] = tc.value
			}
		})
		if !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s: unmet %q, want %q", name, got, tc.want)
		}
	}
	if _, err := Goals(summaries(func(string, string, map[string]float64) {})[:10], "transfer"); err == nil {
		t.Error("judged without all summaries")
	}
}
