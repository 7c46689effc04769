package mutants

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/samya-db/samya/internal/race"
	"github.com/samya-db/samya/lab/mutants/finding"
)

// TestRecord: verdicts on the same source are known, others are not. A line that was not
// written to its end is dropped.
func TestRecord(t *testing.T) {
	race.OtherProcesses(t)
	dir := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=n", "-c", "user.email=e@example.org"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v: %s", args, err, out)
		}
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "a.go"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("package a\n")
	git("init", "-q")
	git("add", "a.go")
	git("commit", "-q", "-m", "a")
	path := filepath.Join(t.TempDir(), "verdicts")
	caught := Outcome{Bug: &Bug{Name: "caught"}, Alone: "why", Took: time.Second, Found: []Found{{Way: "sim star", Finding: finding.Finding{Violations: 1, Seed: 7}}}}
	// known adds verdicts, and returns the names of the bugs that were known before.
	known := func(add ...Outcome) map[string]*Outcome {
		t.Helper()
		h := &harness{Options: Options{Root: dir, Record: path, Timeout: time.Minute}}
		if err := h.openRecord(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i := range add {
			if err := h.record.add(add[i].Bug.Name, &add[i]); err != nil {
				t.Fatal(err)
			}
		}
		if err := h.record.Close(); err != nil {
			t.Fatal(err)
		}
		return h.recorded
	}
	if got := known(caught, Outcome{Bug: &Bug{Name: "missed"}}, Outcome{Bug: &Bug{Name: "failed"}, Err: ErrRotten}); len(got) != 0 {
		t.Errorf("a new record knows %v", got)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"revision":"`); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	got := known(Outcome{Bug: &Bug{Name: "later"}})
	if len(got) != 2 || got["missed"] == nil || got["caught"] == nil {
		t.Fatalf("it knows %v, want caught and missed", got)
	}
	if how, f := got["caught"].CaughtBy(); how != "sim star" || f.Seed != 7 || got["caught"].Alone != "why" || got["caught"].Took != time.Second {
		t.Errorf("it remembers %+v", got["caught"])
	}
	if got := known(); got["later"] == nil {
		t.Errorf("it knows %v, want later as well", got)
	}

	write("package a // another\n")
	if got := known(caught); len(got) != 0 {
		t.Errorf("on changed code it knows %v", got)
	}
	if got := known(); len(got) != 1 {
		t.Errorf("on the same changed code it knows %v", got)
	}
	git("commit", "-q", "-a", "-m", "b")
	if got := known(); len(got) != 0 {
		t.Errorf("on another commit it knows %v", got)
	}

	if err := os.WriteFile(path, []byte("nothing\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := &harness{Options: Options{Root: dir, Record: path, Timeout: time.Minute}}
	if err := h.openRecord(t.Context()); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a record that cannot be read gives %v", err)
	}
}
