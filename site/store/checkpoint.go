package store

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/samya-db/samya/site/journal"
)

const (
	// longest bounds the length of a log, in multiples of CheckpointBytes.
	longest = 4
	// restAfter is how much longer the rest after a part of a checkpoint is than the
	// part, so that commits find the disk free. restMost bounds the rest.
	restAfter = 3
	restMost  = 20 * time.Millisecond
)

// checkpoints carry the log over to the base, in a goroutine or in a commit that would
// have to wait.
type checkpoints struct {
	// stepping is held while the journal steps.
	stepping sync.Mutex
	// due holds a token when the log is long, made whenever a checkpoint is complete;
	// both are nil without a goroutine.
	due, made chan struct{}
	stop      chan struct{}
	ended     chan struct{}
	// reported is set once Commit or Load has returned a failure.
	reported atomic.Bool

	count, took atomic.Int64
}

// Stats describe the log.
type Stats struct {
	journal.Stats
	// Checkpoints counts the checkpoints in the background since Open, LastCheckpoint
	// is how long the last of them took.
	Checkpoints    int64
	LastCheckpoint time.Duration
}

// Stats returns the store's Stats.
func (s *Store) Stats() Stats {
	return Stats{
		Stats: s.journal.Stats(), Checkpoints: s.checkpoints.count.Load(),
		LastCheckpoint: time.Duration(s.checkpoints.took.Load()),
	}
}

// start begins the goroutine.
func (c *checkpoints) start(s *Store) {
	c.due, c.made = make(chan struct{}, 1), make(chan struct{}, 1)
	c.stop, c.ended = make(chan struct{}), make(chan struct{})
	go c.run(s)
}

// run carries the log over whenever it is long or old, until a failure or stop.
func (c *checkpoints) run(s *Store) {
	defer close(c.ended)
	old := time.NewTicker(s.options.CheckpointEvery)
	defer old.Stop()
	for {
		select {
		case <-c.stop:
			return
		case <-c.due:
		case <-old.C:
		}
		began := time.Now()
		done, err := c.paced(s)
		if err != nil {
			return
		}
		if done {
			c.took.Store(int64(time.Since(began)))
			c.count.Add(1)
			// The pages that it read would stay, up to all of the file.
			if err := s.loaded(); err != nil {
				return
			}
		}
		notify(c.made)
	}
}

// paced does a single checkpoint, with rests unless commits have to wait for it. done
// is false if there was nothing to do, or the store is closing.
func (c *checkpoints) paced(s *Store) (done bool, err error) {
	rest := time.NewTimer(0)
	defer rest.Stop()
	for {
		began := time.Now()
		more, err := s.Step()
		if err != nil || !more {
			return done, err
		}
		done = true
		pause := min(restAfter*time.Since(began), restMost)
		if s.journal.Stats().Backlog > longest/2*s.options.CheckpointBytes {
			pause = 0
		}
		rest.Reset(pause)
		select {
		case <-rest.C:
		case <-c.stop:
			return false, nil
		}
	}
}

// Step does the next part of carrying the log over to the base, and reports whether
// there is more to do; see [journal.Journal.Step]. While a backup reads the base, it does
// nothing. The caller of OpenOn calls it.
func (s *Store) Step() (more bool, err error) {
	s.checkpoints.stepping.Lock()
	defer s.checkpoints.stepping.Unlock()
	if s.images.held() {
		return false, nil
	}
	more, err = s.journal.Step()
	if err == nil && !more {
		s.open()
	}
	return more, err
}

// room waits until the log may get longer.
func (c *checkpoints) room(s *Store) error {
	most := longest * s.options.CheckpointBytes
	for s.journal.Backlog() >= most {
		if c.due == nil {
			if _, err := s.Step(); err != nil {
				return c.report(err)
			}
			continue
		}
		notify(c.due)
		select {
		case <-c.made:
		case <-c.ended:
			return c.report(s.journal.Failed())
		}
	}
	return nil
}

// committed requests a checkpoint if the log is long enough.
func (c *checkpoints) committed(s *Store) {
	if c.due == nil {
		return
	}
	backlog := s.journal.Backlog()
	if backlog >= s.options.CheckpointBytes {
		notify(c.due)
	}
	s.images.bound(backlog, s.options.BackupLog)
}

// whole carries over all commits.
func (c *checkpoints) whole(s *Store) error {
	for {
		st := s.journal.Stats()
		if st.Through == st.Number {
			return c.report(s.journal.Failed())
		}
		if _, err := s.Step(); err != nil {
			return c.report(err)
		}
	}
}

// finish stops the goroutine and carries over all commits, unless the journal has
// failed. It returns a failure that nobody has heard of.
func (c *checkpoints) finish(s *Store) error {
	if c.stop != nil {
		close(c.stop)
		<-c.ended
	}
	if err := s.journal.Failed(); err != nil {
		if c.reported.Load() {
			return nil
		}
		return err
	}
	return c.whole(s)
}

// report notes a failure as reported.
func (c *checkpoints) report(err error) error {
	if err != nil {
		c.reported.Store(true)
	}
	return err
}

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
