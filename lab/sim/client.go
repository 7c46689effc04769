package sim

import (
	"fmt"
	"strings"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/attempt"
)

// client acquires and releases tokens.
type client struct {
	s    *sim
	held map[string]core.Tokens
	// leases are the leases that the client may still hold.
	leases []*lease
	// big is the most that this client acquires at once.
	big   int
	pause int
}

// admin creates, deletes and limits entities.
type admin struct {
	s     *sim
	names []string
	pause int
}

func (s *sim) startClients() {
	a := &admin{s: s, pause: 300 + s.r.IntN(4000)}
	s.admin = a
	if s.o.Trees && s.chance(500) {
		s.report.Trees = 1
		s.plant()
	} else {
		for i := range 1 + s.r.IntN(4) {
			a.names = append(a.names, fmt.Sprintf("e%d", i))
		}
		if s.o.Hungry {
			a.names = a.names[:1]
		}
		s.addRates()
		s.startDrawing()
		s.startSharing()
		s.startResetting()
		for _, name := range a.names {
			limit := core.Tokens(20 + s.r.IntN(400))
			if rated(name) {
				limit = s.rateLimit(limit)
			}
			s.issue(&op{kind: create, entity: name, limit: limit, wait: 5 * second, site: -1})
		}
	}
	if !s.o.Hungry {
		s.after(5*second, a.next)
	}
	s.startOperator()
	for range s.load.clients + s.r.IntN(s.load.clients) {
		s.addClient()
	}
}

// addClient adds a client.
func (s *sim) addClient() {
	c := &client{s: s, held: make(map[string]core.Tokens), big: 1 + s.r.IntN(40), pause: 10 + s.r.IntN(s.load.pause)}
	if s.o.Hungry {
		c.big = 1
	}
	s.clients = append(s.clients, c)
	s.after(micros(1000+s.r.IntN(1000))*millisecond, c.next)
}

// next does a client's next operation.
func (c *client) next() {
	s := c.s
	if s.healed {
		return
	}
	again := func() { s.after(micros(1+s.r.IntN(2*c.pause))*millisecond, c.next) }
	if s.now >= s.faultsEnd-s.load.quiet {
		again()
		return
	}
	p := &op{kind: acquire, entity: s.admin.names[s.r.IntN(len(s.admin.names))], site: s.someSite()}
	// Some sites are hotter than others.
	if s.chance(500) && !s.nodes[0].out {
		p.site = 0
	}
	if s.o.Hungry {
		p.site, p.tokens, p.wait = 0, 1, 30*second
		p.then = func(*answer.Answer) { again() }
		s.issue(p)
		return
	}
	if len(c.leases) > 0 && s.chance(either(s.o.Leaves, 550, 120)) {
		c.useLease(again)
		return
	}
	if held := c.held[p.entity]; held > 0 && !rated(p.entity) && s.chance(400) {
		p.kind, p.tokens = release, 1+core.Tokens(s.r.Int64N(int64(held)))
		c.held[p.entity] -= p.tokens
		c.gives(p, again)
		return
	}
	if s.careless && !rated(p.entity) && s.chance(30) {
		// Nobody has these tokens.
		p.kind, p.tokens = release, core.Tokens(1+s.r.IntN(10*c.big))
		s.report.Careless++
		c.gives(p, again)
		return
	}
	if s.lacks.turns && p.kind == acquire && s.chance(500) {
		// Several acquires wait for the same entity at the same site.
		p.entity, p.site = s.admin.names[0], 0
	}
	if s.chance(either(s.lacks.turns, 600, 950)) {
		p.wait = micros(s.r.IntN(10_000)) * millisecond
	}
	if s.chance(150) {
		p.several(s, c.big)
		p.oversizeAll(s)
	} else {
		p.tokens = core.Tokens(1 + s.r.IntN(c.big))
		p.oversize(s)
		p.choose(s)
	}
	p.then = func(a *answer.Answer) {
		c.took(p, a)
		again()
	}
	p.roam(s)
	s.issue(p)
}

// gives asks for a release.
func (c *client) gives(p *op, again func()) {
	s := c.s
	s.observe.outstanding[p.entity] -= p.tokens
	s.observe.given(p.entity, p.tokens)
	p.then = func(*answer.Answer) { again() }
	p.roam(s)
	s.issue(p)
}

