package kvoracle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/samya-db/samya/kvpart"
	"github.com/samya-db/samya/kvpart/early"
	"github.com/samya-db/samya/kvpart/engine"
	"github.com/samya-db/samya/kvpart/sched"
	_ "github.com/samya-db/samya/lab/backends" // registers them
)

// SchedulerCallers, SchedulerWorkers and SchedulerThreads are strategies of a Subject that
// is a scheduler alone. Callers, workers, or threads by Scheduler run the requests.
const (
	SchedulerCallers kvpart.Strategy = "sched_callers"
	SchedulerWorkers kvpart.Strategy = "sched_workers"
	SchedulerThreads kvpart.Strategy = "sched_threads"
)

// Policies of a Subject that assign keys all the time.
const (
	// Shuffled assigns each key at random.
	Shuffled kvpart.PolicyKind = "shuffled"
	// Ranged assigns a random range of keys to a random partition, as a balancer of load
	// does.
	Ranged kvpart.PolicyKind = "ranged"
)

// The environment of TestOracleOf, which judges a subject.
const (
	// EnvSubject is the subject, see ParseSubject.
	EnvSubject = "SAMYA_KV_SUBJECT"
	// EnvSeeds is a number of seeds, starting with the subject's; empty means 1.
	EnvSeeds = "SAMYA_KV_SEEDS"
	// EnvPatience is the time after which the watchdog declares a request stuck.
	EnvPatience = "SAMYA_KV_PATIENCE"
)

// Subject is a store to judge.
type Subject struct {
	Strategy   kvpart.Strategy
	Backend    string // not for schedulers
	Policy     kvpart.PolicyKind
	Partitions int
	Queue      int
	Place      kvpart.Placement
	Balance    kvpart.Balance // of the policies Base and Async
	// Scheduler and Threads are of strategies with workers.
	Scheduler kvpart.Scheduler
	Threads   int
	// Follow is kvpart.Options.Follow.
	Follow bool
	// Failing is the share of engine writes that fail.
	Failing float64
	// Crash opens durable backends from images of their directories as well.
	Crash bool
	Load  Options
}

// Schedule draws the scheduler of a strategy with workers, and its threads.
func (s *Subject) Schedule(seed uint64) {
	if s.Strategy != kvpart.Threaded && s.Strategy != kvpart.HardThreaded {
		return
	}
	all := kvpart.Schedulers()
	if s.Scheduler = all[seed%uint64(len(all))]; s.Scheduler != kvpart.Workers {
		s.Threads = 1 + int(seed/uint64(len(all))%3)
	}
}

// String names the subject as ParseSubject reads it.
func (s Subject) String() string {
	return fmt.Sprintf("strategy=%s backend=%s policy=%s partitions=%d queue=%d place=%s balance=%s scheduler=%s threads=%d deadlines=%g follow=%t failing=%g crash=%t seed=%d",
		s.Strategy, s.Backend, s.Policy, s.Partitions, s.Queue, s.Place, s.Balance, s.Scheduler, s.Threads, s.Load.Deadlines, s.Follow, s.Failing, s.Crash, s.Load.Seed)
}

