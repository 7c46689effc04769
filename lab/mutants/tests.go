package mutants

import (
	"bytes"
	"cmp"
	"context"
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

// testControl returns how the unchanged code is tested for a bug.
func (h *harness) testControl(b *Bug) way {
	w := b.testWay()
	for _, control := range h.tests {
		if control.String() == w.String() {
			return control
		}
	}
	return w
}

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
	var out, said bytes.Buffer
	err = h.exits(ctx, func(cmd *exec.Cmd) {
		cmd.Args = append(cmd.Args, append(args, strings.Fields(w.tests)...)...)
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = h.Root, append(program{}.environ(h.Root), w.environ()...), &out, &said
	}, "go")
	o.readTests(out.Bytes(), said.String(), err, w, known)
}

// environ returns what a test needs to know of a way.
func (w way) environ() []string {
	if w.subject == "" {
		return nil
	}
	return []string{
		kvoracle.EnvSubject + "=" + w.subject, kvoracle.EnvPatience + "=" + orderPatience,
		kvoracle.EnvSeeds + "=" + strconv.FormatUint(w.seeds, 10),
	}
}

// exits runs a program. Any exit status is fine.
func (h *harness) exits(ctx context.Context, prepare func(*exec.Cmd), name string) error {
	ctx, cancel := context.WithTimeout(ctx, h.Timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, name)
	cmd.WaitDelay = waitDelay
	prepare(cmd)
	err := cmd.Run()
	if cause := ctx.Err(); err != nil && cause != nil {
		return cause
	}
	if _, exited := errors.AsType[*exec.ExitError](err); exited || errors.Is(err, exec.ErrWaitDelay) {
		return nil
	}
	return err
}

// waitDelay is how long to wait for the output of the processes that a test has left.
const waitDelay = 5 * time.Second

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
