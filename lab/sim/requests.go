package sim

import (
	"maps"
	"slices"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/stored"
)

// recorded is a site's durable record of a request.
type recorded struct {
	// state is 0 if it has recorded nothing.
	state   stored.RequestState
	attempt attempt.Number
	// seen is the latest attempt that the site was ever handed.
	seen       attempt.Number
	generation uint64
	tokens     core.Tokens
	left       core.Tokens
	// asks is the least that was asked of the entity that refused.
	asks core.Tokens
	// block is the block with the record.
	block uint64
	// ran says that it has ever run here.
	ran bool
	// asked holds the last attempt about which each site is or was asked by this site.
	// never holds the attempt up to which this site has told each site that no attempt
	// ran here or ever will. Both are nil if there are none.
	asked, never []attempt.Number
	// must is asked without questions for attempts that were undone since; undone is the
	// latest attempt at which they were. Claims and records of a transaction come in no
	// order, so must goes by the numbers.
	must   []attempt.Number
	undone attempt.Number
	// forgotten says that another site no longer knew.
	forgotten bool
	// first is the first answer that binds, if it is answered.
	first    told
	answered bool
	// parts are the parts of an acquireAll that ran.
	parts []stored.Part
	// lease is the lease granted here.
	lease *lease
}

// blank reports whether a site has recorded nothing of a request but that no attempt has run.
func (q *recorded) blank() bool { return q.state == 0 || q.state == stored.Undone && !q.ran }

// told is the part of an answer that a repeat must say again.
type told struct {
	code         answer.Code
	tokens, left core.Tokens
	lacking      string
}

// requests adds up the records of requests that are about to become durable.
func (o *observer) requests(n *node, r *stored.Records) {
	o.mixed, o.batch = nil, r
	o.batches++
	clear(o.put)
	clear(o.bequeathedTo)
	o.replants, o.mixes = o.replanting(n, r), 0
	defer func() { o.batch = nil }()
	drifts := o.drifting(n, r)
	shifts := o.shifts(n, r)
	if len(r.Leases)+len(r.EndedLeases)+len(drifts)+len(shifts) > 0 && !o.replants {
		o.mixed = make(map[string]span)
	}
	o.resetWindow(n, r)
	o.leasesForgotten(n, r)
	o.leasesStored(n, r)
	if o.s.violation != nil {
		return
	}
	for _, name := range r.Deleted {
		o.leasesDeleted(n, r, name)
	}
	for i := range r.Block.Records {
		q := &r.Block.Records[i]
		op := o.s.opOf(q.Key)
		if op == nil && o.s.drawnKeys[q.Key] {
			o.commitsReserved(q)
			continue
		}
		if op == nil {
			o.s.fail(ExactlyOnce, "%s records a request that nobody made", n.id)
			return
		}
		if moved := o.recorded(n, op, q); op.kind != acquireAll {
			o.moves(n, op.entity, moved)
			o.put[op.entity] += moved
		}
	}
	o.driftsApplied(n, drifts)
	for _, by := range shifts {
		o.moves(n, by.name, by.tokens)
		o.bequeathedTo[by.name] += by.tokens
	}
	o.charged = o.charged || o.hands(n, r)
	for _, number := range r.SettledClaims {
		o.settledUnrecorded(n, r, number)
	}
	o.leasesEnded(n, r)
	o.sharesIn(n, r)
	o.windowed(n, r)
	for name, by := range o.mixed {
		l := o.readLog(n, name)
		before := l.nets[len(l.nets)-1]
		l.nets = append(l.nets, span{before.least + by.least, before.most + by.most}, span{o.net[n.i][name], o.net[n.i][name]})
	}
	var given map[string]core.Tokens
	if o.replants {
		given = maps.Clone(o.own[n.i])
	}
	for _, name := range r.Deleted {
		o.deleted(n, r, name)
	}
	if o.replants {
		o.replant(n, r, given)
	}
	o.borrowed(n, r)
}

// moves counts tokens that a site puts out of an entity, or takes back, and so out of all
// entities above it.
func (o *observer) moves(n *node, name string, tokens core.Tokens) {
	o.own[n.i][name] += tokens
	if o.replants {
		o.mixes += max(tokens, -tokens)
		return
	}
	for _, above := range n.durable.sums(name) {
		o.movesOne(n, above, tokens)
	}
}

