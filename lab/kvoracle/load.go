package kvoracle

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/samya-db/samya/kvpart"
)

// Options say what load to make.
type Options struct {
	// Clients make requests at the same time, one each: 8 if 0.
	Clients int
	// Ops is how many requests each client makes in a round: 400 if 0.
	Ops int
	// Own is how many keys each client alone writes, Shared how many all write
	// blindly, Accounts and Counters how many all change by Execute: 8, 4, 6 and 3
	// if 0.
	Own, Shared, Accounts, Counters int
	Seed                            uint64
	// Deadlines is the share of requests whose context ends at a random moment.
	Deadlines float64
	// Pipelines hands requests over without waiting, to a Store that is a Starter.
	Pipelines bool
	// Injected is an error that the store may return; what failed with it was not
	// done. Nil for none.
	Injected error
	// Patience is how long a request may take before it counts as stuck: 30 s if 0.
	Patience time.Duration
}

func (o Options) withDefaults() Options {
	set := func(n *int, to int) {
		if *n == 0 {
			*n = to
		}
	}
	set(&o.Clients, 8)
	set(&o.Ops, 400)
	set(&o.Own, 8)
	set(&o.Shared, 4)
	set(&o.Accounts, 6)
	set(&o.Counters, 3)
	if o.Patience == 0 {
		o.Patience = 30 * time.Second
	}
	return o
}

// class says who writes a key, and how.
type class uint8

const (
	// own keys are written by one client.
	own class = iota
	// shared keys are written by all, blindly.
	shared
	// account keys are changed by all, by Execute, and never removed; what they
	// hold adds up to the same at all times.
	account
	// counter keys are raised by all, by Execute.
	counter
)

type key struct {
	name  string
	class class
	owner int
	// running is how many Executes run with it.
	running atomic.Int32
}

// deposit is what each account holds at first.
const deposit = 1000

// Load is load on one store, and what was seen of it.
type Load struct {
	store   Store
	o       Options
	keys    []key // in their order
	index   map[string]int
	classes [counter + 1][]int
	clock   clock
	clients []*client
	auditor *client
	closing atomic.Bool
	// closeMayFail is an error that Close may tell of.
	closeMayFail error
	violated     atomic.Pointer[Violation]
	// state is what each key held when the round began.
	state []access
	Stats
}

// Stats counts what was done and judged.
type Stats struct {
	Requests, Refused, Unknown, Scans, Executes int64
	Edges                                       int64
	// Undecided are histories of shared keys that took too long to judge.
	Undecided int64
}

// New returns load on a store, which must be empty.
func New(store Store, o Options) *Load {
	o = o.withDefaults()
	l := &Load{store: store, o: o, index: make(map[string]int)}
	type plan struct {
		class class
		owner int
	}
	var plans []plan
	for c := range o.Clients {
		for range o.Own {
			plans = append(plans, plan{class: own, owner: c})
		}
	}
	for c, n := range []int{shared: o.Shared, account: o.Accounts, counter: o.Counters} {
		for range n {
			plans = append(plans, plan{class: class(c)})
		}
	}
	rng := rand.New(rand.NewPCG(o.Seed, 0))
	rng.Shuffle(len(plans), func(i, j int) { plans[i], plans[j] = plans[j], plans[i] })
	l.keys = make([]key, len(plans))
	l.state = make([]access, len(plans))
	for i, p := range plans {
		l.keys[i].name = fmt.Sprintf("k%04d", i)
		l.keys[i].class, l.keys[i].owner = p.class, p.owner
		l.index[l.keys[i].name] = i
		l.classes[p.class] = append(l.classes[p.class], i)
		l.state[i].key = i
	}
	for id := range o.Clients + 1 {
		c := &client{l: l, id: id, rng: rand.New(rand.NewPCG(o.Seed, uint64(id)+1)), retired: make(map[int]bool), forbidden: make(map[uint64]string)}
		for k := range l.keys {
			if l.keys[k].class == own && l.keys[k].owner == id {
				c.own = append(c.own, k)
			}
		}
		l.clients = append(l.clients, c)
	}
	l.auditor = l.clients[o.Clients]
	l.clients = l.clients[:o.Clients]
	return l
}

// Fill gives the accounts what is in them at first. It comes before all else.
func (l *Load) Fill(ctx context.Context) error {
	return l.watch(func() {
		c := l.auditor
		c.execute(ctx, l.classes[account], func(t *tx) error {
			for _, k := range l.classes[account] {
				t.put(k, value{version: 1, amount: deposit})
			}
			return nil
		})
		l.audit(ctx, l.store)
	})
}

// Round makes load, lets it come to an end, and judges the history. Its error is
// a *Violation if an invariant does not hold.
func (l *Load) Round(ctx context.Context) error { return l.round(ctx, nil) }

