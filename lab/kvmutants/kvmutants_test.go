package kvmutants

import (
	"errors"
	"os/exec"
	"testing"

	"github.com/samya-db/samya/lab/mutants"
)

// TestCatalogue: every bug is well-formed, and applies to the code as it is.
func TestCatalogue(t *testing.T) {
	bugs, err := Catalogue()
	if err != nil {
		t.Fatal(err)
	}
	const least = 17
	if len(bugs) < least {
		t.Errorf("%d bugs, want %d at least", len(bugs), least)
	}
	for i := range bugs {
		if _, err := mutants.ApplyEdits("../..", bugs[i].Name, bugs[i].Edits); err != nil {
			t.Error(err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	const edits = "--- file a.go\n--- old\nx\n--- new\ny\n"
	for name, text := range map[string]string{
		"nothing said":     "rule: r\nsubject: \n" + edits,
		"no way":           "says: s\nrule: r\n" + edits,
		"two ways":         "says: s\nrule: r\nsubject: seed=1\ntest: ./x Y\n" + edits,
		"bad subject":      "says: s\nrule: r\nsubject: size=1\n" + edits,
		"bad expectation":  "says: s\nrule: r\nsubject: seed=1\nexpect: panic\n" + edits,
		"unknown line":     "says: s\nrule: r\nsubject: seed=1\nmode: star\n" + edits,
		"no edit":          "says: s\nrule: r\nsubject: seed=1\n",
		"edit of anything": "says: s\nrule: r\nsubject: seed=1\n--- file ../a.go\n--- old\nx\n--- new\ny\n",
	} {
		if _, err := Parse("bug", text); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v, want %v", name, err, ErrFormat)
		}
	}
}

// TestJudge: only what names an invariant, or the test that fails, catches a bug.
func TestJudge(t *testing.T) {
	exit := error(&exec.ExitError{})
	tests := map[string]struct {
		bug  Bug
		out  string
		err  error
		want string
	}{
		"an invariant":        {Bug{Subject: "x"}, "--- FAIL: TestOracleOf\n violated atomic: …", exit, "atomic"},
		"a panic":             {Bug{Subject: "x"}, "panic: index out of range", exit, ""},
		"a time-out":          {Bug{Subject: "x"}, "violated atomic: …", errors.New("deadline"), ""},
		"a deadlock":          {Bug{Subject: "x"}, "violated deadlock: …", exit, ""},
		"a deadlock expected": {Bug{Subject: "x", Deadlock: true}, "violated deadlock: …", exit, "deadlock"},
		"another":             {Bug{Subject: "x", Deadlock: true}, "violated order: …", exit, ""},
		"a test":              {Bug{Test: "TestX"}, "--- FAIL: TestX (0.00s)\n", exit, "TestX"},
		"a test that panics":  {Bug{Test: "TestX"}, "--- FAIL: TestX (0.00s)\npanic: no\n", exit, ""},
		"a build that fails":  {Bug{Test: "TestX"}, "FAIL x [build failed]", exit, ""},
	}
	for name, test := range tests {
		if by, why := judge(&test.bug, test.out, test.err); by != test.want || (by == "") == (why == "") {
			t.Errorf("%s: %q, %q, want %q", name, by, why, test.want)
		}
	}
}
