package core

import (
	"slices"

	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/stored"
	"github.com/tidwall/btree"
)

// asking finds out from other sites whether earlier attempts of a request have run there.
type asking struct {
	*common
	*charging
	*remembering
	queries queries
}

// keepRequests is the time in milliseconds for which records are kept now. As long as
// there is room it is without an end while a member is out of reach that may have to ask
// about them.
func (c *asking) keepRequests() Tick {
	if c.queries.absent && c.requests.size() < c.cfg.MaxRequests/2 {
		return c.now.Tick
	}
	return Tick(c.cfg.Retention)
}

const (
	// mostAsks bounds the asks that a site reads from a message.
	mostAsks = 512
	// askPause and maxAskPause bound the pause in milliseconds after which a member is
	// asked again.
	askPause, maxAskPause Tick = 1000, 8000
	// claimBits is the number of bits for a claim's index within a block of requests.
	claimBits = 20
)

// queries holds the open questions to other members about requests whose earlier attempts
// may have run there.
type queries struct {
	// peers are the other members, in the order of the members.
	peers []claimPeer
	// byKey finds the last claim about a request.
	byKey map[attempt.Key]*claim
	// open counts the claims; fresh says that some were never asked.
	open  int
	fresh bool
	// block and index number the claims: block is the block of the records that they
	// become durable with, index counts within it.
	block, index uint64
	// absent says that a member seems to be out of reach.
	absent bool
}

// claim is an open claim; see stored.Claim.
type claim struct{ stored.Claim }

// claimPeer is another member, as the receiver of claims.
type claimPeer struct {
	site SiteID
	// open are the claims it has not answered, in the order of their numbers. Claims from
	// fresh on were never asked.
	open  btree.Map[message.ClaimNumber, *claim]
	fresh message.ClaimNumber
	// next is the time to ask it again, 0 for never; pause is the time from then to the
	// following question.
	next, pause Tick
	// cursor is the last claim asked again, unanswered the number of that round's claims
	// still open.
	cursor     message.ClaimNumber
	unanswered int
	// full says that the maximum number of claims is open, or was and more than half of
	// them still are.
	full bool
	// gone says that the site has left: it has answered all claims on attempts that ran
	// there. lost says that the site was written off, and will not answer.
	gone, lost bool
}

func (q *queries) peer(site SiteID) *claimPeer {
	for i := range q.peers {
		if q.peers[i].site == site {
			return &q.peers[i]
		}
	}
	return nil
}

// tried lists the other members that earlier attempts may have reached, in the order of
// the members. It reports whether all named sites are members.
func (q *queries) tried(t *input.Tries, self SiteID) ([]SiteID, bool) {
	all := t.Tried == nil && t.Attempt >= 2<<8
	var sites []SiteID
	for i := range q.peers {
		if p := &q.peers[i]; !p.gone && (all || slices.Contains(t.Tried, p.site)) {
			sites = append(sites, p.site)
		}
	}
	return sites, !slices.ContainsFunc(t.Tried, func(s SiteID) bool { return s != self && q.peer(s) == nil })
}

// union lists the sites of either list in the order of the members.
func (q *queries) union(a, b []SiteID) []SiteID {
	var sites []SiteID
	for i := range q.peers {
		if s := q.peers[i].site; slices.Contains(a, s) || slices.Contains(b, s) {
			sites = append(sites, s)
		}
	}
	return sites
}

// claimNumber returns the number of a new claim. Blocks are numbered without a gap and
// the last block is never deleted. So no claim gets a number twice, even after all were
// settled and the site was restarted: a late answer never matches another claim.
func (c *asking) claimNumber() message.ClaimNumber {
	if q := &c.queries; q.block != c.requests.next {
		q.block, q.index = c.requests.next, 0
	}
	c.queries.index++
	return message.ClaimNumber(c.queries.block<<claimBits | c.queries.index)
}

// askMembers makes room for claims on all other members.
func (c *asking) askMembers() {
	for _, m := range c.roster.others() {
		c.askOf(m)
	}
}

// askOf makes room for claims on a site.
func (c *asking) askOf(site SiteID) {
	if c.queries.peer(site) == nil {
		c.queries.peers = append(c.queries.peers, claimPeer{site: site, pause: askPause})
	}
}

func (c *asking) restoreClaims(records []stored.Claim) {
	c.queries.byKey = make(map[attempt.Key]*claim)
	if c.roster.Version > 0 {
		c.askMembers()
	}
	for _, r := range records {
		for _, site := range r.Sites {
			c.askOf(site)
		}
		cl := &claim{r}
		cl.Sites = c.queries.union(r.Sites, nil)
		c.open(cl)
	}
	c.queries.fresh = false
	for i := range c.queries.peers {
		if p := &c.queries.peers[i]; p.open.Len() > 0 {
			p.fresh, p.next = 0, 1
		}
	}
}

