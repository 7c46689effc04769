package mutants

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/samya-db/samya/lab/kvoracle"
	"github.com/samya-db/samya/lab/mutants/finding"
)

// testTimeout is how long the tests of a bug may take if its file says nothing.
const testTimeout = time.Minute

// anyTest is the regular expression for the names of all tests.
const anyTest = ".*"

// The oracle's test judges a subject by orderSeeds seeds by default. The unchanged code
// has to pass orderControlSeeds seeds at most.
const (
	orderTests        = "./lab/kvoracle"
	orderTest         = "TestOracleOf"
	orderTimeout      = 3 * time.Minute
	orderSeeds        = 60
	orderControlSeeds = 3
	// orderPatience is when the watchdog takes a request for stuck.
	orderPatience = "5s"
)

// testWay returns how tests, or the oracle of kvpart's order, look for a bug.
func (b *Bug) testWay() way {
	if b.Judge == JudgeOrder {
		return way{
			tests: orderTests, run: orderTest, timeout: orderTimeout,
			subject: b.Subject, seeds: cmp.Or(b.Seeds, orderSeeds), deadlock: b.Deadlock,
		}
	}
	run := anyTest
	if len(b.Run) > 0 {
		run = strings.Join(b.Run, "|")
	}
	return way{tests: strings.Join(b.Tests, " "), run: run, timeout: cmp.Or(b.Timeout, testTimeout), hangs: b.Hangs}
}

// testControls lists the tests that the unchanged code has to pass: for each list of
// packages the tests of all bugs, and for the oracle of kvpart's order each subject.
func testControls(bugs []Bug) []way {
	var list []way
	for i := range bugs {
		if bugs[i].Judge == JudgeSim {
			continue
		}
		w := bugs[i].testWay()
		w.hangs, w.seeds, w.deadlock = false, min(w.seeds, orderControlSeeds), false
		at := slices.IndexFunc(list, func(have way) bool { return have.String() == w.String() })
		switch {
		case at < 0:
			list = append(list, w)
			continue
		case w.subject != "":
			continue
		}
		have := &list[at]
		if !slices.Contains(strings.Split(have.run, "|"), w.run) {
			have.run += "|" + w.run
		}
		// The tests of all bugs run in turn.
		have.timeout += w.timeout
	}
	return list
}

// pattern is the regular expression for the names of the tests of a way.
func (w way) pattern() string { return "^(?:" + w.run + ")$" }

// testIn runs tests with changed files, by their names, and adds their finding.
func (h *harness) testIn(ctx context.Context, o *Outcome, changed map[string]string, name string, w way) {
	known := h.known(w).Broken
	h.slots <- struct{}{}
	defer func() { <-h.slots }()
	args := []string{"test", "-json", "-vet=off", "-count=1", "-timeout", w.timeout.String(), "-run", w.pattern()}
	overlay, err := h.overlayFor(w, changed, name)
	if err != nil {
		o.Err = errors.Join(o.Err, fmt.Errorf("%v: %w", w, err))
		return
	}
	args = append(args, "-overlay", overlay)
	ctx, cancel := context.WithTimeout(ctx, h.Timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", append(args, strings.Fields(w.tests)...)...)
	cmd.Dir, cmd.Env = h.Root, append(Environ(h.Root), "RAPID_NOFAILFILE=true")
	if w.subject != "" {
		cmd.Env = append(cmd.Env, kvoracle.EnvSubject+"="+w.subject, kvoracle.EnvPatience+"="+orderPatience,
			kvoracle.EnvSeeds+"="+strconv.FormatUint(w.seeds, 10))
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if cause := ctx.Err(); err != nil && cause != nil {
		o.Err = errors.Join(o.Err, fmt.Errorf("%v: %w", w, cause))
		return
	}
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		o.Err = errors.Join(o.Err, fmt.Errorf("%v: %w", w, err))
		return
	}
	f, err := readTests(out, w, known)
	if err != nil {
		o.Err = errors.Join(o.Err, fmt.Errorf("%v: %w: %s", w, err, tail(stderr.String())))
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

// overlayFor writes changed files, and returns the path of the overlay that puts them in
// place. Tests outside of a package, such as package x_test, are left out if none of them
// is to run: their imports take longer to build than the rest.
func (h *harness) overlayFor(w way, changed map[string]string, name string) (string, error) {
	all := maps.Clone(changed)
	if all == nil {
		all = make(map[string]string)
	}
	for dir := range strings.FieldsSeq(w.tests) {
		outside, err := outsideTests(filepath.Join(h.Root, filepath.FromSlash(dir)), regexp.MustCompile(w.pattern()))
		if err != nil {
			return "", fmt.Errorf("look for tests: %w", err)
		}
		for _, file := range outside {
			all[path.Join(dir, file)] = ""
		}
	}
	overlay, err := writeOverlay(filepath.Join(h.dir, name), h.Root, all)
	if err != nil {
		return "", fmt.Errorf("write %q: %w", name, err)
	}
	return overlay, nil
}

// outsideTests returns the names of the files in a folder with tests outside of its
// package; none if there is a test to run among them.
func outsideTests(dir string, run *regexp.Regexp) ([]string, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return nil, err
	}
	var outside []string
	for _, name := range names {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		if !strings.HasSuffix(f.Name.Name, "_test") {
			continue
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") && run.MatchString(fn.Name.Name) {
				return nil, nil
			}
		}
		outside = append(outside, filepath.Base(name))
	}
	return outside, nil
}