// ParseSubject reads a subject from words of the form name=value.
func ParseSubject(text string) (Subject, error) {
	s := Subject{Strategy: kvpart.Soft, Backend: "btree", Policy: kvpart.Async, Partitions: 4, Place: kvpart.RoundRobin}
	s.Load.Deadlines, s.Load.Seed = .1, 1
	for word := range strings.FieldsSeq(text) {
		name, value, ok := strings.Cut(word, "=")
		if !ok {
			return s, fmt.Errorf("subject: %q is not name=value", word)
		}
		var err error
		switch name {
		case "strategy":
			s.Strategy = kvpart.Strategy(value)
		case "backend":
			s.Backend = value
		case "policy":
			s.Policy = kvpart.PolicyKind(value)
		case "place":
			s.Place = kvpart.Placement(value)
		case "balance":
			s.Balance = kvpart.Balance(value)
		case "scheduler":
			s.Scheduler = kvpart.Scheduler(value)
		case "threads":
			s.Threads, err = strconv.Atoi(value)
		case "partitions":
			s.Partitions, err = strconv.Atoi(value)
		case "queue":
			s.Queue, err = strconv.Atoi(value)
		case "ops":
			s.Load.Ops, err = strconv.Atoi(value)
		case "deadlines":
			s.Load.Deadlines, err = strconv.ParseFloat(value, 64)
		case "follow":
			s.Follow, err = strconv.ParseBool(value)
		case "failing":
			s.Failing, err = strconv.ParseFloat(value, 64)
		case "crash":
			s.Crash, err = strconv.ParseBool(value)
		case "seed":
			s.Load.Seed, err = strconv.ParseUint(value, 10, 64)
		default:
			return s, fmt.Errorf("subject: unknown %q", name)
		}
		if err != nil {
			return s, fmt.Errorf("subject: %s: %w", name, err)
		}
	}
	return s, nil
}

// run is a subject under load.
type run struct {
	Subject
	dirs    []string
	scratch string
	disk    Disk
	load    *Load
	store   *kvpart.Store // nil for schedulers
}

// Report is the result of a subject.
type Report struct {
	Stats
	// Switches is the number of times that keys were assigned anew.
	Switches int64
	// Followed is the number of values that moved after their keys in the background.
	Followed int64
	// Images is the number of directories opened as a crash would leave them.
	Images int
}

// Judge makes load on a subject for some rounds, closes it under load, opens it
// again if it is durable, and judges all observations. It makes its directories
// below dir. A violated invariant is a *Violation.
func Judge(ctx context.Context, s Subject, dir string, rounds int) (Report, error) {
	r := &run{Subject: s, scratch: dir}
	var store Store
	var err error
	switch s.Strategy {
	case SchedulerCallers, SchedulerWorkers, SchedulerThreads:
		o := sched.Options[[]byte]{Partitions: s.Partitions, Queue: s.Queue, Place: map[kvpart.Placement]sched.Placement{
			kvpart.RoundRobin: sched.RoundRobin, kvpart.Together: sched.Together, kvpart.Beside: sched.Beside,
		}[s.Place]}
		s.Load.Pipelines = s.Strategy != SchedulerCallers
		switch s.Strategy {
		case SchedulerWorkers:
			o.Mode = sched.Workers
		case SchedulerThreads:
			o.Mode, o.Early.Threads = sched.Threads, s.Threads
			for _, m := range early.Modes() {
				if m.String() == string(s.Scheduler) {
					o.Early.Mode = m
				}
			}
		}
		store, err = NewDirect(o, s.Load.Seed)
	default:
		s.Load.Pipelines = s.Strategy == kvpart.Threaded || s.Strategy == kvpart.HardThreaded
		if s.Failing > 0 {
			s.Load.Injected = ErrInjected
		}
		r.dirs = []string{filepath.Join(dir, "a"), filepath.Join(dir, "b")}
		r.disk.Cells = s.Failing == 0 && s.Load.Seed%3 > 0
		r.store, err = r.open(r.dirs)
		store = r.store
	}
	if err != nil {
		return Report{}, fmt.Errorf("open %v: %w", s, err)
	}
	r.load = New(store, s.Load)
	r.disk.Report = r.load.violate
	if s.shuffles() && r.store != nil && r.Strategy != kvpart.Bare {
		r.shuffle()
	}
	report, err := r.judge(ctx, rounds)
	report.Stats = r.load.Stats
	return report, err
}

