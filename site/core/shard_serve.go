package core

import (
	"slices"

	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/packed"
)

// serving serves requests on shards, side by side, and joins what they have done.
type serving struct {
	*common
	*peering
	*forecasting
	*charging
	*assessing
	*remembering
	*leasing
	*sharding
	*rebalancing
	*fencing
}

// Serve serves a request on a shard if it needs nothing but the books of the entities that
// it charges: no acquire waits there, they have the tokens, its id was not seen before,
// and nothing falls due. It reports whether it did; if not it has changed nothing, and
// the request is for Step. ms are the machines that the caller has to itself, as Route
// told. Shards may serve at the same time, each in a single goroutine.
func (c *serving) Serve(number int, now input.Now, in input.Input, ms []*Machine) bool {
	if !c.shards.open {
		return false
	}
	l := &c.shards.all[number]
	l.now.Tick, l.now.Wall = max(l.now.Tick, now.Tick), now.Wall
	served := false
	switch in := in.(type) {
	case *input.Acquire:
		served = c.serveAcquire(l, in, ms)
	case *input.Release:
		served = c.serveRelease(l, in, ms)
	case *input.AcquireAll:
		served = c.serveAll(l, in, ms)
	}
	if served {
		// Here, beside other shards, and not by the committer for all of them.
		l.packed = packed.Append(l.packed, &l.records[len(l.records)-1])
	}
	return served
}

// inTime reports whether a request may run now and needs no other site to be asked.
func (c *serving) inTime(t *input.Tries, now input.Now) bool {
	return t.Simple() && (t.NotAfter == 0 || t.NotAfter >= now.Wall && t.NotAfter <= now.Wall+c.cfg.RequestHorizon())
}

// leafOf is the machine of a name, from the caller's machines or the split ones.
func (c *serving) leafOf(name string, ms []*Machine) *entity {
	if len(ms) > 0 && ms[0].name == name && !ms[0].removed {
		return ms[0]
	}
	if e := c.space.find(name); e != nil && e.split() != nil {
		return e
	}
	return nil
}

// chargeHere is the charge of an entity if all its machines that are not split are the
// caller's; else nil.
func (e *entity) chargeHere(room charge, tokens Tokens, ms []*Machine) charge {
	n := 0
	for a := e; a != nil; a = a.parent() {
		if rateOf(a) != nil {
			return nil // its window may be over
		}
		if a.split() == nil {
			if n == len(ms) || ms[n] != a {
				return nil
			}
			n++
		}
		room = append(room, charged{a, tokens})
	}
	return room
}

func (c *serving) serveAcquire(l *shard, a *input.Acquire, ms []*Machine) bool {
	e := c.leafOf(a.Entity, ms)
	if e == nil || a.DryRun || a.Lease != nil || !a.Valid() || !c.inTime(&a.Tries, l.now) {
		return false
	}
	ch := e.chargeHere(l.room[:0], a.Tokens, ms)
	if ch == nil {
		return false
	}
	r := acquireRequest(a)
	return l.acquire(a.Call, &r, ch)
}

func (c *serving) serveAll(l *shard, a *input.AcquireAll, ms []*Machine) bool {
	if len(a.Parts) > maxServedParts || !a.Valid() || !c.inTime(&a.Tries, l.now) {
		return false
	}
	clear(l.placed)
	ch, named := l.room[:0], l.named[:0]
	for _, p := range a.Parts {
		e := c.space.find(p.Entity)
		for named = append(named, e); ; e = e.parent() {
			if e == nil || rateOf(e) != nil {
				return false
			}
			at, ok := l.placed[e]
			if !ok {
				if e.split() == nil && !slices.Contains(ms, e) {
					return false
				}
				at = int32(len(ch)) //nolint:gosec // at most the chains of 32 parts
				l.placed[e] = at
				ch = append(ch, charged{of: e})
			}
			ch[at].tokens += p.Tokens
			if e.parent() == nil {
				break
			}
		}
	}
	l.room, l.named = ch[:0], named[:0]
	r := allRequest(a)
	r.named = named
	return l.acquire(a.Call, &r, ch)
}

func (c *serving) serveRelease(l *shard, a *input.Release, ms []*Machine) bool {
	e := c.leafOf(a.Entity, ms)
	if e == nil || a.Lease != nil || !a.Valid() || !c.inTime(&a.Tries, l.now) {
		return false
	}
	ch := e.chargeHere(l.room[:0], a.Tokens, ms)
	if ch == nil {
		return false
	}
	r := releaseRequest(a)
	return l.release(a.Call, &r, ch)
}
