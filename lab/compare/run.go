package compare

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Options say what to measure and how.
type Options struct {
	// Systems are what is measured.
	Systems []System
	// Wanted picks cells; nil: all.
	Wanted func(Cell) bool
	// Rounds is how often each cell is measured, 1 or more.
	Rounds int
	// Warmup and Time are the lengths of a measurement's parts.
	Warmup, Time time.Duration
	// Dir is where a directory for the data is made, and removed. It must not be
	// in memory.
	Dir string
	// Progress is told what happens; nil: nobody is.
	Progress func(string)

	// observe runs beside each load until its context ends; nil: nothing does.
	observe func(ctx context.Context, pids []int)
}

// Cell is one way of asking one system, under one workload.
type Cell struct {
	System   string   `json:"system"`
	Way      string   `json:"way"`
	Workload Workload `json:"workload"`
}

// String names the cell, as patterns and goals do.
func (c Cell) String() string { return fmt.Sprintf("%s/%s/%s", c.System, c.Way, c.Workload) }

// ErrInMemory says that the data would lie in memory, where a sync is nothing.
var ErrInMemory = errors.New("the directory lies in memory (tmpfs), where a sync costs nothing: choose one on a disk")

const (
	// tokens is how many an entity has; no load comes near it, and those of all
	// entities add up to less than a limit may be.
	tokens = int64(1) << 38
	// grace is how long a program may take to stop.
	grace = 10 * time.Second
	// startTime and closeTime bound the start of a system, and its end.
	startTime = 60 * time.Second
	closeTime = 30 * time.Second
	// seed makes the draws of entities, the same for all systems.
	seed = 1
)

var errNothing = errors.New("nothing to measure")

// Run measures all cells and returns what it found. It leaves no process and no
// file behind, also when it fails or ctx ends.
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
	// Databases that run as a user of their own have to pass through.
	if err := os.Chmod(dir, 0o711); err != nil {
		return nil, fmt.Errorf("compare: %w", err)
	}
	m := &rounds{options: o, dir: dir, report: newReport(o), draws: make(map[Workload][]uint16)}
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
