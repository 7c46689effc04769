package sim

import (
	"fmt"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/input"
)

type opKind uint8

const (
	acquire opKind = iota
	acquireAll
	release
	commit
	create
	remove
	move
	setLimit
	setMode
	addSite
	drainSite
	keepSite
	loseSite
	removeSite
	read
	renew
	reconcile
	raise
)

// recorded reports whether sites record the requests of a kind by their ids.
func (k opKind) recorded() bool { return k <= commit }

// acquires reports whether it takes tokens out, of a single entity or of several.
func (k opKind) acquires() bool { return k <= acquireAll }

// op is an operation of a client, with all its attempts.
type op struct {
	s         *sim
	id        int
	kind      opKind
	key       attempt.Key
	requestID string
	ticket    ticket
	entity    string
	tokens    core.Tokens
	// parts are the parts of an acquireAll; tokens is their sum.
	parts []input.Part
	// parent belongs to a create or move, subtree to a remove.
	parent  string
	subtree bool
	// least is the fewest tokens that an acquire is content with; 0 for all.
	least core.Tokens
	dry   bool
	limit core.Tokens
	mode  string
	// truth belongs to a reconcile.
	truth    input.Truth
	expected uint64
	wait     micros
	// ttl is the time to live of the lease asked for, or renewed; 0 for none.
	ttl micros
	// share says that the lease asked for is one of share.
	share bool
	// lease is the lease that a release, commit or renewal names; home is the site that a
	// release names as its home.
	lease *lease
	home  core.SiteID
	// heir belongs to a drainSite.
	heir core.SiteID
	// site takes the next attempt of an acquire or release.
	site     int
	issued   micros
	attempts int
	// due is set while its next try is due.
	due   bool
	ended bool
	then  func(a *answer.Answer)
	tries tries
	// at are the sites' records of the operation.
	at []recorded
	// flowed are the sites of which a grant of a bucket or sliding window was judged.
	flowed []int
	// taken is the site that gave the answer its client has taken as OK; -1 for none.
	taken int

	// maybe says that some attempt has no answer that denies an effect. decided says that
	// an attempt has the decided answer.
	maybe, decided bool
	open           int
	answers        map[uint64]string
	// contradicted: another change was asked for under its id.
	contradicted bool
	// once is set if no answer makes the client ask again.
	once bool
	// until is when the last attempt must be answered.
	until micros
}

// String implements fmt.Stringer.
func (p *op) String() string {
	kind := [...]string{
		"acquire", "acquire of all", "release", "commit", "create", "delete", "move", "set limit", "set mode " + p.mode, "add site", "drain site", "keep site", "lose site", "remove site", "read", "renewal", "reconcile", "raise",
	}[p.kind]
	about := fmt.Sprintf("%s #%d of %q, tokens %d, limit %d, wait %d ms", kind, p.id, p.entity, p.tokens, p.limit,
		p.wait/millisecond)
	switch {
	case p.dry:
		about += ", dry run"
	case p.ttl > 0:
		about += fmt.Sprintf(", lease for %d ms, of share: %t", p.ttl/millisecond, p.share)
	case p.lease != nil:
		about += fmt.Sprintf(", lease #%d of %s", p.lease.op.id, p.lease.home.id)
	}
	if p.least > 0 {
		about += fmt.Sprintf(", at least %d", p.least)
	}
	if len(p.parts) > 0 {
		about += fmt.Sprintf(", of %v", p.parts)
	}
	if p.parent != "" || p.subtree {
		about += fmt.Sprintf(", parent %q, subtree %t", p.parent, p.subtree)
	}
	return about
}