// open adds a claim to the open claims of each member to be asked.
func (c *asking) open(cl *claim) {
	c.queries.byKey[cl.Key] = cl
	c.queries.open++
	for _, s := range cl.Sites {
		p := c.queries.peer(s)
		p.open.Set(cl.Number, cl)
		if p.fresh == 0 {
			p.fresh = cl.Number
		}
	}
	c.queries.fresh = true
}

// claim opens a claim with the sites of a request's earlier attempts. It replaces a claim
// of an earlier attempt at this site, under another number: answers to the earlier claim
// say too little.
func (c *asking) claim(r *request, generation uint64, state stored.RequestState) {
	kind, sites := message.UndoAcquire, r.tries.Tried
	switch {
	case r.kind == stored.ReturnRequest:
		kind = message.ReturnLease
	case state == stored.Parked:
		kind = message.SettleRelease
	}
	if old := c.queries.byKey[r.key]; old != nil && old.Body == r.body {
		sites = c.queries.union(old.Sites, sites)
		c.settled(old)
	}
	cl := &claim{stored.Claim{
		ClaimAsk: message.ClaimAsk{
			Number: c.claimNumber(), Kind: kind, Key: r.key, Body: r.body, Entity: r.entity, Tokens: r.tokens,
			Attempt: r.tries.Number() - 1, NotAfter: r.tries.NotAfter, Lease: r.home,
		},
		Generation: generation, Sites: slices.Clone(sites),
	}}
	if cl.NotAfter == 0 {
		cl.NotAfter = c.now.Wall + c.cfg.RequestHorizon()
	}
	c.open(cl)
	c.storeClaim(cl)
	c.out.Events = append(c.out.Events, event.Event{Kind: event.ClaimMade, Entity: r.entity})
}

func (c *asking) storeClaim(cl *claim) {
	r := cl.Claim
	r.Sites = slices.Clone(r.Sites)
	c.out.Records.Claims = append(c.out.Records.Claims, r)
}

// settled forgets a claim.
func (c *asking) settled(cl *claim) {
	for _, s := range cl.Sites {
		c.queries.peer(s).drop(cl.Number, c.cfg.MaxClaims)
	}
	if c.queries.byKey[cl.Key] == cl {
		delete(c.queries.byKey, cl.Key)
	}
	c.queries.open--
	c.out.Records.SettledClaims = append(c.out.Records.SettledClaims, cl.Number)
}

func (p *claimPeer) drop(n message.ClaimNumber, bound int) {
	p.open.Delete(n)
	p.full = p.full && p.open.Len() > bound/2
	if p.open.Len() == 0 {
		p.next, p.pause, p.cursor, p.unanswered = 0, askPause, 0, 0
	}
}

// answered takes in a member's answer to a claim.
func (c *asking) answered(p *claimPeer, a message.ClaimAnswer, now Tick) {
	cl, ok := p.open.Get(a.Number)
	if !ok {
		return
	}
	p.drop(cl.Number, c.cfg.MaxClaims)
	if p.pause = askPause; p.unanswered > 0 {
		if p.unanswered--; p.unanswered == 0 && p.open.Len() > 0 {
			p.next = max(1, now)
		}
	}
	cl.Sites = slices.DeleteFunc(cl.Sites, func(s SiteID) bool { return s == p.site })
	c.out.Events = append(c.out.Events, event.Event{Kind: event.ClaimAnswered, Entity: cl.Entity, Verdict: a.Verdict})
	c.concluded(cl, a.Verdict)
}

// concluded follows up on a member's verdict, or on a missing verdict.
func (c *asking) concluded(cl *claim, verdict message.ClaimVerdict) {
	switch {
	case cl.Kind != message.UndoAcquire && verdict != message.NeverRan:
		c.settleParked(cl, stored.Dropped)
	case len(cl.Sites) > 0:
		c.storeClaim(cl)
	case cl.Kind == message.SettleRelease:
		c.settleParked(cl, stored.Ran)
	case cl.Kind == message.ReturnLease:
		c.settleParked(cl, stored.Dropped)
	default:
		c.settled(cl)
	}
}

// settleParked counts a parked release, or gives it up. The same transaction ends the
// claim, so it happens once even without a record.
func (c *asking) settleParked(cl *claim, state stored.RequestState) {
	if e := c.space.find(cl.Entity); e != nil && e.halted() {
		return
	}
	c.settled(cl)
	var e *entity
	if state == stored.Ran {
		e = c.space.find(cl.Entity)
		if e == nil || e.generation != cl.Generation || !c.charging.credit(e, cl.Tokens) {
			e, state = nil, stored.Dropped
		}
	}
	switch old, found := c.requests.find(cl.Key); {
	case !found:
		c.recordSettled(cl, state)
	case old.body == cl.Body && old.state == stored.Parked:
		c.remembering.recordAgain(&old, old.record(cl.Key, state, old.attempt))
	}
	if e != nil {
		c.freed(e)
	}
}

