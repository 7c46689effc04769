// Package samya reruns the experiments of the Samya paper, sections 5.3 to 5.10,
// and some of ours. It runs the real code of samya's sites and of its rivals in
// virtual time. It slows no rival down: all systems have the same load, network,
// deadline and service time, and the report has the figures of each.
package samya

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/samya-db/samya/lab/experiment"
)

// Group is all studies. They share runs: a run that two studies need runs once.
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

// study is an experiment of the group.
type study struct {
	name, short, long string
	// span is the length of its runs, as in the paper.
	span time.Duration
	// plays returns its runs, without seeds.
	plays func(s *setting) []play
	// result reports the outcomes.
	result func(r *runs) *experiment.Result
	// own declares flags that no other study has; nil for none.
	own func(o *options, f *pflag.FlagSet)
	// real runs the study on real processes if its flag says so; nil if it cannot.
	real *experiment.Experiment
}

// studies are all studies, in the order of the report.
var studies = []study{
	latencyStudy, crashStudy, partitionStudy, constraintStudy, forecastsStudy, sitesStudy, readsStudy,
	limitsStudy, arrivalsStudy, offersStudy, policiesStudy, costStudy, saturationStudy,
}

// experiment returns the study as an experiment that runs alone.
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

// run returns a Run that plays the runs of the study.
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

// options are the flags of the experiments.
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
	f.IntVar(&o.minutes, "minutes", maxMinutes, "how many minutes to play, at most; goals of what the paper runs for longer are not measured")
	f.DurationVar(&o.service, "service", 0, "how long a processor is busy with a request; 0s: as measured on this machine at the start")
	f.DurationVar(&o.commit, "commit", 300*time.Microsecond, "how long a disk takes to make a transaction durable")
}

// check refuses flags out of range.
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
	// quickSeeds and quickMinutes bound the seeds and the minutes of a quick run.
	quickSeeds, quickMinutes = 1, 4
	// leastSeeds is the least number of seeds for a median.
	leastSeeds = 3
)

// setting is the settings common to the runs of a study.
type setting struct {
	// first is the first seed. seeds is the number of seeds of each run; 0 means
	// wanted.
	first uint64
	seeds int
	span  time.Duration
	// whole says that the runs are long and many enough to judge goals.
	whole           bool
	quick           bool
	service, commit time.Duration
	// measured says that service was measured.
	measured      bool
	trace, column string
}

// minutes returns the number of minutes that the runs begin.
func (s *setting) minutes() int { return minutesOf(s.span) }

func minutesOf(d time.Duration) int { return int((d + time.Minute - 1) / time.Minute) }

// setting returns the setting of a study with a span.
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

// about describes the settings common to all runs.
func (s *setting) about(plays []play) string {
	how := "given"
	if s.measured {
		how = "measured at the start"
	}
	span := fmt.Sprintf("%v s", s.span.Seconds())
	if s.span > time.Minute {
		span = fmt.Sprintf("%v minutes", s.span.Minutes())
	}
	return fmt.Sprintf("Virtual time: %s of load a run, %s. A request takes a processor %v (%s), a commit a disk %v.",
		span, s.told(plays), s.service, how, s.commit)
}
