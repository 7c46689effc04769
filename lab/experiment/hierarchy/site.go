package hierarchy

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/samya-db/samya/kvpart/control"
	"github.com/samya-db/samya/kvpart/early"
	"github.com/samya-db/samya/kvpart/sched"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/partitions"
)

// site is the partitions of a site in memory. It drops the drained effects.
type site struct {
	setup
	tree  *tree
	core  *core.Core
	parts *partitions.Partitions
	clock func() time.Duration
	gens  []*generator
	// tick is the time in milliseconds at the last look at the clock.
	tick atomic.Int64
	done atomic.Int64

	mu sync.Mutex
	// passed are the inputs that no partition serves; taken is spare memory for
	// passed.
	passed, taken []input.Input

	// nudge holds a token when there is much to drain.
	nudge chan struct{}
	out   core.Effects
	// answers holds the slots that the last batch answered, by generator.
	answers [][]*slot
	failed  error
	cuts    cutFailure
}

// cutFailure keeps the error of the first failed cut.
type cutFailure struct {
	sync.Mutex
	err error
}

func (c *cutFailure) note(err error) {
	c.Lock()
	defer c.Unlock()
	if c.err == nil {
		c.err = err
	}
}

func (c *cutFailure) get() error {
	c.Lock()
	defer c.Unlock()
	return c.err
}

// wall is the start of sites in memory, in milliseconds since the Unix epoch.
const wall = 1_700_000_000_000

// newSite makes a site with its partitions.
func newSite(su setup, o *Options) (*site, error) {
	s := &site{setup: su, tree: newTree(o.size(), su.Root), nudge: make(chan struct{}, 1)}
	began := o.now()
	s.clock = func() time.Duration { return o.now().Sub(began) }
	var err error
	if s.core, err = s.tree.newCore(o.Seed); err != nil {
		return nil, err
	}
	po := partitions.Options{
		Core: s.core, Count: o.Partitions, Mode: su.mode(), Early: sched.Early{Mode: early.BusyWait}, Place: su.place(), Clock: s.clock, Seed: o.Seed,
		Pass: s.pass, Now: s.now, Failed: s.cuts.note,
	}
	if su.learns() {
		po.Policy = new(control.Policy)
	}
	if s.parts, err = partitions.New(po); err != nil {
		return nil, fmt.Errorf("making the partitions of a site: %w", err)
	}
	s.parts.Start()
	draw := newDrawer(len(s.tree.leaves), su.Zipf, o.Seed)
	for i := range o.Generators {
		s.gens = append(s.gens, newGenerator(s.tree, draw, o.Window/o.Generators, o.Seed, i))
	}
	s.answers = make([][]*slot, len(s.gens))
	return s, nil
}

// look reads the clock.
func (s *site) look() { s.tick.Store(s.clock().Milliseconds() + 1) }

func (s *site) now() input.Now {
	t := s.tick.Load()
	return input.Now{Tick: core.Tick(t), Wall: wall + t}
}

// pass takes an input that no partition serves.
func (s *site) pass(in input.Input) {
	s.mu.Lock()
	s.passed = append(s.passed, in)
	s.mu.Unlock()
}

// drainEvery is the longest interval between drains of the core. worthDraining
// requests start a drain at once.
const (
	drainEvery    = time.Millisecond
	worthDraining = 1024
)

// under makes requests while fn runs, and returns when all are answered.
func (s *site) under(ctx context.Context, fn func(context.Context) error) error {
	s.look()
	loading, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var stop atomic.Bool
	var making sync.WaitGroup
	for _, g := range s.gens {
		making.Go(func() { s.generate(g, &stop) })
	}
	made, drained := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(drained)
		s.drive(made, cancel)
	}()
	err := fn(loading)
	stop.Store(true)
	for _, g := range s.gens {
		g.wake()
	}
	making.Wait()
	close(made)
	<-drained
	if cause := context.Cause(loading); s.failed != nil {
		err = s.failed
	} else if err == nil && cause != nil {
		err = cause
	}
	return errors.Join(err, s.cuts.get())
}

