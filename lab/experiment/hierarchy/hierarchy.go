// Package hierarchy measures the effect of partitions on the requests of a
// hierarchy, each of which charges a leaf, its team and its organisation. It
// compares entities placed by hash with entities placed as learnt from use, and a
// split root above all with no root. It reports no rate of a site with wrong books.
package hierarchy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/samya-db/samya/lab/experiment"
)

// Options are the options of the experiment.
type Options struct {
	// Orgs is the number of organisations, Teams of teams in each, Leaves of leaves
	// in each team.
	Orgs, Teams, Leaves int
	Partitions          int
	// Generators make requests side by side, with Window outstanding in total.
	Generators, Window int
	Rounds             int
	// Warm is the time of requests before each measurement, Time the time of a
	// measurement. Settle is the longest wait for a stable map.
	Warm, Time, Settle time.Duration
	// Quick leaves out the setups without a goal.
	Quick bool
	// Only is a regular expression that picks setups by name, such as "workers,
	// learnt, root split".
	Only string
	// Dir holds the folders of the stores; empty means the directory of temporary
	// files.
	Dir  string
	Seed uint64
	// Progress is called with messages of progress.
	Progress func(string)
	Now      func() time.Time
}

// Default returns the default options.
func Default() Options {
	return Options{
		Orgs: 100, Teams: 10, Leaves: 10, Partitions: 2, Generators: 2, Window: 8192,
		Rounds: 7, Warm: 200 * time.Millisecond, Time: time.Second, Settle: time.Minute, Seed: 1,
	}
}

func (o *Options) size() size { return size{o.Orgs, o.Teams, o.Leaves} }

func (o *Options) now() time.Time { return o.Now() }

// check refuses options out of range.
func (o *Options) check() error {
	for _, n := range []struct {
		flag           string
		got, low, high int
	}{
		{"orgs", o.Orgs, 1, 10_000},
		{"teams", o.Teams, 1, 10_000},
		{"leaves", o.Leaves, 1, 10_000},
		{"partitions", o.Partitions, 1, 64},
		{"generators", o.Generators, 1, 64},
		{"in-flight", o.Window, 64 * o.Generators, 1 << 16},
		{"rounds", o.Rounds, 1, 1000},
	} {
		if n.got < n.low || n.got > n.high {
			return fmt.Errorf("%w: --%s is %d, want %d to %d", experiment.ErrOptions, n.flag, n.got, n.low, n.high)
		}
	}
	if o.Orgs*o.Teams*o.Leaves > 200_000 {
		return fmt.Errorf("%w: %d leaves, want 200000 at most", experiment.ErrOptions, o.Orgs*o.Teams*o.Leaves)
	}
	for flag, d := range map[string]time.Duration{"duration": o.Time, "settle": o.Settle} {
		if d <= 0 || d > time.Hour {
			return fmt.Errorf("%w: --%s is %v, want above 0s and at most 1h", experiment.ErrOptions, flag, d)
		}
	}
	if o.Warm < 0 || o.Warm > time.Hour {
		return fmt.Errorf("%w: --warmup is %v, want 0s to 1h", experiment.ErrOptions, o.Warm)
	}
	return nil
}

// collectAt is the growth of the heap between two collections, in per cent: the
// garbage of the generators must not count.
const collectAt = 400

// Measure measures all setups. It makes each setup and lets it settle; rounds then
// measure all setups in turn. Bad options fail with experiment.ErrOptions before
// any measurement.
func Measure(ctx context.Context, o Options) (*Report, error) {
	only, err := regexp.Compile(o.Only)
	if err != nil {
		return nil, fmt.Errorf("%w: --only: %w", experiment.ErrOptions, err)
	}
	all := slices.DeleteFunc(setups(o.Quick), func(s setup) bool { return !only.MatchString(s.String()) })
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: --only: no setup is named so", experiment.ErrOptions)
	}
	return measureAll(ctx, o, all)
}

// measureAll is Measure for some setups.
func measureAll(ctx context.Context, o Options, all []setup) (_ *Report, err error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if os.Getenv("GOGC") == "" {
		before := debug.SetGCPercent(collectAt)
		defer debug.SetGCPercent(before)
	}
	m := &measured{Options: o}
	defer func() {
		for i := range m.cells {
			err = errors.Join(err, m.cells[i].subject.close())
		}
	}()
	for i, su := range all {
		if err := m.prepare(ctx, i, len(all), su); err != nil {
			return nil, err
		}
	}
	for round := range o.Rounds {
		for i := range m.cells {
			if err := m.measure(ctx, round, (i+round)%len(m.cells)); err != nil {
				return nil, err
			}
		}
	}
	for i := range m.cells {
		m.cells[i].end = m.cells[i].subject.stats()
	}
	return m.report(), nil
}

// prepare makes a cell, and waits until its map is stable.
func (m *measured) prepare(ctx context.Context, i, n int, su setup) error {
	c := &cell{setup: su}
	var err error
	if su.Way == Stored {
		c.subject, err = newStored(su, &m.Options)
	} else {
		c.subject, err = newSite(su, &m.Options)
	}
	if err != nil {
		return fmt.Errorf("%v: %w", su, err)
	}
	m.cells = append(m.cells, c)
	tell := func(what string) {
		m.Progress(fmt.Sprintf("settling %d of %d, %v: %s", i+1, n, su, what))
	}
	if c.Settling, err = settle(ctx, c.subject, su, &m.Options, tell); err != nil {
		return fmt.Errorf("%v: %w", su, err)
	}
	how := "settled"
	if !c.Settled {
		how = "not settled"
	}
	tell(fmt.Sprintf("%s after %.1f s, %.1f %% across, %.1f %% before", how, c.Seconds, 100*c.Last, 100*c.First))
	return nil
}

// measure measures a cell once.
func (m *measured) measure(ctx context.Context, round, i int) error {
	c := m.cells[i]
	runtime.GC()
	r, err := measure(ctx, c.subject, &m.Options)
	if err == nil {
		err = c.subject.check(ctx)
	}
	if err != nil {
		return fmt.Errorf("%v: %w", c.setup, err)
	}
	c.runs = append(c.runs, r)
	m.Progress(fmt.Sprintf("round %d of %d, %v: %s requests/s, %.1f %% across, imbalance %.2f, %.2f cores", round+1, m.Rounds, c.setup,
		number(r.Rate), 100*r.Cross, r.Imbalance, r.Cores))
	return nil
}
