package mutants

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/samya-db/samya/lab/kvoracle"
	"github.com/samya-db/samya/lab/mutants/finding"
)

// readTests adds the finding of tests to an outcome.
func (o *Outcome) readTests(out []byte, said string, err error, w way, known []string) {
	if err != nil {
		o.Err = errors.Join(o.Err, fmt.Errorf("%v: %w", w, err))
		return
	}
	f, err := readTests(out, w, known)
	if err != nil {
		o.Err = errors.Join(o.Err, fmt.Errorf("%v: %w: %s", w, err, tail(said)))
		return
	}
	o.Found = append(o.Found, Found{Way: w.String(), Finding: f})
}

// ErrNotTested is matched by the error for tests that tell nothing: the build
// failed, or no test ran.
var ErrNotTested = errors.New("nothing was tested")

// testEvent is a line that `go test -json` prints.
type testEvent struct {
	Action, Package, Test, Output, FailedBuild string
}

// readTests reads the output of `go test -json`: a violation for each named test that
// failed, except known tests. A panic and a time-out tell nothing. If the bug hangs, a
// bubble of synctest may be deadlocked. The oracle of kvpart's order names an invariant.
func readTests(out []byte, w way, known []string) (finding.Finding, error) {
	var f finding.Finding
	said := make(map[string]string)
	for line := range bytes.Lines(out) {
		var e testEvent
		if json.Unmarshal(line, &e) != nil {
			continue // The go command prints text as well when it fails.
		}
		name, _, _ := strings.Cut(e.Test, "/")
		switch {
		case e.FailedBuild != "" || e.Action == "build-fail":
			return f, fmt.Errorf("%w: the build failed: %s", ErrNotTested, tail(said[""]))
		case e.Action == "output" || e.Action == "build-output":
			said[name] += e.Output
			if f.Panic == "" && panicked(e.Output, w.hangs) {
				f.Panic = strings.TrimSpace(e.Output)
			}
		case e.Test == "" || strings.Contains(e.Test, "/"):
		case e.Action == "pass" || e.Action == "fail":
			f.Tests++
			if e.Action == "fail" && !slices.Contains(f.Broken, name) && !slices.Contains(known, name) {
				f.Broken = append(f.Broken, name)
			}
		}
	}
	switch {
	case f.Tests == 0 && f.Panic == "":
		return f, fmt.Errorf("%w: no test ran: %s", ErrNotTested, tail(said[""]))
	case f.Panic != "":
		f.Panics, f.Broken = 1, nil
	case len(f.Broken) > 0:
		f.Violations, f.Invariant = len(f.Broken), f.Broken[0]
		f.Detail = tail(said[f.Invariant])
	}
	if w.subject != "" && f.Violations > 0 {
		named := violated.FindStringSubmatch(said[f.Invariant])
		if named == nil || (named[1] == string(kvoracle.Deadlock)) != w.deadlock {
			// It failed by something else than the file of the bug says.
			f.Violations, f.Invariant = 0, ""
		} else {
			f.Invariant = named[1]
		}
	}
	return f, nil
}

// violated finds the invariant in the output of the oracle's test.
var violated = regexp.MustCompile(`violated ([a-z]+)[:\n]`)

// panicked reports whether a line of output begins a panic that tells nothing.
func panicked(line string, hangs bool) bool {
	if hangs && (strings.HasPrefix(line, "panic: deadlock: ") || strings.HasPrefix(line, "fatal error: all goroutines are asleep")) {
		return false
	}
	return strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ")
}

// tail returns the end of a program's output, at most 1,500 bytes.
func tail(out string) string {
	out = strings.TrimSpace(out)
	return out[max(0, len(out)-1500):]
}