// round is Round, with something else done beside the load.
func (l *Load) round(ctx context.Context, beside func()) error {
	return l.watch(func() {
		var wait sync.WaitGroup
		for _, c := range l.clients {
			c.begun.Store(0)
		}
		if beside != nil {
			wait.Go(beside)
		}
		for _, c := range l.clients {
			wait.Go(func() { c.run(ctx, l.o.Ops) })
		}
		wait.Wait()
		l.audit(ctx, l.store)
	})
}

// Close closes the store while there is load on it, at about the given part of a
// round, and judges the history so far as it is known. With reopen, the store it
// returns is held against the history: all that was acknowledged is there, and
// nothing that was refused.
func (l *Load) Close(ctx context.Context, part float64, reopen func() (Store, error)) error {
	return l.watch(func() {
		var wait sync.WaitGroup
		for _, c := range l.clients {
			c.begun.Store(0)
		}
		at := int64(part * float64(l.o.Clients*l.o.Ops))
		for _, c := range l.clients {
			wait.Go(func() { c.run(ctx, l.o.Ops) })
		}
		wait.Go(func() {
			for l.begun() < at && l.violated.Load() == nil {
				yield()
			}
			l.closing.Store(true)
			l.auditor.closeStore()
		})
		wait.Wait()
		if l.violated.Load() != nil {
			return
		}
		if _, err := l.store.Read(ctx, l.keys[0].name, nil); !errors.Is(err, kvpart.ErrClosed) {
			l.violate(violated(Refused, "a read after Close was answered with %v", err))
			return
		}
		if reopen == nil {
			l.judge(nil)
			return
		}
		l.closing.Store(false)
		store, err := reopen()
		if err != nil {
			l.violate(violated(Sound, "the store does not open again: %v", err))
			return
		}
		l.store = store
		l.audit(ctx, store)
	})
}

// begun is how many requests of this round have begun.
func (l *Load) begun() int64 {
	var n int64
	for _, c := range l.clients {
		n += c.begun.Load()
	}
	return n
}

// Recovered holds a store against the history of the round under way: it was
// opened from an image of the disk taken between two times of the clock. It is
// looked at when the round is judged.
func (l *Load) Recovered(ctx context.Context, store Store, from, to int64) error {
	c := &client{l: l, id: l.o.Clients + 1, rng: rand.New(rand.NewPCG(l.o.Seed, uint64(to)))}
	pairs, err := store.Scan(ctx, firstKey, len(l.keys)+1, nil)
	if err != nil {
		return violated(Sound, "scan of a recovered store: %v", err)
	}
	o := &op{kind: scan, client: c.id, call: from, ret: to}
	c.saw(o, firstKey, len(l.keys)+1, pairs)
	l.auditor.mu.Lock()
	defer l.auditor.mu.Unlock()
	l.auditor.ops = append(l.auditor.ops, o)
	if v := l.violated.Load(); v != nil {
		return v
	}
	return nil
}

// firstKey is below all keys.
const firstKey = "a"

// audit lets requests whose outcome nobody knows come to an end, reads all there
// is, and judges the round.
func (l *Load) audit(ctx context.Context, store Store) {
	c := l.auditor
	c.does("the audit")
	for _, client := range l.clients {
		for k := range client.retired {
			// Behind what is under way on this key.
			c.beat.Add(1)
			if _, err := store.Read(ctx, l.keys[k].name, nil); err != nil && !errors.Is(err, kvpart.ErrNotFound) {
				l.violate(violated(Sound, "read: %v", err))
			}
			c.beat.Add(1)
		}
	}
	last := c.scan(ctx, store, firstKey, len(l.keys)+1)
	if l.violated.Load() != nil {
		return
	}
	for k := range l.keys {
		c.beat.Add(1)
		b, err := store.Read(ctx, l.keys[k].name, nil)
		c.beat.Add(1)
		v, bad := parse(k, b)
		switch seen := last.reads[k]; {
		case errors.Is(err, kvpart.ErrNotFound) && seen.id == absent:
		case err != nil || bad != nil || v.id != seen.id:
			l.violate(violated(Exact, "%s holds %s in a scan and %s, %v in a read, and nobody writes", l.keys[k].name, idText(seen.id), idText(v.id), errors.Join(err, bad)))
			return
		}
	}
	l.judge(last)
}

// watch runs a part of the load, and gives up if a request is stuck.
func (l *Load) watch(part func()) error {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		part()
	}()
	w := watchdog{load: l, since: make([]time.Time, len(l.clients)+1), beats: make([]int64, len(l.clients)+1)}
	tick := time.NewTicker(max(l.o.Patience/16, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ended:
			if v := l.violated.Load(); v != nil {
				return v
			}
			return nil
		case at := <-tick.C:
			if v := w.look(at); v != nil {
				l.violate(v)
				return v
			}
		}
	}
}

// violate keeps the first violation; clients stop soon.
func (l *Load) violate(v *Violation) { l.violated.CompareAndSwap(nil, v) }
