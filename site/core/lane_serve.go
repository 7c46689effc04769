package core

import (
	"slices"

	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

// serving serves requests on lanes, side by side, and joins what they have done.
type serving struct {
	*common
	*telling
	*forecasting
	*charging
	*assessing
	*remembering
	*leasing
	*laning
	*rebalancing
	*vouching
}

// Serve serves a request on a lane if it needs nothing but the books of the entities that
// it charges: no acquire waits there, they have the tokens, its id was not seen before,
// and nothing falls due. It reports whether it did; if not it has changed nothing, and
// the request is for Step. ms are the machines that the caller has to itself, as Route
// told. Lanes may serve at the same time, each in a single goroutine.
func (c *serving) Serve(number int, now input.Now, in input.Input, ms []*Machine) bool {
	if !c.lanes.open {
		return false
	}
	l := &c.lanes.all[number]
	l.now.Tick, l.now.Wall = max(l.now.Tick, now.Tick), now.Wall
	switch in := in.(type) {
	case *input.Acquire:
		return c.serveAcquire(number, in, ms)
	case *input.Release:
		return c.serveRelease(number, in, ms)
	case *input.AcquireAll:
		return c.serveAll(number, in, ms)
	}
	return false
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

func (c *serving) serveAcquire(number int, a *input.Acquire, ms []*Machine) bool {
	l := &c.lanes.all[number]
	e := c.leafOf(a.Entity, ms)
	if e == nil || a.DryRun || a.Lease != nil || !a.Valid() || !c.inTime(&a.Tries, l.now) {
		return false
	}
	ch := e.chargeHere(l.room[:0], a.Tokens, ms)
	if ch == nil || !c.affords(number, ch) {
		return false
	}
	r := acquireRequest(a)
	return c.serveGrant(number, a.Call, &r, ch)
}

func (c *serving) serveAll(number int, a *input.AcquireAll, ms []*Machine) bool {
	l := &c.lanes.all[number]
	if len(a.Parts) > maxServedParts || !a.Valid() || !c.inTime(&a.Tries, l.now) {
		return false
	}
	clear(l.placed)
	ch := l.room[:0]
	for _, p := range a.Parts {
		for e := c.space.find(p.Entity); ; e = e.parent() {
			if e == nil {
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
	l.room = ch[:0]
	if !c.affords(number, ch) {
		return false
	}
	r := allRequest(a)
	return c.serveGrant(number, a.Call, &r, ch)
}

// affords reports whether a lane can take all of a charge: never more than a limit,
// whatever is left.
func (c *serving) affords(number int, ch charge) bool {
	for i := range ch {
		e, tokens := ch[i].of, ch[i].tokens
		if tokens > e.limit {
			return false
		}
		if s := e.split(); s != nil {
			if s.stripes[number].Left() < tokens {
				return false
			}
			continue
		}
		if e.usable() < tokens || !c.quiet(e) {
			return false
		}
	}
	return true
}

// quiet reports whether a granted acquire or a release would change only an entity's
// books and demand: no acquire waits, no audit is under way, and no stored model is to be
// taken up.
func (c *serving) quiet(e *entity) bool {
	if e.halted() || e.queue.len() > 0 || e.audit != nil {
		return false
	}
	if e.demand.model != nil || len(c.forecasts.parked) == 0 {
		return true
	}
	_, parked := c.forecasts.parked[e.name]
	return !parked
}

// roll is Core.roll for a lane. Work beyond the entity is left for when the lanes are
// joined.
func (l *lane) roll(c *forecasting, e *entity) {
	d := &e.demand
	current := l.now.Tick / c.cfg.Bin
	if current == d.bin {
		return
	}
	if d.model == nil && d.counting {
		d.model = c.modelOf(c.newModel(c.forecasts.name))
	}
	if d.roll(current, e.limit) {
		l.closed = append(l.closed, e)
	}
}

// serveGrant takes the tokens and records the grant, unless the id of the request was
// seen.
func (c *serving) serveGrant(number int, call input.Call, r *request, ch charge) bool {
	l := &c.lanes.all[number]
	e, tokens := ch[0].of, ch[0].tokens
	if r.parts != nil {
		tokens = r.tokens
	}
	record := stored.Request{
		Key: r.key, Body: r.body, Kind: r.kind, State: stored.Ran, Attempt: attempt.First, Generation: e.generation,
		Tokens: tokens, Left: c.leftOn(number, e) - ch[0].tokens,
	}
	if r.parts != nil {
		record.Parts = c.recorded(r.parts)
	}
	if !c.noteServed(l, &record, ch[0].of) {
		return false
	}
	for i := range ch {
		e, tokens := ch[i].of, ch[i].tokens
		if s := e.split(); s != nil {
			l.keepWhole(e, s.stripes[number].Take(tokens))
			continue
		}
		l.keepWhole(e, e.books.Take(tokens))
		if e.demand.model == nil && !e.demand.counting {
			e.demand.begin(l.now.Tick, c.cfg.Bin)
		}
		l.roll(c.forecasting, e)
		e.demand.acquired(l.now.Tick, tokens)
		e.demandUntil, e.busyUntil = l.now.Tick+busyFor, l.now.Tick+busyFor
		l.touch(e)
		if e.books.Left() < c.enough(e) || len(e.limitChanges()) > 0 || !e.told && len(c.cfg.Members) > 1 {
			l.lookLater(e)
		}
	}
	l.replies = append(l.replies, Reply{Call: call, Answer: answer.Answer{Code: answer.OK, Tokens: tokens, Left: record.Left}})
	return true
}

func (c *serving) serveRelease(number int, a *input.Release, ms []*Machine) bool {
	l := &c.lanes.all[number]
	e := c.leafOf(a.Entity, ms)
	if e == nil || a.Lease != nil || a.Tokens < 1 || a.Tokens > input.MaxTokens || !c.inTime(&a.Tries, l.now) {
		return false
	}
	ch := e.chargeHere(l.room[:0], a.Tokens, ms)
	if ch == nil || !c.takesBack(number, ch) {
		return false
	}
	r := releaseRequest(a)
	record := stored.Request{
		Key: r.key, Body: r.body, Kind: stored.ReleaseRequest, State: stored.Ran, Attempt: attempt.First, Generation: e.generation,
		Tokens: a.Tokens, Left: c.leftOn(number, e) + a.Tokens,
	}
	if !c.noteServed(l, &record, ch[0].of) {
		return false
	}
	for i := range ch {
		e, tokens := ch[i].of, ch[i].tokens
		if s := e.split(); s != nil {
			l.keepWhole(e, s.stripes[number].Return(tokens))
			continue
		}
		l.keepWhole(e, e.books.Return(tokens))
		l.roll(c.forecasting, e)
		e.demand.released(tokens)
		l.touch(e)
		e.busyUntil = l.now.Tick + busyFor
		if e.books.Left() < c.enough(e) || e.apart() || c.gained(e, l.now.Tick) || !e.told && len(c.cfg.Members) > 1 {
			l.freedLater(e)
		}
	}
	l.replies = append(l.replies, Reply{Call: a.Call, Answer: answer.Answer{Code: answer.OK, Tokens: a.Tokens, Left: record.Left}})
	return true
}

// takesBack reports whether a lane can give back all of a charge: nothing waits for the
// tokens or depends on their number, and the books have room for them.
func (c *serving) takesBack(number int, ch charge) bool {
	for i := range ch {
		e, tokens := ch[i].of, ch[i].tokens
		if s := e.split(); s != nil {
			if !e.takesBack(&s.stripes[number], tokens) {
				return false
			}
			continue
		}
		if !c.quiet(e) || !c.atEase(e) || !e.books.Fits(tokens) ||
			e.books.Net()-tokens+e.outside+e.surplus() < 0 {
			return false
		}
	}
	return true
}

// atEase reports whether the entity lacks no tokens and nothing follows up on a lack.
func (c *laning) atEase(e *entity) bool {
	return e.books.Left() >= 0 && e.lacking() == 0 && e.debt() == nil && len(e.limitChanges()) == 0 && !e.hunt.short && e.droughtNow().since == 0
}

// noteServed makes a record findable and has it stored, unless its key has a record or a
// waiting acquire, or there is no room. The record is counted for the tenant of the first
// entity.
func (c *serving) noteServed(l *lane, r *stored.Request, first *entity) bool {
	if len(c.waiting) > 0 {
		if _, waits := c.waiting[r.Key]; waits {
			return false
		}
	}
	c.lanes.table.Lock()
	added := c.addServed(r, first)
	c.lanes.table.Unlock()
	if !added {
		return false
	}
	l.records = append(l.records, *r)
	l.served++
	return true
}

// addServed makes a record findable, unless its key has a record or there is no room.
func (c *serving) addServed(r *stored.Request, first *entity) bool {
	held, tenant := &c.requests.held, c.cfg.tenantOf(first.name)
	if !held.Fits(tenant, c.cfg.MaxRequests, 1+len(r.Parts)) {
		return false
	}
	at := held.Take(tenant, 1)
	if !c.requests.addNew(r, at) {
		held.Give(at, 1)
		return false
	}
	return true
}
