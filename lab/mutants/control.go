package mutants

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/samya-db/samya/lab/mutants/finding"
)

// lookAtControl runs the unchanged code in every way used to look for any of the bugs,
// several at once.
func (h *harness) lookAtControl(ctx context.Context, bugs []Bug) {
	began := time.Now()
	var wait sync.WaitGroup
	if ways := waysOf(bugs); len(ways) > 0 {
		wait.Go(func() { h.simulateControl(ctx, ways) })
	}
	for _, w := range h.tests {
		wait.Go(func() { h.lookAtTests(ctx, w) })
	}
	wait.Wait()
	h.control.Took = time.Since(began)
}

// simulateControl simulates and searches the unchanged code.
func (h *harness) simulateControl(ctx context.Context, ways []way) {
	binary, err := h.build(ctx, nil)
	if err != nil {
		h.note(Outcome{Err: err})
		return
	}
	defer func() { _ = os.Remove(binary) }() // the directory goes later
	var wait sync.WaitGroup
	for _, w := range ways {
		wait.Go(func() {
			var part Outcome
			h.lookIn(ctx, &part, binary, w)
			h.note(part)
		})
	}
	wait.Wait()
}

// lookAtTests runs tests on the unchanged code, once.
func (h *harness) lookAtTests(ctx context.Context, w way) {
	h.once(w.String(), func() {
		var part Outcome
		h.testIn(ctx, &part, nil, "control of "+strings.NewReplacer("/", "-", " ", "").Replace(w.String()), w)
		h.note(part)
	})
}

// failsWithout reports whether the unchanged code fails in a seed that catches a bug.
func (h *harness) failsWithout(ctx context.Context, w way, seed uint64) (bool, error) {
	binary, err := h.unchanged(ctx)
	if err != nil {
		return false, err
	}
	f, err := h.find(ctx, binary, append(w.cluster(), "-first", strconv.FormatUint(seed, 10), "-seeds", "1", "-all")...)
	if err != nil {
		return false, err
	}
	h.note(Outcome{Found: []Found{{Way: w.String(), Finding: f}}})
	return f.Violations+f.Panics+f.Hashes > 0, nil
}

// searchControl searches the unchanged code, once.
func (h *harness) searchControl(ctx context.Context, w way) {
	h.once(w.String(), func() {
		binary, err := h.unchanged(ctx)
		if err != nil {
			h.note(Outcome{Err: err})
			return
		}
		f, err := h.find(ctx, binary, "-explore", w.explore, "-bound", h.Bound, "-max-states", strconv.Itoa(h.MaxStates))
		part := Outcome{Err: err}
		if err == nil && !f.Skipped {
			part.Found = []Found{{Way: w.String(), Finding: f}}
		}
		h.note(part)
	})
}

// unchanged returns the path of a program without a bug, built once.
func (h *harness) unchanged(ctx context.Context) (string, error) {
	h.once("build", func() { h.binary, h.notBuilt = h.build(ctx, nil) })
	return h.binary, h.notBuilt
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
