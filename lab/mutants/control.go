package mutants

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/samya-db/samya/lab/mutants/finding"
)

// simulateControl simulates and searches the unchanged code in every way used to look for
// any of the bugs. The program with several bugs, none of them on, has to find the same.
func (h *harness) simulateControl(ctx context.Context, bugs []Bug, order []int) {
	var some []Bug
	for _, at := range order {
		some = append(some, bugs[at])
	}
	ways := waysOf(some)
	if len(ways) == 0 {
		return
	}
	began := time.Now()
	without, err := h.unchanged(ctx)
	if err != nil {
		h.note(Outcome{Err: err})
		return
	}
	several := h.severalOf(ctx, some)
	var wait sync.WaitGroup
	part := func(name string, look func(o *Outcome)) { wait.Go(func() { h.part(name, look) }) }
	for _, w := range ways {
		if w.explore != "" {
			part(w.String(), func(o *Outcome) { h.lookIn(ctx, o, without, w) })
		}
		for seeds := range h.batches(w) {
			part(fmt.Sprintf("%v from %d to %d", w, seeds.first, seeds.end), func(o *Outcome) { h.simulateSeeds(ctx, o, without, w, seeds) })
		}
		if several.path != "" {
			part("common program, "+w.String(), func(o *Outcome) { o.Err = h.compare(ctx, without, several, w) })
		}
	}
	wait.Wait()
	h.control.Took = time.Since(began)
}

// seeds are the seeds from first on, ahead of end.
type seeds struct{ first, end uint64 }

// batchSeeds is how many seeds of the control a program runs: several programs run at
// once, and a look that is stopped goes on with the next batch.
const batchSeeds = 100

// batches yields the seeds of the control in a way.
func (h *harness) batches(w way) iter.Seq[seeds] {
	return func(yield func(seeds) bool) {
		if w.explore != "" || h.SkipSim {
			return
		}
		end := h.First + h.seeds(w, h.most[w])
		for first := h.First; first < end; first += batchSeeds {
			if !yield(seeds{first, min(first+batchSeeds, end)}) {
				return
			}
		}
	}
}

// simulateSeeds runs seeds of the control.
func (h *harness) simulateSeeds(ctx context.Context, o *Outcome, p program, w way, s seeds) {
	f, err := h.find(ctx, p, append(w.cluster(), "-first", strconv.FormatUint(s.first, 10), "-seeds", strconv.FormatUint(s.end-s.first, 10), "-all")...)
	if err != nil {
		o.Err = fmt.Errorf("%v: %w", w, err)
		return
	}
	o.Found = []Found{{Way: w.String(), Finding: f}}
}

// part does a part of the control, unless the record has it.
func (h *harness) part(name string, look func(*Outcome)) {
	name = "control: " + name
	if done := h.recorded[name]; done != nil {
		h.note(*done)
		return
	}
	var o Outcome
	look(&o)
	o.Err = errors.Join(o.Err, h.record.add(name, &o))
	h.note(o)
}

// ErrUnlike is matched by the error for a program with several bugs, none of them on, that
// differs from the unchanged code.
var ErrUnlike = errors.New("without a bug, the program with several bugs is unlike the unchanged code")

// A comparison runs compareSeeds seeds, or searches compareStates states.
const compareSeeds, compareStates = 20, 3000

// compare returns an error if two programs differ in what they find.
func (h *harness) compare(ctx context.Context, a, b program, w way) error {
	args := append(w.cluster(), "-first", strconv.FormatUint(h.First, 10), "-seeds", strconv.Itoa(compareSeeds), "-all")
	if w.explore != "" {
		args = []string{"-explore", w.explore, "-bound", h.Bound, "-max-states", strconv.Itoa(compareStates)}
	}
	of, err := h.find(ctx, a, args...)
	if err != nil {
		return err
	}
	other, err := h.find(ctx, b, args...)
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(of, other) {
		return fmt.Errorf("%w: %v: %+v, want %+v", ErrUnlike, w, other, of)
	}
	return nil
}

// lookAtTests runs tests on the unchanged code, once.
func (h *harness) lookAtTests(ctx context.Context, w way) {
	h.once(w.String(), func() {
		var part Outcome
		h.testIn(ctx, &part, nil, "control of "+strings.NewReplacer("/", "-", " ", "").Replace(w.String()), w)
		h.note(part)
	})
}

