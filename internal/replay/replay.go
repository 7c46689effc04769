package replay

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/samya-db/samya/internal/wan"
	"github.com/samya-db/samya/site/core"
)

// Options say what to play and to whom. All but Demand may be left zero.
type Options struct {
	Demand *Demand
	// Configure chooses the modules of a site; who the site is, Retention, Bin
	// and Rand are filled in before.
	Configure func(*core.Config)
	// Limit is that of the one entity, in equal parts at the start; default 5000.
	Limit core.Tokens
	// Network holds the round trips between the regions; default wan.Samya().
	Network *wan.Matrix
	// Commit is how long a transaction takes to become durable; default 0.3 ms.
	Commit time.Duration
	// Client is the round trip between a client and its site; default 1 ms.
	Client time.Duration
	// Wait is how long an acquire may wait for tokens; default 5 s.
	Wait time.Duration
}

func (o *Options) setDefaults() {
	o.Limit = cmp.Or(o.Limit, Limit)
	o.Commit = cmp.Or(o.Commit, 300*time.Microsecond)
	o.Client = cmp.Or(o.Client, time.Millisecond)
	o.Wait = cmp.Or(o.Wait, 5*time.Second)
	if o.Network == nil {
		o.Network = wan.Samya()
	}
}

const (
	entityName = "vm"
	// lead is how long the sites run before the first acquire is due: the entity
	// is created, and bins of the core are bins of the trace.
	lead = 10 * time.Second
	// rest is how long they run after the last acquire's wait is over.
	rest = 15 * time.Second
)

// run is one run under way.
type run struct {
	o       Options
	now     time.Duration
	seq     uint64
	queue   eventQueue
	network *network
	sites   [len(regions)]*site
	members []core.SiteID
	wait    core.Tick
	// calls belong to the demand's leases, pending counts those without an
	// answer.
	calls   []call
	pending int
	// started is set while requests are made.
	started bool
	latency []time.Duration
	result  Result
	err     error
}

// ErrUnsound is the error of a run in which something did not hold.
var ErrUnsound = errors.New("a run is unsound")

// Run plays a demand. Its errors name the module that is not known, or wrap
// ErrUnsound and tell what did not hold.
func Run(o Options) (*Result, error) {
	r, err := newRun(o)
	if err != nil {
		return nil, err
	}
	r.create()
	r.play()
	r.balance()
	if r.err != nil {
		return nil, r.err
	}
	r.sum()
	// A copy: the result is kept for longer than all that the run needed.
	result := r.result
	return &result, nil
}

// newRun starts the sites.
func newRun(o Options) (*run, error) {
	o.setDefaults()
	r := &run{
		o: o, network: newNetwork(o.Network, o.Demand.Seed), members: slices.Sorted(slices.Values(regions[:])),
		wait: core.Tick(o.Wait.Milliseconds()), calls: make([]call, len(o.Demand.Leases)),
	}
	r.result = Result{
		Workload: o.Demand.Workload, Seed: o.Demand.Seed, Span: o.Demand.Span, Requests: len(o.Demand.Leases),
		Begun: make(map[string]int), Peaks: make(map[string]int), Oracle: o.Demand.Oracle(o.Limit),
	}
	for i := range r.calls {
		r.calls[i] = call{Lease: &o.Demand.Leases[i], index: int32(i)} //nolint:gosec // far fewer
	}
	var err error
	for i := range r.sites {
		if r.sites[i], err = newSite(r, i, &o); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// fail notes the first thing that did not hold.
func (r *run) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s, seed %d, %v after the start: %w",
			ErrUnsound, r.result.Workload, r.result.Seed, r.now-lead, fmt.Errorf(format, args...))
	}
}

// at has something happen at a time.
func (r *run) at(when time.Duration, e event) {
	r.seq++
	e.at, e.seq = when, r.seq
	r.queue.push(e)
}

