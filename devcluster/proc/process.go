package proc

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// LifelineFlag is the flag that tells a samya process to stop when its
// standard input ends.
const LifelineFlag = "--exit-with-stdin"

// killWait bounds the wait for a killed process to be gone. Only a process
// stuck in the kernel reaches it.
const killWait = 10 * time.Second

// tailBytes bounds the end of a log that is read to show its last lines.
const tailBytes = 32 << 10

// errRunning says that a running process was started again.
var errRunning = errors.New("the process runs already")

// Process is a process of a cluster, through all its restarts. Its methods may be called
// from several goroutines at once.
type Process struct {
	// Name is the process's name in the cluster, such as "us" or "am-us".
	Name string
	// Args is the command line after the program.
	Args []string
	// GRPC, HTTP and Gossip are the addresses on which the process serves.
	GRPC, HTTP, Gossip string
	// Node is the name of a node of a site; empty for other processes.
	Node string
	// Data is the data directory; empty for an app manager.
	Data string
	// Log is the file of the process's output; every start appends to it.
	Log string
	// Under is a command line to put before the program, such as a tracer's; empty:
	// none. The command must become the program, as exec does: Process signals the
	// started process and waits for it. Under may change while the process does not run.
	Under []string

	bin   string
	page  string // where the process says whether it is ready
	spawn *spawner
	died  func(*DeathError)
	stop  syscall.Signal // signal that asks for an orderly end
	user  *User          // user to run as; nil: as the parent

	mu  sync.Mutex
	run *run // nil before the first start
}

// run is a start of a process.
type run struct {
	cmd      *exec.Cmd
	exited   chan struct{} // closed once the process is reaped
	err      error         // how the process ended; set before exited is closed
	expected bool          // whether a caller asked for the end; guarded by Process.mu
}

// Start starts the process, or starts it again after its end, on the same ports and
// data. It does not wait until the process is ready; see [Process.WaitReady].
func (p *Process) Start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run != nil && !p.run.ended() {
		return fmt.Errorf("start %s: %w", p.Name, errRunning)
	}
	log, err := os.OpenFile(p.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("start %s: open its log: %w", p.Name, err)
	}
	defer func() { _ = log.Close() }() // the child has its own file
	// No context ends the process: the owner of the cluster calls Stop or Kill.
	argv := slices.Concat(p.Under, []string{p.bin}, p.Args)
	cmd := exec.CommandContext(context.Background(), argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	lifeline, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("start %s: make its lifeline: %w", p.Name, err)
	}
	if err := p.spawn.start(cmd, p.user); err != nil {
		_ = lifeline.Close()
		return fmt.Errorf("start %s: %w", p.Name, err)
	}
	r := &run{cmd: cmd, exited: make(chan struct{})}
	p.run = r
	go func() {
		r.err = cmd.Wait()
		close(r.exited)
		p.mu.Lock()
		expected := r.expected
		p.mu.Unlock()
		if !expected {
			p.died(p.death(r))
		}
	}()
	return nil
}

// ended reports whether the process was reaped.
func (r *run) ended() bool {
	select {
	case <-r.exited:
		return true
	default:
		return false
	}
}

// current returns the latest run, nil before the first start. With expectEnd it marks
// the end of the run as expected.
func (p *Process) current(expectEnd bool) *run {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run != nil && expectEnd {
		p.run.expected = true
	}
	return p.run
}

// PID returns the id of the running process, or 0 if it does not run.
func (p *Process) PID() int {
	if r := p.current(false); r != nil && !r.ended() {
		return r.cmd.Process.Pid
	}
	return 0
}

// Signal sends a signal, such as SIGSTOP, to the process if it runs. An end that the
// signal causes counts as unexpected.
func (p *Process) Signal(sig os.Signal) error {
	r := p.current(false)
	if r == nil {
		return nil
	}
	return p.signal(r, sig)
}