// recordSettled records the end of a parked release without a record in memory. The disk
// may still have its record: after a restart the release would look parked, and other
// sites would be told that it never ran.
func (c *asking) recordSettled(cl *claim, state stored.RequestState) {
	kind := stored.ReleaseRequest
	if cl.Kind == message.ReturnLease {
		kind = stored.ReturnRequest
	}
	c.remembering.recordAsked(&cl.ClaimAsk, &stored.Request{
		Kind: kind, State: state, Attempt: cl.Attempt + 1, Generation: cl.Generation, Tokens: cl.Tokens,
	})
}

// askFresh asks the members about the claims made since the last transaction.
func (c *asking) askFresh() {
	if !c.queries.fresh {
		return
	}
	c.queries.fresh = false
	for i := range c.queries.peers {
		p := &c.queries.peers[i]
		from := p.fresh
		p.fresh = 0
		if p.lost || p.gone {
			if p.open.Len() > 0 {
				p.next = c.now.Tick + 1
			}
			continue
		}
		for from != 0 && p.open.Len() > 0 {
			if p.next == 0 {
				p.next = c.now.Tick + p.pause
			}
			from, _ = c.askFrom(p, from)
			if from != 0 {
				from++
			}
		}
	}
}

// askFrom asks a member about the claims from a number on, as many as fit into a message.
// It returns the last claim's number, 0 if no other follows, and the number of claims.
func (c *asking) askFrom(p *claimPeer, from message.ClaimNumber) (last message.ClaimNumber, asked int) {
	m := &message.Claims{From: c.cfg.Self, To: p.site}
	more := false
	p.open.Ascend(from, func(n message.ClaimNumber, cl *claim) bool {
		if more = len(m.Asks) == min(c.cfg.MaxAsks, mostAsks); more {
			return false
		}
		m.Asks = append(m.Asks, cl.ClaimAsk)
		last = n
		return true
	})
	if len(m.Asks) > 0 {
		c.out.Messages = append(c.out.Messages, message.Envelope{Claims: m})
	}
	if !more {
		last = 0
	}
	return last, len(m.Asks)
}

func (q *queries) wakeAt() Tick {
	var t Tick
	if q.open > 0 {
		for i := range q.peers {
			t = earlier(t, q.peers[i].next)
		}
	}
	return t
}

// askAgain asks members about their next claims, if it is time to.
func (c *asking) askAgain() {
	if c.queries.open == 0 {
		return
	}
	for i := range c.queries.peers {
		p := &c.queries.peers[i]
		if p.next == 0 || p.next > c.now.Tick {
			continue
		}
		if c.concludeOut(p) {
			continue
		}
		p.cursor, p.unanswered = c.askFrom(p, p.cursor+1)
		p.next = c.now.Tick + p.pause
		p.pause = min(2*p.pause, maxAskPause)
	}
}

// cameUp notes the sites that are up, and has the sites that came up asked at once.
func (c *asking) cameUp(sites []SiteID) {
	c.queries.absent = false
	for i := range c.queries.peers {
		p := &c.queries.peers[i]
		up := slices.Contains(sites, p.site)
		c.queries.absent = c.queries.absent || !up && !p.gone && !p.lost
		if up && p.next != 0 && !c.seemsUp(p.site) {
			p.next, p.pause = max(1, c.now.Tick), askPause
		}
	}
}

// fleeting reports whether a request need not be durable: a crash takes its record along, as
// it takes all tokens of its entities for granted.
func (c *asking) fleeting(r *request) bool {
	if r.lease != nil || len(r.tries.Tried) > 0 || r.kind != stored.AcquireRequest && r.kind != stored.AllRequest {
		return false
	}
	for _, e := range c.charging.named(r) {
		for a := range e.chain() {
			if !volatile(a) {
				return false
			}
		}
	}
	return true
}

// remember records the outcome of a request by the entity that it rests on, and opens a
// claim with the sites of its earlier attempts.
func (c *asking) remember(r *request, e *entity, state stored.RequestState, tokens Tokens) {
	q := c.charging.recordOf(r, e, state, tokens, e.usable())
	tenant := c.cfg.tenantOf(r.entity)
	if e.name != r.entity && c.cfg.tenantOf(e.name) != tenant {
		// The request lacked tokens of another tenant's entity.
		q.Tenant = tenant
	}
	if at := c.requests.held.Take(tenant, 1); c.fleeting(r) {
		c.remembering.recordFleeting(&q, at)
	} else {
		c.remembering.record(q, at)
	}
	if len(r.tries.Tried) > 0 {
		c.claim(r, e.generation, state)
	}
}
