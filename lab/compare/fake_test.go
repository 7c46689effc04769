package compare

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/samya-db/samya/devcluster/proc"
)

// fake is a system in this process. Its fields make it do wrong.
type fake struct {
	name string
	kind Kind
	ways []Way
	// takes is the duration of a call.
	takes time.Duration
	// beyond makes it grant without regard to the limit, forgetful makes it take tokens
	// for repeats again. greedy makes it take a token too many of each entity, once. It
	// forgets the call of number lossy.
	beyond, forgetful, greedy bool
	lossy                     int
	// startErr fails the start, err the calls after the first failAfter.
	startErr, err error
	failAfter     int
	// program is started with it.
	program []string

	mu      sync.Mutex
	left    map[string]int64
	ids     map[string]bool
	calls   int
	started int
	pids    []int
	closed  int
	dirs    []string
}

var errFake = errors.New("the fake fails")

func (f *fake) About() About {
	return About{Name: f.name, Kind: f.kind, Promise: "none", Ways: f.ways}
}

func (f *fake) Start(_ context.Context, env *Env) (Running, error) {
	f.started++
	f.left, f.ids = make(map[string]int64), make(map[string]bool)
	f.pids = nil
	f.dirs = append(f.dirs, env.Dir)
	if f.program != nil {
		p, err := env.Programs.Start(proc.Program{Name: f.name, Argv: f.program, Log: env.logFile(f.name)})
		if err != nil {
			return nil, err
		}
		f.pids = append(f.pids, p.PID())
	}
	if f.startErr != nil {
		return nil, f.startErr
	}
	if f.kind == Control {
		return fakeControl{f}, nil
	}
	return fakeRunning{fakeControl{f}}, nil
}

// fakeControl is a running fake without books.
type fakeControl struct{ f *fake }

func (r fakeControl) Processes() []int                             { return r.f.pids }
func (r fakeControl) Open(context.Context, string) (Driver, error) { return fakeDriver(r), nil }
func (r fakeControl) Close() error                                 { r.f.closed++; return nil }

// fakeRunning has books as well.
type fakeRunning struct{ fakeControl }

func (r fakeRunning) Create(_ context.Context, entities []string, tokens int64) error {
	r.f.mu.Lock()
	defer r.f.mu.Unlock()
	for _, e := range entities {
		r.f.left[e] = tokens
	}
	return nil
}

func (r fakeRunning) Left(_ context.Context, entities []string) ([]int64, error) {
	r.f.mu.Lock()
	defer r.f.mu.Unlock()
	left := make([]int64, len(entities))
	for i, e := range entities {
		left[i] = r.f.left[e]
		if r.f.greedy && r.f.calls > 0 {
			left[i]--
		}
	}
	return left, nil
}

type fakeDriver struct{ f *fake }

func (d fakeDriver) Acquire(ctx context.Context, _ int, requests []Request, granted []bool) error {
	if d.f.takes > 0 {
		if err := wait(ctx, d.f.takes); err != nil {
			return err
		}
	}
	d.f.mu.Lock()
	defer d.f.mu.Unlock()
	d.f.calls++
	if d.f.err != nil && d.f.calls > d.f.failAfter {
		return d.f.err
	}
	for i, r := range requests {
		was, known := d.f.ids[r.ID]
		switch {
		case d.f.kind == Control:
			granted[i] = true
			continue
		case known && !d.f.forgetful:
			granted[i] = was
			continue
		}
		granted[i] = d.f.left[r.Entity] > 0 || d.f.beyond
		d.f.ids[r.ID] = granted[i]
		if granted[i] && d.f.calls != d.f.lossy {
			d.f.left[r.Entity]--
		}
	}
	return nil
}

func (fakeDriver) Close() error { return nil }
