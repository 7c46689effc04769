package failuretest

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// tracer is a strace that is attached to a process.
type tracer struct {
	t      *testing.T
	cmd    *exec.Cmd
	output string
	ended  chan struct{}
}

// needStrace skips the test where there is no strace, or where it may not look
// at processes. On the build machine that is an error: there the test must run.
func needStrace(t *testing.T) {
	t.Helper()
	out, err := exec.Command("strace", "-o", filepath.Join(t.TempDir(), "out"), "true").CombinedOutput()
	switch {
	case err == nil:
	case os.Getenv("CI") == "true":
		t.Fatalf("strace does not work here, and CI=true says that it must: %v %s", err, out)
	default:
		t.Skipf("needs strace (apt-get install strace) and the right to trace processes: %v %s", err, out)
	}
}

// attach attaches a strace to all threads of a running process. It returns once strace
// sees all their system calls that the arguments choose.
func attach(t *testing.T, pid int, args ...string) *tracer {
	t.Helper()
	tr := &tracer{t: t, output: filepath.Join(t.TempDir(), "strace"), ended: make(chan struct{})}
	tr.cmd = exec.Command("strace", append([]string{"-f", "-p", strconv.Itoa(pid), "-o", tr.output}, args...)...)
	stderr, err := tr.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := tr.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tr.detach)
	attached := make(chan string, 1)
	go func() {
		defer close(tr.ended)
		lines := bufio.NewReader(stderr)
		first, err := lines.ReadString('\n')
		attached <- first
		if err == nil {
			_, _ = io.Copy(io.Discard, lines) // later lines are of new threads
		}
		_ = tr.cmd.Wait() // it ends as the traced process does
	}()
	select {
	case first := <-attached:
		if !strings.Contains(first, "attached") {
			t.Fatalf("strace says %q", first)
		}
	case <-time.After(patience):
		t.Fatal("strace does not attach")
	}
	return tr
}

// detach lets go of the process, if that still runs, and waits until the output
// is complete. It may be called again.
func (tr *tracer) detach() {
	tr.t.Helper()
	if err := tr.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		tr.t.Errorf("telling strace to detach: %v", err)
	}
	tr.wait()
}

// wait waits until strace has ended, as it does once the traced process has.
func (tr *tracer) wait() {
	tr.t.Helper()
	select {
	case <-tr.ended:
	case <-time.After(patience):
		_ = tr.cmd.Process.Kill()
		tr.t.Error("strace does not end")
	}
}

// text returns the output of strace.
func (tr *tracer) text() string {
	tr.t.Helper()
	b, err := os.ReadFile(tr.output)
	if err != nil {
		tr.t.Fatal(err)
	}
	return string(b)
}
