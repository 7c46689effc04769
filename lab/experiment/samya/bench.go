package samya

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/samya-db/samya/lab/experiment"
)

// bench plays runs on all processors, and keeps their outcomes.
type bench struct {
	o *options
	// play plays a run, calibrate measures the service time. Tests replace both.
	play      func(ctx context.Context, s *setting, p play) (*outcome, error)
	calibrate func(context.Context) (time.Duration, error)

	service  time.Duration
	outcomes map[play]*outcome
}

func newBench(o *options) *bench {
	return &bench{o: o, play: newPlayer().play, calibrate: calibrate, outcomes: make(map[play]*outcome)}
}

// calibrated returns the service time of this machine, measured once.
func (b *bench) calibrated(ctx context.Context, env *experiment.Env) (time.Duration, error) {
	if b.service == 0 {
		var err error
		if b.service, err = b.calibrate(ctx); err != nil {
			return 0, fmt.Errorf("measure the service time: %w", err)
		}
		env.Progress(0, 1, fmt.Sprintf("a request takes a processor of this machine %v (--service overrides it)", b.service))
	}
	return b.service, nil
}

// collectAt is the growth of the heap between two collections, in per cent.
const collectAt = 400

// run plays the runs not yet played, for each seed.
func (b *bench) run(ctx context.Context, env *experiment.Env, s *setting, plays []play) (*runs, error) {
	wanted := make(map[play]bool)
	for _, p := range plays {
		for _, seed := range s.seedsOf(p) {
			p.seed = seed
			wanted[p] = b.outcomes[p] == nil
		}
	}
	maps.DeleteFunc(wanted, func(_ play, missing bool) bool { return !missing })
	// Little is live at any time: rare collections cost memory only.
	defer debug.SetGCPercent(debug.SetGCPercent(collectAt))
	var mu sync.Mutex
	done := 0
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, p := range order(slices.Collect(maps.Keys(wanted))) {
		group.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			o, err := b.play(ctx, s, p)
			if err != nil {
				return fmt.Errorf("%v: %w", p, err)
			}
			mu.Lock()
			defer mu.Unlock()
			b.outcomes[p] = o
			done++
			env.Progress(done, len(wanted), p.String())
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return &runs{setting: s, outcomes: b.outcomes}, nil
}

// order puts runs with the same demand side by side, so that the demand is drawn
// once.
func order(plays []play) []play {
	slices.SortFunc(plays, func(a, b play) int { return a.compare(b) })
	return plays
}
