package sim

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/samya-db/samya/site/core"
)

type opKind uint8

const (
	acquire opKind = iota
	release
	create
	remove
	setLimit
	setMode
	read
)

// op is one operation of a client, with all its attempts.
type op struct {
	s         *sim
	id        int
	kind      opKind
	key       core.RequestKey
	requestID string
	entity    string
	tokens    core.Tokens
	limit     core.Tokens
	mode      string
	expected  uint64
	wait      micros
	// site takes all attempts of an acquire or release.
	site     int
	issued   micros
	attempts int
	ended    bool
	then     func(a *core.Answer)

	// maybe says that some attempt has no answer that says that nothing was
	// done, decided that one has the decided answer.
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
	kind := [...]string{"acquire", "release", "create", "delete", "set limit", "set mode " + p.mode, "read"}[p.kind]
	return fmt.Sprintf("%s #%d of %q, tokens %d, limit %d, wait %d ms", kind, p.id, p.entity, p.tokens, p.limit,
		p.wait/millisecond)
}

// call is one attempt of an operation at one site.
type call struct {
	op        *op
	done      bool
	cancelled bool
	// waited is set once the site has let it wait for tokens.
	waited bool
	// served is set once the site has an answer, which may still be under way.
	served bool
	// mutant is an attempt with another body.
	mutant bool
	// look is set for a read.
	look *look
}

// client acquires and releases tokens.
type client struct {
	s    *sim
	held map[string]core.Tokens
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
	for i := range 1 + s.r.IntN(4) {
		a.names = append(a.names, fmt.Sprintf("e%d", i))
	}
	if s.o.Hungry {
		a.names = a.names[:1]
	}
	for _, name := range a.names {
		s.issue(&op{kind: create, entity: name, limit: core.Tokens(20 + s.r.IntN(400)), wait: 5 * second, site: -1})
	}
	if !s.o.Hungry {
		s.after(5*second, a.next)
	}
	for range s.load.clients + s.r.IntN(s.load.clients) {
		c := &client{s: s, held: make(map[string]core.Tokens), big: 1 + s.r.IntN(40), pause: 10 + s.r.IntN(s.load.pause)}
		if s.o.Hungry {
			c.big = 1
		}
		s.clients = append(s.clients, c)
		s.after(micros(1000+s.r.IntN(1000))*millisecond, c.next)
	}
}

// next does a client's next operation.
func (c *client) next() {
	s := c.s
	if s.now >= s.faultsEnd {
		return
	}
	again := func() { s.after(micros(1+s.r.IntN(2*c.pause))*millisecond, c.next) }
	if s.now >= s.faultsEnd-s.load.quiet {
		again()
		return
	}
	p := &op{kind: acquire, entity: s.admin.names[s.r.IntN(len(s.admin.names))], site: s.r.IntN(len(s.nodes))}
	// Some sites are hotter than others.
	if s.chance(500) {
		p.site = 0
	}
	if s.o.Hungry {
		p.site, p.tokens, p.wait = 0, 1, 30*second
		p.then = func(*core.Answer) { again() }
		s.issue(p)
		return
	}
	if held := c.held[p.entity]; held > 0 && s.chance(400) {
		p.kind, p.tokens = release, 1+core.Tokens(s.r.Int64N(int64(held)))
		c.held[p.entity] -= p.tokens
		s.observe.outstanding[p.entity] -= p.tokens
		p.then = func(*core.Answer) { again() }
		s.issue(p)
		return
	}
	p.tokens = core.Tokens(1 + s.r.IntN(c.big))
	if s.chance(600) {
		p.wait = micros(s.r.IntN(10_000)) * millisecond
	}
	p.then = func(a *core.Answer) {
		c.took(p, a)
		again()
	}
	s.issue(p)
}

// took notes what an acquire has brought.
func (c *client) took(p *op, a *core.Answer) {
	if a != nil && a.Code == core.OK {
		c.held[p.entity] += p.tokens
		c.s.observe.taken(p)
	}
}

