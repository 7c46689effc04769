package core

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

func (c *admitting) acquire(a *Acquire) {
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
func (c *admitting) begun(call Call, r *request, ch charge, wait Tick) {
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

func (c *admitting) concludeGranted(call Call, r *request, ch charge) {
	c.reply(call, c.grant(r, ch))
	for i := range ch {
		c.look(ch[i].of)
	}
}

// dryRun tells how many tokens an acquire would get now if it did not wait.
func (c *admitting) dryRun(ch charge, call Call, r *request) {
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

// maxQueued bounds the tokens asked for by all acquires waiting for an entity: sums over
// the largest possible number of sites stay far from overflow.
const maxQueued = 1 << 56

// maxCharges bounds the entities charged by all waiting acquires, as a multiple of the
// bound on waiting acquires.
const maxCharges = MaxDepth
