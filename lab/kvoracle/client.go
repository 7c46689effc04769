package kvoracle

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/samya-db/samya/kvpart"
)

// client makes a request at a time, or a few requests on the same key without
// waiting.
type client struct {
	l   *Load
	id  int
	rng *rand.Rand
	seq uint64
	own []int
	// retired are its own keys with a write of unknown outcome.
	retired map[int]bool
	// forbidden are the ids of values that no client may see, with the reason.
	forbidden map[uint64]string
	mu        sync.Mutex // guards ops of the auditor
	ops       []*op
	begun     atomic.Int64
	// beat is odd while a request is under way; doing names the request.
	beat  atomic.Int64
	doing atomic.Pointer[string]
	value []byte
	got   []byte
	pairs []kvpart.Pair
	focus int
}

// run makes n requests, or fewer if the store closes.
func (c *client) run(ctx context.Context, n int) {
	for range n {
		if c.l.violated.Load() != nil {
			return
		}
		if !c.step(ctx) && c.l.closing.Load() {
			return
		}
	}
}

// near draws a key from a moving neighbourhood, so that some keys are used
// together, and other keys later.
func (c *client) near(keys []int) int {
	if c.rng.IntN(150) == 0 {
		c.focus = c.rng.IntN(1 << 16)
	}
	if c.rng.IntN(5) == 0 {
		return keys[c.rng.IntN(len(keys))]
	}
	return keys[(c.focus+c.rng.IntN(3))%len(keys)]
}

// free draws a key of the client's own that it may write; false if four draws hit
// retired keys.
func (c *client) free() (int, bool) {
	for range 4 {
		if k := c.near(c.own); !c.retired[k] {
			return k, true
		}
	}
	return 0, false
}

// step makes a random request. It reports whether the store took the request.
func (c *client) step(ctx context.Context) bool {
	ctx, cancel := c.deadline(ctx)
	defer cancel()
	accounts, counters, all := c.l.classes[account], c.l.classes[counter], c.l.classes[shared]
	switch p := c.rng.IntN(100); {
	case p < 16:
		if k, ok := c.free(); ok {
			return c.write(ctx, k)
		}
	case p < 22:
		if k, ok := c.free(); ok {
			return c.remove(ctx, k)
		}
	case p < 27: // whoever sees the second sees the first
		x, ok := c.free()
		y, also := c.free()
		if ok && also && c.remove(ctx, x) && !c.retired[x] && c.write(ctx, x) && !c.retired[y] {
			return c.write(ctx, y)
		}
	case p < 35:
		return c.writeTogether(ctx)
	case p < 41:
		return c.write(ctx, c.near(all))
	case p < 43:
		return c.remove(context.WithoutCancel(ctx), c.near(all))
	case p < 55:
		return c.transfer(ctx, c.near(accounts), accounts[c.rng.IntN(len(accounts))], c.rng.IntN(8) == 0)
	case p < 62:
		return c.count(ctx, c.near(counters))
	case p < 74:
		return c.read(ctx, c.rng.IntN(len(c.l.keys)))
	case p < 78:
		return c.read(ctx, c.near(c.own))
	case p < 90:
		from := c.l.keys[c.near(c.own)].name
		if c.rng.IntN(3) == 0 {
			from += "x" // no key
		}
		return c.scan(ctx, c.l.store, from, 1+c.rng.IntN(10)).outcome == done
	case p < 93:
		return c.scan(ctx, c.l.store, firstKey, len(c.l.keys)+c.rng.IntN(2)).outcome == done
	case p < 96:
		return c.sum(ctx)
	case p < 97:
		return c.undeclared(ctx)
	default:
		if starter, ok := c.l.store.(Starter); ok && c.l.o.Pipelines {
			return c.pipeline(ctx, starter)
		}
		return c.read(ctx, c.near(all))
	}
	return true
}

// deadline ends the context of some requests at a random moment, from before the
// call to after the usual return.
func (c *client) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.rng.Float64() >= c.l.o.Deadlines {
		return ctx, func() {}
	}
	most := [...]time.Duration{0, 30 * time.Microsecond, 300 * time.Microsecond, 3 * time.Millisecond}[c.rng.IntN(4)]
	return context.WithTimeout(ctx, time.Duration(c.rng.Int64N(int64(most)+1)))
}

func (c *client) id64() uint64 {
	c.seq++
	return uint64(c.id+1)<<idBits | c.seq
}

func (c *client) begin(k kind) *op {
	o := &op{kind: k, client: c.id}
	c.mu.Lock()
	c.ops = append(c.ops, o)
	c.mu.Unlock()
	c.does(k.String())
	c.begun.Add(1)
	c.beat.Add(1)
	o.call = c.l.clock.now()
	return o
}

func (c *client) does(what string) { c.doing.Store(&what) }

func (c *client) end(ctx context.Context, o *op, err error) {
	o.ret = c.l.clock.now()
	c.beat.Add(1)
	c.settle(ctx, o, err)
}

