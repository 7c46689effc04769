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
	began := time.Now()
	if o.Budget == 0 {
		// The control first: all else means nothing if it fails.
		h.lookAtControl(ctx, bugs)
		h.tell(h.control)
		if err := h.control.Err; err != nil {
			return nil, fmt.Errorf("run the unchanged code: %w", err)
		}
	} else {
		bugs = slices.Clone(bugs)
		order := rand.New(rand.NewPCG(o.Order, 0))
		order.Shuffle(len(bugs), func(i, j int) { bugs[i], bugs[j] = bugs[j], bugs[i] })
	}
	outcomes := make([]Outcome, len(bugs))
	var wait sync.WaitGroup
	looks := make(chan struct{}, max(1, o.Jobs))
	judged := 0
	for ; judged < len(bugs); judged++ {
		looks <- struct{}{}
		if o.Budget > 0 && time.Since(began) >= o.Budget {
			break
		}
		at := judged
		wait.Go(func() {
			defer func() { <-looks }()
			outcomes[at] = h.look(ctx, &bugs[at])
			h.tell(outcomes[at])
		})
	}
	wait.Wait()
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	if o.Budget > 0 {
		h.tell(h.control)
		if err := h.control.Err; err != nil {
			return nil, fmt.Errorf("run the unchanged code: %w", err)
		}
	}
	return &Result{options: o, bugs: len(bugs), control: h.control, outcomes: outcomes[:judged]}, nil
}

// way is a way to look for a bug.
type way struct {
	// explore is a variant to search; else seeds of the mode are simulated.
	explore, mode string
	// strategy is the strategy of all sites.
	strategy string
	// members are the changes of the members, with commas between them.
	members string
	// rates says that clusters have rate quotas.
	rates bool
	// sites is the size of the cluster, 0 if the seeds choose it.
	sites int
	// hungry has the clients ask for all there is while nothing fails.
	hungry bool
	// tests are packages with spaces between them, and run is a regular expression for
	// the names of their tests. timeout bounds the tests. hangs says that they may find a
	// deadlock.
	tests, run string
	timeout    time.Duration
	hangs      bool
	// subject is a store that the oracle of kvpart's order judges with so many seeds.
	// deadlock says that the oracle's watchdog finds the bug.
	subject  string
	seeds    uint64
	deadlock bool
}

// String names the way in reports.
func (w way) String() string {
	name := "sim " + w.mode
	if w.strategy != instances {
		name += " " + w.strategy
	}
	if w.members != "" {
		name += " " + w.members
	}
	if w.rates {
		name += " rates"
	}
	switch {
	case w.subject != "":
		return "order " + w.subject
	case w.tests != "":
		return "test " + w.tests
	case w.explore != "":
		return "explore " + w.explore
	case w.hungry:
		return name + " hungry"
	case w.sites > 0:
		return fmt.Sprintf("%s sites %d", name, w.sites)
	}
	return name
}

// ways lists how the simulator looks for a bug, in this order.
func (b *Bug) ways() []way {
	var list []way
	if b.Judge != JudgeSim {
		return nil
	}
	for _, mode := range b.Modes {
		list = append(list, way{mode: mode, strategy: b.Strategy, members: strings.Join(b.Members, ","), rates: b.Rates, sites: b.Sites})
	}
	for _, mode := range b.Modes {
		// Between variants, tokens may be set aside in the instance of another. Without
		// failures the members stay, and there are no rate quotas.
		if mode != switching && len(b.Members) == 0 && !b.Rates {
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

// waysOf lists all ways in which the simulator looks for any of the bugs.
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
	// tests are the tests that the unchanged code has to pass.
	tests []way

	mu sync.Mutex
	// control is the outcome of the unchanged code. Seeds, tests and invariants that fail
	// there tell nothing about a bug in that way, and are left out.
	control Outcome
	// parts are the parts of the control that have begun, each done once.
	parts map[string]*sync.Once
	// binary is a program without a bug, and notBuilt why there is none.
	binary   string
	notBuilt error
}

func (h *harness) tell(o Outcome) {
	if h.Progress == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Progress(o)
}

// look runs the code with a bug in every way to look for it, until it is caught.
func (h *harness) look(ctx context.Context, bug *Bug) Outcome {
	began := time.Now()
	o := Outcome{Bug: bug}
	if bug.Judge == JudgeSim {
		h.simulate(ctx, &o)
	} else {
		h.test(ctx, &o)
	}
	o.Took = time.Since(began)
	return o
}

// test has tests, or the oracle of kvpart's order, look for a bug.
func (h *harness) test(ctx context.Context, o *Outcome) {
	changed, err := o.Bug.Apply(h.Root)
	if err != nil {
		o.Err = err
		return
	}
	own := o.Bug.testWay()
	for _, w := range h.tests {
		if w.String() == own.String() {
			h.lookAtTests(ctx, w)
		}
	}
	h.testIn(ctx, o, changed, o.Bug.Name, own)
}

// simulate has the simulator and the search look for a bug. With a budget, the search
// does so only if the simulator has not found it.
func (h *harness) simulate(ctx context.Context, o *Outcome) {
	binary, err := h.build(ctx, o.Bug)
	if err != nil {
		o.Err = err
		return
	}
	defer func() { _ = os.Remove(binary) }() // the directory goes later
	for _, w := range o.Bug.ways() {
		if how, _ := o.CaughtBy(); how != "" && (w.explore == "" || h.Budget > 0) {
			continue
		}
		h.lookIn(ctx, o, binary, w)
	}
}

// lookIn runs a program in a way, unless the options leave the way out.
func (h *harness) lookIn(ctx context.Context, o *Outcome, binary string, w way) {
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
		seeds := max(h.Seeds, h.most[w])
		if o.Bug != nil {
			seeds = max(h.Seeds, o.Bug.Seeds)
		}
		if w.hungry {
			seeds = max(1, h.Seeds/hungryPart)
		}
		args = append(w.cluster(), "-first", strconv.FormatUint(h.First, 10), "-seeds", strconv.FormatUint(seeds, 10))
		if o.Bug == nil {
			args = append(args, "-all")
		}
	}
	failed := slices.Clone(known.Failed)
	for {
		these := args
		if o.Bug != nil && w.explore == "" {
			these = append(slices.Clone(args), "-skip", join(failed), "-ignore", strings.Join(known.Broken, ","))
		}
		f, err := h.find(ctx, binary, these...)
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

// cluster returns the flags for the clusters in which a way simulates seeds.
func (w way) cluster() []string {
	return []string{"-mode", w.mode, "-strategy", w.strategy, "-members", w.members, "-rates=" + strconv.FormatBool(w.rates), "-sites", strconv.Itoa(w.sites), "-hungry=" + strconv.FormatBool(w.hungry)}
}

// hungryPart is how many ordinary seeds there are for each seed with hungry clients: such
// a seed only tells of the rules of refusing.
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
		overlay, err := writeOverlay(filepath.Join(h.dir, name), h.Root, changed)
		if err != nil {
			return "", fmt.Errorf("write bug %q: %w", name, err)
		}
		args = append(args, "-overlay", overlay)
	}
	binary := filepath.Join(h.dir, name+".bin")
	if _, err := h.command(ctx, "go", append(args, "-o", binary, "./lab/mutants/run")...); err != nil {
		return "", fmt.Errorf("build with bug %q: %w", name, err)
	}
	return binary, nil
}

// find runs a built program.
func (h *harness) find(ctx context.Context, binary string, args ...string) (finding.Finding, error) {
	h.slots <- struct{}{}
	defer func() { <-h.slots }()
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