// lookAtCommonTests runs tests in the programs with several bugs, none of them on, once.
// Tests that fail are left out there; the unchanged code tells whether they fail as well.
func (h *harness) lookAtCommonTests(ctx context.Context, c *common, w way) {
	h.once(c.name+w.String(), func() {
		part := h.testCommon(ctx, c, "", w, nil)
		if part.Err == nil && len(part.Found) == 1 && part.Found[0].Violations+part.Found[0].Panics == 0 {
			h.once(w.String(), func() { h.note(part) })
			return
		}
		if len(part.Found) == 1 {
			c.mu.Lock()
			c.broken[w.String()] = part.Found[0].Broken
			c.mu.Unlock()
		}
		h.lookAtTests(ctx, w)
	})
}

// failsWithout reports whether the unchanged code fails in a seed that catches a bug.
func (h *harness) failsWithout(ctx context.Context, w way, seed uint64) (bool, error) {
	without, err := h.unchanged(ctx)
	if err != nil {
		return false, err
	}
	f, err := h.find(ctx, without, append(w.cluster(), "-first", strconv.FormatUint(seed, 10), "-seeds", "1", "-all")...)
	if err != nil {
		return false, err
	}
	h.note(Outcome{Found: []Found{{Way: w.String(), Finding: f}}})
	return f.Violations+f.Panics+f.Hashes > 0, nil
}

// searchControl searches the unchanged code, once.
func (h *harness) searchControl(ctx context.Context, w way) {
	h.once(w.String(), func() {
		without, err := h.unchanged(ctx)
		if err != nil {
			h.note(Outcome{Err: err})
			return
		}
		f, err := h.find(ctx, without, "-explore", w.explore, "-bound", h.Bound, "-max-states", strconv.Itoa(h.MaxStates))
		part := Outcome{Err: err}
		if err == nil && !f.Skipped {
			part.Found = []Found{{Way: w.String(), Finding: f}}
		}
		h.note(part)
	})
}

// unchanged returns a program without a bug, built once.
func (h *harness) unchanged(ctx context.Context) (program, error) {
	h.once("build", func() { h.without, h.notBuilt = h.build(ctx, nil) })
	return h.without, h.notBuilt
}

// once does a part of the control the first time it is called for the part.
func (h *harness) once(part string, f func()) {
	h.mu.Lock()
	if h.parts == nil {
		h.parts = make(map[string]*sync.Once)
	}
	once := h.parts[part]
	if once == nil {
		once = new(sync.Once)
		h.parts[part] = once
	}
	h.mu.Unlock()
	once.Do(f)
}

// note adds the findings of a part to the control.
func (h *harness) note(part Outcome) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.control.Err = errors.Join(h.control.Err, part.Err)
	for _, found := range part.Found {
		at := slices.IndexFunc(h.control.Found, func(have Found) bool { return have.Way == found.Way })
		if at < 0 {
			h.control.Found = append(h.control.Found, found)
			continue
		}
		add(&h.control.Found[at].Finding, found.Finding)
	}
}

// add adds the finding of another look in the same way.
func add(f *finding.Finding, other finding.Finding) {
	f.Seeds += other.Seeds
	f.Events += other.Events
	f.Panics += other.Panics
	f.Hashes += other.Hashes
	f.Failed = append(f.Failed, other.Failed...)
	if f.Violations == 0 {
		f.Invariant, f.Detail, f.Seed, f.Event = other.Invariant, other.Detail, other.Seed, other.Event
	}
	f.Violations += other.Violations
	for _, name := range other.Broken {
		if !slices.Contains(f.Broken, name) {
			f.Broken = append(f.Broken, name)
		}
	}
	if strings.TrimSpace(other.Panic) != "" {
		f.Panic = other.Panic
	}
}

// known returns the control's finding so far in a way.
func (h *harness) known(w way) finding.Finding {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.control.in(w)
	f.Failed, f.Broken = slices.Clone(f.Failed), slices.Clone(f.Broken)
	return f
}

// controlFails reports whether the unchanged code fails in a way to look for a bug.
func (h *harness) controlFails(b *Bug) bool {
	ways := b.ways()
	if b.Judge != JudgeSim {
		ways = append(ways, b.testWay())
	}
	return slices.ContainsFunc(ways, func(w way) bool {
		f := h.known(w)
		return f.Violations+f.Panics+f.Hashes > 0
	})
}
