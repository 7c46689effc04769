package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	// grace is the time for a process to stop before it is killed.
	grace = 15 * time.Second
	// killWait bounds the wait for a killed process to be gone.
	killWait = 10 * time.Second
	// every is the pause between two checks of a condition.
	every = 25 * time.Millisecond
	// tailBytes bounds the part of a log that is shown.
	tailBytes = 2048
)

// alive reports whether the process of this very run is running.
func (r Run) alive(boot string) bool {
	start, running := began(r.PID)
	return running && start == r.Start && boot == bootID()
}

// start starts a process that outlives its parent. The process gets only a few variables
// of the environment: SAMYA_ variables belong to the caller.
func start(program, dir string, p Process) (pid int, began_ string, err error) {
	log, err := os.OpenFile(logOf(dir, p.Name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, "", fmt.Errorf("start %s: open its log: %w", p.Name, err)
	}
	defer func() { _ = log.Close() }() // the child has its own file
	// No context ends the process: it outlives the command.
	cmd := exec.CommandContext(context.Background(), program, p.Args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Dir = "/"
	cmd.SysProcAttr = detached()
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin"}
	for _, name := range []string{"HOME", "TMPDIR", "GOMAXPROCS", "GOCOVERDIR"} {
		if v, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	if err := cmd.Start(); err != nil {
		return 0, "", fmt.Errorf("start %s: %w", p.Name, err)
	}
	at, _ := began(cmd.Process.Pid) // a child stays in the table until Wait
	// Reap the process if it ends before its parent.
	go func() { _ = cmd.Wait() }()
	return cmd.Process.Pid, at, nil
}

// stop asks a process to end, and kills it if it has not ended after grace, or when ctx
// is done. It leaves a process alone that does not run.
func (r Run) stop(ctx context.Context, boot string) error {
	// Take the handle before the check: the handle stays with the process, even if the
	// id is reused.
	handle, err := os.FindProcess(r.PID)
	if err != nil {
		return fmt.Errorf("stop %s: %w", r.Name, err)
	}
	defer func() { _ = handle.Release() }()
	if !r.alive(boot) {
		return nil
	}
	if err := signal(handle, os.Interrupt); err != nil {
		return fmt.Errorf("stop %s: %w", r.Name, err)
	}
	asked, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	if r.wait(asked, boot) == nil {
		return nil
	}
	if err := signal(handle, os.Kill); err != nil {
		return fmt.Errorf("kill %s: %w", r.Name, err)
	}
	killed, cancel := context.WithTimeout(context.WithoutCancel(ctx), killWait)
	defer cancel()
	if err := r.wait(killed, boot); err != nil {
		return fmt.Errorf("kill %s: process %d is still there after %s", r.Name, r.PID, killWait)
	}
	return nil
}

// signal sends a signal; an ended process is no error.
func signal(p *os.Process, sig os.Signal) error {
	if err := p.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// wait returns once the process is gone.
func (r Run) wait(ctx context.Context, boot string) error {
	return poll(ctx, func() bool { return !r.alive(boot) })
}

// poll waits until done returns true, and returns ctx's error if ctx is done before.
func poll(ctx context.Context, done func() bool) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	return nil
}

// tail returns the end of a process's log.
func tail(dir, name string) string {
	b, err := os.ReadFile(filepath.Clean(logOf(dir, name)))
	if err != nil {
		return "(its log cannot be read: " + err.Error() + ")"
	}
	if len(b) > tailBytes {
		b = b[len(b)-tailBytes:]
		if _, rest, cut := strings.Cut(string(b), "\n"); cut {
			b = []byte(rest)
		}
	}
	return strings.TrimSpace(string(b))
}
