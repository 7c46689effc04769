package replay

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/samya-db/samya/lab/virtual"
	"github.com/samya-db/samya/site/core"
)

// Saturation is the throughput of a system for clients that ask again as soon as
// they have an answer. With enough clients, it is the most that the system can do.
type Saturation struct {
	// Clients is the number of clients of each place, Span the length of the
	// measurement.
	Clients int           `json:"clients"`
	Span    time.Duration `json:"-"`
	// Committed counts acquires granted, tokens released and reads answered within
	// Span. Refused and TimedOut count other acquires and reads.
	Committed int `json:"committed"`
	Refused   int `json:"refused"`
	TimedOut  int `json:"timed_out"`
	// Latency is the latency of committed requests, the round trip to the server
	// included.
	Latency  Latency            `json:"latency_ms"`
	Counters map[string]float64 `json:"-"`
}

// PerSecond returns the requests committed a second.
func (s *Saturation) PerSecond() float64 { return float64(s.Committed) / s.Span.Seconds() }

// unasked is a limit that no load comes near.
const unasked core.Tokens = 1 << 40

// closed is a closed loop under way.
type closed struct {
	o       Options
	system  virtual.System
	world   *virtual.World
	clients []looper
	mix     Mix
	random  *rand.Rand
	// owner maps a lease to its client, reader a read, by their numbers.
	owner, reader []int32
	// Answers count from begin to end. After end, clients ask no more.
	begin, end    time.Duration
	held, pending int
	latency       []time.Duration
	result        Saturation
	err           error
}

// looper is a client, with its only request.
type looper struct {
	virtual.Request
	c     *closed
	index int32
	waits bool
	// lease is its latest lease; holds is set while it holds the token.
	lease int32
	holds bool
}

// Mix is the reads of a closed loop.
type Mix struct {
	// Reads is the share of reads, from 0 to 1. Exact asks for the number of free
	// tokens at a single instant, instead of the server's own knowledge.
	Reads float64
	Exact bool
}

// Saturate has each client of each place acquire a token, release it, and so on. It
// measures for span, after a warm-up of a quarter of span. Of the demand it takes
// only Seed, Places and History; the demand may be nil. Without a Limit tokens
// never run out. Its errors are as for Run.
func Saturate(o Options, system virtual.System, clients int, span time.Duration) (*Saturation, error) {
	return SaturateMix(o, system, clients, span, Mix{})
}

// SaturateMix is Saturate with clients that also read, holding a token or not.
func SaturateMix(o Options, system virtual.System, clients int, span time.Duration, mix Mix) (*Saturation, error) {
	if o.Demand == nil {
		o.Demand = &Demand{Workload: "saturation", Seed: 1}
	}
	d := o.Demand
	places := d.places()
	if clients < 1 || clients > 1<<20 || span <= 0 || !(mix.Reads >= 0 && mix.Reads <= 1) {
		return nil, fmt.Errorf("%d clients a place for %v, a share of %v of reads", clients, span, mix.Reads)
	}
	o.Limit = cmp.Or(o.Limit, unasked)
	o.setDefaults()
	c := &closed{
		o: o, system: system, world: newWorld(&o, system, places, d.Seed), clients: make([]looper, clients*len(places)),
		begin: lead + span/4, end: lead + span/4 + span, result: Saturation{Clients: clients, Span: span},
		mix: mix, random: rand.New(rand.NewPCG(d.Seed, 0x6c6f)), //nolint:gosec // a simulation, to be repeated
	}
	if l, ok := system.(virtual.Learner); ok {
		l.Learn(d.History, d.bin(), d.day())
	}
	if err := system.Start(c.world, int(o.Limit), c.answered); err != nil {
		return nil, fmt.Errorf("starting a system: %w", err)
	}
	for i := range c.clients {
		l := &c.clients[i]
		l.c, l.index, l.Place = c, int32(i), virtual.Place(i%len(places)) //nolint:gosec // far fewer
		// Spread the first requests.
		c.world.Let(lead+o.Client/2+o.Client*time.Duration(i)/time.Duration(len(c.clients)), l)
	}
	c.world.Until(c.end)
	c.result.Counters = system.Counters()
	c.world.Until(c.end + o.Wait + rest)
	c.balance()
	if c.err != nil {
		return nil, c.err
	}
	c.result.Latency = latencyOf(c.latency)
	return &c.result, nil
}

// Happen implements virtual.Event: the client's next request reaches its server.
func (l *looper) Happen() {
	c := l.c
	now := c.world.Now()
	if c.err != nil || now >= c.end {
		return
	}
	l.Request = virtual.Request{Of: l.lease, Place: l.Place, Due: now - c.o.Client/2, Deadline: now + c.o.Wait}
	switch {
	case c.mix.Reads > 0 && c.random.Float64() < c.mix.Reads:
		l.Kind, l.Of = virtual.ReadStale, int32(len(c.reader)) //nolint:gosec // as many as a run can make
		if c.mix.Exact {
			l.Kind = virtual.ReadExact
		}
		c.reader = append(c.reader, l.index)
	case l.holds:
		l.Kind, l.holds = virtual.Release, false
		c.held--
	default:
		l.lease = int32(len(c.owner)) //nolint:gosec // as many as a run can make
		l.Kind, l.Of = virtual.Acquire, l.lease
		c.owner = append(c.owner, l.index)
	}
	l.waits = true
	c.pending++
	c.system.Handle(&l.Request)
}

// answered is called with the answer to a request as it leaves its server.
func (c *closed) answered(q *virtual.Request, outcome virtual.Outcome) {
	owner := c.owner
	if q.Kind == virtual.ReadStale || q.Kind == virtual.ReadExact {
		owner = c.reader
	}
	l := &c.clients[owner[q.Of]]
	if q != &l.Request || !l.waits {
		c.fail("a request of kind %d has two answers, or is not known", q.Kind)
		return
	}
	l.waits = false
	c.pending--
	now := c.world.Now()
	counts := now >= c.begin && now < c.end
	switch {
	case outcome == virtual.Granted:
		if counts {
			c.result.Committed++
			c.latency = append(c.latency, now+c.o.Client/2-q.Due)
		}
		if q.Kind == virtual.Acquire {
			l.holds = true
			c.held++
			c.checkLimit()
		}
	case q.Kind == virtual.Release:
		c.fail("a release is answered %d", outcome)
	case counts && outcome == virtual.TimedOut:
		c.result.TimedOut++
	case counts:
		c.result.Refused++
	}
	c.world.Let(now+c.o.Client, l)
}

func (c *closed) checkLimit() {
	if c.o.Unlimited {
		return
	}
	if out := core.Tokens(c.system.Out()); out > c.o.Limit || core.Tokens(c.held) > c.o.Limit {
		c.fail("a token is granted: %d are out by the books, %d at clients, the limit is %d", out, c.held, c.o.Limit)
	}
}

// balance checks that all requests have their answers and the books add up.
func (c *closed) balance() {
	if c.pending != 0 {
		c.fail("%d requests have no answer", c.pending)
	}
	if err := c.system.Check(); err != nil {
		c.fail("%w", err)
	}
	if out := c.system.Out(); out != c.held {
		c.fail("%d tokens are out by the books, clients hold %d", out, c.held)
	}
}

// fail keeps the first failed check.
func (c *closed) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("%w: %v after the start: %w", ErrUnsound, c.world.Now()-lead, fmt.Errorf(format, args...))
	}
}
