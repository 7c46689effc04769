package repartitioning

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/pflag"

	_ "github.com/samya-db/samya/internal/testheap"
	"github.com/samya-db/samya/kvpart"
	"github.com/samya-db/samya/lab/experiment"
	"github.com/samya-db/samya/lab/experiment/experimenttest"
)

// env is an experiment's world that counts its progress in steps.
func env(quick bool, steps *int) *experiment.Env {
	e := experimenttest.Env(steps)
	e.Quick = quick
	return e
}

// parsed are the options that these flags give.
func parsed(t *testing.T, args ...string) *options {
	t.Helper()
	o := &options{}
	experimenttest.Parse(t, o.flags, args...)
	return o
}

func TestComparisonRuns(t *testing.T) {
	var mu sync.Mutex
	var opened []kvpart.Options
	o := parsed(t, "--records", "1000", "--operations", "1000", "--rounds", "2", "--in-flight", "64", "--value-size", "10", "--partitions", "2,3", "--only", "^(SW|RR|Base|Async W=1e3|drop)")
	steps := 0
	r, err := o.run(t.Context(), env(false, &steps), func(ko kvpart.Options) (store, error) {
		mu.Lock()
		defer mu.Unlock()
		opened = append(opened, ko)
		return newFake(ko), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// Of each workload SW once and five policies with two and three workers; and two runs
	// that show the drop; each in two rounds.
	if want := 2 * (3*(1+2*5) + 2); len(opened) != want || steps != want {
		t.Errorf("%d runs, %d steps, want %d", len(opened), steps, want)
	}
	for _, ko := range opened {
		if ko.Strategy != kvpart.Threaded || ko.Policy.Kind == kvpart.Base && ko.Policy.Operations == 0 {
			t.Errorf("options %+v", ko)
		}
	}
	if first, second := opened[0].Partitions, opened[len(opened)/2].Partitions; first != 1 || second == 1 {
		t.Error("the second round does not go back")
	}
	if got, want := len(r.Tables[0].Rows), len(opened); got != want {
		t.Errorf("%d rows, want %d", got, want)
	}
	for _, f := range r.Figures {
		if err := f.WriteSVG(io.Discard); err != nil {
			t.Errorf("figure %q: %v", f.Name, err)
		}
	}
	for _, name := range []string{"", "median", "multi", "drop"} {
		found := false
		for _, f := range r.Figures {
			found = found || f.Name == name
		}
		if !found && name != "drop" {
			t.Errorf("no figure %q", name)
		}
	}
	// A fake without cuts shows no drop: this goal is not met, nor any other unmeasured
	// goal.
	if r.Met() {
		t.Error("all goals met by a store that never cuts")
	}
	if err := experiment.Write(t.TempDir(), []*experiment.Result{r}); err != nil {
		t.Error(err)
	}
}

func TestFlagsAreChecked(t *testing.T) {
	experimenttest.Refuses(t, &Experiment, [][]string{
		{"--workload", "F"},
		{"--workload", ""},
		{"--partitions", "1"},
		{"--partitions", "65"},
		{"--rounds", "0"},
		{"--records", "999"},
		{"--operations", "1"},
		{"--value-size", "0"},
		{"--in-flight", "1"},
		{"--every", "-1s"},
		{"--share", "0"},
		{"--share", "1.5"},
		{"--only", "("},
	})
}

func TestFailedRunFails(t *testing.T) {
	broken := errors.New("broken")
	steps := 0
	_, err := parsed(t, "--records", "1000", "--operations", "1000", "--value-size", "10").run(t.Context(), env(true, &steps), func(ko kvpart.Options) (store, error) {
		f := newFake(ko)
		f.fails = broken
		return f, nil
	})
	if !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

// withRates makes figures of cells by their policy.
func withRates(o *options, rates map[string]float64) *measured {
	m := &measured{options: o, cells: o.cells(), runs: make(map[cell][]*figures)}
	for _, c := range m.cells {
		if rate, ok := rates[c.name]; ok {
			m.runs[c] = []*figures{{median: rate, makespan: time.Second, once: .03}}
		}
	}
	return m
}

func TestJudging(t *testing.T) {
	o := parsed(t, "--workload", "E", "--partitions", "4")
	if err := o.check(); err != nil {
		t.Fatal(err)
	}
	good := map[string]float64{roundRobin: 100, "Base Δp=1/50": 80, longestBase: 120, "Async W=1e3": 90, "Async W=1e4": 140}
	drops := func(m *measured, base, async float64) *measured {
		cells := m.dropCells()
		m.runs[cells[0]] = []*figures{{dip: base, loss: base}}
		m.runs[cells[1]] = []*figures{{loss: async}}
		return m
	}
	met := func(m *measured) (which []bool) {
		for _, g := range m.goals() {
			which = append(which, g.Met)
		}
		return which
	}
	for name, c := range map[string]struct {
		m    *measured
		want []bool
	}{
		"all met":            {drops(withRates(o, good), .8, .1), []bool{true, true, true, true, true, true}},
		"no drop of Base":    {drops(withRates(o, good), .1, .1), []bool{true, true, true, false, false, true}},
		"a drop of Async":    {drops(withRates(o, good), .8, .6), []bool{true, true, true, true, true, false}},
		"drops not measured": {withRates(o, good), []bool{true, true, true, false, false, false}},
		"slower than Base":   {drops(withRates(o, map[string]float64{roundRobin: 1, longestBase: 150, "Async W=1e4": 140}), .8, 0), []bool{false, true, true, true, true, true}},
		"as round-robin":     {drops(withRates(o, map[string]float64{roundRobin: 110, longestBase: 150, "Async W=1e4": 140}), .8, 0), []bool{false, false, true, true, true, true}},
		"nothing":            {withRates(o, nil), make([]bool, 6)},
	} {
		got := met(c.m)
		if len(got) != len(c.want) {
			t.Fatalf("%s: %d goals", name, len(got))
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%s: goal %d met %v: %+v", name, i, got[i], c.m.goals()[i])
			}
		}
	}
	many := withRates(o, good)
	for c := range many.runs {
		many.runs[c][0].once = .06
	}
	if met(many)[2] {
		t.Error("6 % on several partitions after one cut counts as met")
	}
}

func TestExpectedShareOnSeveralPartitions(t *testing.T) {
	// 1 − (1/2)^(len−1) for 2 to 8, and 95 % of requests are scans.
	if got := expectedMulti(2); got < 81.5 || got > 81.6 {
		t.Errorf("%v %%", got)
	}
}

// A store that switches at each look ends the measurement of the pause.
func TestPauseRuns(t *testing.T) {
	o := &pauseOptions{}
	f := pflag.NewFlagSet("test", pflag.ContinueOnError)
	o.flags(f)
	if err := f.Parse([]string{"--records", "1000", "--switches", "100", "--value-size", "10", "--clients", "2"}); err != nil {
		t.Fatal(err)
	}
	var opened []*fake
	steps := 0
	r, err := o.run(t.Context(), env(false, &steps), func(ko kvpart.Options) (clientStore, error) {
		f := newFake(ko)
		looks, pause := int64(0), time.Duration(len(opened)+1)*600*time.Microsecond
		f.stats = func(int64) kvpart.Stats {
			looks++
			return kvpart.Stats{
				Computed: looks, Applied: looks, LastCutTime: 200 * time.Millisecond, Vertices: 100_000, Edges: 7,
				Pause: kvpart.Pause{Count: 100, P50: time.Microsecond, P99: pause, Max: time.Second},
			}
		}
		opened = append(opened, f)
		return f, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(opened) != 2 || opened[0].options.Strategy != kvpart.Threaded || opened[1].options.Strategy != kvpart.Soft {
		t.Fatalf("%d stores", len(opened))
	}
	for _, f := range opened {
		if f.kinds[kvpart.ScanRequest].Load() == 0 || !f.closed.Load() {
			t.Errorf("%s: no scan, or not closed", f.options.Strategy)
		}
	}
	var missed []string
	for _, g := range r.Goals {
		if !g.Met {
			missed = append(missed, g.What)
		}
	}
	if len(r.Goals) != 6 || len(missed) != 1 || !strings.Contains(missed[0], "soft: pause") {
		t.Errorf("missed %q", missed)
	}
	var b bytes.Buffer
	if err := r.Figures[0].WriteSVG(&b); err != nil || !strings.Contains(b.String(), "Longest pause so far") {
		t.Errorf("figure: %v", err)
	}
	if len(r.Tables[0].Rows) < 200 {
		t.Errorf("%d rows", len(r.Tables[0].Rows))
	}
}

func TestPauseGivesUp(t *testing.T) {
	o := &pauseOptions{records: 1000, switches: 3, workers: 2, clients: 1, valueSize: 10, limit: time.Second}
	ctx, cancel := context.WithCancelCause(t.Context())
	interrupted := errors.New("interrupted")
	steps := 0
	_, err := o.run(ctx, env(false, &steps), func(ko kvpart.Options) (clientStore, error) {
		f := newFake(ko)
		f.stats = func(int64) kvpart.Stats { cancel(interrupted); return kvpart.Stats{} }
		return f, nil
	})
	if !errors.Is(err, interrupted) {
		t.Errorf("%v", err)
	}
	for name, spoil := range map[string]func(*pauseOptions){
		"--records": func(o *pauseOptions) { o.records = 1 }, "--switches": func(o *pauseOptions) { o.switches = 0 }, "--partitions": func(o *pauseOptions) { o.workers = 1 },
		"--clients": func(o *pauseOptions) { o.clients = 0 }, "--value-size": func(o *pauseOptions) { o.valueSize = 0 }, "--timeout": func(o *pauseOptions) { o.limit = 0 },
	} {
		bad := *o
		spoil(&bad)
		if _, err := bad.run(t.Context(), env(false, &steps), nil); !errors.Is(err, experiment.ErrOptions) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
