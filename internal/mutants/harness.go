package mutants

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/samya-db/samya/internal/mutants/finding"
)

// Options say how hard to look.
type Options struct {
	// Root is the root of the module.
	Root string
	// Seeds is how many seeds are run in each mode, from the first on.
	First, Seeds uint64
	// Bound names the bounds of the search, MaxStates ends it; 0 for never.
	Bound     string
	MaxStates int
	// SkipSearch leaves the search out, SkipSim the simulator.
	SkipSearch, SkipSim bool
	// Jobs is how many bugs are looked for at once.
	Jobs int
	// Timeout bounds each build and each look.
	Timeout time.Duration
	// Progress, if set, is called after each bug, and for the control with a nil
	// Bug; never by two goroutines at once.
	Progress func(Outcome)
}

// Outcome is what became of one bug.
type Outcome struct {
	// Bug is nil for the control.
	Bug *Bug
	// Sim and Explore are what was found, by mode; Explore is nil if the bug was
	// not searched for.
	Sim     map[string]finding.Finding
	Explore map[string]finding.Finding
	// Err says why nothing could be found out: the build failed, or a time-out.
	Err error
}

// CaughtBy returns the finding that catches the bug, the simulator's first, and
// how it was found; "" if nothing does.
func (o *Outcome) CaughtBy() (how string, f finding.Finding) {
	for _, mode := range Modes() {
		if f := o.Sim[mode]; f.Violations > 0 {
			return "sim " + mode, f
		}
	}
	if variant, f := o.byExplore(); f.Violations > 0 {
		return "explore " + variant, f
	}
	return "", finding.Finding{}
}

func (o *Outcome) byExplore() (string, finding.Finding) {
	for variant, f := range o.Explore {
		if f.Violations > 0 {
			return variant, f
		}
	}
	return "", finding.Finding{}
}

// Run looks for each of the bugs, and for none in the unchanged code. It fails
// only if that itself cannot be done.
func Run(ctx context.Context, bugs []Bug, o Options) (*Result, error) {
	dir, err := os.MkdirTemp("", "samya-mutants-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the bugs: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // what is left over harms nobody
	h := &harness{Options: o, dir: dir}
	var searched []string
	for i := range bugs {
		if v := bugs[i].Explore; v != "" && !slices.Contains(searched, v) {
			searched = append(searched, v)
		}
	}
	result := &Result{options: o, outcomes: make([]Outcome, len(bugs))}
	// The control first: all else means nothing if it fails.
	result.control = h.look(ctx, nil, modesOf(bugs), searched)
	h.control = result.control
	h.tell(result.control)
	if err := result.control.Err; err != nil {
		return nil, fmt.Errorf("run the unchanged code: %w", err)
	}
	var wait sync.WaitGroup
	slots := make(chan struct{}, max(1, o.Jobs))
	for i := range bugs {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			bug := &bugs[i]
			var search []string
			if bug.Explore != "" {
				search = []string{bug.Explore}
			}
			result.outcomes[i] = h.look(ctx, bug, bug.Modes, search)
			h.tell(result.outcomes[i])
		})
	}
	wait.Wait()
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	return result, nil
}

func modesOf(bugs []Bug) []string {
	return slices.DeleteFunc(Modes(), func(mode string) bool {
		return !slices.ContainsFunc(bugs, func(b Bug) bool { return slices.Contains(b.Modes, mode) })
	})
}

type harness struct {
	Options
	dir string
	// control is what was found in the unchanged code: seeds that fail there, and
	// invariants, tell nothing about a bug in that mode, and are left out.
	control Outcome
	mu      sync.Mutex
}

func (h *harness) tell(o Outcome) {
	if h.Progress == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Progress(o)
}

