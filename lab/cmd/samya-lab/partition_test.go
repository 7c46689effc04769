package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// partitionGraph is two triangles of heavy edges, joined by a light edge.
const partitionGraph = `6 7 1
2 9 3 9
1 9 3 9
1 9 2 9 4 1
3 1 5 9 6 9
4 9 6 9
4 9 5 9
`

func TestPartition(t *testing.T) {
	dir := t.TempDir()
	graph, parts := filepath.Join(dir, "graph"), filepath.Join(dir, "parts")
	if err := os.WriteFile(graph, []byte(partitionGraph), 0o600); err != nil {
		t.Fatal(err)
	}
	type result struct {
		Cut              *int64
		Balance, Seconds *float64
		Moved            *int
		Weights          [][]int64
		Hubs             []any
	}
	run := func(args ...string) (result, string) {
		t.Helper()
		var out, errs bytes.Buffer
		l := &lab{stdout: &out, stderr: &errs}
		if code := l.run(t.Context(), append([]string{"partition", "--graph", graph, "-k", "2"}, args...)); code != exitOK {
			t.Fatalf("exit status %d: %s", code, &errs)
		}
		var r result
		if err := json.Unmarshal(out.Bytes(), &r); err != nil && len(args) > 0 {
			t.Fatalf("no JSON: %v: %s", err, &out)
		}
		return r, out.String()
	}
	r, said := run("--json", "--out", parts, "--weights", "--gpmetis", "")
	if r.Cut == nil || *r.Cut != 1 || r.Balance == nil || *r.Balance != 1 || r.Seconds == nil || r.Moved != nil || len(r.Hubs) != 0 {
		t.Errorf("got %s", said)
	}
	if len(r.Weights) != 1 || len(r.Weights[0]) != 2 || r.Weights[0][0] != 3 || r.Weights[0][1] != 3 {
		t.Errorf("the parts weigh %v, want 3 and 3", r.Weights)
	}
	// Parts that are right already are kept, under their numbers.
	before, err := os.ReadFile(parts)
	if err != nil {
		t.Fatal(err)
	}
	turned := strings.NewReplacer("0", "1", "1", "0").Replace(string(before))
	start := filepath.Join(dir, "start")
	if err := os.WriteFile(start, []byte(turned), 0o600); err != nil {
		t.Fatal(err)
	}
	if r, said = run("--json", "--start", start, "--out", parts); r.Moved == nil || *r.Moved != 0 || *r.Cut != 1 {
		t.Errorf("got %s", said)
	}
	if after, err := os.ReadFile(parts); err != nil || string(after) != turned {
		t.Errorf("parts are %q, started from %q: %v", after, turned, err)
	}
	if _, said = run(); !strings.Contains(said, "6 vertices, 7 edges of weight 55, into 2 parts") || !strings.Contains(said, "1.818 %") {
		t.Errorf("got %s", said)
	}
}

func TestPartitionDraws(t *testing.T) {
	file := filepath.Join(t.TempDir(), "graph")
	var drawn, read bytes.Buffer
	for _, run := range []struct {
		out  *bytes.Buffer
		args []string
	}{
		{&drawn, []string{"--generate", "tree-root", "--vertices", "1200", "--save", file}},
		{&read, []string{"--graph", file}},
	} {
		var errs bytes.Buffer
		l := &lab{stdout: run.out, stderr: &errs}
		if code := l.run(t.Context(), append([]string{"partition", "-k", "8", "--seed", "7", "--gpmetis", "no-such-gpmetis"}, run.args...)); code != exitOK {
			t.Fatalf("exit status %d: %s", code, &errs)
		}
		for _, says := range []string{"1111 vertices", "1 hubs outweigh a part", "vertex 1111: 1.9", "without gpmetis: gpmetis is not installed"} {
			if !strings.Contains(run.out.String(), says) {
				t.Errorf("%v: no %q in %s", run.args, says, run.out)
			}
		}
	}
}

func TestPartitionFails(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	graph, bad, few := file("graph", partitionGraph), file("bad", "2 1\n2\n2\n"), file("few", "0\n")
	for _, test := range []struct {
		args []string
		code int
		says string
	}{
		{nil, exitUsage, "one of --graph FILE and --generate FAMILY"},
		{[]string{"--graph", graph, "--generate", "ring"}, exitUsage, "one of --graph FILE"},
		{[]string{"--graph", graph, "--vertices", "9"}, exitUsage, "--generate"},
		{[]string{"--graph", filepath.Join(dir, "none")}, exitUsage, "no such file"},
		{[]string{"--graph", bad}, exitFailed, "line 3: vertex 2 is its own neighbour"},
		{[]string{"--graph", graph, "-k", "0"}, exitUsage, "--parts 0, want 1 to 4096"},
		{[]string{"--graph", graph, "--imbalance", "-1"}, exitUsage, "-1"},
		{[]string{"--graph", graph, "--start", few}, exitFailed, "1 parts, want one for each of 6 vertices"},
		{[]string{"--generate", "trees"}, exitUsage, "no such family"},
		{[]string{"--generate", "ring", "--vertices", "1"}, exitUsage, "vertices out of range"},
		{[]string{"--suite", "--graph", graph}, exitUsage, "--suite takes no --graph"},
		{[]string{"--suite", "--seeds", "0"}, exitUsage, "--seeds"},
		{[]string{"--suite", "--seed", "2"}, exitUsage, "--suite takes no --seed"},
		{[]string{"--suite", "--sample", "-1"}, exitUsage, "--sample -1, want 1 to 19"},
		{[]string{"--suite", "--sample", "20"}, exitUsage, "--sample 20, want 1 to 19"},
		{[]string{"--suite", "--sample", "1", "--families", "ring"}, exitUsage, "no --families"},
		{[]string{"--suite", "--gpmetis", "no-such-gpmetis"}, exitFailed, "gpmetis is not installed"},
		{[]string{"more"}, exitUsage, "no arguments"},
	} {
		var out, errs bytes.Buffer
		l := &lab{stdout: &out, stderr: &errs}
		code := l.run(t.Context(), append([]string{"partition"}, test.args...))
		if code != test.code || !strings.Contains(errs.String(), test.says) {
			t.Errorf("%v: exit status %d, want %d: %s", test.args, code, test.code, &errs)
		}
	}
}
