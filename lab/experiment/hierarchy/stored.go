package hierarchy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/samya-db/samya/kvpart/control"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/engine"
	"github.com/samya-db/samya/site/partitions"
	"github.com/samya-db/samya/site/store"
)

const (
	// storedCallers is the number of callers of an engine, storedBatch the number of
	// requests that a caller hands over at a time.
	storedCallers = 8
	storedBatch   = 64
)

// storedTree is an engine with a store on disk.
type storedTree struct {
	setup
	tree   *tree
	engine *engine.Engine
	batch  []*batch
	done   atomic.Int64
	end    func() error
	cuts   cutFailure
}

// batch is the requests that a caller hands over at once.
type batch struct {
	gen      *generator
	calls    []*engine.Call
	slots    map[*engine.Call]*slot
	open     atomic.Int32
	answered chan struct{}
	failed   atomic.Pointer[error]
}

// Receive implements engine.Receiver.
func (b *batch) Receive(c *engine.Call, a answer.Answer, err error) engine.Flusher {
	s := b.slots[c]
	if err == nil && a.Code != answer.OK {
		err = fmt.Errorf("a request of %q was answered %v", s.acquire.Entity, a.Code)
	}
	if err != nil {
		b.failed.Store(&err)
	} else {
		s.held = !s.held
	}
	if b.open.Add(-1) == 0 {
		b.answered <- struct{}{}
	}
	return nil
}

// silence is a sender and an observer that do nothing.
type silence struct{}

func (silence) Committed(int, time.Duration) {}
func (silence) Happened(event.Event)         {}
func (silence) Send([]message.Envelope)      {}

// newStored makes an engine with a store in a new folder, and runs it.
func newStored(su setup, o *Options) (_ *storedTree, err error) {
	s := &storedTree{setup: su, tree: newTree(o.size(), su.Root)}
	c, err := s.tree.newCore(o.Seed)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(o.Dir, "samya-hierarchy-*")
	if err != nil {
		return nil, fmt.Errorf("making a folder for the data: %w", err)
	}
	remove := func() error { return os.RemoveAll(dir) }
	st, err := store.Open(store.Options{Dir: dir, Cluster: "lab", Site: siteName, Members: []core.SiteID{siteName}})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening a store: %w", err), remove())
	}
	eo := engine.Config{Core: c, Store: st, Sender: silence{}, Observer: silence{}, Partitions: o.Partitions, Failed: s.cuts.note}
	if su.learns() {
		eo.Policy = new(control.Policy)
	}
	if s.engine, err = engine.New(eo); err != nil {
		return nil, errors.Join(err, st.Close(), remove())
	}
	running, stop := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- s.engine.Run(running) }()
	s.end = func() error {
		stop()
		return errors.Join(<-ran, st.Close(), remove())
	}
	draw := newDrawer(len(s.tree.leaves), su.Zipf, o.Seed)
	for i := range storedCallers {
		b := &batch{gen: newGenerator(s.tree, draw, storedBatch, o.Seed, i), slots: make(map[*engine.Call]*slot), answered: make(chan struct{}, 1)}
		for j := range b.gen.slots {
			call := &engine.Call{To: b}
			b.calls = append(b.calls, call)
			b.slots[call] = &b.gen.slots[j]
		}
		s.batch = append(s.batch, b)
	}
	return s, nil
}

func (s *storedTree) under(ctx context.Context, fn func(context.Context) error) error {
	loading, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var stop atomic.Bool
	var making sync.WaitGroup
	for _, b := range s.batch {
		making.Go(func() {
			for !stop.Load() {
				if err := s.handOver(b); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	err := fn(loading)
	stop.Store(true)
	making.Wait()
	if cause := context.Cause(loading); cause != nil && err == nil {
		err = cause
	}
	return errors.Join(err, s.cuts.get())
}

// handOver makes a batch of requests and waits for the answers.
func (s *storedTree) handOver(b *batch) error {
	for _, c := range b.calls {
		c.Input = b.slots[c].next(c)
	}
	b.open.Store(int32(len(b.calls))) //nolint:gosec // storedBatch
	if err := s.engine.Start(b.calls); err != nil {
		return fmt.Errorf("handing over requests: %w", err)
	}
	<-b.answered
	if err := b.failed.Load(); err != nil {
		return *err
	}
	s.done.Add(int64(len(b.calls)))
	return nil
}

func (s *storedTree) answered() int64 { return s.done.Load() }

func (s *storedTree) stats() partitions.Stats { return s.engine.Inspect() }

func (s *storedTree) check(ctx context.Context) error {
	views := make([]answer.View, 0, len(s.tree.records))
	for i := range s.tree.records {
		a, err := s.engine.Do(ctx, func(call input.Call) input.Input {
			return &input.Read{Call: call, Entity: s.tree.records[i].Name}
		})
		if err != nil {
			return fmt.Errorf("reading an entity: %w", err)
		}
		views = append(views, *a.View())
	}
	out := make([]int, len(s.tree.leaves))
	for _, b := range s.batch {
		b.gen.out(out)
	}
	if err := s.tree.check(views, out); err != nil {
		return fmt.Errorf("%v: the books do not add up: %w", s.setup, err)
	}
	return nil
}

func (s *storedTree) close() error { return s.end() }