func (p *Process) signal(r *run, sig os.Signal) error {
	if err := r.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %s to %s: %w", sig, p.Name, err)
	}
	return nil
}

// Kill ends the process at once, as kill -9 does, and waits until it is gone. It leaves
// a process alone that does not run.
func (p *Process) Kill() error {
	r := p.current(true)
	if r == nil {
		return nil
	}
	if err := p.signal(r, os.Kill); err != nil {
		return err
	}
	select {
	case <-r.exited:
		return nil
	case <-time.After(killWait):
		return fmt.Errorf("kill %s: process %d is still there after %s", p.Name, r.cmd.Process.Pid, killWait)
	}
}

// Stop asks the process to end, and kills it if it has not ended after grace, or as soon
// as ctx is done.
func (p *Process) Stop(ctx context.Context, grace time.Duration) error {
	r := p.current(true)
	if r == nil || r.ended() {
		return nil
	}
	if err := p.signal(r, p.stop); err != nil {
		// Not every system has the signal.
		return p.Kill()
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-r.exited:
		return nil
	case <-timer.C:
	case <-ctx.Done():
	}
	return p.Kill()
}

// readyPage is where a process says that it is ready, unless its plan says otherwise.
const readyPage = "/readyz"

// WaitReady polls the process's /readyz until it answers 200, or says that a node follows.
// It fails when ctx is done or the process has ended.
func (p *Process) WaitReady(ctx context.Context) error {
	r := p.current(false)
	if r == nil {
		return fmt.Errorf("wait for %s: it was never started", p.Name)
	}
	const every = 50 * time.Millisecond
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	last := "no answer yet"
	for {
		if err := ready(ctx, client, p.HTTP+cmp.Or(p.page, readyPage)); err == nil || p.Node != "" && strings.Contains(err.Error(), follows) {
			return nil
		} else if ctx.Err() == nil {
			last = err.Error()
		}
		select {
		case <-r.exited:
			return p.death(r)
		case <-ctx.Done():
			return fmt.Errorf("wait for %s to be ready (%s): %w", p.Name, last, ctx.Err())
		case <-time.After(every):
		}
	}
}

func ready(ctx context.Context, client *http.Client, page string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+page, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 512)) // the body only explains a refusal
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s: %s", req.URL.Path, resp.Status, bytes.TrimSpace(body))
	}
	return nil
}

// Tail returns the last n lines of the process's log, or the error of reading them.
func (p *Process) Tail(n int) string {
	f, err := os.Open(p.Log)
	if err != nil {
		return fmt.Sprintf("(its log cannot be read: %v)", err)
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err == nil && info.Size() > tailBytes {
		if _, err := f.Seek(-tailBytes, io.SeekEnd); err != nil {
			return fmt.Sprintf("(its log cannot be read: %v)", err)
		}
	}
	b, err := io.ReadAll(f)
	if err != nil {
		return fmt.Sprintf("(its log cannot be read: %v)", err)
	}
	lines := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// DeathError says that a process ended without having been asked to.
type DeathError struct {
	// Process is the ended process.
	Process *Process
	// Err is the error of the process's end; nil for exit status 0.
	Err error
	// Last is the last lines of the process's log.
	Last string
}

// tailLines is the number of lines of a log that a DeathError shows.
const tailLines = 12

// death returns the error for the end of r, a run of p.
func (p *Process) death(r *run) *DeathError {
	return &DeathError{Process: p, Err: r.err, Last: p.Tail(tailLines)}
}

// Error names the process, its end and the last lines of its log.
func (e *DeathError) Error() string {
	how := "exit status 0"
	if e.Err != nil {
		how = e.Err.Error()
	}
	return fmt.Sprintf("%s ended unexpectedly (%s); the last lines of %s:\n%s", e.Process.Name, how, e.Process.Log, e.Last)
}

// Unwrap returns the error of the process's end.
func (e *DeathError) Unwrap() error { return e.Err }
