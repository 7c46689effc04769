// Package samya reruns the experiments of the Samya paper, sections 5.3 to 5.10,
// and some of ours, on the real code of samya's sites and of its rivals, in virtual
// time. It refuses to slow a rival down: all have one load, one network, one
// deadline and one service time, and each one's own figures are told.
package samya

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/samya-db/samya/lab/experiment"
)

// Group is all of them. They share runs: what two of them look at runs once.
var Group = experiment.Group{
	Name:  "samya",
	Short: "All experiments of the Samya paper, and ours beside them",
	Long: `Reruns sections 5.3 to 5.10 of the Samya paper, and what we ask beside it: each is
an experiment of its own as well. All is in virtual time, with the real code of
samya's sites and of the paper's rivals under one load: the figures do not depend
on how busy this machine is. Figures are medians over the seeds, and tables tell the
worst as well; the CSV files have each.`,
	New: func(f *pflag.FlagSet) []experiment.Member {
		o := &options{}
		o.flags(f)
		b := newBench(o)
		members := make([]experiment.Member, len(studies))
		for i := range studies {
			s := &studies[i]
			members[i] = experiment.Member{Experiment: s.experiment(), Run: s.run(b)}
		}
		return members
	},
}

// study is one of the experiments.
type study struct {
	name, short, long string
	// span is how long it runs, as in the paper.
	span time.Duration
	// plays are the runs that it looks at, but for their seeds.
	plays func(s *setting) []play
	// result reports what came of them.
	result func(r *runs) *experiment.Result
	// own declares flags that no other has; nil for none.
	own func(o *options, f *pflag.FlagSet)
	// real runs it on real processes instead, if its flag says so; nil if it cannot.
	real *experiment.Experiment
}

// studies are all, in the order of the report.
var studies = []study{
	latencyStudy, crashStudy, partitionStudy, constraintStudy, forecastsStudy, sitesStudy, readsStudy,
	limitsStudy, arrivalsStudy, offersStudy, policiesStudy, costStudy, saturationStudy,
}

// experiment is the study as one that runs alone.
func (s *study) experiment() *experiment.Experiment {
	return &experiment.Experiment{Name: s.name, Short: s.short, Long: s.long, Brief: true, New: func(f *pflag.FlagSet) experiment.Run {
		o := &options{}
		o.flags(f)
		if s.own != nil {
			s.own(o, f)
		}
		virtually := s.run(newBench(o))
		if s.real == nil {
			return virtually
		}
		really := s.real.New(pflag.NewFlagSet(s.real.Name, pflag.ContinueOnError))
		onProcesses := f.Bool("real", false, "play to real processes instead, as experiment "+s.real.Name+" does, whose flags say more")
		return func(ctx context.Context, env *experiment.Env) (*experiment.Result, error) {
			if *onProcesses {
				return really(ctx, env)
			}
			return virtually(ctx, env)
		}
	}}
}

// run plays what the study looks at.
func (s *study) run(b *bench) experiment.Run {
	return func(ctx context.Context, env *experiment.Env) (*experiment.Result, error) {
		if err := b.o.check(); err != nil {
			return nil, err
		}
		set, err := b.setting(ctx, env, s.span)
		if err != nil {
			return nil, err
		}
		r, err := b.run(ctx, env, set, s.plays(set))
		if err != nil {
			return nil, err
		}
		found := s.result(r)
		if r.err != nil {
			return nil, r.err
		}
		found.Setup = set.about(s.plays(set)) + " " + found.Setup
		return found, nil
	}
}

// options are the flags.
type options struct {
	seeds, minutes  int
	service, commit time.Duration
	trace, column   string
}

// The bounds of the flags.
const (
	maxSeeds   = 100
	maxMinutes = 60
)

func (o *options) flags(f *pflag.FlagSet) {
	f.IntVar(&o.seeds, "seeds", 0, "how many seeds to run, from --seed on; 0: 20, 10 or 3, by the run's cost")
	f.IntVar(&o.minutes, "minutes", maxMinutes, "run for no longer than this; goals of what the paper runs for longer are not measured")
	f.DurationVar(&o.service, "service", 0, "how long a processor is busy with a request; 0s: as measured on this machine at the start")
	f.DurationVar(&o.commit, "commit", 300*time.Microsecond, "how long a disk takes to make a transaction durable")
}

// check refuses flags that are out of their range.
func (o *options) check() error {
	bad := func(flag, want string) error {
		return fmt.Errorf("%w: --%s must be %s", experiment.ErrOptions, flag, want)
	}
	switch {
	case o.seeds < 0 || o.seeds > maxSeeds:
		return bad("seeds", fmt.Sprintf("within 0 and %d", maxSeeds))
	case o.minutes < 1 || o.minutes > maxMinutes:
		return bad("minutes", fmt.Sprintf("within 1 and %d", maxMinutes))
	case o.service < 0 || o.service > 10*time.Millisecond:
		return bad("service", "within 0s and 10ms")
	case o.commit <= 0 || o.commit > 100*time.Millisecond:
		return bad("commit", "above 0s and at most 100ms")
	}
	return nil
}

const (
	// quickSeeds and quickMinutes are what a quick run has of each at most.
	quickSeeds, quickMinutes = 1, 4
	// leastSeeds are those that a median needs.
	leastSeeds = 3
)

// setting is what the runs of one study share.
type setting struct {
	// first is the first seed, seeds how many each run has; 0 for as many as wanted.
	first uint64
	seeds int
	span  time.Duration
	// whole says that the runs are long and many enough to be held against goals.
	whole           bool
	quick           bool
	service, commit time.Duration
	// measured says that service was.
	measured      bool
	trace, column string
}

// minutes is how many the runs begin.
func (s *setting) minutes() int { return minutesOf(s.span) }

func minutesOf(d time.Duration) int { return int((d + time.Minute - 1) / time.Minute) }

// setting settles what a study that takes so long runs with.
func (b *bench) setting(ctx context.Context, env *experiment.Env, span time.Duration) (*setting, error) {
	s := &setting{
		span: min(span, time.Duration(b.o.minutes)*time.Minute), quick: env.Quick,
		first: env.Seed, seeds: b.o.seeds,
		service: b.o.service, commit: b.o.commit, trace: b.o.trace, column: b.o.column,
	}
	if env.Quick {
		s.span = min(s.span, quickMinutes*time.Minute)
	}
	s.whole = s.span == span && !env.Quick && (s.seeds == 0 || s.seeds >= leastSeeds)
	if s.service == 0 {
		var err error
		if s.service, err = b.calibrated(ctx, env); err != nil {
			return nil, err
		}
		s.measured = true
	}
	return s, nil
}

// about says what all runs of the setting have in common.
func (s *setting) about(plays []play) string {
	how := "given"
	if s.measured {
		how = "measured at the start"
	}
	span := fmt.Sprintf("%v s", s.span.Seconds())
	if s.span > time.Minute {
		span = fmt.Sprintf("%v minutes", s.span.Minutes())
	}
	return fmt.Sprintf("Virtual time: %s of load a run, %s; a request takes a processor %v (%s), a commit takes a disk %v.",
		span, s.told(plays), s.service, how, s.commit)
}