// call is an attempt of an operation at a site.
type call struct {
	op *op
	// number is the number of the client's try that the call belongs to.
	number    int
	done      bool
	cancelled bool
	// waited is set once the site has let the call wait for tokens. joined is also set if
	// it waits with an earlier call of the request.
	waited, joined bool
	// excess says whether it asks for more than a limit.
	excess excess
	// served is set once the site has an answer, perhaps still under way.
	served bool
	// drained is set, where tables of requests are small, once the batch with the answer is.
	drained bool
	// mutant is an attempt with another body.
	mutant bool
	// look is set for a read.
	look *look
	// attempt is its number, tried the sites that it says were tried before.
	attempt attempt.Number
	tried   []core.SiteID
	// acked is what it acknowledges of its session.
	acked uint64
	// arrived numbers the requests handed over to the site.
	arrived uint64
}

func (c *call) String() string {
	return fmt.Sprintf("%v, attempt %d.%d after %v", c.op, c.attempt>>8, c.attempt&0xff, c.tried)
}

// opOf finds an operation by its key.
func (s *sim) opOf(key attempt.Key) *op {
	return s.opsByKey[key]
}

const (
	maxAttempts = 6
	// retention is how long sites keep the records of requests. A client stops
	// repeating a request long before, whatever the sites' clocks do.
	retention  = 60 * second
	keepTrying = 30 * second
	// clockError is the most that a site's clock is off; two clocks may be twice as far
	// apart.
	clockError = 10 * second
)

// tooLate reports whether nothing may be asked under the id any more.
func (p *op) tooLate() bool {
	return p.kind != read && p.kind != renew && p.s.now > p.issued+p.tries.keep(keepTrying)
}

// attempt sends the operation to a site, and again if no answer comes.
func (p *op) attempt() {
	s := p.s
	if p.ended {
		return
	}
	if p.tooLate() || p.attempts >= maxAttempts && !s.healed {
		p.end(nil)
		return
	}
	p.attempts++
	p.due = false
	c := &call{op: p, number: p.attempts}
	site := p.site
	switch {
	case p.tries.roams:
		site = p.goOn(c)
	case site < 0:
		site = s.someSite()
	}
	n := s.nodes[site]
	p.open++
	s.after(s.r.Int64N(3*millisecond), func() { n.hand(c) })
	if s.chance(s.chances.hedge) {
		p.hedge(n, c)
	}
	patience := p.wait + 2*slack
	if s.chance(s.chances.cancel) || p.tries.roams && s.chance(either(s.lacks.undone, impatient, 2*impatient)) {
		patience = s.r.Int64N(patience)
	}
	s.after(patience, func() {
		if p.ended || c.done {
			return
		}
		if !p.tries.roams || s.chance(500) {
			p.giveUp(n, c)
		}
		if s.chance(100) && !s.healed {
			p.end(nil)
			return
		}
		p.attempt()
	})
}

// giveUp tells a site that nobody waits for a call any more.
func (p *op) giveUp(n *node, c *call) {
	n.awake(func() {
		if n.up && n.calls[c] {
			c.cancelled = true
			p.s.report.Cancels++
			n.step(&input.Cancel{Call: c})
		}
	})
}

// hedge sends the operation a second time while the first attempt may still be
// under way: a change to any site, others to the same.
func (p *op) hedge(n *node, c *call) {
	s := p.s
	if p.site < 0 {
		n = s.nodes[s.someSite()]
	}
	again := &call{op: p, attempt: c.attempt, tried: c.tried, number: c.number}
	p.open++
	s.after(s.r.Int64N(second), func() { n.hand(again) })
}

// hand gives an attempt to a site, if it is up.
func (n *node) hand(c *call) {
	s, p := n.s, c.op
	if !n.up {
		return
	}
	if n.paused() {
		n.awake(func() { n.hand(c) })
		return
	}
	n.calls[c] = true
	c.acked = max(c.acked, p.ticket.acks())
	s.handed++
	c.arrived = s.handed
	if p.at != nil {
		p.at[n.i].seen = max(p.at[n.i].seen, numbered(c.attempt))
	}
	if s.tracing {
		s.note("%s is handed %v", n.id, c)
	}
	p.until = max(p.until, s.now+p.wait)
	life := n.life
	var overdue func()
	overdue = func() {
		if n.life != life || !n.calls[c] || c.cancelled {
			return
		}
		if due := max(p.until, n.resumes) + slack; due > s.now {
			s.after(due-s.now, overdue)
			return
		}
		s.fail(Deadline, "%s has not answered %v", n.id, p)
	}
	s.after(p.wait+slack, overdue)
	if p.lease != nil {
		p.lease.named(n, p)
	}
	if p.kind.acquires() {
		s.report.acquire(n.cfg.Offer)
	}
	switch in := p.input(c, p.tokens, p.limit); {
	case n.offer(in, true):
	case p.kind.acquires():
		n.ahead(in)
		n.begin(c, in)
		n.refusing = c.excess == beyond
		n.settle()
		n.refusing = false
	default:
		n.step(in)
	}
}