func (o *observer) movesOne(n *node, name string, tokens core.Tokens) {
	l := o.readLog(n, name)
	o.net[n.i][name] += tokens
	if o.mixed == nil {
		l.nets = append(l.nets, span{o.net[n.i][name], o.net[n.i][name]})
		return
	}
	by := o.mixed[name]
	o.mixed[name] = span{by.least + min(tokens, 0), by.most + max(tokens, 0)}
}

// deleted forgets the tokens that a site has out of an entity that it deletes.
func (o *observer) deleted(n *node, r *stored.Records, name string) {
	if e, found := n.durable.Entities[name]; found {
		o.notUnderWay(o.sequence(sequenceID{name, e.Generation}))
	}
	gone := o.own[n.i][name]
	o.ghosts[name] += max(gone, -gone)
	delete(o.net[n.i], name)
	delete(o.own[n.i], name)
	delete(o.logs[n.i], name)
	for i := range r.Books {
		if r.Books[i].Name == name {
			// Which of the requests came before the deletion cannot be told.
			o.net[n.i][name], o.own[n.i][name] = r.Books[i].Net, r.Books[i].Net
		}
	}
}

// recorded takes in a record of a request that is about to become durable, and returns
// the tokens that it puts out.
func (o *observer) recorded(n *node, p *op, r *stored.Request) core.Tokens {
	q := &p.at[n.i]
	was := *q
	if p.dry {
		o.s.fail(Answers, "%s records %v", n.id, p)
	}
	if !was.mayBecome(p, r) {
		o.s.fail(ExactlyOnce, "%s records %v as %v, attempt %d.%d, after %v, attempt %d.%d", n.id, p, r.State,
			r.Attempt>>8, r.Attempt&0xff, was.state, was.attempt>>8, was.attempt&0xff)
		return 0
	}
	if was.state == r.State && (r.State == stored.Ran || r.State == stored.Refused) && r.Tokens != was.tokens {
		o.s.fail(ExactlyOnce, "%s records %v with %d tokens, and then %d", n.id, p, was.tokens, r.Tokens)
	}
	starts := (was.state == 0 || was.state == stored.Undone) && r.State != stored.Undone && r.State != stored.Dropped && p.lease == nil
	// Waits end by the monotonic clock: the calendar may be set ahead meanwhile.
	if late := n.time().Wall - p.tries.notAfter; starts && p.tries.notAfter != 0 && late > n.mayBeLate() && o.s.now-n.jumped > 6*slack+p.wait {
		o.s.fail(ExactlyOnce, "%s carries out %v %d ms after its time", n.id, p, late)
	}
	q.state, q.attempt, q.generation, q.tokens, q.left = r.State, r.Attempt, r.Generation, r.Tokens, r.Left
	q.block = o.batch.Block.Sequence
	q.parts = r.Parts
	if r.State != stored.Undone {
		q.ran = q.ran || r.State == stored.Ran
	} else {
		// Another site now sees to the questions of its attempts up to now.
		q.answered, q.must, q.undone = false, nil, max(q.undone, r.Attempt)
	}
	switch {
	case r.State == stored.Ran && was.state != stored.Ran:
		return o.runs(n, p, &was)
	case r.State == stored.Undone && was.state == stored.Ran:
		return o.undoes(n, p, &was)
	case r.State == stored.Undone && was.state == 0:
		o.s.report.Tombstones++
	case r.State == stored.Dropped && was.state == stored.Parked:
		o.drops(n, p, q)
	case r.State == stored.Parked && was.state != stored.Parked:
		o.s.report.Parked++
	case r.State == stored.Refused && was.state != stored.Refused:
		q.asks = o.refuses(n, p, r)
	}
	return 0
}

// tooLate is by how many milliseconds, by a site's calendar, the record that a request
// ran may become durable after the request's time. Disks are slow, and sites pause.
const tooLate = 8000

// mayBeLate is tooLate for a site that may have paused again and again.
func (n *node) mayBeLate() int64 {
	return max(tooLate, (n.resumes-n.freezes+slack)/millisecond)
}

