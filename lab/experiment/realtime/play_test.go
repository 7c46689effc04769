package realtime_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/samya-db/samya/internal/buildtest"
	_ "github.com/samya-db/samya/internal/testheap"
	"github.com/samya-db/samya/lab/experiment"
	"github.com/samya-db/samya/lab/experiment/realtime"
	"github.com/samya-db/samya/lab/replay"
)

// scratch is where the program is built, and goes when the tests end.
var scratch string

func TestMain(m *testing.M) {
	var err error
	if scratch, err = os.MkdirTemp("", "samya-realtime-test-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if err := os.RemoveAll(scratch); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(code)
	}))
}

var build = sync.OnceValues(func() (string, error) {
	return buildtest.Samya(context.Background(), scratch)
})

// samya returns the path of the program, built from this tree.
func samya(t *testing.T) string {
	t.Helper()
	bin, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

// demand is the beginning of a workload.
func demand(t *testing.T, workload string, span time.Duration) *replay.Demand {
	t.Helper()
	d, err := replay.Draw(workload, 1, int(span/replay.Bin))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// empty fails the test unless nothing is left in a directory.
func empty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// With too few tokens most of them come to be out, never more than the limit, and
// acquires are refused. The books add up, or Play fails.
func TestPlay(t *testing.T) {
	t.Parallel()
	const limit = 300
	dir, d := t.TempDir(), demand(t, "fit", 10*time.Second)
	p, err := realtime.PlayBoth(t.Context(), realtime.Options{Demand: d, Limit: limit, Bin: samya(t), Dir: dir, Progress: func(s string) { t.Log(s) }})
	if err != nil {
		t.Fatal(err)
	}
	empty(t, dir)
	if acquires := p.Granted + p.Refused; acquires != len(d.Leases) {
		t.Errorf("%d acquires were answered of %d", acquires, len(d.Leases))
	}
	if p.Requests != p.Granted+p.Released+p.Refused || p.TimedOut != 0 {
		t.Errorf("%d requests: %d granted, %d released, %d refused, %d timed out", p.Requests, p.Granted, p.Released, p.Refused, p.TimedOut)
	}
	if p.Refused == 0 || p.Peak <= limit/2 || p.Peak > limit {
		t.Errorf("%d refused and at most %d out of %d: the limit was not put to the test", p.Refused, p.Peak, limit)
	}
	if p.Held != int64(p.Granted-p.Released) {
		t.Errorf("%d granted, %d released, %d held", p.Granted, p.Released, p.Held)
	}
	if p.Waited == 0 || p.Redistributions() == 0 {
		t.Errorf("%d acquires waited, %d redistributions", p.Waited, p.Redistributions())
	}
	sum := 0
	for _, n := range p.Windows {
		sum += n
	}
	if sum != p.Committed() {
		t.Errorf("%d committed, %d in windows", p.Committed(), sum)
	}
	if p.Virtual.Granted+p.Virtual.Refused != len(d.Leases) {
		t.Errorf("virtual time answers %d of %d acquires", p.Virtual.Granted+p.Virtual.Refused, len(d.Leases))
	}
	r := realtime.Report([]*realtime.Played{p})
	r.Name = "real"
	if err := experiment.Write(filepath.Join(dir, "report"), []*experiment.Result{r}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"real.csv", "real-windows.csv", "real.svg"} {
		if _, err := os.Stat(filepath.Join(dir, "report", name)); err != nil {
			t.Error(err)
		}
	}
	for _, row := range r.Tables[0].Rows {
		if len(row) != len(r.Tables[0].Heads) {
			t.Errorf("a row of %d cells under %d heads", len(row), len(r.Tables[0].Heads))
		}
	}
}

// A play that is interrupted leaves nothing behind.
func TestInterruptedPlay(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"starting", "creating", "making load"} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			dir, enough := t.TempDir(), errors.New("enough")
			ctx, cancel := context.WithCancelCause(t.Context())
			_, err := realtime.Play(ctx, realtime.Options{
				Demand: demand(t, "fit", time.Minute), Bin: samya(t), Dir: dir,
				Progress: func(s string) {
					if strings.HasPrefix(s, at) {
						cancel(enough)
					}
				},
			})
			if !errors.Is(err, enough) {
				t.Errorf("ended with %v", err)
			}
			empty(t, dir)
		})
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	if _, err := realtime.Play(t.Context(), realtime.Options{}); err == nil {
		t.Error("played nothing")
	}
	if _, err := realtime.Program(filepath.Join(scratch, "none")); !errors.Is(err, experiment.ErrOptions) {
		t.Errorf("a program that is not there: %v", err)
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	d := demand(t, "fit", 10*time.Second)
	short := realtime.Cut(d, 4*time.Second)
	if n := len(short.Leases); n == 0 || n == len(d.Leases) || short.Leases[n-1].Due >= short.Span || d.Leases[n].Due < short.Span || d.Span != 10*time.Second {
		t.Errorf("%d of %d leases in %v of %v", n, len(d.Leases), short.Span, d.Span)
	}
	if same := realtime.Cut(d, time.Minute); len(same.Leases) != len(d.Leases) || same.Span != d.Span {
		t.Errorf("%d of %d leases", len(same.Leases), len(d.Leases))
	}
}