// generate hands over requests until stop is set.
func (s *site) generate(g *generator, stop *atomic.Bool) {
	for !stop.Load() {
		slots := g.take()
		if len(slots) == 0 {
			s.drainSoon()
			<-g.more
			continue
		}
		for len(slots) > 0 && !stop.Load() {
			n := min(chunk, len(slots))
			s.look()
			now := s.now()
			for _, sl := range slots[:n] {
				in := sl.next(sl)
				g.handed++
				if !s.parts.Serve(now, in) {
					s.pass(in)
				}
			}
			slots = slots[n:]
			if s.parts.Gathered() >= worthDraining {
				s.drainSoon()
				runtime.Gosched()
			}
		}
		g.giveBack(slots)
	}
}

func (s *site) drainSoon() {
	select {
	case s.nudge <- struct{}{}:
	default:
	}
}

// drive drains the core until the generators have stopped and all requests are
// answered. A wrong answer cancels.
func (s *site) drive(made <-chan struct{}, cancel context.CancelCauseFunc) {
	ticker := time.NewTicker(drainEvery)
	defer ticker.Stop()
	ended := false
	for {
		if ended {
			handed := int64(0)
			for _, g := range s.gens {
				handed += g.handed
			}
			if s.done.Load() == handed {
				return
			}
		}
		select {
		case <-ticker.C:
		case <-s.nudge:
		case <-made:
			made, ended = nil, true
		}
		s.drain()
		if s.failed != nil {
			cancel(s.failed)
		}
	}
}

// drain steps the core with the passed inputs, drains it, and hands out the
// answers.
func (s *site) drain() {
	s.look()
	now := s.now()
	s.parts.Alone(func() {
		s.mu.Lock()
		passed := s.passed
		s.passed = s.taken[:0]
		s.mu.Unlock()
		if s.splits() {
			s.parts.Tend()
		}
		for i, in := range passed {
			s.core.Step(now, in)
			passed[i] = nil
		}
		s.taken = passed
		if s.mode() == sched.Callers {
			s.parts.Stepped(len(passed))
		}
		if at := s.core.WakeAt(); at != 0 && at <= now.Tick {
			s.core.Step(now, input.Wake{})
		}
		s.core.Drain(&s.out)
		s.parts.Drained()
	})
	for i := range s.out.Replies {
		r := &s.out.Replies[i]
		sl := r.Call.(*slot)
		if r.Answer.Code != answer.OK && s.failed == nil {
			s.failed = fmt.Errorf("a request of %q was answered %v", s.tree.leaves[sl.leaf], r.Answer.Code)
		}
		sl.held = !sl.held
		for n, g := range s.gens {
			if g == sl.of {
				s.answers[n] = append(s.answers[n], sl)
			}
		}
	}
	s.done.Add(int64(len(s.out.Replies)))
	s.out.Reset()
	for n, g := range s.gens {
		g.giveBack(s.answers[n])
		s.answers[n] = s.answers[n][:0]
	}
}

func (s *site) answered() int64 { return s.done.Load() }

func (s *site) stats() partitions.Stats { return s.parts.Stats() }

// check fails unless the books add up. No requests may be under way.
func (s *site) check(context.Context) error {
	views := make([]answer.View, 0, len(s.tree.records))
	s.parts.Alone(func() {
		for i := range s.tree.records {
			s.core.Step(s.now(), &input.Read{Call: i, Entity: s.tree.records[i].Name})
		}
		s.core.Drain(&s.out)
		s.parts.Drained()
	})
	for i := range s.out.Replies {
		if r := &s.out.Replies[i]; r.Answer.Code == answer.OK {
			views = append(views, *r.Answer.View())
		}
	}
	s.out.Reset()
	out := make([]int, len(s.tree.leaves))
	for _, g := range s.gens {
		g.out(out)
	}
	if err := s.tree.check(views, out); err != nil {
		return fmt.Errorf("%v: the books do not add up: %w", s.setup, err)
	}
	return nil
}

func (s *site) close() error {
	s.parts.Close()
	return nil
}
