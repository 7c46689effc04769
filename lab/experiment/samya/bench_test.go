package samya

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/spf13/pflag"

	_ "github.com/samya-db/samya/internal/testheap"
	"github.com/samya-db/samya/lab/experiment"
)

// A run that two studies look at runs once.
func TestRunsAreShared(t *testing.T) {
	var count atomic.Int32
	b := played(func(play, *outcome) { count.Add(1) })
	for _, s := range []*study{&latencyStudy, &constraintStudy} {
		if _, err := s.run(b)(t.Context(), envOf(false)); err != nil {
			t.Fatal(err)
		}
	}
	if want := len(latencySystems) * len(latencyWorkloads) * 3; int(count.Load()) != want {
		t.Errorf("%d runs, want %d", count.Load(), want)
	}
}

func TestProgressGoesToTheEnd(t *testing.T) {
	env := envOf(true)
	last, of := 0, 0
	env.Progress = func(step, steps int, _ string) {
		if steps > 1 && step != last+1 {
			t.Errorf("step %d after %d", step, last)
		}
		last, of = step, steps
	}
	if _, err := limitsStudy.run(played(nil))(t.Context(), env); err != nil || last != of || of != len(limits)*len(limitSystems) {
		t.Errorf("%d of %d: %v", last, of, err)
	}
}

func TestFailuresAreTold(t *testing.T) {
	broken := errors.New("broken")
	b := played(nil)
	b.play = func(_ context.Context, _ *setting, p play) (*outcome, error) {
		if p.system == star {
			return nil, broken
		}
		return sound(p), nil
	}
	if _, err := crashStudy.run(b)(t.Context(), envOf(true)); !errors.Is(err, broken) {
		t.Errorf("a run fails: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(broken)
	if _, err := crashStudy.run(played(nil))(ctx, envOf(true)); !errors.Is(err, broken) {
		t.Errorf("a run is interrupted: %v", err)
	}
	// A study that looks at a run it did not play is a defect that must show.
	s := study{name: "s", span: crashStudy.span, plays: crashStudy.plays, result: partitionResult}
	if _, err := s.run(played(nil))(t.Context(), envOf(true)); err == nil {
		t.Error("a study looked at what it did not play")
	}
}

func TestFlags(t *testing.T) {
	for _, args := range [][]string{
		{"--seeds=-1"}, {"--seeds=101"}, {"--minutes=0"}, {"--minutes=61"}, {"--service=-1s"}, {"--service=1s"}, {"--commit=0s"}, {"--commit=1s"},
	} {
		f := pflag.NewFlagSet("", pflag.ContinueOnError)
		for _, m := range Group.New(f) {
			if err := f.Parse(args); err != nil {
				t.Fatal(err)
			}
			if _, err := m.Run(t.Context(), envOf(true)); !errors.Is(err, experiment.ErrOptions) {
				t.Errorf("%s %v: %v", m.Name, args, err)
			}
		}
	}
}

func TestStatistics(t *testing.T) {
	if m := median([]float64{3, 1, 2}); m != 2 {
		t.Errorf("median %v", m)
	}
	if m := median([]float64{4, 1, 2, 3}); m != 2.5 {
		t.Errorf("median %v", m)
	}
	if !math.IsNaN(median(nil)) || !math.IsNaN(median([]float64{1, math.NaN()})) || !math.IsNaN(most([]float64{1, math.NaN()})) || !math.IsNaN(least([]float64{math.NaN(), 1})) {
		t.Error("nothing has a median")
	}
	if most([]float64{1, 3, 2}) != 3 || least([]float64{2, 1, 3}) != 1 {
		t.Error("most or least")
	}
	if got := moving([]float64{2, 4, 6, 8}, 2); !slices.Equal(got, []float64{2, 3, 5, 7}) {
		t.Errorf("moving average %v", got)
	}
	for value, want := range map[float64]string{0: "0", 1.5: "1.5", 1.25: "1.25", 100: "100", 1.004: "1"} {
		if got := decimal(value, 2); got != want {
			t.Errorf("%v is written %s", value, got)
		}
	}
	if got := decimal(100, 0); got != "100" {
		t.Errorf("100 is written %s", got)
	}
}

func TestAlive(t *testing.T) {
	for minute, want := range map[int]int{0: 5, 9: 5, 10: 4, 29: 3, 30: 2, 39: 2, 40: 1, 59: 1} {
		if got, whole := aliveIn(minute, 60); got != want || !whole {
			t.Errorf("minute %d: %d alive, %v", minute, got, whole)
		}
	}
	if _, whole := aliveIn(0, 4); whole {
		t.Error("a minute in which a region crashes is whole")
	}
}

func TestCrossover(t *testing.T) {
	r := &runs{setting: &setting{first: 1, seeds: 1, span: readSpan}, outcomes: make(map[play]*outcome)}
	rate := func(of reader, share, n int) {
		p := of.play(r.setting, share)
		p.seed = 1
		r.outcomes[p] = &outcome{seconds: 1, granted: n}
	}
	for _, share := range readShares {
		rate(readExact, share, 1000)
		rate(readOne, share, 1000*share*share/4900)
	}
	// At 70 % both are as fast.
	if at := r.crossover(readExact, readOne); math.Abs(at-70) > 1 {
		t.Errorf("behind from %v %% on", at)
	}
	if at := r.crossover(readOne, readExact); at != 0 {
		t.Errorf("behind from %v %% on", at)
	}
	for _, share := range readShares {
		rate(readOne, share, 1)
	}
	if at := r.crossover(readExact, readOne); !math.IsNaN(at) {
		t.Errorf("behind from %v %% on", at)
	}
}
