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
	// Jobs is how many programs run at once.
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
	// Found is what each way to look has found, in their order.
	Found []Found
	// Err says why something could not be found out: the build failed, or a
	// time-out.
	Err error
}

// Found is what one way to look for a bug has found. The way is "sim" with the
// mode and what is special about the clusters, or "explore" with the variant.
type Found struct {
	Way string `json:"way"`
	finding.Finding
}

// CaughtBy returns the finding that catches the bug, the simulator's first, and
// how it was found; "" if nothing does.
func (o *Outcome) CaughtBy() (how string, f finding.Finding) {
	for i := range o.Found {
		if o.Found[i].Violations > 0 {
			return o.Found[i].Way, o.Found[i].Finding
		}
	}
	return "", finding.Finding{}
}

// byExplore returns the finding by which the search catches the bug.
func (o *Outcome) byExplore() finding.Finding {
	for i := range o.Found {
		if f := &o.Found[i]; f.Violations > 0 && strings.HasPrefix(f.Way, "explore ") {
			return f.Finding
		}
	}
	return finding.Finding{}
}

// in returns what one way has found; nothing if it was not taken.
func (o *Outcome) in(w way) finding.Finding {
	for i := range o.Found {
		if o.Found[i].Way == w.String() {
			return o.Found[i].Finding
		}
	}
	return finding.Finding{}
}

