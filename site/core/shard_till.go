package core

import (
	"github.com/samya-db/samya/internal/portion"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/books"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

var _ till = (*shard)(nil)

// acquire grants an acquire that can be granted in full, unless the id of the request was
// seen.
func (l *shard) acquire(call input.Call, r *request, ch charge) bool {
	if !l.quiet(ch) {
		return false
	}
	if v := decide(l, r, ch, &turn{mayWait: true}); !v.granted() {
		return false
	}
	if !l.record(call, r, ch[0].of, r.granted(ch), -ch[0].tokens) {
		return false
	}
	takeAll(l, ch)
	return true
}

// release gives back the tokens of a release, unless the id of the request was seen.
func (l *shard) release(call input.Call, r *request, ch charge) bool {
	if !l.quiet(ch) || !fitAll(l, ch) || !l.record(call, r, ch[0].of, r.tokens, r.tokens) {
		return false
	}
	giveAll(l, ch)
	return true
}

// record records and answers a request that changes the tokens left of its entity.
func (l *shard) record(call input.Call, r *request, e *entity, tokens, change Tokens) bool {
	q := recordOf(r, e, stored.Ran, tokens, leftOf(e)+change)
	if !l.note(&q, r.tries.Acked, e) {
		return false
	}
	l.replies = append(l.replies, Reply{Call: call, Answer: answer.Answer{Code: answer.OK, Tokens: tokens, Left: q.Left}})
	return true
}

// quiet reports whether a request would change only the books and the demand of its
// entities: no acquire waits there, no audit is under way, and no stored model is to be
// taken up. A split entity is all that.
func (l *shard) quiet(ch charge) bool {
	for i := range ch {
		e := ch[i].of
		if e.split() != nil {
			continue
		}
		if e.halted() || e.queue.len() > 0 || e.audit != nil {
			return false
		}
		if f := &l.c.forecasts; e.demand.model == nil && len(f.parked) > 0 {
			if _, parked := f.parked[e.name]; parked {
				return false
			}
		}
	}
	return true
}

// stripe is the shard's part of an entity's escrow, nil unless the escrow is split.
func (l *shard) stripe(e *entity) *books.Stripe {
	if s := e.split(); s != nil {
		return &s.stripes[l.number]
	}
	return nil
}

// free implements till.
func (l *shard) free(e *entity) Tokens {
	if s := l.stripe(e); s != nil {
		return s.Left()
	}
	return e.usable()
}

// waits implements till: an acquire that lacks tokens here is for the core.
func (l *shard) waits(*entity, Tokens, Tick) bool { return true }

// roomToWait implements till: an acquire that would wait is for the core.
func (l *shard) roomToWait(*entity, Tokens, string, int) bool { return true }

// take implements mover.
func (l *shard) take(e *entity, tokens Tokens) {
	if s := l.stripe(e); s != nil {
		l.keepWhole(e, s.Take(tokens))
		return
	}
	c := l.c
	l.keepWhole(e, e.books.Take(tokens))
	l.c.tallies.of(e).granted(tokens)
	if e.demand.model == nil && !e.demand.counting {
		e.demand.begin(l.now.Tick, c.cfg.Bin)
	}
	l.roll(e)
	e.demand.acquired(l.now.Tick, tokens)
	e.demandUntil, e.busyUntil = l.now.Tick+busyFor, l.now.Tick+busyFor
	l.touch(e)
	if e.books.Left() < c.assessing.enough(e) || len(e.limitChanges()) > 0 || !e.told && !c.roster.alone() {
		l.checkLater(e)
	}
}

// fits implements mover: the books have room for the tokens, nothing waits for them, and
// nothing depends on their number.
func (l *shard) fits(e *entity, tokens Tokens) bool {
	if s := l.stripe(e); s != nil {
		return e.takesBack(s, tokens)
	}
	return l.c.sharding.atEase(e) && e.books.Fits(tokens) && e.books.Net()-tokens+e.outside+e.keptOut() >= 0
}

// give implements mover.
func (l *shard) give(e *entity, tokens Tokens) {
	if s := l.stripe(e); s != nil {
		l.keepWhole(e, s.Return(tokens))
		return
	}
	c := l.c
	l.keepWhole(e, e.books.Return(tokens))
	l.c.tallies.of(e).released(tokens)
	l.roll(e)
	e.demand.released(tokens)
	l.touch(e)
	e.busyUntil = l.now.Tick + busyFor
	if e.books.Left() < c.assessing.enough(e) || e.noQuorum() || c.peering.gained(e, l.now.Tick) || !e.told && !c.roster.alone() {
		l.freedLater(e)
	}
}

// roll is forecasting.roll for a shard. Work beyond the entity is left for when the shards
// are joined.
func (l *shard) roll(e *entity) {
	d, c := &e.demand, l.c
	current := l.now.Tick / c.cfg.Bin
	if current == d.bin {
		return
	}
	if d.model == nil && d.counting {
		d.model = c.forecasting.modelOf(c.forecasting.newModel(c.forecasts.name))
	}
	if d.roll(current, e.limit) {
		l.closed = append(l.closed, e)
	}
}

// note makes a record findable and has it stored, unless its key has a record or a
// waiting acquire, or there is no room. The record is counted for the tenant of the first
// entity.
func (l *shard) note(r *stored.Request, acked uint64, first *entity) bool {
	c := l.c
	if len(c.waiting) > 0 {
		if _, waits := c.waiting[r.Key]; waits {
			return false
		}
	}
	if !l.addToRing(r, acked) && !l.addNew(r, acked, first) {
		return false
	}
	l.records = append(l.records, *r)
	l.served++
	return true
}

// addToRing makes a record findable in a place that its session has already. So shards that
// serve other sessions go on at the same time.
func (l *shard) addToRing(r *stored.Request, acked uint64) bool {
	c := l.c
	of, _, ok := r.Key.Session()
	if !ok || !c.shards.roomy {
		return false
	}
	lock := &c.shards.rings[stripeOf(of)]
	lock.Lock()
	defer lock.Unlock()
	return c.requests.ringsOf(of).serve(rememberedOf(r, portion.Nobody), acked, c.requests.next)
}

// addNew makes a record findable, unless its key has a record or there is no room.
func (l *shard) addNew(r *stored.Request, acked uint64, first *entity) bool {
	c := l.c
	c.shards.table.Lock()
	defer c.shards.table.Unlock()
	if of, _, ok := r.Key.Session(); ok {
		lock := &c.shards.rings[stripeOf(of)]
		lock.Lock()
		defer lock.Unlock()
	}
	c.requests.acknowledge(&r.Key, acked)
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