// begin steps the core with an acquire, and checks whether the acquire waits.
func (n *node) begin(c *call, in input.Input) {
	s, p := n.s, c.op
	// It may have been queued where others overtake.
	s.handed++
	c.arrived = s.handed
	c.excess = n.excess(c)
	n.feed(in)
	n.refusesAtOnce(c)
	if c.waited = n.joinLine(c); c.waited {
		p.until = max(p.until, s.now+p.wait)
		n.mayWait(p)
		n.contradict(c)
		s.report.wait(n.cfg.Offer, n.hasAll(p))
	}
}

// mayWait checks that a waiting acquire is sure to end by its deadline: the site wants to
// be woken by then, and is not about to stop.
func (n *node) mayWait(p *op) {
	if n.stopping {
		n.s.fail(Deadline, "%s is about to stop, and lets %v wait", n.id, p)
	}
	due := n.time().Tick + core.Tick(p.wait/millisecond)
	if at := n.core.WakeAt(); at == 0 || at > due {
		n.s.fail(Deadline, "%s lets %v wait until %d, and wants to be woken at %d", n.id, p, due, at)
	}
}

// slack is how long after its deadline a request may be answered: clocks drift
// and disks are slow.
const slack = 3 * second

func (p *op) input(c *call, tokens, limit core.Tokens) input.Input {
	wait := core.Tick(p.wait / millisecond)
	tries := input.Tries{Attempt: c.attempt, Tried: c.tried, NotAfter: p.tries.notAfter, Acked: c.acked}
	switch p.kind {
	case acquire:
		a := &input.Acquire{
			Call: c, Entity: p.entity, Tokens: tokens, Least: p.least, DryRun: p.dry, Request: p.key, Wait: wait, Tries: tries,
		}
		if p.ttl > 0 {
			a.Lease = &input.LeaseTerms{ID: p.requestID, TTL: core.Tick(p.ttl / millisecond), Holder: "h", Share: p.share}
		}
		return a
	case acquireAll:
		return &input.AcquireAll{Call: c, Parts: p.partsOf(tokens), Request: p.key, Wait: wait, Tries: tries}
	case release:
		r := &input.Release{Call: c, Entity: p.entity, Tokens: tokens, Request: p.key, Tries: tries}
		if p.lease != nil {
			r.Lease = &input.LeaseRef{Home: p.home, Request: p.lease.op.key}
		}
		return r
	case commit:
		return &input.CommitLease{Call: c, Lease: p.lease.op.key, Tokens: tokens, Request: p.key}
	case renew:
		return &input.RenewLease{Call: c, Lease: p.lease.op.key, TTL: core.Tick(p.ttl / millisecond)}
	case create:
		return &input.Change{
			Call: c, Kind: input.CreateEntity, Name: p.entity, Limit: limit, Parent: p.parent, Rate: p.terms(), RequestID: p.requestID, Wait: wait, NotAfter: p.tries.notAfter,
		}
	case remove:
		return &input.Change{
			Call: c, Kind: input.DeleteEntity, Name: p.entity, Subtree: p.subtree, Expected: p.expected,
			RequestID: p.requestID, Wait: wait, NotAfter: p.tries.notAfter,
		}
	case move:
		return &input.Change{
			Call: c, Kind: input.MoveEntity, Name: p.entity, Parent: p.parent, Expected: p.expected,
			RequestID: p.requestID, Wait: wait, NotAfter: p.tries.notAfter,
		}
	case addSite:
		return &input.Change{Call: c, Kind: input.AddSite, Name: p.entity, RequestID: p.requestID, Wait: wait, NotAfter: p.tries.notAfter}
	case drainSite:
		return &input.Change{Call: c, Kind: input.DrainSite, Name: p.entity, Heir: p.heir, Expected: p.expected, RequestID: p.requestID, Wait: wait, NotAfter: p.tries.notAfter}
	case keepSite:
		return &input.Change{Call: c, Kind: input.KeepSite, Name: p.entity, RequestID: p.requestID, Wait: wait, NotAfter: p.tries.notAfter}
	case loseSite:
		return &input.Change{Call: c, Kind: input.LoseSite, Name: p.entity, Expected: p.expected, RequestID: p.requestID, Wait: wait, NotAfter: p.tries.notAfter}
	case removeSite:
		return &input.Change{Call: c, Kind: input.RemoveSite, Name: p.entity, RequestID: p.requestID, Wait: wait, NotAfter: p.tries.notAfter}
	case setMode:
		return &input.Change{
			Call: c, Kind: input.SetMode, Mode: p.mode, Expected: p.expected, RequestID: p.requestID, Wait: wait, NotAfter: p.tries.notAfter,
		}
	case raise:
		return &input.Change{Call: c, Kind: input.RaiseVersion, Version: newest, RequestID: p.requestID, Wait: wait, NotAfter: p.tries.notAfter}
	case reconcile:
		return &input.Change{
			Call: c, Kind: input.Reconcile, Name: p.entity, Truth: p.truth, Expected: p.expected, RequestID: p.requestID, Wait: wait, NotAfter: p.tries.notAfter,
		}
	default:
		return &input.Change{
			Call: c, Kind: input.SetLimit, Name: p.entity, Limit: limit, Expected: p.expected,
			RequestID: p.requestID, Wait: wait, NotAfter: p.tries.notAfter, Applied: p.awaitsAll(),
		}
	}
}

