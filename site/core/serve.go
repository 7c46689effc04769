package core

import "github.com/samya-db/samya/internal/portion"

// request is an acquire or release as it is remembered.
type request struct {
	key  RequestKey
	body uint64
	kind RequestKind
	// entity is the name of the entity that the request names.
	entity string
	// tokens is the number of tokens asked for, least the fewest to be content with.
	tokens, least Tokens
	lease         *LeaseTerms
	// tries has in Tried, once the request is placed, the sites to be asked.
	tries Tries
	// home is the lease of another site that a release names.
	home RequestKey
	// parts are the parts of an AllRequest; entity is then the first part's entity and
	// tokens the sum.
	parts []Part
}

func (a *Acquire) request() request {
	r := request{
		key: a.Request, kind: AcquireRequest, entity: a.Entity, tokens: a.Tokens, least: a.Tokens, lease: a.Lease, tries: a.Tries,
	}
	if a.Least > 0 {
		r.least = a.Least
	}
	if a.Lease != nil {
		r.kind = LeasedRequest
	}
	r.body = bodyHash(r.kind, a.Entity, a.Tokens)
	if r.least != r.tokens {
		r.body = mixBody(r.body, uint64(r.least))
	}
	if a.Lease != nil {
		r.body = mixBody(mixBody(r.body, uint64(a.Lease.TTL)), textHash(a.Lease.Holder))
	}
	return r
}

func (a *Acquire) valid() bool {
	return a.Tokens >= 1 && a.Tokens <= MaxTokens && a.Least >= 0 && a.Least <= a.Tokens &&
		(a.Lease == nil || a.Lease.TTL >= 1 && a.Lease.TTL <= MaxTTL && KeyOf(a.Lease.ID) == a.Request)
}

func (c *Core) acquire(a *Acquire) {
	if !a.valid() {
		c.reply(a.Call, Answer{Code: Invalid})
		return
	}
	r := a.request()
	if !a.DryRun && (c.repeated(a.Call, &r, a.Wait) || !c.placed(a.Call, &r)) {
		return
	}
	e := c.space.find(a.Entity)
	if e == nil {
		c.reply(a.Call, Answer{Code: NotFound})
		return
	}
	var room [MaxDepth]charged
	switch ch := e.charge(room[:0], a.Tokens); {
	case a.DryRun:
		c.dryRun(ch, a.Call, &r)
	case c.tableFull(a.Call, e, 0), c.barred(a.Call, &r):
	default:
		c.begun(a.Call, &r, ch, a.Wait)
	}
}

// begun grants or refuses an acquire seen for the first time, or lets it wait.
func (c *Core) begun(call Call, r *request, ch charge, wait Tick) {
	if over := ch.exceeds(r); over != nil {
		c.reply(call, c.refuseExcess(r, over))
		return
	}
	ch.limited(r)
	for e := range ch.entities() {
		c.endHold(e)
	}
	if c.stopping {
		wait = 0
	}
	switch at, refusing := c.seek(r, ch, turn{mayWait: wait > 0}); {
	case refusing != nil && c.stopping:
		c.reply(call, Answer{Code: Stopping, Left: refusing.of.usable()})
	case refusing != nil:
		c.reply(call, c.refuse(r, refusing))
		c.demandRefused(refusing)
	case at == nil:
		c.concludeGranted(call, r, ch)
	case c.full(at, r.entity) || c.waitingFull(ch[0].of) || c.charges > maxCharges*c.cfg.MaxWaitingAll-len(ch):
		c.reply(call, c.crowded(r, ch, at))
	default:
		w := &waiting{
			request: *r, until: c.until(wait, &r.tries), named: c.named(r), charge: append(charge(nil), ch...), calls: []Call{call},
		}
		if c.emptyFor(at.of) > 0 && !at.of.apart() {
			w.until = min(w.until, c.now.Tick+keepWaiting)
		}
		c.enlist(w)
		c.waitingCalls[call] = w
		c.join(w, at)
		c.check(at.of)
	}
}

func (c *Core) concludeGranted(call Call, r *request, ch charge) {
	c.reply(call, c.grant(r, ch))
	for i := range ch {
		c.look(ch[i].of)
	}
}

// dryRun tells how many tokens an acquire would get now if it did not wait.
func (c *Core) dryRun(ch charge, call Call, r *request) {
	if over := ch.exceeds(r); over != nil {
		c.reply(call, exceeded(over))
		return
	}
	ch.limited(r)
	if _, refusing := c.seek(r, ch, turn{}); refusing != nil {
		c.reply(call, c.outOfTokens(refusing.of))
		return
	}
	c.reply(call, Answer{Tokens: ch[0].tokens, Left: ch[0].of.usable()})
}

// free is the number of tokens that an acquire may have at most.
func (e *entity) free() Tokens { return max(0, e.usable()) }

// turn is the state of an acquire that is to be granted, refused or to wait.
type turn struct {
	// at is the entity that the acquire has waited for, nil for none; there it does not
	// wait again. arrived orders its arrival at the site, 0 for now.
	at      *entity
	arrived uint64
	// content says that it takes the tokens there are, if not fewer than least.
	content bool
	// mayWait says that it may wait for other entities.
	mayWait bool
}