// mayBecome reports whether a site with this record may record r.
func (q *recorded) mayBecome(p *op, r *stored.Request) bool {
	later := r.Attempt > q.attempt
	if p.kind == commit {
		return q.state == 0 && r.State == stored.Ran
	}
	settles := p.kind == release && (r.State == stored.Parked || r.State == stored.Dropped) ||
		p.kind.acquires() && r.State == stored.Refused
	switch q.state {
	case 0:
		return r.State == stored.Ran || r.State == stored.Undone || settles
	case stored.Ran:
		return later && r.State == stored.Ran || p.kind.acquires() && r.State == stored.Undone && r.Attempt >= q.attempt
	case stored.Undone:
		// Also a tombstone of a later attempt.
		return later && (r.State == stored.Ran || r.State == stored.Undone || settles)
	case stored.Parked:
		return r.Attempt >= q.attempt && (r.State != stored.Parked || later) && (r.State == stored.Ran || r.State == stored.Undone || settles)
	default:
		return r.State == stored.Undone && r.Attempt >= q.attempt || later && r.State == q.state
	}
}

// sameGeneration reports whether a site still has the entity of a record, or gets
// it with the transaction that is looked at.
func (o *observer) sameGeneration(n *node, p *op, q *recorded) bool {
	if p.kind == acquireAll {
		return slices.ContainsFunc(q.parts, func(part stored.Part) bool {
			return o.stillThere(n, part.Entity, part.Generation)
		})
	}
	return o.stillThere(n, p.entity, q.generation)
}

func (o *observer) stillThere(n *node, name string, generation uint64) bool {
	if n.durable.Entities[name].Generation == generation {
		return true
	}
	return o.batch != nil && slices.ContainsFunc(o.batch.Entities, func(e stored.Entity) bool {
		return e.Name == name && e.Generation == generation
	})
}

// runs takes in that a request has run at a site.
func (o *observer) runs(n *node, p *op, was *recorded) core.Tokens {
	q := &p.at[n.i]
	if p.kind.acquires() {
		o.withinLimits(n, p, q.tokens)
	}
	switch {
	case p.kind == acquireAll:
		o.runsAll(n, p, q)
		return 0
	case p.kind == acquire && (q.tokens > p.tokens || q.tokens < p.leastTokens()):
		o.s.fail(Answers, "%s grants %v %d tokens", n.id, p, q.tokens)
	case p.kind == acquire && p.ttl > 0:
		if q.lease == nil || q.lease.generation != q.generation {
			o.s.fail(Leases, "%s grants %v, and stores no lease", n.id, p)
			return 0
		}
		o.s.report.Leases++
		return 0
	case p.kind == acquire:
		return q.tokens
	case p.kind == commit:
		return p.lease.commits(n, q.tokens)
	case p.lease != nil:
		p.lease.gives(n, p, q.tokens)
		return 0
	}
	for i, other := range p.at {
		if i != n.i && other.state == stored.Ran && other.generation == q.generation {
			o.s.fail(ExactlyOnce, "%s credits %v, which %s has credited", n.id, p, o.s.names[i])
		}
	}
	if was.state == stored.Parked {
		o.s.report.ParkedCredited++
		if o.unsaid(n, p, q) {
			o.s.fail(ExactlyOnce, "%s credits %v; another site has not said that it never ran there", n.id, p)
		}
	}
	return -q.tokens
}

func (p *op) leastTokens() core.Tokens {
	if p.least > 0 {
		return p.least
	}
	return p.tokens
}

// settledUnrecorded takes in the settlement of a parked release with no record any more:
// the site's books alone tell of it.
func (o *observer) settledUnrecorded(n *node, r *stored.Records, number message.ClaimNumber) {
	c, found := n.claims[number]
	if !found || c.ask.Kind != message.SettleRelease {
		return
	}
	p, q := c.op, &c.op.at[n.i]
	kept := n.remembers(p)
	goesOn := slices.ContainsFunc(r.Claims, func(c stored.Claim) bool { return c.Key == p.key })
	if q.state != stored.Parked || kept || goesOn {
		return
	}
	q.state = stored.Dropped
	if !o.unsaid(n, p, q) && o.sameGeneration(n, p, q) {
		q.state = stored.Ran
		o.moves(n, p.entity, o.runs(n, p, &recorded{state: stored.Parked}))
	}
}

