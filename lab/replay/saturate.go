package replay

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/samya-db/samya/lab/virtual"
	"github.com/samya-db/samya/site/core"
)

// Saturation is what a system does for clients that each ask for the next thing as
// soon as they have the answer to the last: how much it can do at most, if there
// are enough of them.
type Saturation struct {
	// Clients are those of each place, Span how long was measured.
	Clients int           `json:"clients"`
	Span    time.Duration `json:"-"`
	// Committed are the acquires granted, tokens released and reads answered within
	// Span, Refused and TimedOut the acquires and reads that were not.
	Committed int `json:"committed"`
	Refused   int `json:"refused"`
	TimedOut  int `json:"timed_out"`
	// Latency is that of the committed ones, the way to the server and back included.
	Latency  Latency            `json:"latency_ms"`
	Counters map[string]float64 `json:"-"`
}

// PerSecond is how many were committed a second.
func (s *Saturation) PerSecond() float64 { return float64(s.Committed) / s.Span.Seconds() }

// unasked is a limit that nobody comes near.
const unasked core.Tokens = 1 << 40

// closed is a closed loop under way.
type closed struct {
	o       Options
	system  virtual.System
	world   *virtual.World
	clients []looper
	mix     Mix
	random  *rand.Rand
	// owner is whose each lease is, and reader whose each read, by their numbers.
	owner, reader []int32
	// Answers count from begin to end, and nothing is asked after that.
	begin, end    time.Duration
	held, pending int
	latency       []time.Duration
	result        Saturation
	err           error
}

// looper is one client: its only request.
type looper struct {
	virtual.Request
	c     *closed
	index int32
	waits bool
	// lease is the one that it asked for last, and holds is set while it has it.
	lease int32
	holds bool
}

// Mix is what clients of a closed loop ask beside acquires and releases.
type Mix struct {
	// Reads is the share of reads, from 0 to 1; Exact asks for how many tokens are
	// free at one instant, else for what the server knows.
	Reads float64
	Exact bool
}

// Saturate has so many clients of each place acquire a token, release it, and so
// on, and measures that for a while, once it has gone on for a quarter as long. Of
// the demand only Seed, Places and History are taken, and it may be nil. Without a
// Limit there are more tokens than could be asked for. Its errors are those of Run.
func Saturate(o Options, system virtual.System, clients int, span time.Duration) (*Saturation, error) {
	return SaturateMix(o, system, clients, span, Mix{})
}

// SaturateMix is Saturate with clients that read now and then, whether they hold a
// token or not.
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
		// Not all at once.
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

// answered is told of the answer to a request, as it leaves its server.
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

// fail notes the first thing that did not hold.
func (c *closed) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("%w: %v after the start: %w", ErrUnsound, c.world.Now()-lead, fmt.Errorf(format, args...))
	}
}
