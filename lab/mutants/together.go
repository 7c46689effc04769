package mutants

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/samya-db/samya/lab/mutants/schemata"
)

// common holds bugs that are compiled together: the same programs look for all of them.
type common struct {
	name  string
	bugs  []*Bug
	built sync.Once
	// programs are the paths of the programs by their packages.
	programs map[string]string
	// alone tells why bugs are not in the programs, by their names.
	alone map[string]string

	mu sync.Mutex
	// broken are the tests that fail in the programs without a bug, by the way.
	broken map[string][]string
	// left is how many of the bugs have not been judged yet.
	left int
}

// together puts bugs that are compiled together next to each other, in an order. Their
// order stays as it is otherwise.
func (h *harness) together(bugs []Bug, order []int) []int {
	if h.Alone {
		return order
	}
	h.commons = make(map[string]*common)
	var commons []*common
	at := make(map[string]*common)
	members := make(map[*common][]int)
	for _, i := range order {
		b := &bugs[i]
		key := b.Judge + strings.Join(b.Tests, " ")
		c := at[key]
		if c == nil {
			c = &common{name: "common" + strconv.Itoa(len(commons)), broken: make(map[string][]string)}
			at[key], commons = c, append(commons, c)
		}
		c.bugs, members[c] = append(c.bugs, b), append(members[c], i)
		c.left++
		h.commons[b.Name] = c
	}
	sorted := make([]int, 0, len(order))
	for _, c := range commons {
		sorted = append(sorted, members[c]...)
	}
	return sorted
}

// lookTogether looks for a bug in programs with other bugs; then alone, if it is not
// caught.
func (h *harness) lookTogether(ctx context.Context, bug *Bug, c *common) Outcome {
	c.built.Do(func() { h.buildCommon(ctx, c) })
	defer h.judged(c)
	if why := c.alone[bug.Name]; why != "" {
		return h.lookAlone(ctx, bug, why)
	}
	o := Outcome{Bug: bug}
	if bug.Judge == JudgeSim {
		h.simulate(ctx, &o, program{path: c.programs[simulator], bug: bug.Name})
	} else {
		h.lookAtCommonTests(ctx, c, h.testControl(bug))
		w := bug.testWay()
		c.mu.Lock()
		known := c.broken[w.String()]
		c.mu.Unlock()
		o = h.testCommon(ctx, c, bug.Name, w, known)
		o.Bug = bug
	}
	if how, _ := o.CaughtBy(); how != "" || ctx.Err() != nil {
		return o
	}
	return h.lookAlone(ctx, bug, "not caught among others")
}

// judged removes the programs after the last of their bugs. The simulator without a bug
// stays: later bugs may need it.
func (h *harness) judged(c *common) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left--; c.left > 0 {
		return
	}
	for name, path := range c.programs {
		if name != simulator {
			_ = os.Remove(path) // the directory goes later
		}
	}
}

// severalOf returns the simulator with several of the bugs, if there is any.
func (h *harness) severalOf(ctx context.Context, bugs []Bug) program {
	for i := range bugs {
		if c := h.commons[bugs[i].Name]; c != nil && bugs[i].Judge == JudgeSim {
			c.built.Do(func() { h.buildCommon(ctx, c) })
			return program{path: c.programs[simulator]}
		}
	}
	return program{}
}

// buildCommon builds the programs of bugs, without the bugs that do not compile with
// others.
func (h *harness) buildCommon(ctx context.Context, c *common) {
	c.programs, c.alone = make(map[string]string), make(map[string]string)
	var versions []schemata.Version
	for _, b := range c.bugs {
		changed, err := b.Apply(h.Root)
		if err != nil {
			c.alone[b.Name] = reason(err, b.Name)
			continue
		}
		versions = append(versions, schemata.Version{Name: b.Name, Files: changed})
	}
	drop := func(names []string, why error) {
		for _, name := range names {
			c.alone[name] = reason(why, name)
		}
		versions = slices.DeleteFunc(versions, func(v schemata.Version) bool { return c.alone[v.Name] != "" })
	}
	for len(versions) > 0 {
		woven, err := schemata.Weave(h.read, versions)
		for name, why := range woven.Refused {
			drop([]string{name}, why)
		}
		if err == nil && len(woven.Files) > 0 {
			err = h.compile(ctx, c, woven.Files)
		}
		if err == nil {
			break
		}
		named := schemata.Versions(err.Error(), versions)
		if len(named) == 0 || ctx.Err() != nil {
			for _, v := range versions {
				named = append(named, v.Name)
			}
		}
		drop(named, err)
	}
	if path := c.programs[simulator]; path != "" {
		h.once("build", func() { h.without = program{path: path} })
	}
}

