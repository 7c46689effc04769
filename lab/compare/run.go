package compare

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Options are the options of a run.
type Options struct {
	// Systems are the systems to measure.
	Systems []System
	// Wanted picks cells; nil picks all.
	Wanted func(Cell) bool
	// Rounds is the number of measurements of a cell, at least 1.
	Rounds int
	// Warmup and Time are the lengths of a measurement's phases.
	Warmup, Time time.Duration
	// Dir is the place of a temporary directory for the data. It must not be in
	// memory.
	Dir string
	// Progress, if not nil, is called with messages of progress.
	Progress func(string)

	// observe, if not nil, runs beside each load until its context ends.
	observe func(ctx context.Context, pids []int)
}

// Cell is a way of asking a system, under a workload.
type Cell struct {
	System   string   `json:"system"`
	Way      string   `json:"way"`
	Workload Workload `json:"workload"`
}

// String returns the name of the cell in patterns and goals.
func (c Cell) String() string { return fmt.Sprintf("%s/%s/%s", c.System, c.Way, c.Workload) }

// ErrInMemory says that the data would be in memory, where a sync costs nothing.
var ErrInMemory = errors.New("the directory lies in memory (tmpfs), where a sync costs nothing: choose one on a disk")

const (
	// tokens is the number of tokens of an entity. No load comes near it, and the
	// tokens of all entities add up to less than the largest limit.
	tokens = int64(1) << 38
	// grace is the longest time for a program to stop.
	grace = 10 * time.Second
	// startTime and closeTime bound the start and the end of a system.
	startTime = 60 * time.Second
	closeTime = 30 * time.Second
	// seed makes the draws of entities; all systems share it.
	seed = 1
)

var errNothing = errors.New("nothing to measure")

// Run measures all cells. It leaves no process and no file behind, even when it
// fails or ctx ends.
func Run(ctx context.Context, o *Options) (r *Report, err error) {
	if o.Rounds < 1 || o.Time <= 0 || o.Warmup < 0 {
		return nil, errors.New("compare: rounds and times must be above 0")
	}
	if in, err := inMemory(o.Dir); err != nil || in {
		if err == nil {
			err = fmt.Errorf("%s: %w", o.Dir, ErrInMemory)
		}
		return nil, fmt.Errorf("compare: %w", err)
	}
	base, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("compare: %w", err)
	}
	dir, err := os.MkdirTemp(base, "compare-*.tmp")
	if err != nil {
		return nil, fmt.Errorf("compare: make a directory for the data: %w", err)
	}
	defer func() {
		if gone := os.RemoveAll(dir); gone != nil {
			err = errors.Join(err, fmt.Errorf("compare: remove the data: %w", gone))
		}
	}()
	// A database that runs as another user must pass through.
	if err := os.Chmod(dir, 0o711); err != nil {
		return nil, fmt.Errorf("compare: %w", err)
	}
	m := &rounds{options: o, dir: dir, report: newReport(o), draws: make(map[Workload][]uint32)}
	if m.all = len(m.report.Cells) * o.Rounds; m.all == 0 {
		return nil, fmt.Errorf("compare: %w", errNothing)
	}
	for round := range o.Rounds {
		for i := range o.Systems {
			s := o.Systems[(round+i)%len(o.Systems)]
			if err := m.system(ctx, s, round); err != nil {
				if ctx.Err() != nil {
					return nil, context.Cause(ctx)
				}
				return nil, fmt.Errorf("compare: %s: %w", s.About().Name, err)
			}
		}
	}
	m.report.summarize()
	return m.report, nil
}
