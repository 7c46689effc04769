package mutants

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/samya-db/samya/internal/race"
)

// TestReadTests: only a named test that fails catches a bug.
func TestReadTests(t *testing.T) {
	const (
		fails  = `{"Action":"output","Package":"p","Test":"TestA","Output":"a_test.go:1: wrong\n"}` + "\n" + `{"Action":"fail","Package":"p","Test":"TestA"}` + "\n"
		sub    = `{"Action":"fail","Package":"p","Test":"TestA/x"}` + "\n"
		passes = `{"Action":"pass","Package":"p","Test":"TestB"}` + "\n"
	)
	output := func(text string) string {
		return `{"Action":"output","Package":"p","Test":"TestA","Output":"` + text + `\n"}` + "\n"
	}
	tests := map[string]struct {
		out    string
		hangs  bool
		known  []string
		broken string
		tests  int
		err    error
	}{
		"a test fails":         {out: sub + fails + passes, broken: "TestA", tests: 2},
		"all pass":             {out: passes, tests: 1},
		"it fails without":     {out: fails + passes, known: []string{"TestA"}, tests: 2},
		"it panics":            {out: output("panic: no") + fails, tests: 1},
		"it takes too long":    {out: output("panic: test timed out after 1s") + fails, tests: 1},
		"it runs out of hours": {out: output("fatal error: out of memory"), tests: 0},
		"a deadlock":           {out: output("panic: deadlock: main bubble goroutine has exited") + fails, tests: 1},
		"a deadlock expected":  {out: output("panic: deadlock: main bubble goroutine has exited") + fails, hangs: true, broken: "TestA", tests: 1},
		"a time-out is none":   {out: output("panic: test timed out after 1s") + fails, hangs: true, tests: 1},
		"no test":              {out: output("ok"), err: ErrNotTested},
		"no build":             {out: `{"Action":"fail","Package":"p","FailedBuild":"p"}` + "\n", err: ErrNotTested},
		"text":                 {out: "go: no such package\n", err: ErrNotTested},
	}
	for name, test := range tests {
		f, err := readTests([]byte(test.out), way{hangs: test.hangs}, test.known)
		if !errors.Is(err, test.err) || f.Invariant != test.broken || (f.Violations > 0) != (test.broken != "") || f.Tests != test.tests {
			t.Errorf("%s: %+v, %v", name, f, err)
		}
	}
}

// TestReadOrder: only an invariant that the oracle names catches a bug, and a deadlock
// catches only a bug that expects it.
func TestReadOrder(t *testing.T) {
	output := func(text string) string {
		return `{"Action":"output","Package":"p","Test":"TestOracleOf","Output":"` + text + `\n"}` + "\n"
	}
	const fails = `{"Action":"fail","Package":"p","Test":"TestOracleOf"}` + "\n"
	tests := map[string]struct {
		out      string
		deadlock bool
		want     string
	}{
		"an invariant":        {out: output("seed=1: violated atomic: …") + fails, want: "atomic"},
		"nothing named":       {out: output("seed=1: no such backend") + fails},
		"a panic":             {out: output("panic: index out of range") + fails},
		"a deadlock":          {out: output("violated deadlock: …") + fails},
		"a deadlock expected": {out: output("violated deadlock: …") + fails, deadlock: true, want: "deadlock"},
		"another":             {out: output("violated order: …") + fails, deadlock: true},
		"it passes":           {out: `{"Action":"pass","Package":"p","Test":"TestOracleOf"}` + "\n"},
	}
	for name, test := range tests {
		f, err := readTests([]byte(test.out), way{subject: "seed=1", deadlock: test.deadlock}, nil)
		if err != nil || f.Invariant != test.want || (f.Violations > 0) != (test.want != "") {
			t.Errorf("%s: %+v, %v, want %q", name, f, err, test.want)
		}
	}
}

