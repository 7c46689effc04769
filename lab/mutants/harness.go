package mutants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/samya-db/samya/lab/mutants/finding"
	"github.com/samya-db/samya/lab/mutants/schemata"
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
	// Budget, if it is not 0, is how long bugs are begun, in an order drawn from Order.
	// Each bug comes with the part of the control that is about it.
	Budget time.Duration
	Order  uint64
	// Alone compiles every bug alone. Else bugs are compiled together where possible.
	Alone bool
	// Record, if set, names a file of verdicts. Bugs with a verdict on the same source
	// are not judged again.
	Record string
	// Progress, if set, is called after each bug, and for the control with a nil
	// Bug; never by two goroutines at once.
	Progress func(Outcome)
}

// Outcome is the result of looking for a bug.
type Outcome struct {
	// Bug is nil for the control.
	Bug *Bug
	// Found are the findings of the ways to look, in the order of the ways.
	Found []Found
	// Err says why something could not be found out: the build failed, or a time-out.
	Err error
	// Alone tells why the bug was compiled alone; "" for a bug compiled with others.
	Alone string
	// Took is how long the look took.
	Took time.Duration
}

// Found is the finding of a single way to look for a bug. The way is "sim" with mode and
// special features of the clusters, "explore" with the variant, "test" with the packages,
// or "order" with the store.
type Found struct {
	Way string `json:"way"`
	finding.Finding
}

// CaughtBy returns the first finding that catches the bug, the simulator's before the
// search's, and its way; "" if nothing catches the bug.
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

// in returns the finding of a way; the zero Finding if the way was not taken.
func (o *Outcome) in(w way) finding.Finding {
	for i := range o.Found {
		if o.Found[i].Way == w.String() {
			return o.Found[i].Finding
		}
	}
	return finding.Finding{}
}