// returned is the client's side of an answer.
func (p *op) returned(n *node, c *call, a answer.Answer) {
	s := p.s
	if c.done {
		return
	}
	c.done = true
	p.open--
	// Only the answer to the latest attempt counts.
	if p.ended || numbered(c.attempt) != numbered(p.tries.latest) {
		return
	}
	final := a.Code == answer.OK || a.Code == answer.Expired && !p.kind.recorded() || a.Code == answer.OutOfTokens || a.Code == answer.ExceedsLimit || a.Code == answer.NoLease || !p.kind.recorded() && p.decided
	// A missing entity may come to be, but need not.
	// A table of a few results may stay full for longer than a client goes on.
	p.movesOn(n, &a)
	hopeless := a.Code == answer.Draining && p.kind.recorded() && !p.tries.roams || a.Code == answer.NotFound || a.Code == answer.Mismatch || a.Code == answer.Overloaded && s.report.Bounded > 0 && !p.kind.recorded()
	again := !final && !p.once && (s.chance(500) || s.healed && !hopeless)
	if again && s.healed && (c.number < p.attempts || p.due) {
		// Every answer has a client try again now. If both of a hedged pair did so, there
		// would be ever more of them.
		return
	}
	if again {
		p.due = true
		s.after(micros(100+s.r.IntN(1000))*millisecond, p.attempt)
		return
	}
	switch {
	case !final || a.Code == answer.NoLease:
	case p.kind.recorded():
		p.extras(n, c)
	case p.decided && p.kind != raise && s.chance(5*s.chances.mutant):
		p.mutate()
	}
	if a.Code == answer.OK {
		p.taken = n.i
	}
	p.end(&a)
}

func (p *op) end(a *answer.Answer) {
	if p.ended {
		return
	}
	p.ended = true
	p.s.pending--
	p.s.sessions.over(p, a)
	if p.then != nil {
		p.then(a)
	}
}
