package kvoracle

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/samya-db/samya/kvpart"
)

// tx is a running Execute.
type tx struct {
	c     *client
	store kvpart.Tx
	o     *op
	// ids are drawn before the call: the function may run after the client gave up.
	ids           []uint64
	err           error
	reads, writes []access
}

func (t *tx) fail(err error) {
	if t.err == nil {
		t.err = err
	}
}

func (t *tx) get(k int) (value, bool) {
	b, err := t.store.Get(t.c.l.keys[k].name, nil)
	a := access{key: k}
	if errors.Is(err, kvpart.ErrNotFound) {
		t.reads = append(t.reads, a)
		return value{}, false
	}
	if err != nil {
		t.fail(err)
		return value{}, false
	}
	v, err := parse(k, b)
	if err != nil {
		t.c.l.violate(violated(Intact, "%s: %s: %v: %x", t.c.l.text(t.o), t.c.l.keys[k].name, err, b))
	}
	a.id, a.version = v.id, v.version
	t.reads = append(t.reads, a)
	return v, true
}

// put sets a value. Before, it sets another value, which no other request may see.
func (t *tx) put(k int, v value) {
	name := t.c.l.keys[k].name
	torn := value{key: k, id: t.ids[0], version: v.version, amount: v.amount}
	v.key, v.id = k, t.ids[1]
	if err := t.store.Put(name, torn.append(nil)); err != nil {
		t.fail(err)
		return
	}
	t.expect(name, torn)
	b := v.append(nil)
	if err := t.store.Put(name, b); err != nil {
		t.fail(err)
		return
	}
	clear(b)
	t.expect(name, v)
	t.writes = append(t.writes, access{key: k, id: v.id, version: v.version})
}

func (t *tx) remove(k int) {
	name := t.c.l.keys[k].name
	if err := t.store.Delete(name); err != nil {
		t.fail(err)
		return
	}
	if _, err := t.store.Get(name, nil); !errors.Is(err, kvpart.ErrNotFound) {
		t.c.l.violate(violated(Sound, "%s: a transaction sees %s, which it removed: %v", t.c.l.text(t.o), name, err))
	}
	t.writes = append(t.writes, access{key: k, id: absent})
}

// expect checks that the transaction sees its own write.
func (t *tx) expect(name string, want value) {
	b, err := t.store.Get(name, nil)
	if err != nil {
		t.fail(err)
		return
	}
	if v, err := parse(want.key, b); err != nil || v != want {
		t.c.l.violate(violated(Sound, "%s: a transaction does not see what it put in %s: %v", t.c.l.text(t.o), name, err))
	}
}

// late is the effect of an Execute that its caller gave up.
type late struct {
	reads, writes []access
	err           error
}

var (
	errOwn    = errors.New("the function's own error")
	errBroken = errors.New("broken off: an invariant does not hold")
)

// execute runs body on keys. If body fails, Execute must return the error and
// change nothing.
func (c *client) execute(ctx context.Context, keys []int, body func(*tx) error) bool {
	o := c.begin(execute)
	t := &tx{c: c, o: &op{kind: execute, client: c.id, call: o.call}, ids: []uint64{c.id64(), c.id64()}}
	c.forbidden[t.ids[0]] = "its function put it and then something else"
	var ran, ended atomic.Bool
	var result atomic.Pointer[late]
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = c.l.keys[k].name
	}
	yields := c.rng.IntN(4)
	err := c.l.store.Execute(ctx, names, func(s kvpart.Tx) error {
		if ended.Load() {
			c.l.violate(violated(Refused, "%s: its function ran after the caller had an error", c.l.text(t.o)))
			return errBroken
		}
		if ran.Swap(true) {
			c.l.violate(violated(Once, "%s: its function ran twice", c.l.text(t.o)))
			return errBroken
		}
		t.store = s
		leave := c.l.enter(keys, t.o)
		for range yields {
			yield()
		}
		err := body(t)
		if t.err != nil {
			err = t.err
		}
		leave()
		result.Store(&late{reads: t.reads, writes: t.writes, err: err})
		return err
	})
	givenUp := errors.Is(err, kvpart.ErrUnknown)
	if err != nil && !givenUp {
		ended.Store(true)
	}
	r := result.Load()
	if givenUp {
		o.late = &result
	} else if r != nil {
		o.reads = r.reads
	}
	failed := r != nil && r.err != nil && errors.Is(err, r.err)
	switch {
	case failed: // it saw what it saw
		c.forbidden[t.ids[1]] = "its function failed"
		c.end(ctx, o, nil)
	default:
		c.end(ctx, o, err)
		if !givenUp && r != nil {
			o.writes = r.writes
		}
		if err == nil && !ran.Load() {
			c.l.violate(violated(Once, "%s: no error, and its function never ran", c.l.text(o)))
		}
		if o.outcome == refused && ran.Load() && !errors.Is(err, c.l.o.Injected) {
			c.l.violate(violated(Refused, "%s: its function ran, and the error says it was not done: %v", c.l.text(o), err))
		}
	}
	if givenUp {
		for _, k := range keys {
			if c.l.keys[k].class == own {
				c.retired[k] = true
			}
		}
	}
	return o.outcome == done
}

// enter records that an Execute runs with keys, and returns a function that records
// its end.
func (l *Load) enter(keys []int, o *op) (leave func()) {
	keys = slices.Compact(slices.Sorted(slices.Values(keys)))
	for _, k := range keys {
		if n := l.keys[k].running.Add(1); n != 1 {
			l.violate(violated(Exclusive, "%s: another Execute runs with %s", l.text(o), l.keys[k].name))
		}
	}
	return func() {
		for _, k := range keys {
			l.keys[k].running.Add(-1)
		}
	}
}