// Run looks for each of the bugs, and for none in the unchanged code. It fails only if
// the looking itself fails.
func Run(ctx context.Context, bugs []Bug, o Options) (*Result, error) {
	dir, err := os.MkdirTemp("", "samya-mutants-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the bugs: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // leftovers harm nobody
	h := &harness{Options: o, dir: dir, slots: make(chan struct{}, max(1, o.Jobs)), most: mostSeeds(bugs), tests: testControls(bugs)}
	if err := h.openRecord(ctx); err != nil {
		return nil, err
	}
	defer func() { _ = h.record.Close() }() // each verdict has been written, or told of
	order := make([]int, 0, len(bugs))
	outcomes := make([]*Outcome, len(bugs))
	for i := range bugs {
		if outcomes[i] = h.recorded[bugs[i].Name]; outcomes[i] == nil {
			order = append(order, i)
			continue
		}
		outcomes[i].Bug = &bugs[i]
		h.tell(*outcomes[i])
	}
	began := time.Now()
	if o.Budget > 0 {
		draw := rand.New(rand.NewPCG(o.Order, 0))
		draw.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	order = h.together(bugs, order)
	if o.Budget == 0 {
		// The control first: all else means nothing if it fails.
		h.simulateControl(ctx, bugs, order)
		if err := h.control.Err; err != nil {
			return nil, fmt.Errorf("run the unchanged code: %w", err)
		}
	}
	var wait sync.WaitGroup
	looks := make(chan struct{}, max(1, o.Jobs))
	for _, at := range order {
		looks <- struct{}{}
		if o.Budget > 0 && time.Since(began) >= o.Budget || ctx.Err() != nil {
			break
		}
		outcomes[at] = new(Outcome)
		wait.Go(func() {
			defer func() { <-looks }()
			*outcomes[at] = h.look(ctx, &bugs[at])
			h.tell(*outcomes[at])
		})
	}
	wait.Wait()
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	h.tell(h.control)
	if err := h.control.Err; err != nil {
		return nil, fmt.Errorf("run the unchanged code: %w", err)
	}
	r := &Result{options: o, bugs: len(bugs), control: h.control}
	for _, outcome := range outcomes {
		if outcome != nil {
			r.outcomes = append(r.outcomes, *outcome)
		}
	}
	return r, nil
}

type harness struct {
	Options
	dir string
	// slots has room for all programs that may run at once.
	slots chan struct{}
	// most is how many seeds the bugs ask for: the unchanged code runs them too.
	most map[way]uint64
	// tests are the tests that the unchanged code has to pass.
	tests []way

	mu sync.Mutex
	// control is the outcome of the unchanged code. Seeds, tests and invariants that fail
	// there tell nothing about a bug in that way, and are left out.
	control Outcome
	// parts are the parts of the control that have begun, each done once.
	parts map[string]*sync.Once
	// without is a program without a bug, and notBuilt why there is none.
	without  program
	notBuilt error
	// commons are the bugs that are compiled together, by the name of each bug.
	commons map[string]*common
	record  *record
	// recorded are the outcomes of bugs and of parts of the control that an earlier look
	// has recorded.
	recorded map[string]*Outcome
}

// program is a built program. It runs with the bug of a name, if it was compiled with
// several.
type program struct{ path, bug string }

// environ returns the environment of the program.
func (p program) environ(root string) []string {
	return append(Environ(root), schemata.Env+"="+p.bug, "RAPID_NOFAILFILE=true")
}

func (h *harness) tell(o Outcome) {
	if h.Progress == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Progress(o)
}

// look runs the code with a bug in every way to look for it, until it is caught. A bug
// that is not caught among others is looked for alone.
func (h *harness) look(ctx context.Context, bug *Bug) Outcome {
	began := time.Now()
	var o Outcome
	if c := h.commons[bug.Name]; c == nil {
		o = h.lookAlone(ctx, bug, "as asked for")
	} else {
		o = h.lookTogether(ctx, bug, c)
	}
	o.Took = time.Since(began)
	if h.controlFails(bug) || ctx.Err() != nil {
		return o // Another look may tell more.
	}
	if err := h.record.add(bug.Name, &o); err != nil {
		o.Err = errors.Join(o.Err, err)
	}
	return o
}

// lookAlone looks for a bug in programs of its own.
func (h *harness) lookAlone(ctx context.Context, bug *Bug, because string) Outcome {
	o := Outcome{Bug: bug, Alone: because}
	if bug.Judge != JudgeSim {
		h.test(ctx, &o)
		return o
	}
	p, err := h.build(ctx, bug)
	if err != nil {
		o.Err = err
		return o
	}
	defer func() { _ = os.Remove(p.path) }() // the directory goes later
	h.simulate(ctx, &o, p)
	return o
}

// test has tests, or the oracle of kvpart's order, look for a bug.
func (h *harness) test(ctx context.Context, o *Outcome) {
	changed, err := o.Bug.Apply(h.Root)
	if err != nil {
		o.Err = err
		return
	}
	h.lookAtTests(ctx, h.testControl(o.Bug))
	h.testIn(ctx, o, changed, o.Bug.Name, o.Bug.testWay())
}

// simulate has the simulator and the search look for a bug. With a budget, the search
// does so only if the simulator has not found it.
func (h *harness) simulate(ctx context.Context, o *Outcome, p program) {
	for _, w := range o.Bug.ways() {
		if how, _ := o.CaughtBy(); how != "" && (w.explore == "" || h.Budget > 0) {
			continue
		}
		h.lookIn(ctx, o, p, w)
	}
}

// seeds returns how many seeds to run in a way, for a bug that asks for some.
func (h *harness) seeds(w way, asked uint64) uint64 {
	if w.hungry {
		return max(1, h.Seeds/hungryPart)
	}
	return max(h.Seeds, asked)
}

// lookIn runs a program in a way, unless the options leave the way out.
func (h *harness) lookIn(ctx context.Context, o *Outcome, p program, w way) {
	if w.explore != "" && h.SkipSearch || w.explore == "" && h.SkipSim {
		return
	}
	if h.Budget > 0 && w.explore != "" {
		h.searchControl(ctx, w)
	}
	known := h.known(w)
	var args []string
	if w.explore != "" {
		if known.Violations > 0 {
			return
		}
		args = []string{"-explore", w.explore, "-bound", h.Bound, "-max-states", strconv.Itoa(h.MaxStates)}
	} else {
		args = append(w.cluster(), "-first", strconv.FormatUint(h.First, 10), "-seeds", strconv.FormatUint(h.seeds(w, o.Bug.Seeds), 10))
	}
	failed := slices.Clone(known.Failed)
	for {
		these := args
		if o.Bug != nil && w.explore == "" {
			these = append(slices.Clone(args), "-skip", join(failed), "-ignore", strings.Join(known.Broken, ","))
		}
		f, err := h.find(ctx, p, these...)
		if err == nil && h.Budget > 0 && o.Bug != nil && w.explore == "" && f.Violations > 0 {
			var fails bool
			if fails, err = h.failsWithout(ctx, w, f.Seed); fails {
				failed = append(failed, f.Seed)
				continue
			}
		}
		if err != nil {
			o.Err = errors.Join(o.Err, fmt.Errorf("%v: %w", w, err))
		} else if !f.Skipped {
			o.Found = append(o.Found, Found{Way: w.String(), Finding: f})
		}
		return
	}
}

// simulator is the program that simulates and searches.
const simulator = "./lab/mutants/run"

// build returns a program with the bug in it.
func (h *harness) build(ctx context.Context, bug *Bug) (program, error) {
	name, args := "control", []string{"build", "-trimpath"}
	if bug != nil {
		name = bug.Name
		changed, err := bug.Apply(h.Root)
		if err != nil {
			return program{}, err
		}
		overlay, err := writeOverlay(filepath.Join(h.dir, name), h.Root, changed)
		if err != nil {
			return program{}, fmt.Errorf("write bug %q: %w", name, err)
		}
		args = append(args, "-overlay", overlay)
	}
	binary := filepath.Join(h.dir, name+".bin")
	if _, err := h.command(ctx, Environ(h.Root), "go", append(args, "-o", binary, simulator)...); err != nil {
		return program{}, fmt.Errorf("build with bug %q: %w", name, err)
	}
	return program{path: binary}, nil
}

// find runs a built program.
func (h *harness) find(ctx context.Context, p program, args ...string) (finding.Finding, error) {
	h.slots <- struct{}{}
	defer func() { <-h.slots }()
	var f finding.Finding
	out, err := h.command(ctx, p.environ(h.Root), p.path, args...)
	if err != nil {
		return f, err
	}
	if err := json.Unmarshal(out, &f); err != nil {
		return f, fmt.Errorf("decode what was found: %w", err)
	}
	return f, nil
}
