package proc

import (
	"errors"
	"os/exec"
	"runtime"
	"sync"
)

// errStopped says that a process was started while its cluster stops.
var errStopped = errors.New("the cluster is stopping")

// spawner starts processes on a single thread that lives until close. The kernel sends
// the parent-death signal when the thread that started the child ends, not the process,
// and Go ends threads as it sees fit.
type spawner struct {
	requests chan spawn
	end      func()

	mu      sync.RWMutex
	refused bool
}

type spawn struct {
	cmd  *exec.Cmd
	done chan error
}

func newSpawner() *spawner {
	s := &spawner{requests: make(chan spawn)}
	s.end = sync.OnceFunc(func() { close(s.requests) })
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for r := range s.requests {
			r.done <- r.cmd.Start()
		}
	}()
	return s
}

// start starts cmd with the attributes of a child, as the user if as is not nil.
func (s *spawner) start(cmd *exec.Cmd, as *User) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.refused {
		return errStopped
	}
	cmd.SysProcAttr = attributes(as)
	r := spawn{cmd: cmd, done: make(chan error, 1)}
	s.requests <- r
	return <-r.done
}

// refuse makes all later starts fail. Once it returns, every started process can be seen
// and stopped.
func (s *spawner) refuse() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = true
}

// close ends the thread. All children must have ended before, after a call of refuse.
func (s *spawner) close() { s.end() }