// reason returns the line of an error that is about a bug, or the first.
func reason(why error, bug string) string {
	first := ""
	for line := range strings.Lines(why.Error()) {
		line = strings.TrimSpace(line)
		if len(schemata.Versions(line, []schemata.Version{{Name: bug}})) > 0 {
			return line
		}
		first = cmp.Or(first, line)
	}
	return first
}

// read returns the text of a file of the source tree.
func (h *harness) read(name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(h.Root, filepath.FromSlash(name)))
	return string(text), err
}

// compile builds the programs that look for bugs, with changed files.
func (h *harness) compile(ctx context.Context, c *common, changed map[string]string) error {
	dir := filepath.Join(h.dir, c.name)
	if c.bugs[0].Judge == JudgeSim {
		overlay, err := writeOverlay(dir, h.Root, changed)
		if err != nil {
			return err
		}
		return h.compileOne(ctx, c, simulator, "build", "-overlay", overlay)
	}
	runs := make([]string, len(c.bugs))
	for i, b := range c.bugs {
		runs[i] = b.testWay().run
	}
	w := c.bugs[0].testWay()
	w.run = strings.Join(runs, "|")
	overlay, err := h.overlayFor(w, changed, c.name)
	if err != nil {
		return err
	}
	for name := range strings.FieldsSeq(w.tests) {
		if err := h.compileOne(ctx, c, name, "test", "-c", "-overlay", overlay); err != nil {
			return err
		}
	}
	return nil
}

// compileOne builds a program of a package.
func (h *harness) compileOne(ctx context.Context, c *common, name string, args ...string) error {
	to := filepath.Join(h.dir, c.name, strconv.Itoa(len(c.programs))+".bin")
	if _, err := h.command(ctx, Environ(h.Root), "go", append(args, "-trimpath", "-o", to, name)...); err != nil {
		return fmt.Errorf("build %s with several bugs: %w", name, err)
	}
	if _, err := os.Stat(to); err != nil {
		return fmt.Errorf("build the tests of %s: %w", name, errors.Join(ErrNotTested, err))
	}
	c.programs[name] = to
	return nil
}

// testCommon runs tests in the programs of several bugs, with one of the bugs on, or none.
func (h *harness) testCommon(ctx context.Context, c *common, bug string, w way, known []string) Outcome {
	h.slots <- struct{}{}
	defer func() { <-h.slots }()
	var o Outcome
	var all bytes.Buffer
	for name := range strings.FieldsSeq(w.tests) {
		p := program{path: c.programs[name], bug: bug}
		err := h.exits(ctx, func(cmd *exec.Cmd) {
			cmd.Args = append(cmd.Args, p.path, "-test.v=test2json", "-test.paniconexit0", "-test.timeout="+w.timeout.String(), "-test.run="+w.pattern())
			cmd.Dir = filepath.Join(h.Root, filepath.FromSlash(name))
			cmd.Env = append(append(p.environ(h.Root), w.environ()...), "PWD="+cmd.Dir)
			cmd.Stdout = &all
		}, h.test2json(ctx))
		if err != nil {
			o.Err = fmt.Errorf("%s: %w", name, err)
			return o
		}
	}
	o.readTests(all.Bytes(), "", nil, w, known)
	return o
}

// test2json returns the path of the go command's converter of the output of tests, built
// once.
func (h *harness) test2json(ctx context.Context) string {
	to := filepath.Join(h.dir, "test2json")
	h.once("test2json", func() {
		_, err := h.command(ctx, Environ(h.Root), "go", "build", "-trimpath", "-o", to, "cmd/test2json")
		if err != nil {
			h.note(Outcome{Err: err})
		}
	})
	return to
}