// open opens the store of directories.
func (r *run) open(dirs []string) (*kvpart.Store, error) {
	f, err := engine.Lookup(r.Backend)
	if err != nil {
		return nil, fmt.Errorf("find the backend: %w", err)
	}
	o := kvpart.Options{
		Strategy: r.Strategy, Partitions: r.Partitions, Backend: r.Backend, Engine: r.disk.Wrap(f),
		Queue: r.Queue, Place: r.Place, Scheduler: r.Scheduler, Threads: r.Threads, Generations: 3, Seed: r.Load.Seed,
		Follow: r.Follow,
		// Cuts follow each other at once, and each cut is applied.
		Policy: kvpart.Policy{Kind: r.Policy, Operations: 100, Window: 200, Every: time.Millisecond, Gain: -1, Share: 1, Sample: 1, Balance: r.Balance},
	}
	if r.Strategy == kvpart.Bare || r.shuffles() {
		o.Policy = kvpart.Policy{}
	}
	if f.Durable {
		o.Dirs = dirs
	}
	return kvpart.Open(o)
}

func (r *run) judge(ctx context.Context, rounds int) (report Report, err error) {
	durable := false
	if r.store != nil {
		f, err := engine.Lookup(r.Backend)
		if err != nil {
			return report, err
		}
		durable = f.Durable
	}
	if err := r.load.Fill(ctx); err != nil {
		return report, err
	}
	r.disk.Fail.Store(int64(r.Failing * (1 << 16)))
	for n := range rounds {
		round := func() error { return r.load.Round(ctx) }
		if r.Crash && durable {
			round = func() error {
				images, err := r.crash(ctx, n)
				report.Images += images
				return err
			}
		}
		if err := round(); err != nil {
			return report, err
		}
	}
	r.disk.Fail.Store(0)
	if r.store != nil {
		report.Followed = r.store.Stats().Followed
	}
	switch s := r.load.store.(type) {
	case *shuffling:
		s.mu.Lock()
		report.Switches = s.times
		s.mu.Unlock()
	case *kvpart.Store:
		report.Switches = s.Stats().Applied
	case *Direct:
		report.Switches = int64(s.s.Epoch())
	}
	var again *kvpart.Store
	reopen := func() (Store, error) {
		var err error
		again, err = r.open(r.dirs)
		return again, err
	}
	if !durable {
		reopen = nil
	}
	if r.Failing > 0 {
		r.load.closeMayFail = ErrInjected
	}
	err = r.load.Close(ctx, .5, reopen)
	if again != nil {
		err = errors.Join(err, again.Close())
	}
	return report, err
}

// crash makes a round of load, and takes and opens images of the directories
// meanwhile.
func (r *run) crash(ctx context.Context, round int) (images int, err error) {
	l := r.load
	var failed error
	err = l.round(ctx, func() {
		const most = 3
		for images = 0; images < most && l.violated.Load() == nil; images++ {
			for l.begun() < int64((images+1)*l.o.Clients*l.o.Ops/(most+1)) && l.violated.Load() == nil {
				yield()
			}
			if failed = r.image(ctx, filepath.Join(r.scratch, fmt.Sprintf("image-%d-%d", round, images))); failed != nil {
				return
			}
		}
	})
	return images, errors.Join(err, failed)
}

// image takes an image, opens it, and adds its contents to the history.
func (r *run) image(ctx context.Context, to string) (err error) {
	dirs := make(map[string]string)
	var copies []string
	for i, dir := range r.dirs {
		c := filepath.Join(to, strconv.Itoa(i))
		dirs[dir] = c
		copies = append(copies, c)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(to)) }()
	from, until, err := r.disk.Image(dirs, r.load.clock.now)
	if err != nil {
		return err
	}
	return r.opened(ctx, copies, from, until)
}

// opened compares the contents of directories with the history.
func (r *run) opened(ctx context.Context, dirs []string, from, until int64) (err error) {
	other := &run{Subject: r.Subject, scratch: r.scratch}
	other.disk.Report = r.load.violate
	s, err := other.open(dirs)
	if err != nil {
		return violated(Sound, "a store does not open after a crash: %v", err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return r.load.Recovered(ctx, s, from, until)
}
