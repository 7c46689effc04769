package conformance

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheTable: the table of the clients has no faults.
func TestTheTable(t *testing.T) {
	rows, err := Load(clients + "/conformance/scenarios.json")
	if err != nil || len(rows) < 25 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}

// TestFaultsOfTables: a table that could not be played, or a row that could not fail, is
// refused with the row's name and the step.
func TestFaultsOfTables(t *testing.T) {
	for what, test := range map[string]struct{ table, want string }{
		"no table":        {`{`, "read the table"},
		"unknown member":  {`[{"name": "r", "says": "s", "stepz": []}]`, "stepz"},
		"no steps":        {`[{"name": "r", "says": "s"}]`, "wants a name, a sentence and steps"},
		"twice":           {`[{"name": "r", "says": "s", "steps": [{"do": "x", "want": {}}]}, {"name": "r", "says": "s", "steps": [{"do": "x", "want": {}}]}]`, "is there twice"},
		"nothing wanted":  {`[{"name": "r", "says": "s", "steps": [{"do": "x"}]}]`, "cannot fail"},
		"two in a step":   {`[{"name": "r", "says": "s", "steps": [{"do": "x", "until": "y", "want": {}}]}]`, "step 1: has 2"},
		"until nothing":   {`[{"name": "r", "says": "s", "steps": [{"until": "y"}]}]`, "wants something to wait for"},
		"unnamed begin":   {`[{"name": "r", "says": "s", "steps": [{"begin": "y"}]}]`, "wants a name"},
		"end of nothing":  {`[{"name": "r", "says": "s", "steps": [{"end": "y", "want": {}}]}]`, `no call is named "y"`},
		"foreign fault":   {`[{"name": "r", "says": "s", "steps": [{"fault": "melt", "process": "a"}]}]`, `no "melt"`},
		"fault of nobody": {`[{"name": "r", "says": "s", "steps": [{"fault": "kill"}]}]`, `of process ""`},
		"too long":        {`[{"name": "r", "says": "s", "steps": [{"pass_ms": 10001}]}]`, "at most 10000"},
	} {
		path := filepath.Join(t.TempDir(), "table.json")
		if err := os.WriteFile(path, []byte(test.table), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(path); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", what, err, test.want)
		}
	}
}

// TestMatches: an outcome matches only if it has all that is wanted.
func TestMatches(t *testing.T) {
	got := Outcome{"tokens": 3.0, "site": "a", "list": []any{map[string]any{"field": "tokens"}}, "inner": map[string]any{"n": 0.0}}
	for want, problem := range map[string]map[string]any{
		"":                                    {"tokens": 3.0, "list": []any{map[string]any{"field": "tokens"}}, "inner": map[string]any{"n": 0.0}},
		".tokens is 3, want 4":                {"tokens": 4.0},
		".none is <nil>, want 4":              {"none": 4.0},
		".tokens is 3, want at least 4":       {"tokens": map[string]any{"at_least": 4.0}},
		".tokens is 3, want at most 2":        {"tokens": map[string]any{"at_most": 2.0}},
		".site is a, want has b":              {"site": map[string]any{"has": "b"}},
		".none is <nil>, want set true":       {"none": map[string]any{"set": true}},
		".inner.n is 0, want set true":        {"inner": map[string]any{"n": map[string]any{"set": true}}},
		".site is a, want set false":          {"site": map[string]any{"set": false}},
		".list[0].field is tokens, want wait": {"list": []any{map[string]any{"field": "wait"}}},
		".site is a, and no object":           {"site": map[string]any{"n": 1.0}},
	} {
		if is := Matches(got, problem); is != want {
			t.Errorf("%v: %q, want %q", problem, is, want)
		}
	}
	refused := Outcome{"error": map[string]any{"kind": "OutOfTokens"}}
	if is := Matches(refused, map[string]any{}); !strings.Contains(is, "the call failed") {
		t.Errorf("a failed call where none is wanted: %q", is)
	}
	if is := Matches(refused, map[string]any{"error": map[string]any{"kind": "OutOfTokens"}}); is != "" {
		t.Errorf("a failed call that is wanted: %q", is)
	}
	if is := Matches(got, map[string]any{"error": map[string]any{"kind": "OutOfTokens"}}); is == "" {
		t.Error("a call that was to fail and did not")
	}
}

// TestFill: Fill puts the value of a name in the place of a reference to the name. An unknown
// name is an error.
func TestFill(t *testing.T) {
	values := map[string]any{"entity": "acme/vm", "first": Outcome{"error": map[string]any{"n": 3.0}}}
	filled, err := fill(map[string]any{"a": "$entity/b", "b": []any{"$first.error.n", "plain"}, "c": 1.0}, values)
	got, _ := filled.(map[string]any)
	list, _ := got["b"].([]any)
	if err != nil || got["a"] != "acme/vm/b" || got["c"] != 1.0 || len(list) != 2 || list[0] != 3.0 || list[1] != "plain" {
		t.Errorf("%v, %v", filled, err)
	}
	if _, err := fill("$first.none", values); err == nil || !strings.Contains(err.Error(), `"none"`) {
		t.Errorf("an unknown member: %v", err)
	}
}

var update = flag.Bool("update", false, "write the rows into docs/clients.md anew")

// TestRowsInTheDocs: docs/clients.md has every row as the table has it.
func TestRowsInTheDocs(t *testing.T) {
	const page, begin, end = "../../docs/clients.md", "<!-- rows: written by the tests of lab/conformance -->\n", "<!-- end of rows -->\n"
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), begin)
	is, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no place for the rows", page)
	}
	rows, err := Load(clients + "/conformance/scenarios.json")
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	want.WriteString("\n| row | all clients promise |\n|---|---|\n")
	for _, r := range rows {
		fmt.Fprintf(&want, "| %s | %s |\n", r.Name, r.Says)
	}
	want.WriteString("\n")
	switch {
	case is == want.String():
	case *update:
		if err := os.WriteFile(page, []byte(before+begin+want.String()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s does not have the rows as they are; run this test with -update", page)
	}
}
