package transports

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestMain lets this test program be a server of a way.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == ServeCommand {
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		err := Serve(ctx, os.Args[2:])
		stop()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// briefly are options of a measurement of moments.
func briefly(t *testing.T) Options {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Options{
		Self: self, Callers: []int{1, 100}, Secure: []int{8}, Rounds: 2,
		Warmup: 20 * time.Millisecond, Time: 200 * time.Millisecond, Dir: t.TempDir(),
	}
}

// TestRun: over every way the server answers all calls. No process and no file is left.
func TestRun(t *testing.T) {
	o := briefly(t)
	told := 0
	o.Progress = func(string) { told++ }
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if want := 2*len(ways) + len(overTLS); len(r.Rows) != want || told != want*o.Rounds {
		t.Errorf("%d rows and %d messages of progress, want %d and %d", len(r.Rows), told, want, want*o.Rounds)
	}
	for _, row := range r.Rows {
		if row.Rate <= 0 || row.P50 <= 0 || row.P99 < row.P50 || row.P999 < row.P99 || row.ClientCPU <= 0 || row.Times <= 0 || len(row.Samples) != o.Rounds {
			t.Errorf("%+v", row)
		}
		// A message may have left before the measurement whose answer came within: on a busy
		// machine, of few messages.
		if least, most := .6, float64(row.Callers)*1.5; row.PerMessage < least || row.PerMessage > most {
			t.Errorf("%s: %.2f operations a message, want %.1f to %.1f", row.name(), row.PerMessage, least, most)
		}
	}
	if left, err := os.ReadDir(o.Dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// TestRunStops: a measurement ends when its context does, with the cause.
func TestRunStops(t *testing.T) {
	o := briefly(t)
	o.Time = time.Minute
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	o.Secure, o.Callers = nil, []int{4}
	o.Rounds, o.Warmup = 1, 0
	stop := time.AfterFunc(500*time.Millisecond, func() { cancel(enough) })
	defer stop.Stop()
	if _, err := Run(ctx, o); !errors.Is(err, enough) {
		t.Errorf("it ended with %v, want %v", err, enough)
	}
	if left, err := os.ReadDir(o.Dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// TestServeRefuses: a server refuses wrong arguments.
func TestServeRefuses(t *testing.T) {
	for _, args := range [][]string{
		{"127.0.0.1:0"},
		{"127.0.0.1:0", "pigeons"},
		{"127.0.0.1:0", Frames, "no certificate", "no key"},
		{"nowhere", Frames},
	} {
		if err := Serve(t.Context(), args); err == nil || !strings.HasPrefix(err.Error(), ServeCommand) {
			t.Errorf("%q: %v", args, err)
		}
	}
}
