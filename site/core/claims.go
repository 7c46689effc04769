package core

import (
	"slices"

	"github.com/samya-db/samya/site/core/answer"
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

// placed places a request among its attempts, refuses it unless it may run now, and lists
// in its tries the sites to be asked. w is the acquire of earlier attempts that waits, nil
// for none: its sites are asked too.
func (c *asking) placed(call input.Call, r *request, w *waiting) bool {
	t := &r.tries
	if t.NotAfter == 0 && t.Attempt <= attempt.First && len(t.Tried) == 0 {
		return true
	}
	first := t.Attempt <= attempt.First
	switch tried, ok := c.queries.tried(t, c.cfg.Self); {
	case !ok, first && len(tried) > 0, !first && t.NotAfter == 0, t.NotAfter > c.now.Wall+c.cfg.RequestHorizon():
		c.reply(call, answer.Answer{Code: answer.Invalid})
	case t.NotAfter != 0 && t.NotAfter < c.now.Wall:
		c.reply(call, answer.Answer{Code: answer.Expired})
	case slices.ContainsFunc(tried, func(s SiteID) bool { return !c.roomForClaim(c.queries.peer(s)) }):
		c.reply(call, answer.Answer{Code: answer.Overloaded, RetryAfter: 1000})
	default:
		if t.Tried = tried; w != nil {
			t.Tried = c.queries.union(w.tries.Tried, tried)
		}
		return true
	}
	return false
}

// takeOver records the outcome of an earlier attempt for a later attempt. From then on no
// site can undo it by asking about the earlier attempts only.
func (c *asking) takeOver(r *request, old *remembered) {
	// A release that is done or given up has nothing to ask: asking sites learn its
	// outcome. The site of a lease is asked already.
	if len(r.tries.Tried) > 0 && (old.kind == stored.AcquireRequest || old.kind == stored.LeasedRequest || old.kind == stored.AllRequest || old.kind == stored.ReleaseRequest && old.state == stored.Parked) {
		c.claim(r, old.generation, old.state)
	}
	c.remembering.recordAgain(old, stored.Request{
		Key: r.key, Body: old.body, Kind: old.kind, State: old.state, Attempt: r.tries.Number(),
		Generation: old.generation, Tokens: old.tokens, Left: old.left, Parts: c.requests.parts[r.key],
	})
}

// remember records the outcome of a request by the entity that it rests on, and opens a
// claim with the sites of its earlier attempts.
func (c *asking) remember(r *request, e *entity, state stored.RequestState, tokens Tokens) {
	if len(r.tries.Tried) > 0 {
		c.claim(r, e.generation, state)
	}
	left := e.usable()
	if state == stored.Refused {
		left = c.handsOut(e)
	}
	q := recordOf(r, e, state, tokens, left)
	tenant := c.cfg.tenantOf(r.entity)
	if e.name != r.entity && c.cfg.tenantOf(e.name) != tenant {
		// The request lacked tokens of another tenant's entity.
		q.Tenant = tenant
	}
	if at := c.requests.held.Take(tenant, 1); c.fleeting(r, e) {
		c.remembering.recordFleeting(&q, at)
	} else {
		c.remembering.record(q, at)
	}
}
