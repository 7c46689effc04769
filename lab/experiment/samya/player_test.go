package samya

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/samya-db/samya/internal/race"
	"github.com/samya-db/samya/lab/experiment"
	"github.com/samya-db/samya/lab/replay"
)

// brief is the setting of the runs of these tests.
var brief = &setting{first: 1, seeds: 1, span: time.Minute, service: 2 * time.Microsecond, commit: 300 * time.Microsecond}

// Every system that an experiment names serves a minute of the demand.
func TestSystemsServe(t *testing.T) {
	race.OneGoroutine(t)
	names := make(map[string]bool)
	for i := range studies {
		for _, p := range studies[i].plays(brief) {
			names[p.system] = true
		}
	}
	l := newPlayer()
	for name := range names {
		t.Run(name, func(t *testing.T) {
			p := play{system: name, workload: fit, seed: 1, span: time.Minute}
			o, err := l.play(t.Context(), brief, p)
			if err != nil {
				t.Fatal(err)
			}
			if o.requests == 0 || o.granted+o.refused+o.timedOut != o.requests || o.seconds != 60 || len(o.byMinute) != 1 || o.byMinute[0] == 0 || o.all.p99 <= 0 {
				t.Errorf("%+v", o)
			}
			// A minute of the demand is far from the limit.
			slow := name == oneRound || name == oneRoundCentral
			if !slow && (o.refused != 0 || o.timedOut != 0) {
				t.Errorf("%d refused, %d timed out", o.refused, o.timedOut)
			}
			if slow && o.timedOut == 0 {
				t.Error("one round for each transaction serves all")
			}
		})
	}
}

func TestUnknownSystems(t *testing.T) {
	for _, name := range []string{"", "nobody", "majority+nothing", "majority+grants-nothing", "oracle+offer-all"} {
		if _, err := newSystem(name); err == nil {
			t.Errorf("made a system %q", name)
		}
	}
}

// Runs of the same demand draw it once, and few demands are kept.
func TestDemandsAreKept(t *testing.T) {
	l := &player{draw: func(*setting, demanded) (*replay.Demand, error) { return &replay.Demand{}, nil }}
	first, err := l.demand(brief, play{system: star, workload: fit, seed: 1, span: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	again, err := l.demand(brief, play{system: majority, workload: fit, seed: 1, span: time.Minute, limit: 600})
	if err != nil || again != first {
		t.Errorf("drawn twice: %v", err)
	}
	for seed := uint64(2); seed < maxDemands+4; seed++ {
		if other, err := l.demand(brief, play{workload: fit, seed: seed, span: time.Minute}); err != nil || other == first {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	if len(l.demands) != maxDemands {
		t.Errorf("%d are kept", len(l.demands))
	}
}

// A file is played instead of the workloads, and held against no goal.
func TestTrace(t *testing.T) {
	var b strings.Builder
	b.WriteString("t,other,jobs\n")
	for i := range 200 {
		fmt.Fprintf(&b, "%d,0,%d\n", 300*i, 100+i%24)
	}
	file := filepath.Join(t.TempDir(), "jobs.csv")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	e := latencyStudy.experiment()
	with := func(column string) experiment.Run {
		f := pflag.NewFlagSet("", pflag.ContinueOnError)
		run := e.New(f)
		if err := f.Parse([]string{"--trace", file, "--column", column, "--service", "2us", "--minutes", "1"}); err != nil {
			t.Fatal(err)
		}
		return run
	}
	r, err := experiment.Do(t.Context(), e, with("jobs"), envOf(true))
	if err != nil || len(r.Goals) != 0 || len(r.Tables[0].Rows) != len(latencySystems) || r.Tables[0].Rows[0][0] != traced {
		t.Fatalf("%+v, %v", r, err)
	}
	if _, err := with("nothing")(t.Context(), envOf(true)); err == nil {
		t.Error("a column that is not there was played")
	}
}

// With --real other code runs, in place of all this.
func TestReal(t *testing.T) {
	ran := errors.New("it ran")
	s := study{name: "s", span: time.Minute, plays: crashStudy.plays, result: crashResult, real: &experiment.Experiment{
		Name: "r", New: func(*pflag.FlagSet) experiment.Run {
			return func(context.Context, *experiment.Env) (*experiment.Result, error) { return nil, ran }
		},
	}}
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	run := s.experiment().New(f)
	if err := f.Parse([]string{"--real", "--seeds=-1"}); err != nil {
		t.Fatal(err)
	}
	if _, err := run(t.Context(), envOf(true)); !errors.Is(err, ran) {
		t.Errorf("with --real: %v", err)
	}
	if err := f.Parse([]string{"--real=false"}); err != nil {
		t.Fatal(err)
	}
	if _, err := run(t.Context(), envOf(true)); !errors.Is(err, experiment.ErrOptions) {
		t.Errorf("without: %v", err)
	}
}

// The faults of a run are the faults that its figures show.
func TestFaults(t *testing.T) {
	at := faultsOf(crashes, time.Hour)
	if len(at) != crashed || at[0].At != 10*time.Minute || at[3].At != 40*time.Minute {
		t.Errorf("crashes %+v", at)
	}
	at = faultsOf(cut, 30*time.Minute)
	if len(at) != 2 || at[0].At != 3*time.Minute || at[1].At != 27*time.Minute {
		t.Errorf("cut %+v", at)
	}
	if faultsOf("", time.Hour) != nil {
		t.Error("a fault where there is none")
	}
	// While two are alive, majority moves nothing and star does; clients of regions
	// that crashed ask nothing.
	l := newPlayer()
	p := play{system: auto, workload: fit, seed: 1, span: 6 * time.Minute, fault: crashes}
	o, err := l.play(t.Context(), brief, p)
	if err != nil || o.byMinute[5] == 0 || o.byMinute[5] > o.byMinute[0] {
		t.Errorf("%+v, %v", o, err)
	}
}

// A closed loop has as many clients as asked for.
func TestClosedLoops(t *testing.T) {
	l := newPlayer()
	p := play{system: transfers, workload: fit, seed: 1, span: time.Second, clients: 1}
	one, err := l.play(t.Context(), brief, p)
	if err != nil {
		t.Fatal(err)
	}
	p.clients = 2
	two, err := l.play(t.Context(), brief, p)
	if err != nil || two.rate() < 1.5*one.rate() || one.rate() < 3000 {
		t.Errorf("%v and %v a second, %v", one.rate(), two.rate(), err)
	}
	p.reads, p.exact = 100, true
	if exact, err := l.play(t.Context(), brief, p); err != nil || exact.rate() > one.rate()/10 {
		t.Errorf("%v a second, %v", exact.rate(), err)
	}
}
