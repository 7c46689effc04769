package multipaxsys

import (
	"cmp"
	"slices"
	"time"

	"github.com/samya-db/samya/lab/virtual"
)

const (
	// look is the interval at which a router probes its leader, or looks for a new
	// leader. After patience without an answer it has no leader.
	look     = 250 * time.Millisecond
	patience = time.Second
)

// call is an unfinished request of a client.
type call struct {
	key
	// r is nil if no client waits for an answer.
	r *virtual.Request
	// order is the order of arrival.
	order int
	// asked is set once a leader may have got the call, gone once its client has
	// given up.
	asked, gone bool
}

// router passes the requests of a place on to the leader.
type router struct {
	s     *System
	place virtual.Place
	// nearest are the replicas for stale reads, the nearest first.
	nearest []*replica
	calls   map[key]*call
	order   int
	// to is the leader, nil if unknown. term is the term of the current or the last
	// leader.
	to   *replica
	term uint64
	// session numbers conversations with leaders; sent and got count its requests
	// and answers.
	session, sent, got int
	// alive is the time of the last word from the leader, way the time that the word
	// took.
	alive, way time.Duration
}

func newRouter(s *System, place virtual.Place) *router {
	p := &router{s: s, place: place, calls: make(map[key]*call), nearest: slices.Clone(s.replicas)}
	way := func(r *replica) time.Duration { return s.network.RoundTrip(s.regions[place], s.regions[r.place]) }
	slices.SortStableFunc(p.nearest, func(a, b *replica) int { return cmp.Compare(way(a), way(b)) })
	return p
}

// boot starts looking for a leader. No client waits for the requests of an earlier
// life: the router releases acquires that may have been granted.
func (p *router) boot() {
	p.to, p.way = nil, 0
	p.tick()
}

// crash drops all answers.
func (p *router) crash() {
	for k, c := range p.calls {
		c.r, c.gone = nil, true
		if c.kind == virtual.ReadExact || c.kind == virtual.Acquire && !c.asked {
			delete(p.calls, k)
		}
	}
	p.to = nil
	p.session++
}

// handle takes a request.
func (p *router) handle(r *virtual.Request) {
	if r.Kind == virtual.ReadStale {
		p.readStale(r)
		return
	}
	c := &call{key: key{r.Of, r.Kind}, r: r}
	p.add(c)
	if r.Kind == virtual.Release {
		return
	}
	p.s.w.After(p.place, r.Deadline-p.s.w.Now(), func() {
		if c.r == nil {
			return
		}
		c.r = nil
		if c.gone = true; r.Kind == virtual.ReadExact || !c.asked {
			delete(p.calls, c.key)
		}
		p.s.answer(r, virtual.TimedOut)
	})
}

// add records a call and asks for it.
func (p *router) add(c *call) {
	p.order++
	c.order = p.order
	p.calls[c.key] = c
	p.ask(c)
}

// send has a replica do something.
func (p *router) send(to *replica, bytes int, do func()) {
	if to.place == p.place {
		if to.node != nil {
			do()
		}
		return
	}
	p.s.w.Send(p.place, to.place, bytes, do)
}

// ask sends a call to the leader.
func (p *router) ask(c *call) {
	if p.to == nil {
		return
	}
	a := ask{key: c.key, from: p}
	if c.r != nil {
		a.latest = c.r.Deadline - p.way - p.way/4
	}
	c.asked = true
	p.sent++
	to, session, n := p.to, p.session, p.sent
	p.send(to, askBytes, func() { to.hear(p, session, n, a) })
}

// tick probes the leader, or looks for a leader.
func (p *router) tick() {
	p.s.w.After(p.place, look, p.tick)
	now := p.s.w.Now()
	if p.to != nil && now-p.alive <= patience {
		to, session, n := p.to, p.session, p.sent
		p.send(to, answerBytes, func() { to.ping(p, session, n, now) })
		return
	}
	p.to = nil
	p.seek()
}

// seek asks all replicas for the leader.
func (p *router) seek() {
	for _, r := range p.s.replicas {
		p.send(r, answerBytes, func() {
			if l := r.lead; l != nil && l.serving {
				l.tell(p, func() { p.led(r, l.term) })
			}
		})
	}
}

// led takes a replica as the leader.
func (p *router) led(r *replica, term uint64) {
	if term < p.term || term == p.term && p.to == r {
		return
	}
	p.to, p.term = r, term
	p.begin()
}

// unled is called when the asked replica does not lead.
func (p *router) unled(session int) {
	if session != p.session || p.to == nil {
		return
	}
	p.to = nil
	p.seek()
}

// again is called when a request was lost.
func (p *router) again(session int) {
	if session == p.session && p.to != nil {
		p.begin()
	}
}

// begin begins a session, and repeats all calls without an answer. An acquire that
// its client has given up becomes a release, which bars the acquire.
func (p *router) begin() {
	p.session++
	p.sent, p.got, p.alive = 0, 0, p.s.w.Now()
	session := p.session
	calls := make([]*call, 0, len(p.calls))
	for _, c := range p.calls {
		calls = append(calls, c)
	}
	slices.SortFunc(calls, func(a, b *call) int { return cmp.Compare(a.order, b.order) })
	for _, c := range calls {
		if p.session != session {
			return
		}
		if c.kind == virtual.Acquire && c.gone {
			p.undo(c)
			continue
		}
		p.ask(c)
	}
}

// undo releases an acquire that no client waits for.
func (p *router) undo(c *call) {
	delete(p.calls, c.key)
	p.s.undone++
	p.add(&call{key: key{c.of, virtual.Release}, gone: true})
}

// heard is called when the leader has got all requests, with the number of its
// answers.
func (p *router) heard(session, sent int, asked time.Duration) {
	if session != p.session {
		return
	}
	p.alive = p.s.w.Now()
	p.way = (p.alive - asked) / 2
	if sent != p.got && p.to != nil {
		p.begin()
	}
}

// answered takes the n-th answer of a session.
func (p *router) answered(session, n int, k key, v verdict) {
	if session != p.session {
		return
	}
	if p.got++; p.got != n {
		if p.to != nil {
			p.begin()
		}
		return
	}
	p.alive = p.s.w.Now()
	c := p.calls[k]
	if c == nil {
		return
	}
	if c.gone && k.kind == virtual.Acquire && v == granted {
		p.undo(c)
		return
	}
	delete(p.calls, k)
	r := c.r
	if r == nil {
		return
	}
	c.r = nil
	outcomes := [...]virtual.Outcome{granted: virtual.Granted, refused: virtual.Refused, tooLate: virtual.TimedOut}
	p.s.answer(r, outcomes[v])
}

// readStale asks the nearest replica and, without an answer, the next.
func (p *router) readStale(r *virtual.Request) {
	done := false
	finish := func(o virtual.Outcome) {
		if !done {
			done = true
			p.s.answer(r, o)
		}
	}
	w := p.s.w
	w.After(p.place, r.Deadline-w.Now(), func() { finish(virtual.TimedOut) })
	var try func(i int)
	try = func(i int) {
		if done || i == len(p.nearest) {
			return
		}
		from := p.nearest[i]
		p.send(from, askBytes, func() {
			w.Serve(from.place, func() {
				p.s.staleReads++
				from.tell(p, func() { finish(virtual.Granted) })
			})
		})
		w.After(p.place, 2*p.s.network.RoundTrip(p.s.regions[p.place], p.s.regions[from.place])+look, func() { try(i + 1) })
	}
	try(0)
}
