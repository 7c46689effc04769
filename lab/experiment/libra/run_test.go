package libra

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/samya-db/samya/lab/experiment"
)

// parsed are the options that these flags give.
func parsed(t *testing.T, args ...string) *options {
	t.Helper()
	o := &options{}
	f := pflag.NewFlagSet("test", pflag.ContinueOnError)
	o.flags(f)
	if err := f.Parse(args); err != nil {
		t.Fatal(err)
	}
	return o
}

func environment(steps *int) *experiment.Env {
	return &experiment.Env{Quick: true, Seed: 3, Now: time.Now, Progress: func(step, of int, _ string) {
		if *steps++; step > of {
			*steps = -1 << 30
		}
	}}
}

// brief are flags of a run of a second or so.
var brief = []string{"--draws", "1", "--durations", "5,10", "--lambdas", ".05,.1", "--splits", "20", "--hot-spots", "2"}

func TestRun(t *testing.T) {
	steps := 0
	r, err := parsed(t, brief...).run(t.Context(), environment(&steps))
	if err != nil {
		t.Fatal(err)
	}
	if steps < 20 || len(r.Compared) < 30 || len(r.Tables[0].Rows) != steps-1 {
		t.Errorf("%d steps, %d claims and %d rows", steps, len(r.Compared), len(r.Tables[0].Rows))
	}
	measured := 0
	for _, g := range r.Goals {
		if g.Measured {
			measured++
		}
	}
	if measured < 10 {
		t.Errorf("%d goals are measured", measured)
	}
	for _, f := range r.Figures {
		var b bytes.Buffer
		if err := f.WriteSVG(&b); err != nil {
			t.Errorf("figure %q: %v", f.Name, err)
		}
	}
	dir := t.TempDir()
	if err := experiment.Write(dir, []*experiment.Result{r}); err != nil {
		t.Fatal(err)
	}
	report, err := os.ReadFile(filepath.Join(dir, experiment.ReportFile))
	if err != nil || !strings.Contains(string(report), "2D-WTD") {
		t.Errorf("report: %v", err)
	}
	again, err := parsed(t, brief...).run(t.Context(), environment(&steps))
	if err != nil || !reflect.DeepEqual(r.Tables, again.Tables) {
		t.Errorf("the same seed gives other tables, or %v", err)
	}
}

func TestFlagsAreChecked(t *testing.T) {
	for _, args := range [][]string{
		{"--draws", "0"},
		{"--nodes", "3"},
		{"--noise", "-1"},
		{"--drift", "1"},
		{"--durations", "5"},
		{"--durations", "5,1"},
		{"--durations", "5,90"},
		{"--lambdas", ".05"},
		{"--lambdas", ".1,.2"},
		{"--lambdas", "0,.05"},
		{"--splits", "0"},
		{"--hot-spots", "1"},
	} {
		steps := 0
		_, err := parsed(t, args...).run(t.Context(), environment(&steps))
		if !errors.Is(err, experiment.ErrOptions) || !strings.Contains(err.Error(), args[0]) || steps > 0 {
			t.Errorf("%q: %v", args, err)
		}
	}
}

func TestRunEnds(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	steps := 0
	if _, err := parsed(t, brief...).run(ctx, environment(&steps)); !errors.Is(err, gone) {
		t.Errorf("after the end: %v", err)
	}
}