// look builds the code with a bug, or without, and runs it in every way given.
func (h *harness) look(ctx context.Context, bug *Bug, modes, variants []string) Outcome {
	o := Outcome{Bug: bug, Sim: make(map[string]finding.Finding), Explore: make(map[string]finding.Finding)}
	binary, err := h.build(ctx, bug)
	if err != nil {
		o.Err = err
		return o
	}
	defer func() { _ = os.Remove(binary) }() // the directory goes later
	if h.SkipSim {
		modes = nil
	}
	for _, mode := range modes {
		args := []string{
			"-mode", mode, "-first", strconv.FormatUint(h.First, 10), "-seeds", strconv.FormatUint(h.Seeds, 10),
		}
		if bug == nil {
			args = append(args, "-all")
		} else {
			args = append(args, "-skip", join(h.control.Sim[mode].Failed),
				"-ignore", strings.Join(h.control.Sim[mode].Broken, ","))
		}
		f, err := h.find(ctx, binary, args...)
		if err != nil {
			o.Err = fmt.Errorf("simulate %s: %w", mode, err)
			break
		}
		if o.Sim[mode] = f; f.Violations > 0 && bug != nil {
			break
		}
	}
	for _, variant := range variants {
		if h.SkipSearch || h.control.Explore[variant].Violations > 0 {
			break
		}
		f, err := h.find(ctx, binary, "-explore", variant, "-bound", h.Bound, "-max-states", strconv.Itoa(h.MaxStates))
		if err != nil {
			o.Err = errors.Join(o.Err, fmt.Errorf("search %s: %w", variant, err))
			break
		}
		if !f.Skipped {
			o.Explore[variant] = f
		}
	}
	return o
}

func join(seeds []uint64) string {
	text := make([]string, len(seeds))
	for i, seed := range seeds {
		text[i] = strconv.FormatUint(seed, 10)
	}
	return strings.Join(text, ",")
}

// build returns the path of a program with the bug in it.
func (h *harness) build(ctx context.Context, bug *Bug) (string, error) {
	name, args := "control", []string{"build", "-trimpath"}
	if bug != nil {
		name = bug.Name
		changed, err := bug.Apply(h.Root)
		if err != nil {
			return "", err
		}
		overlay, err := WriteOverlay(filepath.Join(h.dir, name), h.Root, changed)
		if err != nil {
			return "", fmt.Errorf("write bug %q: %w", name, err)
		}
		args = append(args, "-overlay", overlay)
	}
	binary := filepath.Join(h.dir, name+".bin")
	if _, err := h.command(ctx, "go", append(args, "-o", binary, "./internal/mutants/run")...); err != nil {
		return "", fmt.Errorf("build with bug %q: %w", name, err)
	}
	return binary, nil
}

// WriteOverlay writes files to dir, by their names in the module, and the overlay that
// puts them in place, and returns its path.
func WriteOverlay(dir, root string, contents map[string]string) (string, error) {
	var overlay struct{ Replace map[string]string }
	overlay.Replace = make(map[string]string)
	for name, text := range contents {
		to := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return "", fmt.Errorf("make a directory: %w", err)
		}
		if err := os.WriteFile(to, []byte(text), 0o644); err != nil {
			return "", fmt.Errorf("write a changed file: %w", err)
		}
		overlay.Replace[filepath.Join(root, filepath.FromSlash(name))] = to
	}
	encoded, err := json.Marshal(overlay)
	if err != nil {
		return "", fmt.Errorf("encode the overlay: %w", err)
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, encoded, 0o644); err != nil {
		return "", fmt.Errorf("write the overlay: %w", err)
	}
	return file, nil
}

// find runs a built program.
func (h *harness) find(ctx context.Context, binary string, args ...string) (finding.Finding, error) {
	var f finding.Finding
	out, err := h.command(ctx, binary, args...)
	if err != nil {
		return f, err
	}
	if err := json.Unmarshal(out, &f); err != nil {
		return f, fmt.Errorf("decode what was found: %w", err)
	}
	return f, nil
}

// command runs a program in the root of the module and returns its stdout.
func (h *harness) command(ctx context.Context, name string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, h.Timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = h.Root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if cause := ctx.Err(); err != nil && cause != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(name), cause)
	}
	if err != nil {
		text := strings.TrimSpace(stderr.String())
		return nil, fmt.Errorf("%s: %w: %s", filepath.Base(name), err, text[:min(len(text), 2000)])
	}
	return out, nil
}