// next does the next administrative change.
func (a *admin) next() {
	s := a.s
	if s.now >= s.faultsEnd {
		return
	}
	p := &op{
		kind: setLimit, entity: a.names[s.r.IntN(len(a.names))], limit: core.Tokens(s.r.IntN(500)),
		wait: micros(s.r.IntN(8000)) * millisecond, site: -1,
	}
	switch {
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
	s.after(micros(1+s.r.IntN(2*a.pause))*millisecond, a.next)
}

// someGeneration is one that an entity has or had at some site; 0 for any.
func (s *sim) someGeneration(name string) uint64 {
	known := s.observe.created[name]
	if len(known) == 0 {
		return 0
	}
	return known[s.r.IntN(len(known))].id.generation
}

// opOf finds an operation by its key.
func (s *sim) opOf(key core.RequestKey) *op {
	return s.opsByKey[key]
}

// issue begins an operation.
func (s *sim) issue(p *op) {
	s.ops++
	p.s, p.id, p.issued = s, s.ops, s.now
	p.requestID = fmt.Sprintf("op-%d", p.id)
	binary.BigEndian.PutUint64(p.key[:], uint64(p.id))
	if p.kind == acquire || p.kind == release {
		s.report.Requests++
		s.opsByKey[p.key] = p
	} else {
		s.changes = append(s.changes, p)
	}
	s.pending++
	p.attempt()
}

const (
	maxAttempts = 6
	// retention is how long sites keep the records of requests. A client stops
	// repeating a request long before, whatever the sites' clocks do.
	retention  = 60 * second
	keepTrying = 30 * second
	// clockError is the most that a site's clock is off.
	clockError = 10 * second
)

// attempt sends the operation to a site, and again if no answer comes.
func (p *op) attempt() {
	s := p.s
	tooLate := p.site >= 0 && s.now > p.issued+keepTrying
	if tooLate || p.attempts >= maxAttempts && !s.healed {
		p.end(nil)
		return
	}
	p.attempts++
	site := p.site
	if site < 0 {
		site = s.r.IntN(len(s.nodes))
	}
	n := s.nodes[site]
	c := &call{op: p}
	p.open++
	s.after(s.r.Int64N(3*millisecond), func() { n.hand(c) })
	if s.chance(s.chances.hedge) {
		p.hedge(n)
	}
	patience := p.wait + 2*slack
	if s.chance(s.chances.cancel) {
		patience = s.r.Int64N(patience)
	}
	s.after(patience, func() {
		if p.ended || c.done {
			return
		}
		n.awake(func() {
			if n.up && n.calls[c] {
				c.cancelled = true
				s.report.Cancels++
				n.step(&core.Cancel{Call: c})
			}
		})
		if s.chance(100) && !s.healed {
			p.end(nil)
			return
		}
		p.attempt()
	})
}

// hedge sends the operation a second time while the first attempt may still be
// under way: a change to any site, others to the same.
func (p *op) hedge(n *node) {
	s := p.s
	if p.site < 0 {
		n = s.nodes[s.r.IntN(len(s.nodes))]
	}
	c := &call{op: p}
	p.open++
	s.after(s.r.Int64N(second), func() { n.hand(c) })
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
	if s.tracing {
		s.note("%s is handed %v", n.id, p)
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
	if p.kind != acquire {
		n.step(p.input(c, p.tokens, p.limit))
		return
	}
	before := n.core.Status().Waiting
	n.feed(p.input(c, p.tokens, p.limit))
	if c.waited = n.core.Status().Waiting > before; c.waited {
		n.mayWait(p)
		n.waiting[p.entity] = append(n.waiting[p.entity], c)
		n.contradict(c)
	}
	s.report.acquire(n.cfg.Offer, c.waited, c.waited && n.has(p.entity) >= p.tokens)
	n.settle()
}

// mayWait checks that an acquire which has begun to wait is sure to end by its
// deadline: the site wants to be woken by then, and is not about to stop.
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

func (p *op) input(c *call, tokens, limit core.Tokens) core.Input {
	wait := core.Tick(p.wait / millisecond)
	switch p.kind {
	case acquire:
		return &core.Acquire{Call: c, Entity: p.entity, Tokens: tokens, Request: p.key, Wait: wait}
	case release:
		return &core.Release{Call: c, Entity: p.entity, Tokens: tokens, Request: p.key}
	case create:
		return &core.Change{
			Call: c, Kind: core.CreateEntity, Name: p.entity, Limit: limit, RequestID: p.requestID, Wait: wait,
		}
	case remove:
		return &core.Change{
			Call: c, Kind: core.DeleteEntity, Name: p.entity, Expected: p.expected, RequestID: p.requestID, Wait: wait,
		}
	case setMode:
		return &core.Change{
			Call: c, Kind: core.SetMode, Mode: p.mode, Expected: p.expected, RequestID: p.requestID, Wait: wait,
		}
	default:
		return &core.Change{
			Call: c, Kind: core.SetLimit, Name: p.entity, Limit: limit, Expected: p.expected,
			RequestID: p.requestID, Wait: wait,
		}
	}
}

// returned is the client's side of an answer.
func (p *op) returned(c *call, a core.Answer) {
	s := p.s
	if c.done {
		return
	}
	c.done = true
	p.open--
	if p.ended {
		return
	}
	final := a.Code == core.OK || a.Code == core.OutOfTokens || p.kind > release && p.decided
	// What is not there may come to be, but need not.
	again := !final && !p.once && (s.chance(500) || s.healed && a.Code != core.NotFound)
	if again {
		s.after(micros(100+s.r.IntN(1000))*millisecond, p.attempt)
		return
	}
	switch {
	case !final:
	case p.kind <= release:
		p.extras()
	case s.chance(5 * s.chances.mutant):
		p.mutate()
	}
	p.end(&a)
}

func (p *op) end(a *core.Answer) {
	if p.ended {
		return
	}
	p.ended = true
	p.s.pending--
	if p.then != nil {
		p.then(a)
	}
}

// everHeld reports whether a chosen value holds a change of that request id.
func (q *sequence) everHeld(requestID string) bool {
	for _, v := range q.chosen {
		if strings.Contains(string(v.Change), fmt.Sprintf("%q", requestID)) {
			return true
		}
	}
	return false
}
