package compare

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestMain lets this test program play the control.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == EchoCommand {
		if err := ServeEcho(context.Background(), os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// diskDir returns an empty directory on the disk of the work tree.
func diskDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp(".", "test-*.tmp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	// Others have to pass through.
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// nothingLeft fails unless dir is empty and no process has any of the ids.
func nothingLeft(t *testing.T, dir string, pids []int) {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 0 {
		t.Errorf("files are left: %v %v", files, err)
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("process %d is left (%v)", pid, err)
		}
	}
}

var oneWay = []Way{{Name: "one", Callers: 2, Batch: 1}}

func TestRoundsAlternate(t *testing.T) {
	dir := diskDir(t)
	var order []string
	systems := []System{
		&fake{name: "a", kind: Control, ways: oneWay, takes: time.Millisecond},
		&fake{name: "b", kind: Durable, ways: oneWay, takes: time.Millisecond},
		&fake{name: "c", kind: Volatile, ways: []Way{{Name: "hot", Callers: 1, Batch: 2, HotOnly: true}}, takes: time.Millisecond},
	}
	r, err := Run(t.Context(), &Options{
		Systems: systems, Rounds: 2, Time: 200 * time.Millisecond, Dir: dir,
		Progress: func(s string) {
			if _, name, ok := strings.Cut(s, ": start "); ok {
				order = append(order, name)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"a", "b", "c", "b", "c", "a"}; !slices.Equal(order, want) {
		t.Errorf("started %v, want %v", order, want)
	}
	var cells []string
	for _, m := range r.Cells {
		cells = append(cells, m.String())
		if len(m.Samples) != 2 || m.Median.Rate <= 0 {
			t.Errorf("%s: %d samples, %v a second", m, len(m.Samples), m.Median.Rate)
		}
	}
	if want := []string{"a/one/hot", "b/one/hot", "b/one/zipf", "c/hot/hot"}; !slices.Equal(cells, want) {
		t.Errorf("cells %v, want %v", cells, want)
	}
	for _, s := range systems {
		if f := s.(*fake); f.closed != f.started {
			t.Errorf("%s was started %d times, closed %d times", f.name, f.started, f.closed)
		}
	}
	nothingLeft(t, dir, nil)
}

func TestWhatFailsLeavesNothing(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip("no sleep here")
	}
	for name, c := range map[string]struct {
		fake   *fake
		cancel bool
		want   error
	}{
		"start fails":      {fake: &fake{startErr: errFake}, want: errFake},
		"a call fails":     {fake: &fake{err: errFake, failAfter: 5}, want: errFake},
		"beyond the limit": {fake: &fake{beyond: true}, want: ErrLimit},
		"a grant is lost":  {fake: &fake{lossy: 4*scarce + 100}, want: ErrBooks},
		"Ctrl-C":           {fake: &fake{takes: time.Millisecond}, cancel: true, want: errFake},
	} {
		t.Run(name, func(t *testing.T) {
			dir := diskDir(t)
			f := c.fake
			f.name, f.kind, f.ways, f.program = "fake", Durable, oneWay, []string{sleep, "1000"}
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			o := &Options{
				Systems: []System{f}, Rounds: 1, Time: 300 * time.Millisecond, Dir: dir,
				Wanted: func(c Cell) bool { return c.Workload == Hot },
			}
			if c.cancel {
				o.Time = time.Minute
				time.AfterFunc(100*time.Millisecond, func() { cancel(errFake) })
			}
			if _, err := Run(ctx, o); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
			if len(f.pids) != 1 {
				t.Errorf("%d programs were started, want 1", len(f.pids))
			}
			nothingLeft(t, dir, f.pids)
		})
	}
}

func TestDeathIsTold(t *testing.T) {
	dir := diskDir(t)
	f := &fake{
		name: "dying", kind: Durable, ways: oneWay, startErr: errFake,
		program: []string{"/bin/sh", "-c", "echo no room left >&2; exit 3"},
	}
	// The start fails once the program has ended.
	s := &waitsForEnd{f}
	_, err := Run(t.Context(), &Options{Systems: []System{s}, Rounds: 1, Time: time.Second, Dir: dir})
	if err == nil || !strings.Contains(err.Error(), "no room left") {
		t.Errorf("%v, want the last lines of the log", err)
	}
}

type waitsForEnd struct{ *fake }

func (w *waitsForEnd) Start(ctx context.Context, env *Env) (Running, error) {
	r, err := w.fake.Start(ctx, env)
	<-env.Programs.Processes()[0].Died()
	return r, err
}

func TestMemoryIsRefused(t *testing.T) {
	const shm = "/dev/shm"
	if in, err := inMemory(shm); err != nil || !in {
		t.Skip("no memory file system at ", shm)
	}
	f := &fake{name: "fake", kind: Durable, ways: oneWay}
	_, err := Run(t.Context(), &Options{Systems: []System{f}, Rounds: 1, Time: time.Second, Dir: shm})
	if !errors.Is(err, ErrInMemory) || f.started != 0 {
		t.Errorf("%v, started %d times; want %v", err, f.started, ErrInMemory)
	}
}

func TestNonsenseIsRefused(t *testing.T) {
	dir := diskDir(t)
	systems := []System{&fake{name: "fake", kind: Durable, ways: oneWay}}
	for name, o := range map[string]*Options{
		"no rounds":     {Systems: systems, Time: time.Second, Dir: dir},
		"no time":       {Systems: systems, Rounds: 1, Dir: dir},
		"nothing asked": {Systems: systems, Rounds: 1, Time: time.Second, Dir: dir, Wanted: func(Cell) bool { return false }},
		"no directory":  {Systems: systems, Rounds: 1, Time: time.Second, Dir: filepath.Join(dir, "none")},
	} {
		if _, err := Run(t.Context(), o); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	nothingLeft(t, dir, nil)
}
