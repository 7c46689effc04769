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

// Options are the options of a load.
type Options struct {
	// Clients is the number of concurrent clients; 0 means 8. A client makes a
	// request at a time.
	Clients int
	// Ops is the number of requests of a client in a round; 0 means 400.
	Ops int
	// Own is the number of keys that each client alone writes, Shared the number of
	// keys that all clients write blindly. Accounts and Counters are the numbers of
	// keys that all clients change by Execute. 0 means 8, 4, 6 and 3.
	Own, Shared, Accounts, Counters int
	Seed                            uint64
	// Deadlines is the share of requests with a context that ends at a random
	// moment.
	Deadlines float64
	// Pipelines starts requests without waiting, on a Store that is a Starter.
	Pipelines bool
	// Injected is an error that the store may return; a request that fails with it
	// has no effect. Nil for none.
	Injected error
	// Patience is the time after which a request counts as stuck; 0 means 30 s.
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

// class is the way in which clients write a key.
type class uint8

const (
	// own keys have a single writing client.
	own class = iota
	// All clients write shared keys, blindly.
	shared
	// All clients change account keys by Execute and never remove them. The sum of
	// the accounts is constant.
	account
	// All clients raise counter keys by Execute.
	counter
)

type key struct {
	name  string
	class class
	owner int
	// running is the number of Executes that run with the key.
	running atomic.Int32
}

// deposit is the initial amount of each account.
const deposit = 1000

// Load is load on a store, with the observations of its clients.
type Load struct {
	store   Store
	o       Options
	keys    []key // in ascending order
	index   map[string]int
	classes [counter + 1][]int
	clock   clock
	clients []*client
	auditor *client
	closing atomic.Bool
	// closeMayFail is an error that Close may return.
	closeMayFail error
	violated     atomic.Pointer[Violation]
	// state is the value of each key at the start of the round.
	state []access
	Stats
}

// Stats counts requests and judgements.
type Stats struct {
	Requests, Refused, Unknown, Scans, Executes int64
	Edges                                       int64
	// Undecided counts histories of shared keys that took too long to judge.
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

// Fill fills the accounts. It must be the first call.
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

// Round makes load, waits for its end, and judges the history. A violated invariant
// is a *Violation.
func (l *Load) Round(ctx context.Context) error { return l.round(ctx, nil) }

// round is Round, with a function beside the load.
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

// Close closes the store under load, after about the given part of a round, and
// judges the history as far as it is known. With reopen, it compares the store that
// reopen returns with the history: all acknowledged effects are there, and no
// refused effects.
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

// begun returns the number of requests begun in this round.
func (l *Load) begun() int64 {
	var n int64
	for _, c := range l.clients {
		n += c.begun.Load()
	}
	return n
}

// Recovered adds the contents of a recovered store to the history of the current
// round. The store was opened from an image of the disk taken between two times of
// the clock. The judgement of the round covers it.
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

// audit waits for requests of unknown outcome, scans all keys, and judges the
// round.
func (l *Load) audit(ctx context.Context, store Store) {
	c := l.auditor
	c.does("the audit")
	for _, client := range l.clients {
		for k := range client.retired {
			// The read waits for requests under way on this key.
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

// violate keeps the first violation; the clients then stop.
func (l *Load) violate(v *Violation) { l.violated.CompareAndSwap(nil, v) }