// seek decides about an acquire. It waits at the first entity of its charge that lacks
// tokens, or holds, and lets it wait: seek returns that entity as at. It is refused if an
// entity lacks tokens and does not let it wait: seek returns that entity as refusing. If
// neither is returned it is granted: the charge has been lowered to the tokens that all
// entities have.
func (c *Core) seek(r *request, ch charge, t turn) (at, refusing *charged) {
	most := MaxTokens
	for i := range ch {
		x := &ch[i]
		least, free := min(r.least, x.tokens), x.of.free()
		mayWait := t.mayWait && x.of != t.at
		held := mayWait && x.of.queue.holds(t.arrived)
		switch {
		case !held && (free >= x.tokens || t.content && free >= least):
		case held || mayWait && c.mods.admission.Short(c.situation(x.of), x.tokens, c.refusesFor(x.of, x.tokens)) != RefuseNow:
			if at == nil {
				at = x
			}
		case free < least:
			return nil, x
		}
		if free < x.tokens {
			most = min(most, free)
		}
	}
	if at == nil && most < ch[0].tokens {
		ch.lower(most)
	}
	return at, nil
}

// maxQueued bounds the tokens asked for by all acquires waiting for an entity: sums over
// the largest possible number of sites stay far from overflow.
const maxQueued = 1 << 56

// maxCharges bounds the entities charged by all waiting acquires, as a multiple of the
// bound on waiting acquires.
const maxCharges = MaxDepth

// full reports whether no more acquires of entity may wait for the entity of at.
func (c *Core) full(at *charged, entity string) bool {
	q := at.of.queue
	return q.len() >= c.cfg.MaxWaiting || q.asked() > maxQueued-at.tokens || c.queueFullFor(q, entity)
}

func (c *Core) queueFull(at *charged) Answer {
	return Answer{Code: QueueFull, Left: at.of.usable(), Lacking: at.of.name, RetryAfter: c.cfg.GiveUp}
}

// crowded answers an acquire that would wait where no more can: it is granted if it need
// not wait, else nothing is done.
func (c *Core) crowded(r *request, ch charge, at *charged) Answer {
	full := c.queueFull(at)
	if nowhere, refusing := c.seek(r, ch, turn{}); nowhere != nil || refusing != nil {
		return full
	}
	a := c.grant(r, ch)
	for e := range ch.entities() {
		c.later(e)
	}
	return a
}

// grant moves tokens to the maker of a request, records that and returns the answer.
func (c *Core) grant(r *request, ch charge) Answer {
	c.take(ch)
	e, tokens := ch[0].of, ch[0].tokens
	if r.parts != nil {
		tokens = r.tokens
	}
	c.remember(r, e, Ran, tokens)
	a := Answer{Code: OK, Tokens: tokens, Left: e.usable()}
	if r.lease != nil {
		a.Details = &Details{Lease: c.lend(e, r, tokens)}
	}
	return a
}

// refuse records the refusal of an acquire for want of an entity's tokens, and returns
// the answer. Without the record a late duplicate could be granted unnoticed.
func (c *Core) refuse(r *request, lacking *charged) Answer {
	c.remember(r, lacking.of, Refused, 0)
	return c.outOfTokens(lacking.of)
}

func (c *Core) outOfTokens(e *entity) Answer {
	return Answer{Code: OutOfTokens, Left: e.usable(), Lacking: e.name, RetryAfter: max(c.emptyFor(e), c.cfg.GiveUp)}
}

// demandRefused counts a demand that was refused without a hunt: the next such demand
// should find tokens.
func (c *Core) demandRefused(lacking *charged) {
	d := lacking.of.itsDrought()
	d.refused = max(d.refused, lacking.tokens)
	c.demanded(lacking.of, lacking.tokens)
}

// remember records the outcome of a request by the entity that it rests on, and opens a
// claim with the sites of its earlier attempts.
func (c *Core) remember(r *request, e *entity, state RequestState, tokens Tokens) {
	q := RequestRecord{
		Key: r.key, Body: r.body, Kind: r.kind, State: state, Attempt: r.tries.attempt(),
		Generation: e.generation, Tokens: tokens, Left: e.usable(),
	}
	if r.parts != nil && state == Ran {
		q.Parts = c.recorded(r.parts)
	}
	tenant := c.cfg.tenantOf(r.entity)
	if e.name != r.entity && c.cfg.tenantOf(e.name) != tenant {
		// The request lacked tokens of another tenant's entity.
		q.Tenant = tenant
	}
	c.record(q, c.requests.held.Take(tenant, 1))
	if len(r.tries.Tried) > 0 {
		c.claim(r, e.generation, state)
	}
}

// recordAgain records a new state of a request that has a record.
func (c *Core) recordAgain(old *remembered, r RequestRecord) {
	r.Tenant = c.requests.held.Name(old.tenant)
	c.requests.held.More(old.tenant, 1)
	c.record(r, old.tenant)
}

// record records a request that was counted in a tenant's slot.
func (c *Core) record(r RequestRecord, tenant portion.Slot) {
	c.requests.add(&r, tenant)
	c.out.Records.Block.Records = append(c.out.Records.Block.Records, r)
}