// unsaid reports whether a site to be asked about a parked release has not said that the
// release never ran there.
func (o *observer) unsaid(n *node, p *op, q *recorded) bool {
	for i, bound := range q.must {
		if r := n.drained.roster(); r != nil && outside(r, o.s.names[i]) && !lostOf(r, o.s.names[i]) {
			// Nothing has run at a site that has left.
			continue
		}
		if never := p.at[i].never; bound > 0 && (never == nil || never[n.i] < bound) {
			return true
		}
	}
	return false
}

// undoes takes in that an acquire that had run at a site is undone.
func (o *observer) undoes(n *node, p *op, was *recorded) core.Tokens {
	o.s.report.Undone++
	if p.taken == n.i {
		o.s.fail(ExactlyOnce, "%s undoes %v, whose client has its answer", n.id, p)
	}
	if p.ttl > 0 {
		if l := n.leaseOf(p, was.block); l != nil {
			l.undone = true
		}
		return 0
	}
	if p.kind == acquireAll {
		o.undoesAll(n, was)
		return 0
	}
	if rated(p.entity) || !o.sameGeneration(n, p, was) {
		return 0
	}
	return -was.tokens
}

// drops checks that a parked release is dropped for a reason.
func (o *observer) drops(n *node, p *op, q *recorded) {
	o.s.report.ParkedDropped++
	if p.lease != nil && p.lease.home == n && n.id != p.home {
		// The site has inherited the lease, and gives back what it holds.
		p.lease.inheritor = p
	}
	if o.askedLost(n, p, q) {
		o.s.report.LostClaims++
		q.forgotten = true
	}
	if p.lease != nil || q.forgotten || !o.sameGeneration(n, p, q) || slices.Contains(o.batch.Deleted, p.entity) {
		return
	}
	for i, other := range p.at {
		if i != n.i && (other.ran || other.state == stored.Dropped) {
			return
		}
	}
	o.s.fail(ExactlyOnce, "%s drops %v, which has run nowhere", n.id, p)
}

// onceEach checks, once all is settled, that a request has run at a single site at most.
// This is the site that its client was told of.
func (o *observer) onceEach() {
	for _, p := range o.s.requests {
		var ran uint64
		for i := range p.at {
			if q := &p.at[i]; q.state == stored.Parked && o.s.nodes[i].remembers(p) && !o.s.nodes[i].outside() {
				o.s.fail(Liveness, "after healing, %v stays parked at %s", p, o.s.names[i])
			} else if q.state == stored.Ran {
				ran = max(ran, q.generation)
			}
		}
		sites := 0
		for i := range p.at {
			if p.at[i].state == stored.Ran && p.at[i].generation == ran {
				sites++
			}
		}
		told := p.taken >= 0 && !p.dry
		switch {
		case sites > 1 && !p.forgotten():
			o.s.fail(ExactlyOnce, "%v has run at %d sites", p, sites)
		case told && p.kind.acquires() && p.at[p.taken].state != stored.Ran:
			o.s.fail(ExactlyOnce, "%v has not run at %s, whose answer its client has", p, o.s.names[p.taken])
		case told && p.kind == release && p.lease == nil && sites == 0 && !p.lostTrack(o):
			o.s.fail(ExactlyOnce, "%v has run nowhere, and its client has the answer of %s", p, o.s.names[p.taken])
		}
	}
}

// forgotten reports whether a site was asked that no longer knew: tokens that it may have
// put out stay out.
func (p *op) forgotten() bool {
	for i := range p.at {
		if p.at[i].forgotten || p.at[i].ran && p.s.nodes[i].writtenOff() {
			return true
		}
	}
	return false
}

// lostTrack reports whether an acknowledged release may rightly never be credited. A site
// no longer knew whether it had run there, or its entity was deleted.
func (p *op) lostTrack(o *observer) bool {
	if o.s.nodes[p.taken].writtenOff() && p.at[p.taken].state == stored.Parked {
		// It was parked at a site that is lost.
		return true
	}
	generation := p.at[p.taken].generation
	for i := range p.at {
		q, n := &p.at[i], o.s.nodes[i]
		if q.forgotten || p.s.observe.askedLost(n, p, q) || q.state != 0 && q.generation != generation || !n.outside() && n.durable.Entities[p.entity].Generation != generation {
			return true
		}
	}
	return false
}
