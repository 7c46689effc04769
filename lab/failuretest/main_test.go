package failuretest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/samya-db/samya/devcluster/proc"
	"github.com/samya-db/samya/internal/buildtest"
	"github.com/samya-db/samya/internal/race"
)

// longEnv set to anything chooses the long form of every story.
const longEnv = "SAMYA_TEST_PROCESS"

// long reports whether the stories are to be told at length.
func long() bool { return os.Getenv(longEnv) != "" }

// pick returns the value for the form that runs.
func pick[T any](short, atLength T) T {
	if long() {
		return atLength
	}
	return short
}

// seedEnv set to a number makes random tests repeat their draws. The real processes still
// behave differently each time.
const seedEnv = "SAMYA_TEST_SEED"

// seedOf returns the seed to be used: a new seed unless seedEnv gives it.
func seedOf(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv(seedEnv)
	if text == "" {
		return rand.Uint64N(1 << 32)
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", seedEnv, err)
	}
	return seed
}

// scratch is where the program is built, and goes when the tests end.
var scratch string

// TestMain also lets this program play a site, with a hook that loses messages.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "site" {
		os.Exit(playSite(os.Args[2:]))
	}
	flag.Parse()
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		if err := parallel.Value.Set(strconv.Itoa(max(atOnce, runtime.GOMAXPROCS(0)))); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	var err error
	if scratch, err = os.MkdirTemp("", "samya-failuretest-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if err := os.RemoveAll(scratch); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		if text := summary(); long() && text != "" {
			fmt.Printf("\nSummary:\n%s\n", text)
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
	race.OtherProcesses(t)
	bin, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

// atOnce is how many of the tests of beside run at once, on few processors.
const atOnce = 3

// beside lets the short form of a test that mostly waits run beside such tests. Tests that
// keep the processors busy, or that take times, run before them, one at a time.
func beside(t *testing.T) {
	t.Helper()
	if !long() {
		t.Parallel()
	}
}

// patience bounds every wait for something that takes far less.
const patience = 30 * time.Second

// start starts a cluster of real processes that is stopped with the test. A
// process that ends without having been asked to fails the test, unless the
// test reads the deaths itself.
func start(t *testing.T, cfg proc.Config) *proc.Cluster {
	t.Helper()
	cfg.Cluster = "failuretest"
	if !slices.Contains(cfg.SiteArgs, "--partitions") {
		cfg.SiteArgs = append(cfg.SiteArgs, "--partitions", "3")
	}
	if cfg.Bin == "" {
		cfg.Bin = samya(t)
	}
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	c, err := proc.Start(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(context.Background()); err != nil {
			t.Errorf("stopping the cluster: %v", err)
		}
		for {
			select {
			case death := <-c.Deaths():
				t.Errorf("nobody asked for it: %v", death)
				continue
			default:
			}
			return
		}
	})
	return c
}

// restart starts processes that have ended, and waits until all are ready.
func restart(t *testing.T, ps ...*proc.Process) {
	t.Helper()
	for _, p := range ps {
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for _, p := range ps {
		if err := p.WaitReady(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

// kill ends a process as kill -9 does.
func kill(t *testing.T, p *proc.Process) {
	t.Helper()
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
}

// expectDeath waits for an end that the test has caused, and returns how the
// process ended: nil with status 0.
func expectDeath(t *testing.T, c *proc.Cluster, p *proc.Process) error {
	t.Helper()
	select {
	case death := <-c.Deaths():
		if death.Process != p {
			t.Fatalf("the wrong process ended: %v", death)
		}
		return death.Err
	case <-time.After(patience):
		t.Fatalf("%s still runs after %s", p.Name, patience)
		return nil
	}
}

// exitStatus returns the status that a process ended with, -1 for a signal.
func exitStatus(err error) int {
	if err == nil {
		return 0
	}
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		return e.ExitCode()
	}
	return -1
}

// killedBy returns the signal that ended a process, 0 for none.
func killedBy(err error) syscall.Signal {
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		if status, ok := e.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return status.Signal()
		}
	}
	return 0
}
