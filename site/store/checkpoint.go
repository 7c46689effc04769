package store

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/samya-db/samya/site/journal"
)

const (
	// longest is how often a log may be as long as one that is carried over.
	longest = 4
	// restAfter is how much longer than a part of a checkpoint the rest after it
	// is, so that commits find the disk free, and restMost bounds it.
	restAfter = 3
	restMost  = 20 * time.Millisecond
)

// checkpoints carry the log over to the base, in a goroutine or where a commit
// would have to wait for it.
type checkpoints struct {
	// stepping is held while the journal steps.
	stepping sync.Mutex
	// due holds one token when the log is long, made another whenever a checkpoint
	// is complete; both are nil without a goroutine.
	due, made chan struct{}
	stop      chan struct{}
	ended     chan struct{}
	// reported tells that a failure was returned by Commit or Load.
	reported atomic.Bool

	count, took atomic.Int64
}

// Stats tell about the log.
type Stats struct {
	journal.Stats
	// Checkpoints is how many there were since Open, LastCheckpoint how long the
	// last of them took in the background.
	Checkpoints    int64
	LastCheckpoint time.Duration
}

// Stats returns what it says.
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
		}
		notify(c.made)
	}
}

// paced does one checkpoint, with rests unless commits have to wait for it. done
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

// Step does the next part of carrying the log over to the base, and reports
// whether there is more to do; see [journal.Journal.Step]. Who opened the store
// with OpenOn calls it.
func (s *Store) Step() (more bool, err error) {
	s.checkpoints.stepping.Lock()
	defer s.checkpoints.stepping.Unlock()
	return s.journal.Step()
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

// committed looks whether a checkpoint is due.
func (c *checkpoints) committed(s *Store) {
	if c.due != nil && s.journal.Backlog() >= s.options.CheckpointBytes {
		notify(c.due)
	}
}

// whole carries over all that was committed.
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

// finish stops the goroutine and carries over all that was committed, unless the
// journal has failed. A failure that nobody has heard of is returned.
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

// report notes that a failure is heard of.
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
