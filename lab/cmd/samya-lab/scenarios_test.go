package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/samya-db/samya/lab/sim"
)

func TestScenariosUsage(t *testing.T) {
	for _, test := range []struct{ args, names string }{
		{"quarters", "quarters"},
		{"--seeds -1", "seeds"},
		{"--workers 0", "workers"},
		{"--protocol paxos", "paxos"},
		{"no-majority --protocol star", "star"},
	} {
		code, _, stderr := runLab(t, append([]string{"scenarios"}, strings.Fields(test.args)...)...)
		if code != exitUsage || !strings.Contains(stderr, test.names) {
			t.Errorf("%s: exit status %d, %q", test.args, code, stderr)
		}
	}
}

func TestScenariosJSON(t *testing.T) {
	code, stdout, stderr := runLab(t, "scenarios", "halves", "leader-cut-after-value", "--seeds", "2", "--json")
	if code != exitOK {
		t.Fatalf("exit status %d: %s%s", code, stdout, stderr)
	}
	var r scenariosResult
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatal(err)
	}
	if strings.Count(stdout, "\n") != 1 || len(r.Scenarios) != 6 || r.Failed != 0 {
		t.Errorf("%s", stdout)
	}
	for _, sc := range r.Scenarios {
		if !sc.OK || sc.Seeds != 2 || sc.Expected == "" || sc.Happened == "" || len(sc.Figures) == 0 {
			t.Errorf("%+v", sc)
		}
	}
}

func TestScenariosForPeople(t *testing.T) {
	code, stdout, stderr := runLab(t, "scenarios", "pair", "--protocol", "star", "--seeds", "1")
	if code != exitOK {
		t.Fatalf("exit status %d: %s%s", code, stdout, stderr)
	}
	for _, want := range []string{"EXPECTED", "pair", "star", "ok", "the two redistribute", "1 of 1 as expected"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	code, stdout, _ = runLab(t, "scenarios", "--list")
	if code != exitOK || strings.Count(stdout, "\n") != len(sim.Scenarios()) {
		t.Errorf("exit status %d:\n%s", code, stdout)
	}
}

// TestScenariosThatFail tells the unexpected outcome, with the seed.
func TestScenariosThatFail(t *testing.T) {
	r := scenariosResult{Failed: 1, Scenarios: []sim.ScenarioResult{
		{Name: "halves", Mode: "star", Seeds: 3, Expected: "both sides redistribute", Problems: []string{"seed 2: nothing was applied"}},
	}}
	var out bytes.Buffer
	if err := r.tell(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"FAILS", "seed 2: nothing was applied", "0 of 1 as expected"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}