// settle derives the outcome of a request from its error.
func (c *client) settle(ctx context.Context, o *op, err error) {
	ended := ctx.Err()
	switch {
	case err == nil:
	case errors.Is(err, kvpart.ErrUnknown) && ended != nil && errors.Is(err, ended):
		o.outcome, o.ret = unknown, never
	case errors.Is(err, kvpart.ErrUnknown):
		c.l.violate(violated(Sound, "%s: its context has not ended: %v", c.l.text(o), err))
	case ended != nil && errors.Is(err, ended),
		c.l.closing.Load() && errors.Is(err, kvpart.ErrClosed),
		c.l.o.Injected != nil && errors.Is(err, c.l.o.Injected):
		o.outcome = refused
	default:
		c.l.violate(violated(Sound, "%s: %v", c.l.text(o), err))
	}
}

func (c *client) write(ctx context.Context, k int) bool {
	o := c.begin(write)
	v := value{key: k, id: c.id64()}
	o.writes = []access{{key: k, id: v.id}}
	c.value = v.append(c.value[:0])
	err := c.l.store.Write(ctx, c.l.keys[k].name, c.value)
	clear(c.value) // the buffer is the client's again
	c.end(ctx, o, err)
	c.retire(o)
	return o.outcome == done
}

func (c *client) remove(ctx context.Context, k int) bool {
	o := c.begin(remove)
	o.writes = []access{{key: k, id: absent}}
	c.end(ctx, o, c.l.store.Delete(ctx, c.l.keys[k].name))
	c.retire(o)
	return o.outcome == done
}

// retire retires the client's own keys after a write of unknown outcome: it is
// their last write of the round.
func (c *client) retire(o *op) {
	if o.outcome != unknown {
		return
	}
	for _, w := range o.writes {
		if c.l.keys[w.key].class == own {
			c.retired[w.key] = true
		}
	}
}

func (c *client) read(ctx context.Context, k int) bool {
	o := c.begin(read)
	var err error
	c.got, err = c.l.store.Read(ctx, c.l.keys[k].name, c.got[:0])
	missing := errors.Is(err, kvpart.ErrNotFound)
	if missing {
		err = nil
	}
	c.end(ctx, o, err)
	if o.outcome == done && err == nil {
		c.sawValue(o, k, c.got, missing)
	}
	return o.outcome == done
}

// sawValue records a value read.
func (c *client) sawValue(o *op, k int, b []byte, missing bool) (v value) {
	if missing {
		o.reads = append(o.reads, access{key: k})
		return v
	}
	v, err := parse(k, b)
	if err != nil {
		c.l.violate(violated(Intact, "%s: %s: %v: %x", c.l.text(o), c.l.keys[k].name, err, b))
		return v
	}
	o.reads = append(o.reads, access{key: k, id: v.id, version: v.version})
	return v
}

func (c *client) scan(ctx context.Context, store Store, from string, limit int) *op {
	o := c.begin(scan)
	pairs, err := store.Scan(ctx, from, limit, c.pairs)
	c.end(ctx, o, err)
	if o.outcome == done && err == nil {
		c.saw(o, from, limit, pairs)
		c.pairs = pairs[:0]
	}
	return o
}

// saw records the result of a scan. It covers the keys from the start to the last
// key found, or all keys from the start if it found fewer than limit.
func (c *client) saw(o *op, from string, limit int, pairs []kvpart.Pair) {
	l := c.l
	at := 0
	for at < len(l.keys) && l.keys[at].name < from {
		at++
	}
	if len(pairs) > limit {
		l.violate(violated(Exact, "%s from %s: %d keys, limit %d", l.text(o), from, len(pairs), limit))
		return
	}
	held, sum := 0, int64(0)
	for i, p := range pairs {
		k, ok := l.index[p.Key]
		if !ok || k < at {
			l.violate(violated(Exact, "%s from %s: key %q is number %d", l.text(o), from, p.Key, i))
			return
		}
		for ; at < k; at++ {
			o.reads = append(o.reads, access{key: at})
		}
		v := c.sawValue(o, k, p.Value, false)
		at++
		if l.keys[k].class == account {
			held, sum = held+1, sum+v.amount
		}
	}
	for ; len(pairs) < limit && at < len(l.keys); at++ {
		o.reads = append(o.reads, access{key: at})
	}
	if want := int64(deposit * len(l.classes[account])); held == len(l.classes[account]) && sum != want {
		l.violate(violated(Sum, "%s: the accounts hold %d, must hold %d", l.text(o), sum, want))
	}
}

// closeStore closes the store under load.
func (c *client) closeStore() {
	c.does("Close")
	c.beat.Add(1)
	err := c.l.store.Close()
	c.beat.Add(1)
	if err != nil && (c.l.closeMayFail == nil || !errors.Is(err, c.l.closeMayFail)) {
		c.l.violate(violated(Sound, "close: %v", err))
	}
}