// Run looks for each of the bugs, and for none in the unchanged code. It fails
// only if that itself cannot be done.
func Run(ctx context.Context, bugs []Bug, o Options) (*Result, error) {
	dir, err := os.MkdirTemp("", "samya-mutants-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the bugs: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // what is left over harms nobody
	h := &harness{Options: o, dir: dir, slots: make(chan struct{}, max(1, o.Jobs)), most: mostSeeds(bugs)}
	result := &Result{options: o, outcomes: make([]Outcome, len(bugs))}
	// The control first: all else means nothing if it fails.
	result.control = h.look(ctx, nil, waysOf(bugs))
	h.control = result.control
	h.tell(result.control)
	if err := result.control.Err; err != nil {
		return nil, fmt.Errorf("run the unchanged code: %w", err)
	}
	var wait sync.WaitGroup
	looks := make(chan struct{}, max(1, o.Jobs))
	for i := range bugs {
		looks <- struct{}{}
		wait.Go(func() {
			defer func() { <-looks }()
			result.outcomes[i] = h.look(ctx, &bugs[i], bugs[i].ways())
			h.tell(result.outcomes[i])
		})
	}
	wait.Wait()
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	return result, nil
}

// way is one way to look for a bug.
type way struct {
	// explore is a variant to search; else seeds of the mode are simulated.
	explore, mode string
	// strategy is that of all sites.
	strategy string
	// sites is the size of the cluster, 0 if the seeds choose it.
	sites int
	// hungry has the clients ask for all there is while nothing fails.
	hungry bool
}

// String names the way in reports.
func (w way) String() string {
	name := "sim " + w.mode
	if w.strategy != instances {
		name += " " + w.strategy
	}
	switch {
	case w.explore != "":
		return "explore " + w.explore
	case w.hungry:
		return name + " hungry"
	case w.sites > 0:
		return fmt.Sprintf("%s sites %d", name, w.sites)
	}
	return name
}

// ways lists how a bug is looked for, in this order.
func (b *Bug) ways() []way {
	var list []way
	for _, mode := range b.Modes {
		list = append(list, way{mode: mode, strategy: b.Strategy, sites: b.Sites})
	}
	for _, mode := range b.Modes {
		// Between variants, tokens may be set aside in the instance of another.
		if mode != switching {
			list = append(list, way{mode: mode, strategy: b.Strategy, hungry: true})
		}
	}
	if b.Explore != "" {
		list = append(list, way{explore: b.Explore})
	}
	return list
}

// mostSeeds returns how many seeds bugs ask for in each way.
func mostSeeds(bugs []Bug) map[way]uint64 {
	most := make(map[way]uint64)
	for i := range bugs {
		for _, w := range bugs[i].ways() {
			most[w] = max(most[w], bugs[i].Seeds)
		}
	}
	return most
}

// waysOf lists all ways in which any of the bugs is looked for.
func waysOf(bugs []Bug) []way {
	var list []way
	for i := range bugs {
		for _, w := range bugs[i].ways() {
			if !slices.Contains(list, w) {
				list = append(list, w)
			}
		}
	}
	return list
}

type harness struct {
	Options
	dir string
	// slots has room for all programs that may run at once.
	slots chan struct{}
	// most is how many seeds the bugs ask for: the unchanged code runs them too.
	most map[way]uint64
	// control is what was found in the unchanged code: seeds that fail there, and
	// invariants, tell nothing about a bug in that way, and are left out.
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

// look builds the code with a bug, or without, and runs it in every way given:
// with a bug, seeds are simulated until one catches it.
func (h *harness) look(ctx context.Context, bug *Bug, ways []way) Outcome {
	o := Outcome{Bug: bug}
	binary, err := h.build(ctx, bug)
	if err != nil {
		o.Err = err
		return o
	}
	defer func() { _ = os.Remove(binary) }() // the directory goes later
	if bug == nil {
		h.lookEverywhere(ctx, &o, binary, ways)
		return o
	}
	for _, w := range ways {
		if how, _ := o.CaughtBy(); how != "" && w.explore == "" {
			continue
		}
		h.lookIn(ctx, &o, binary, w)
	}
	return o
}

// lookEverywhere runs the unchanged code in all ways, several at once.
func (h *harness) lookEverywhere(ctx context.Context, o *Outcome, binary string, ways []way) {
	parts := make([]Outcome, len(ways))
	var wait sync.WaitGroup
	for i, w := range ways {
		wait.Go(func() { h.lookIn(ctx, &parts[i], binary, w) })
	}
	wait.Wait()
	for _, part := range parts {
		o.Found, o.Err = append(o.Found, part.Found...), errors.Join(o.Err, part.Err)
	}
}

// lookIn runs a program in one way, unless that is left out.
func (h *harness) lookIn(ctx context.Context, o *Outcome, binary string, w way) {
	known := h.control.in(w)
	var args []string
	if w.explore != "" {
		if h.SkipSearch || known.Violations > 0 {
			return
		}
		args = []string{"-explore", w.explore, "-bound", h.Bound, "-max-states", strconv.Itoa(h.MaxStates)}
	} else {
		if h.SkipSim {
			return
		}
		seeds := max(h.Seeds, h.most[w])
		if o.Bug != nil {
			seeds = max(h.Seeds, o.Bug.Seeds)
		}
		if w.hungry {
			seeds = max(1, h.Seeds/hungryPart)
		}
		args = []string{
			"-mode", w.mode, "-strategy", w.strategy, "-sites", strconv.Itoa(w.sites), "-hungry=" + strconv.FormatBool(w.hungry),
			"-first", strconv.FormatUint(h.First, 10), "-seeds", strconv.FormatUint(seeds, 10),
		}
		if o.Bug == nil {
			args = append(args, "-all")
		} else {
			args = append(args, "-skip", join(known.Failed), "-ignore", strings.Join(known.Broken, ","))
		}
	}
	h.slots <- struct{}{}
	defer func() { <-h.slots }()
	f, err := h.find(ctx, binary, args...)
	if err != nil {
		o.Err = errors.Join(o.Err, fmt.Errorf("%v: %w", w, err))
	} else if !f.Skipped {
		o.Found = append(o.Found, Found{Way: w.String(), Finding: f})
	}
}

// hungryPart is how many seeds there are for one in which clients are hungry:
// such a seed tells of the rules of refusing only.
const hungryPart = 4

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
