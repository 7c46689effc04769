package earlyscheduling

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/samya-db/samya/lab/earlylab"
	"github.com/samya-db/samya/lab/experiment"
	"github.com/samya-db/samya/lab/experiment/experimenttest"
)

// given writes costs to a file.
func given(t *testing.T) string {
	t.Helper()
	b, err := json.Marshal(&earlylab.Costs{
		Append: 25, Scan: 1, Drain: 25, DrainEach: 1, Next: 5, Mark: .6, Enter: 14, Leave: 14, Arrive: 7, Watch: 5, Start: 5, Finish: 7, Open: 60,
		Seek: 6, Rob: 36, RobEach: 1, Plunder: 4, Restore: 12, Add: 45, Take: 24, End: 26, Compare: 1,
		Transfer: 50, Wake: 5000, Handover: 20_000, Yield: 80,
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "costs.json")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// parsed are the options that these flags give.
func parsed(t *testing.T, args ...string) *options {
	t.Helper()
	o := &options{}
	experimenttest.Parse(t, o.flags, args...)
	return o
}

func TestRun(t *testing.T) {
	o := parsed(t, "--virtual-threads", "1,8", "--write-shares", ".1,.5", "--rounds", "1", "--requests", "100", "--keys", "1000", "--costs", given(t))
	steps := 0
	r, err := o.run(t.Context(), experimenttest.Env(&steps))
	if err != nil {
		t.Fatal(err)
	}
	m := &measured{options: o}
	if want := len(m.cells()) + len(m.realLoads()); steps != want || len(r.Tables[0].Rows) != len(m.cells()) {
		t.Errorf("%d steps and %d rows, want %d", steps, len(r.Tables[0].Rows), want)
	}
	if want := 9 * len(m.realLoads()); len(r.Tables[1].Rows) != want {
		t.Errorf("%d rows of real runs, want %d", len(r.Tables[1].Rows), want)
	}
	for _, g := range r.Goals {
		if !g.Measured {
			t.Errorf("goal %s is not measured", g.What)
		}
	}
	if len(r.Compared) < 20 {
		t.Errorf("%d claims", len(r.Compared))
	}
	for _, name := range []string{"", "costs", "stealing", "single", "shards", "times", "stolen", "keys", "real"} {
		found := false
		for _, f := range r.Figures {
			if f.Name == name {
				var b bytes.Buffer
				if err := f.WriteSVG(&b); err != nil {
					t.Errorf("figure %q: %v", name, err)
				}
				found = true
			}
		}
		if !found {
			t.Errorf("no figure %q", name)
		}
	}
	dir := t.TempDir()
	if err := experiment.Write(dir, []*experiment.Result{r}); err != nil {
		t.Fatal(err)
	}
	report, err := os.ReadFile(filepath.Join(dir, experiment.ReportFile))
	if err != nil || !strings.Contains(string(report), "50,") && !strings.Contains(string(report), `"transfer":50`) {
		t.Errorf("no costs in the report: %v", err)
	}
}

// TestBudget: real runs end with the budget, and their figures are left out.
func TestBudget(t *testing.T) {
	o := parsed(t, "--virtual-threads", "8", "--write-shares", ".1", "--rounds", "1", "--requests", "100", "--keys", "1000", "--costs", given(t), "--budget", "1ns")
	steps := 0
	r, err := o.run(t.Context(), experimenttest.Env(&steps))
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Tables[1].Rows) != 0 {
		t.Errorf("%d rows of real runs without time", len(r.Tables[1].Rows))
	}
	for _, f := range r.Figures {
		if f.Name == "real" {
			t.Error("a figure of real runs without one")
		}
	}
}

func TestFlagsAreChecked(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.json")
	if err := os.WriteFile(bad, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	experimenttest.Refuses(t, &Experiment, [][]string{
		{"--virtual-threads", "8,1"},
		{"--virtual-threads", "0,8"},
		{"--virtual-threads", "128"},
		{"--virtual-threads", "1,2"},
		{"--write-shares", ".5,.1"},
		{"--write-shares", "1.5"},
		{"--write-shares", "-1"},
		{"--rounds", "0"},
		{"--requests", "1"},
		{"--keys", "1"},
		{"--budget", "0s"},
		{"--costs", bad},
		{"--costs", bad + ".none"},
	})
}

func TestRunEnds(t *testing.T) {
	experimenttest.Ends(t, &Experiment, "--costs", given(t), "--virtual-threads", "8")
}