// writeTogether sets and removes some of the client's own keys at once.
func (c *client) writeTogether(ctx context.Context) bool {
	var keys []int
	for range 2 + c.rng.IntN(3) {
		if k, ok := c.free(); ok && !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return true
	}
	// A removal of unknown outcome could not be judged: no value would show it.
	gone := -1
	if len(keys) > 1 && c.rng.IntN(2) == 0 {
		gone, ctx = c.rng.IntN(len(keys)), context.WithoutCancel(ctx)
	}
	look, fails := c.rng.IntN(2) == 0, c.rng.IntN(8) == 0
	return c.execute(ctx, keys, func(t *tx) error {
		if look {
			for _, k := range keys {
				t.get(k)
			}
		}
		for i, k := range keys {
			if i == gone {
				t.remove(k)
			} else {
				t.put(k, value{})
			}
		}
		if fails {
			return errOwn
		}
		return nil
	})
}

// transfer moves an amount between accounts; both may be the same account.
func (c *client) transfer(ctx context.Context, from, to int, fails bool) bool {
	amount := 1 + c.rng.Int64N(9)
	return c.execute(ctx, []int{from, to}, func(t *tx) error {
		a, ok := t.get(from)
		b, also := t.get(to)
		if !ok || !also {
			return t.missing()
		}
		if from != to {
			t.put(from, value{version: a.version + 1, amount: a.amount - amount})
			yield()
			t.put(to, value{version: b.version + 1, amount: b.amount + amount})
		}
		if fails {
			return errOwn
		}
		return nil
	})
}

// missing reports a missing account.
func (t *tx) missing() error {
	if t.err == nil {
		t.c.l.violate(violated(Once, "%s: an account is gone", t.c.l.text(t.o)))
	}
	return errOwn
}

// count increments a counter.
func (c *client) count(ctx context.Context, k int) bool {
	return c.execute(ctx, []int{k}, func(t *tx) error {
		v, _ := t.get(k)
		yield()
		t.put(k, value{version: v.version + 1, amount: v.amount + 1})
		return nil
	})
}

// sum reads all accounts at once.
func (c *client) sum(ctx context.Context) bool {
	keys := c.l.classes[account]
	return c.execute(ctx, keys, func(t *tx) error {
		sum := int64(0)
		for _, k := range keys {
			v, _ := t.get(k)
			sum += v.amount
		}
		if want := int64(deposit * len(keys)); t.err == nil && sum != want {
			c.l.violate(violated(Sum, "%s: the accounts hold %d, must hold %d", c.l.text(t.o), sum, want))
		}
		return nil
	})
}

// undeclared has a transaction write an undeclared key.
func (c *client) undeclared(ctx context.Context) bool {
	k, ok := c.free()
	if !ok {
		return true
	}
	other := c.l.classes[account][0]
	return c.execute(ctx, []int{k}, func(t *tx) error {
		t.put(k, value{})
		err := t.store.Put(c.l.keys[other].name, nil)
		if !errors.Is(err, kvpart.ErrUndeclared) {
			c.l.violate(violated(Sound, "%s: put of an undeclared key: %v", c.l.text(t.o), err))
			return errBroken
		}
		return err
	})
}

// pipeline starts requests on one of the client's own keys without waiting. They
// take effect in the order of their starts.
func (c *client) pipeline(ctx context.Context, store Starter) bool {
	k, ok := c.free()
	if !ok {
		return true
	}
	o := make([]*op, 2+c.rng.IntN(6))
	started := make(chan int, len(o))
	under := 0
	for i := range o {
		r := &kvpart.Request{Key: c.l.keys[k].name, Kind: kvpart.ReadRequest}
		o[i] = c.begin(read)
		switch c.rng.IntN(5) {
		case 0, 1:
			v := value{key: k, id: c.id64()}
			r.Kind, r.Value, o[i].kind = kvpart.WriteRequest, v.append(nil), write
			o[i].writes = []access{{key: k, id: v.id}}
		case 2:
			r.Kind, o[i].kind = kvpart.DeleteRequest, remove
			o[i].writes = []access{{key: k, id: absent}}
		}
		if i > 0 {
			o[i].before = o[:i:i]
		}
		var calls atomic.Int32
		r.Done = func(r *kvpart.Request) {
			if calls.Add(1) > 1 {
				c.l.violate(violated(Once, "%s: done twice", c.l.text(o[i])))
				return
			}
			o[i].ret = c.l.clock.now()
			missing := o[i].kind == read && errors.Is(r.Err, kvpart.ErrNotFound)
			switch {
			case r.Err != nil && !missing && c.l.o.Injected != nil && errors.Is(r.Err, c.l.o.Injected):
				o[i].outcome = refused
			case r.Err != nil && !missing:
				c.l.violate(violated(Sound, "%s: was handed over: %v", c.l.text(o[i]), r.Err))
			case o[i].kind == read:
				c.sawValue(o[i], k, r.Value, missing)
			}
			started <- i
		}
		err := store.Start(ctx, r)
		if err != nil {
			c.end(ctx, o[i], err)
			break
		}
		under++
		c.beat.Add(1)
	}
	last := o[under-min(under, 1)]
	c.does("the end of what was started")
	c.beat.Add(1)
	for range under {
		<-started
	}
	c.beat.Add(1)
	return last != nil && last.outcome == done
}