// choose has an acquire ask for a lease, be content with less, or move nothing.
func (p *op) choose(s *sim) {
	if s.chance(either(s.lacks.partial, 350, 850)) {
		p.least = 1 + core.Tokens(s.r.Int64N(int64(p.tokens)))
	}
	if !rated(p.entity) && s.chance(either(s.lacks.renewals, 300, 600)) {
		p.ttl = micros(either(s.lacks.renewals, 300, 10_000)+s.r.IntN(20_000)) * millisecond
		if s.faults.Has(ClockStep) {
			p.ttl *= 3
		}
	}
	if s.o.Leaves && !rated(p.entity) && s.chance(400) {
		// Else leases end before the records of their acquires do, and go to no heir.
		p.ttl = max(p.ttl, micros(60+s.r.IntN(120))*second)
	}
	if s.shareable(p.entity) && s.chance(300) {
		p.ofShare(s)
	}
	if s.chance(30) {
		p.dry, p.once = true, true
	}
}

// took notes the tokens that an acquire has brought.
func (c *client) took(p *op, a *answer.Answer) {
	if a == nil || a.Code != answer.OK || p.dry {
		return
	}
	c.s.observe.taken(p, a)
	if c.s.operator.dies(p) {
		return
	}
	for _, part := range p.parts {
		if !rated(part.Entity) {
			c.held[part.Entity] += part.Tokens
		}
	}
	if p.kind == acquireAll {
		return
	}
	if p.ttl == 0 {
		c.held[p.entity] += a.Tokens
	} else if l := p.at[p.taken].lease; l != nil {
		c.leases = append(c.leases, l)
		if p.share {
			c.s.holds(l)
		}
	}
}

// next does the next administrative change.
func (a *admin) next() {
	s := a.s
	if s.healed {
		return
	}
	p := &op{
		kind: setLimit, entity: s.administered(), limit: core.Tokens(s.r.IntN(500)),
		wait: micros(s.r.IntN(8000)) * millisecond, site: -1,
	}
	if rated(p.entity) {
		p.limit = s.rateLimit(p.limit)
	}
	switch {
	case s.lacks.debts && s.chance(400):
		p.limit /= 20
	case s.lacks.slots && s.chance(400):
		// Only an entity with plenty of tokens has enough left for all shards.
		p.limit *= 20
	}
	switch {
	case s.lacks.debts && s.chance(500) && s.existsAnywhere(p.entity):
	case s.chance(120):
		p.kind = remove
		if s.chance(400) {
			p.expected = s.someGeneration(p.entity)
		}
	case s.chance(300) || !s.existsAnywhere(p.entity):
		p.kind = create
	case s.chance(200):
		p.expected = uint64(1 + s.r.IntN(4))
	}
	s.issue(p)
	pause := a.pause
	if s.lacks.debts {
		pause = min(pause, 1500)
	}
	s.after(micros(1+s.r.IntN(2*pause))*millisecond, a.next)
}

// administered is an entity to be changed.
func (s *sim) administered() string {
	i := s.r.IntN(len(s.admin.names) + len(s.drawn))
	if i >= len(s.admin.names) {
		return s.drawn[i-len(s.admin.names)]
	}
	return s.admin.names[i]
}

// someGeneration is a generation that an entity has or had at some site; 0 for any.
func (s *sim) someGeneration(name string) uint64 {
	known := s.observe.created[name]
	if len(known) == 0 {
		return 0
	}
	return known[s.r.IntN(len(known))].id.generation
}

// issue begins an operation.
func (s *sim) issue(p *op) {
	s.register(p)
	p.attempt()
}

// register gives an operation its id.
func (s *sim) register(p *op) {
	s.ops++
	if p.kind == setLimit {
		s.observe.highest[p.entity] = max(s.observe.highest[p.entity], p.limit)
	}
	p.s, p.id, p.issued, p.taken = s, s.ops, s.now, -1
	if p.lease != nil {
		p.home = p.lease.home.id
	}
	if !p.kind.recorded() || p.kind == commit || !s.sessions.name(p) {
		p.requestID = fmt.Sprintf("op-%d", p.id)
	}
	p.key = attempt.KeyOf(p.requestID)
	if p.kind.recorded() {
		s.report.Requests++
		s.opsByKey[p.key], p.at = p, make([]recorded, len(s.nodes))
		s.requests = append(s.requests, p)
	} else {
		s.changes = append(s.changes, p)
	}
	p.timed()
	s.pending++
}

// everHeld reports whether a chosen value holds a change with a request id.
func (q *sequence) everHeld(requestID string) bool {
	for _, v := range q.chosen {
		if strings.Contains(string(v.Change), fmt.Sprintf("%q", requestID)) {
			return true
		}
	}
	return false
}
