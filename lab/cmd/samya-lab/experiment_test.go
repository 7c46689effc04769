package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/samya-db/samya/lab/experiment"
	"github.com/samya-db/samya/lab/plot"
)

// withExperiments replaces the list for a test.
func withExperiments(t *testing.T, of ...*experiment.Experiment) {
	t.Helper()
	before, together := experiments, groups
	experiments, groups = of, nil
	t.Cleanup(func() { experiments, groups = before, together })
}

// counting is an experiment that finds the number in its flag.
func counting(name string, err error) *experiment.Experiment {
	return &experiment.Experiment{Name: name, Short: "count", New: func(f *pflag.FlagSet) experiment.Run {
		got := f.Float64("got", 5, "what it finds")
		return func(_ context.Context, env *experiment.Env) (*experiment.Result, error) {
			env.Progress(1, 2, "counting")
			return &experiment.Result{
				Goals:  []experiment.Goal{experiment.AtLeast("count", *got, 3, "")},
				Tables: []experiment.Table{{Heads: []string{"count"}}},
				Figures: []experiment.Figure{{Figure: plot.New(&plot.Lines{
					Title: "t", X: plot.Axis{Label: "x"}, Y: plot.Axis{Label: "y"}, Series: []plot.Series{{Name: "s", Points: []plot.Point{{X: 1, Y: 2}}}},
				})}},
			}, err
		}
	}}
}

func TestExperiment(t *testing.T) {
	broken := errors.New("broken")
	withExperiments(t, counting("one", nil), counting("two", nil))
	dir := t.TempDir()
	for name, c := range map[string]struct {
		args   []string
		status int
		out    string
		files  []string
	}{
		"one":     {[]string{"one"}, exitOK, "≥ 3", []string{"one.csv", "one.svg", "report.md"}},
		"missed":  {[]string{"two", "--got", "2"}, exitFailed, "no", []string{"two.csv", "report.md"}},
		"all":     {[]string{"all", "--quick"}, exitOK, "two", []string{"one.svg", "two.svg", "report.md"}},
		"none":    {nil, exitUsage, "", nil},
		"unknown": {[]string{"three"}, exitUsage, "", nil},
		"flag":    {[]string{"one", "--rounds", "3"}, exitUsage, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			var out, said strings.Builder
			to := filepath.Join(dir, name)
			l := &lab{stdout: &out, stderr: &said}
			if status := l.run(t.Context(), append([]string{"experiment", "--out", to}, c.args...)); status != c.status {
				t.Fatalf("status %d, want %d: %s", status, c.status, said.String())
			}
			if !strings.Contains(out.String(), c.out) {
				t.Errorf("said %q", out.String())
			}
			for _, file := range c.files {
				if _, err := os.Stat(filepath.Join(to, file)); err != nil {
					t.Error(err)
				}
			}
			if c.files != nil && !strings.Contains(said.String(), "1/2: counting") {
				t.Errorf("no progress in %q", said.String())
			}
		})
	}

	// The result of the first experiment is kept when the second fails.
	withExperiments(t, counting("one", nil), counting("two", broken))
	var out, said strings.Builder
	l := &lab{stdout: &out, stderr: &said}
	if status := l.run(t.Context(), []string{"experiment", "all", "--json", "--out", dir}); status != exitFailed || !strings.Contains(said.String(), "broken") {
		t.Errorf("status %d: %s", status, said.String())
	}
	var told struct {
		Experiments []struct {
			Name  string `json:"name"`
			Goals []struct {
				Met bool    `json:"met"`
				Got float64 `json:"got"`
			} `json:"goals"`
		} `json:"experiments"`
	}
	if err := json.Unmarshal([]byte(out.String()), &told); err != nil || len(told.Experiments) != 1 || told.Experiments[0].Goals[0].Got != 5 {
		t.Errorf("told %q: %v", out.String(), err)
	}
}

// A group runs its members with the same flags; each member is also there alone.
func TestExperimentGroup(t *testing.T) {
	withExperiments(t, counting("one", nil))
	groups = []*experiment.Group{{Name: "both", Short: "count twice", New: func(f *pflag.FlagSet) []experiment.Member {
		two, three := counting("two", nil), counting("three", nil)
		run := two.New(f)
		return []experiment.Member{{Experiment: two, Run: run}, {Experiment: three, Run: run}}
	}}}
	for name, c := range map[string]struct {
		args   []string
		status int
		files  string
	}{
		"group":  {[]string{"both", "--got", "4"}, exitOK, "report.md three.csv three.svg two.csv two.svg"},
		"missed": {[]string{"both", "--got", "2"}, exitFailed, "report.md three.csv three.svg two.csv two.svg"},
		"member": {[]string{"three", "--got", "3"}, exitOK, "report.md three.csv three.svg"},
		"all":    {[]string{"all"}, exitOK, "one.csv one.svg report.md three.csv three.svg two.csv two.svg"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, said strings.Builder
			to := t.TempDir()
			l := &lab{stdout: &out, stderr: &said}
			if status := l.run(t.Context(), append([]string{"experiment", "--out", to}, c.args...)); status != c.status {
				t.Fatalf("status %d, want %d: %s", status, c.status, said.String())
			}
			entries, err := os.ReadDir(to)
			var files []string
			for _, e := range entries {
				files = append(files, e.Name())
			}
			if got := strings.Join(files, " "); err != nil || got != c.files {
				t.Errorf("wrote %s, want %s: %v", got, c.files, err)
			}
		})
	}
}

// Every experiment has a name of its own that can name files.
func TestExperimentNames(t *testing.T) {
	seen := make(map[string]bool)
	list := slices.Clone(experiments)
	for _, g := range groups {
		list = append(list, &experiment.Experiment{Name: g.Name, Short: g.Short, New: func(*pflag.FlagSet) experiment.Run { return nil }})
		for _, m := range g.New(pflag.NewFlagSet(g.Name, pflag.ContinueOnError)) {
			list = append(list, m.Experiment)
		}
	}
	for _, e := range list {
		if e.Name == "" || e.Name == "all" || seen[e.Name] || strings.Trim(e.Name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || e.Short == "" || e.New == nil {
			t.Errorf("experiment %q", e.Name)
		}
		seen[e.Name] = true
	}
}
