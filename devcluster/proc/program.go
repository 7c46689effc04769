package proc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"
)

// User is the user to run a program as. Only root can run a program as another user, and
// only on Linux.
type User struct {
	// UID and GID are the ids of the user and of its group.
	UID, GID uint32
}

// Program configures the start of a program other than samya, such as a database that
// samya is compared with.
type Program struct {
	// Name is the name of the program in errors.
	Name string
	// Argv is the command line, with the program first.
	Argv []string
	// Log is the file of the program's output.
	Log string
	// StopSignal asks the program to end; zero means SIGTERM.
	StopSignal syscall.Signal
	// User is the user to run as; nil: as the parent.
	User *User
}

// Programs are running processes of programs other than samya. No such process outlives
// its purpose either, but the programs do not know the pipe: without the kernel's
// parent-death signal they stay behind if the parent is killed. The methods of Programs
// may be called from several goroutines at once.
type Programs struct {
	spawn *spawner

	mu      sync.Mutex
	started []*Process
}

// NewPrograms returns an empty set.
func NewPrograms() *Programs {
	return &Programs{spawn: newSpawner()}
}

// Start starts a program. It does not wait until the program is ready.
func (s *Programs) Start(g Program) (*Process, error) {
	if len(g.Argv) == 0 {
		return nil, fmt.Errorf("start %s: no command line", g.Name)
	}
	if g.StopSignal == 0 {
		g.StopSignal = syscall.SIGTERM
	}
	p := &Process{
		Name: g.Name, Args: g.Argv[1:], Log: g.Log,
		bin: g.Argv[0], spawn: s.spawn, stop: g.StopSignal, user: g.User,
		died: func(*DeathError) {}, // Died and Death tell of the end
	}
	if err := p.Start(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.started = append(s.started, p)
	s.mu.Unlock()
	return p, nil
}

// Processes returns the started processes, in the order of their starts.
func (s *Programs) Processes() []*Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*Process(nil), s.started...)
}

// Stop ends all programs, the last started first, and kills each after grace or once ctx
// is done. No program can be started afterwards.
func (s *Programs) Stop(ctx context.Context, grace time.Duration) error {
	s.spawn.refuse()
	all := s.Processes()
	var errs []error
	for _, p := range slices.Backward(all) {
		errs = append(errs, p.Stop(ctx, grace))
	}
	s.mu.Lock()
	s.started = nil
	s.mu.Unlock()
	s.spawn.close()
	return errors.Join(errs...)
}

// FreePorts returns n addresses of 127.0.0.1 with free ports. No other process gets
// these ports from this package while this process runs. A foreign program may take a
// port until the caller binds it.
func FreePorts(ctx context.Context, n int) ([]string, error) {
	var held ports
	var addrs []string
	for range n {
		addr, err := held.next(ctx)
		if err != nil {
			return nil, errors.Join(err, held.release())
		}
		addrs = append(addrs, addr)
	}
	if err := held.release(); err != nil {
		return nil, fmt.Errorf("let go of the ports: %w", err)
	}
	return addrs, nil
}

// Died returns a channel that is closed once the process's latest run has ended; nil if
// it was never started.
func (p *Process) Died() <-chan struct{} {
	if r := p.current(false); r != nil {
		return r.exited
	}
	return nil
}

// Death returns the end of the process's latest run; nil while it runs.
func (p *Process) Death() *DeathError {
	if r := p.current(false); r != nil && r.ended() {
		return p.death(r)
	}
	return nil
}
