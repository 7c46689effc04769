package kvmutants

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/samya-db/samya/lab/kvoracle"
	"github.com/samya-db/samya/lab/mutants"
)

// Options say how hard to look.
type Options struct {
	// Root is the root of the module.
	Root string
	// Seeds is how many seeds the oracle tries for a bug.
	Seeds int
	// Jobs is how many bugs are looked for at once.
	Jobs int
	// Timeout bounds the look for one bug, its build included.
	Timeout time.Duration
	// Progress, if set, is called after each bug, and for the control with a nil
	// Bug; never by two goroutines at once.
	Progress func(Outcome)
}

// Outcome is what became of one bug.
type Outcome struct {
	Bug *Bug // nil for the control
	// By is the invariant or the test that caught it; empty if nothing did.
	By string
	// Why says why it is not caught.
	Why  string
	Took time.Duration
}

// The environment of the oracle's test.
const (
	// EnvSubject is what to judge.
	EnvSubject = "SAMYA_KV_SUBJECT"
	// EnvSeeds is how many seeds, from the subject's on.
	EnvSeeds = "SAMYA_KV_SEEDS"
	// EnvPatience is when a request counts as stuck.
	EnvPatience = "SAMYA_KV_PATIENCE"
)

// oracle is the test that judges a subject.
const (
	oraclePackage = "./lab/kvoracle"
	oracleTest    = "TestOracleOf"
)

// Run looks for each of the bugs, and for none in the unchanged code. It fails only
// if that itself cannot be done.
func Run(ctx context.Context, bugs []Bug, o Options) ([]Outcome, error) {
	dir, err := os.MkdirTemp("", "samya-kvmutants-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the bugs: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // what is left over harms nobody
	h := &harness{Options: o, dir: dir}
	if err := h.control(ctx, bugs); err != nil {
		return nil, err
	}
	outcomes := make([]Outcome, len(bugs))
	slots := make(chan struct{}, max(1, o.Jobs))
	var wait sync.WaitGroup
	for i := range bugs {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			outcomes[i] = h.look(ctx, &bugs[i])
			h.tell(outcomes[i])
		})
	}
	wait.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return outcomes, nil
}

type harness struct {
	Options
	dir string
	mu  sync.Mutex
}

func (h *harness) tell(o Outcome) {
	if h.Progress == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Progress(o)
}

// control runs the unchanged code on all subjects and tests that bugs are looked
// for with.
func (h *harness) control(ctx context.Context, bugs []Bug) error {
	began := time.Now()
	seen := make(map[string]bool)
	for i := range bugs {
		b := &Bug{Subject: bugs[i].Subject, Package: bugs[i].Package, Test: bugs[i].Test, Args: bugs[i].Args}
		name := b.Subject + b.Package + b.Test
		if seen[name] {
			continue
		}
		seen[name] = true
		if out, err := h.test(ctx, b, ""); err != nil {
			return fmt.Errorf("the unchanged code fails %s: %w: %.4000s", name, err, out)
		}
	}
	h.tell(Outcome{Took: time.Since(began)})
	return nil
}

// look runs the code with a bug.
func (h *harness) look(ctx context.Context, b *Bug) Outcome {
	began := time.Now()
	o := Outcome{Bug: b}
	o.By, o.Why = h.find(ctx, b)
	o.Took = time.Since(began)
	return o
}

func (h *harness) find(ctx context.Context, b *Bug) (by, why string) {
	changed, err := mutants.ApplyEdits(h.Root, b.Name, b.Edits)
	if err != nil {
		return "", err.Error()
	}
	overlay, err := mutants.WriteOverlay(filepath.Join(h.dir, b.Name), h.Root, changed)
	if err != nil {
		return "", err.Error()
	}
	out, err := h.test(ctx, b, overlay)
	if err == nil {
		return "", "it passes"
	}
	return judge(b, out, err)
}

var (
	invariant = regexp.MustCompile(`violated ([a-z]+)[:\n]`)
	failed    = regexp.MustCompile(`(?m)^--- FAIL: (\w+)`)
)

// judge says what caught a bug, from what a test printed that failed.
func judge(b *Bug, out string, err error) (by, why string) {
	if _, ok := errors.AsType[*exec.ExitError](err); !ok {
		return "", err.Error()
	}
	if b.Subject == "" {
		m := failed.FindStringSubmatch(out)
		if m == nil || strings.Contains(out, "\npanic: ") {
			return "", "no test fails, but: " + tail(out)
		}
		return m[1], ""
	}
	m := invariant.FindStringSubmatch(out)
	switch {
	case m == nil:
		return "", "no invariant is named: " + tail(out)
	case (m[1] == string(kvoracle.Deadlock)) != b.Deadlock:
		return "", "not by what its file says: " + m[1] + ": " + tail(out)
	}
	return m[1], ""
}

// tail is the end of what a program printed.
func tail(out string) string { return out[max(0, len(out)-1500):] }

// test runs what finds a bug, and returns what it printed.
func (h *harness) test(ctx context.Context, b *Bug, overlay string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, h.Timeout)
	defer cancel()
	pkg, name := b.Package, b.Test
	if b.Subject != "" {
		pkg, name = oraclePackage, "^"+oracleTest+"$"
	}
	args := []string{"test", "-vet=off", "-count=1", "-run", name}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	cmd := exec.CommandContext(ctx, "go", append(append(args, pkg), b.Args...)...)
	cmd.Dir = h.Root
	cmd.Env = append(mutants.Environ(h.Root), EnvSubject+"="+b.Subject, EnvPatience+"=5s", EnvSeeds+"="+strconv.Itoa(h.seeds(overlay)))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if cause := ctx.Err(); err != nil && cause != nil {
		return out.String(), fmt.Errorf("go test: %w", cause)
	}
	return out.String(), err
}

// seeds is how many seeds are tried: few of the unchanged code.
func (h *harness) seeds(overlay string) int {
	if overlay == "" {
		return max(1, h.Seeds/20)
	}
	return h.Seeds
}