func (r *run) index(id core.SiteID) int { return slices.Index(regions[:], id) }

// create creates the entity at all sites.
func (r *run) create() {
	r.now = time.Millisecond
	for _, s := range r.sites {
		s.settle()
	}
	created := &setup{what: "creating the entity"}
	r.sites[0].step(&core.Change{
		Call: created, Kind: core.CreateEntity, Name: entityName, Limit: r.o.Limit, RequestID: "create", Wait: 5000,
	})
	r.until(lead)
	for _, s := range r.sites {
		if s.entity.Name != entityName {
			r.fail("site %s has no entity", s.id)
		}
	}
	r.now = lead
	r.train()
}

// play makes the requests.
func (r *run) play() {
	r.started = true
	way := r.o.Client / 2
	for i := 0; i < len(r.calls) && r.err == nil; i++ {
		c := &r.calls[i]
		at := lead + c.Due + way
		r.until(at)
		r.now = at
		r.pending++
		r.sites[c.Region].acquires(c)
	}
	r.until(lead + r.o.Demand.Span + r.o.Wait + rest)
}

// until lets happen what is due by a time.
func (r *run) until(to time.Duration) {
	for len(r.queue) > 0 && r.queue[0].at <= to && r.err == nil {
		e := r.queue.pop()
		r.now = e.at
		s := r.sites[e.site]
		switch e.kind {
		case released:
			s.out--
			s.releases(&r.calls[e.of])
		case committed:
			s.committed()
		case arrived:
			p := r.network.unpack(e.of)
			s.step(core.Deliver{From: p.from, Messages: p.messages})
		case woken:
			s.woken()
		}
	}
}

// answered is told of the answer to an acquire, as it leaves the site.
func (r *run) answered(s *site, c *call, granted bool) {
	way := r.o.Client / 2
	answered := r.now + way - lead
	r.latency = append(r.latency, answered-c.Due)
	if !granted {
		r.result.Refused++
		return
	}
	r.result.Granted++
	s.out++
	s.peak = max(s.peak, s.out)
	r.checkLimit(s)
	due := max(c.Due+c.Hold, answered)
	if due < r.o.Demand.Span {
		r.pending++
		r.at(lead+due+way, event{site: int8(s.i), kind: released, of: c.index})
	}
}

// checkLimit looks whether more than the limit is out: by what the sites have
// made durable, and by what clients hold.
func (r *run) checkLimit(at *site) {
	var net core.Tokens
	held := 0
	for _, s := range r.sites {
		net += s.books.Net
		held += s.out
	}
	if net > r.o.Limit || core.Tokens(held) > r.o.Limit {
		r.fail("site %s grants a token: %d are out by the books, %d at clients, the limit is %d", at.id, net, held, r.o.Limit)
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
	var sum core.Tokens
	for _, s := range r.sites {
		read := &setup{what: "reading the entity"}
		s.step(&core.Read{Call: read, Entity: entityName})
		v := &read.view
		if v.Offered != 0 || v.Waiting != 0 || v.Left < 0 {
			r.fail("site %s comes to no rest: %+v", s.id, *v)
		}
		if out := core.Tokens(s.out); v.Net != out {
			r.fail("site %s has %d out by its books, its clients hold %d", s.id, v.Net, out)
		}
		sum += v.Left + v.Net
	}
	if sum != r.o.Limit {
		r.fail("the sites have %d tokens, the limit is %d", sum, r.o.Limit)
	}
	if r.result.Granted+r.result.Refused != r.result.Requests {
		r.fail("%d acquires, %d granted, %d refused", r.result.Requests, r.result.Granted, r.result.Refused)
	}
}

// sum fills in what is known in the end.
func (r *run) sum() {
	res := &r.result
	res.Latency = latencyOf(r.latency)
	res.BeyondOracle = res.Refused - res.Oracle.Refused
	for i, s := range r.sites {
		res.Peaks[string(regions[i])] = s.peak
	}
}