// TestTestsJudge seeds bugs in a module of its own: a bug that a test sees, another that
// none sees, and bugs that panic, never end, do not compile, and are not to be found.
func TestTestsJudge(t *testing.T) {
	race.OtherProcesses(t)
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "p"), 0o700); err != nil {
		t.Fatal(err)
	}
	write("go.mod", "module example.org/m\n\ngo 1.26\n")
	write("p/p.go", "package p\n\nfunc Two() int {\n\treturn 2\n}\n\nfunc Unseen() int {\n\treturn 5\n}\n\nfunc wait(c chan int) {\n\tclose(c)\n}\n")
	write("p/p_test.go", `package p

import (
	"testing"
	"testing/synctest"
)

func TestTwo(t *testing.T) {
	if Two() != 2 {
		t.Error("not two")
	}
}

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := make(chan int)
		go wait(c)
		<-c
	})
}
`)
	bug := func(name, extra, old, text string) Bug {
		b, err := Parse(name, "says: s\nrule: r\nvariant: mux\nkind: race\njudge: test\ntests: ./p\n"+extra+"--- file p/p.go\n--- old\n"+old+"\n--- new\n"+text+"\n")
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	bugs := []Bug{
		bug("seen", "", "\treturn 2", "\treturn 3"),
		bug("unseen", "", "\treturn 5", "\treturn 6"),
		bug("panics", "run: TestTwo\n", "\treturn 2", "\tpanic(2)"),
		bug("does-not-end", "run: TestTwo\ntimeout: 1s\n", "\treturn 2", "\tfor {\n\t}"),
		bug("not-built", "", "\treturn 2", "\treturn nil"),
		bug("deadlock", "run: TestWait\nhangs: yes\n", "\tclose(c)", "\t_ = c"),
		bug("deadlock-unexpected", "run: TestWait\n", "\tclose(c)", "\t_ = c"),
		bug("rotten", "", "\treturn 7", "\treturn 8"),
	}
	options := Options{Root: dir, Jobs: 2, Timeout: time.Minute}
	r, err := Run(t.Context(), bugs, options)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"unseen", "panics", "does-not-end", "not-built", "deadlock-unexpected", "rotten"}
	if got := r.Uncaught(); !slices.Equal(got, want) || r.ControlViolations() != 0 {
		t.Errorf("not caught are %q, want %q; the control fails %d times", got, want, r.ControlViolations())
	}
	alone := make(map[string]string)
	for _, b := range r.Summary().Results {
		alone[b.Name] = b.Alone
	}
	if alone["seen"] != "" || alone["deadlock"] != "" || !strings.Contains(alone["not-built"], "not-built.bug:") ||
		!strings.Contains(alone["rotten"], ErrRotten.Error()) || alone["unseen"] != "not caught among others" {
		t.Errorf("compiled alone are %q", alone)
	}
	text := new(strings.Builder)
	if err := r.Print(text); err != nil || !strings.Contains(text.String(), "2 of 8 bugs caught") || !strings.Contains(text.String(), "2 compiled together, 6 alone") {
		t.Errorf("it prints %v:\n%s", err, text)
	}

	options.Alone = true
	if r, err = Run(t.Context(), bugs[:2], options); err != nil {
		t.Fatal(err)
	}
	if got := r.Uncaught(); !slices.Equal(got, want[:1]) || r.ControlViolations() != 0 || r.Alone() != 2 {
		t.Errorf("compiled alone, not caught are %q, want %q; the control fails %d times", got, want[:1], r.ControlViolations())
	}
	options.Alone = false

	// A test that fails without the bug tells nothing.
	write("p/q_test.go", "package p\n\nimport \"testing\"\n\nfunc TestWrong(t *testing.T) { t.Error(\"always\") }\n")
	r, err = Run(t.Context(), bugs[1:2], options)
	if err != nil {
		t.Fatal(err)
	}
	if r.ControlViolations() != 1 || r.OK() || len(r.Uncaught()) != 1 {
		t.Errorf("with a test that always fails: %+v", r.Summary())
	}
}

// TestBudget: bugs are begun until the time is up, in an order that a number draws.
func TestBudget(t *testing.T) {
	var bugs []Bug
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		bugs = append(bugs, Bug{Name: name, Judge: JudgeTest, Variant: "mux", Edits: []Edit{{File: "none", Old: "x"}}})
	}
	order := func(o Options) (names string, s Summary) {
		o.Progress = func(o Outcome) {
			if o.Bug != nil {
				names += o.Bug.Name
			}
		}
		r, err := Run(t.Context(), bugs, o)
		if err != nil {
			t.Fatal(err)
		}
		return names, r.Summary()
	}
	options := Options{Root: t.TempDir(), Jobs: 1, Timeout: time.Minute, Budget: time.Minute, Order: 7}
	first, s := order(options)
	again, _ := order(options)
	options.Order = 8
	other, _ := order(options)
	if len(first) != len(bugs) || first != again || first == other || s.Bugs != len(bugs) || s.Order != 7 {
		t.Errorf("orders %q, %q and %q; %+v", first, again, other, s)
	}
	options.Budget = 1
	if none, s := order(options); none != "" || s.Bugs != 0 || s.Selected != len(bugs) || s.Caught != 0 {
		t.Errorf("without time, %q are judged: %+v", none, s)
	}
}
