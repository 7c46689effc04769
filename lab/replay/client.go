package replay

import (
	"time"

	"github.com/samya-db/samya/lab/virtual"
	"github.com/samya-db/samya/site/core"
)

// clients are the clients of a place.
type clients struct {
	// held is the number of tokens that they hold, peak the most at any time.
	held, peak int
	// life counts their crashes.
	life int32
}

// call is a lease from its client's view: its current request, first the acquire.
type call struct {
	virtual.Request
	r *run
	// life is the life of the clients at the acquire.
	life int32
	// waits is set while there is no answer, plenty if tokens were plenty on
	// arrival.
	waits, plenty bool
}

// due returns the time at which the client wanted the answer, since the start of
// the run.
func (c *call) due() time.Duration { return c.Due - lead }

// ask hands the arrived request to the system.
func (c *call) ask() {
	c.waits = true
	c.r.pending++
	c.r.system.Handle(&c.Request)
}

// acquire makes the acquire of a lease, unless its place is down.
func (r *run) acquire(i int) {
	lease := &r.o.Demand.Leases[i]
	if !r.world.Up(lease.Place) {
		r.result.Unasked++
		return
	}
	c := &r.calls[i]
	c.r, c.life = r, r.clients[lease.Place].life
	c.Request = virtual.Request{
		Kind: virtual.Acquire, Of: int32(i), Place: lease.Place, //nolint:gosec // far fewer
		Due: lead + lease.Due, Deadline: r.world.Now() + r.o.Wait,
	}
	r.result.Requests++
	c.plenty = r.isPlenty(lease.Place)
	c.ask()
}

// read makes a read, unless its place is down.
func (r *run) read(i int) {
	read := &r.o.Demand.Reads[i]
	if !r.world.Up(read.Place) {
		r.result.Unasked++
		return
	}
	c := &r.reads[i]
	c.r = r
	c.Request = virtual.Request{
		Kind: virtual.ReadStale, Of: int32(i), Place: read.Place, //nolint:gosec // far fewer
		Due: lead + read.Due, Deadline: r.world.Now() + r.o.Wait,
	}
	if read.Exact {
		c.Kind = virtual.ReadExact
	}
	r.result.ReadsAsked++
	c.ask()
}

// Happen implements virtual.Event: the release of a granted lease reaches its
// server. Crashed clients release nothing.
func (c *call) Happen() {
	here := &c.r.clients[c.Place]
	if c.life != here.life {
		return
	}
	here.held--
	c.r.held--
	c.Request = virtual.Request{
		Kind: virtual.Release, Of: c.Of, Place: c.Place, Due: c.r.world.Now() - c.r.o.Client/2, Deadline: c.r.world.Now(),
	}
	c.ask()
}

// callOf finds the call of a request.
func (r *run) callOf(q *virtual.Request) *call {
	if q.Kind >= virtual.ReadStale {
		return &r.reads[q.Of]
	}
	return &r.calls[q.Of]
}

// answered is called with the answer to a request as it leaves its server.
func (r *run) answered(q *virtual.Request, outcome virtual.Outcome) {
	c := r.callOf(q)
	if q != &c.Request || !c.waits {
		r.fail("a request of kind %d has two answers, or is not known", q.Kind)
		return
	}
	c.waits = false
	r.pending--
	at := r.world.Now() + r.o.Client/2 - lead
	latency := at - c.due()
	r.told.add(telling{
		at: at, latency: latency, place: int32(q.Place), kind: q.Kind, outcome: outcome, plenty: c.plenty && q.Kind == virtual.Acquire, //nolint:gosec // few places
	})
	switch {
	case q.Kind == virtual.Release && outcome == virtual.Granted:
		r.result.Releases++
	case q.Kind == virtual.Release:
		r.fail("place %s: a release is answered %d", r.names[q.Place], outcome)
	case q.Kind == virtual.Acquire:
		r.acquired(c, at, outcome)
	case outcome == virtual.Granted:
		r.result.Reads++
	}
}

// acquired gives a client the answer to its acquire.
func (r *run) acquired(c *call, at time.Duration, outcome virtual.Outcome) {
	switch outcome {
	case virtual.Granted:
		r.granted(c, at)
	case virtual.Refused:
		r.result.Refused++
	case virtual.TimedOut:
		r.result.TimedOut++
	default:
		r.fail("place %s: an acquire is answered %d", r.names[c.Place], outcome)
	}
}

// granted gives a client its token, at a time since the start of the run.
func (r *run) granted(c *call, at time.Duration) {
	r.result.Granted++
	here := &r.clients[c.Place]
	here.held++
	r.held++
	here.peak = max(here.peak, here.held)
	r.checkLimit(c)
	due := max(c.due()+r.o.Demand.Leases[c.Of].Hold, at)
	if due < r.o.Demand.Span {
		r.world.Let(lead+due+r.o.Client/2, c)
	}
}

// checkLimit checks that no more than the limit is out, by the system's durable
// books and by the tokens of clients. For an unlimited system it counts the excess
// instead.
func (r *run) checkLimit(c *call) {
	if r.o.Unlimited {
		if beyond := r.held - int(r.o.Limit); beyond > 0 {
			r.result.GrantedBeyond++
			r.result.Beyond = max(r.result.Beyond, beyond)
		}
		return
	}
	if out := core.Tokens(r.system.Out()); out > r.o.Limit || core.Tokens(r.held) > r.o.Limit {
		r.fail("place %s is granted a token: %d are out by the books, %d at clients, the limit is %d", r.names[c.Place], out, r.held, r.o.Limit)
	}
}

// balance checks that all requests have their answers and the books add up.
func (r *run) balance() {
	if r.err != nil {
		return
	}
	if r.pending != 0 {
		r.fail("%d requests have no answer", r.pending)
	}
	if err := r.system.Check(); err != nil {
		r.fail("%w", err)
	}
	if out := r.system.Out(); out < r.held || out > r.held+r.unknown {
		r.fail("%d tokens are out by the books, clients hold %d, and of %d nobody knows", out, r.held, r.unknown)
	}
	if res := &r.result; res.Granted+res.Refused+res.TimedOut+res.Lost != res.Requests {
		r.fail("%d acquires, %d granted, %d refused, %d timed out, %d lost", res.Requests, res.Granted, res.Refused, res.TimedOut, res.Lost)
	}
}

// sum fills in the final figures.
func (r *run) sum() {
	res := &r.result
	if res.Counters == nil {
		res.count(r.system.Counters())
	}
	res.tell(&r.told)
	res.Plenty = r.told.plenty()
	res.BeyondOracle = res.Refused + res.TimedOut - res.Oracle.Refused
	for i, name := range r.names {
		res.Peaks[name] = r.clients[i].peak
	}
}
