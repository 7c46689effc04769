package replay

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/samya-db/samya/internal/wan"
	"github.com/samya-db/samya/lab/virtual"
	"github.com/samya-db/samya/site/core"
)

// Options are the options of a run. All but Demand may be zero.
type Options struct {
	Demand *Demand
	// Limit is the limit of the only entity; default 5000.
	Limit core.Tokens
	// Unlimited is for systems that keep no limit, or not exactly: the run counts
	// the tokens beyond the limit, and does not fail.
	Unlimited bool
	// Network holds the round trips between the regions; default wan.Samya().
	Network *wan.Matrix
	// Service is the time that a server's processor takes for a request; default 2
	// µs. Below zero means no time.
	Service time.Duration
	// Commit is the time for a transaction to become durable; default 0.3 ms.
	Commit time.Duration
	// Client is the round trip between a client and its server; default 1 ms.
	Client time.Duration
	// Wait is the longest time that an acquire or a read takes at its server;
	// default 5 s.
	Wait time.Duration
	// Faults are the faults of the run, in any order.
	Faults []Fault
}

func (o *Options) setDefaults() {
	o.Limit = cmp.Or(o.Limit, Limit)
	o.Service = max(0, cmp.Or(o.Service, 2*time.Microsecond))
	o.Commit = cmp.Or(o.Commit, 300*time.Microsecond)
	o.Client = cmp.Or(o.Client, time.Millisecond)
	o.Wait = cmp.Or(o.Wait, 5*time.Second)
	if o.Network == nil {
		o.Network = wan.Samya()
	}
}

const (
	// lead is the time between the start of the system and the first acquire.
	lead = virtual.Lead
	// rest is the time that the run goes on after the end of the last acquire's
	// wait. mended replaces it after faults, which have then ended.
	rest, mended = 15 * time.Second, 10 * time.Minute
)

// run is a run under way.
type run struct {
	o      Options
	system virtual.System
	world  *virtual.World
	// calls belong to the demand's leases, reads to its reads. pending counts
	// requests without an answer.
	calls, reads []call
	pending      int
	// names are the names of the places, clients the clients of each place.
	names   []string
	clients []clients
	held    int
	// unknown counts the tokens that may or may not be out: their clients crashed.
	unknown int
	told    told
	result  Result
	err     error
}

// ErrUnsound is the error of an unsound run: a check failed.
var ErrUnsound = errors.New("a run is unsound")

// Run plays a demand to a system, which serves no other run. It returns the error
// of a system that cannot start, or an error that wraps ErrUnsound and names the
// failed check.
func Run(o Options, system virtual.System) (*Result, error) {
	r, err := newRun(o, system)
	if err != nil {
		return nil, err
	}
	r.play()
	r.balance()
	if r.err != nil {
		return nil, r.err
	}
	r.sum()
	// The copy lets go of the memory of the run.
	result := r.result
	return &result, nil
}

// newRun starts the system.
func newRun(o Options, system virtual.System) (*run, error) {
	o.setDefaults()
	d := o.Demand
	r := &run{o: o, system: system, calls: make([]call, len(d.Leases)), reads: make([]call, len(d.Reads)), names: virtual.Names(d.places())}
	r.clients = make([]clients, len(r.names))
	r.told.all = make([]telling, 0, 2*len(d.Leases)+len(d.Reads))
	r.result = Result{
		Workload: d.Workload, Seed: d.Seed, Span: d.Span, Client: o.Client, Places: r.names,
		Begun: make(map[string]int), Peaks: make(map[string]int), Oracle: d.Oracle(o.Limit),
	}
	r.world = newWorld(&o, system, d.places(), d.Seed)
	if err := checkFaults(o.Faults, r.world.Places(), len(r.names)); err != nil {
		return nil, err
	}
	if l, ok := system.(virtual.Learner); ok {
		l.Learn(d.History, d.bin(), d.day())
	}
	if err := system.Start(r.world, int(o.Limit), r.answered); err != nil {
		return nil, fmt.Errorf("starting a system: %w", err)
	}
	return r, nil
}

// newWorld makes the world of a system.
func newWorld(o *Options, system virtual.System, places []string, seed uint64) *virtual.World {
	all := append([]string(nil), places...)
	if e, ok := system.(virtual.Elsewhere); ok {
		all = append(all, e.Servers()...)
	}
	return virtual.New(virtual.Options{Places: all, Network: o.Network, Seed: seed, Service: o.Service, Commit: o.Commit})
}

// fail keeps the first failed check.
func (r *run) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s, seed %d, %v after the start: %w",
			ErrUnsound, r.result.Workload, r.result.Seed, r.world.Now()-lead, fmt.Errorf(format, args...))
	}
}

// play makes the requests.
func (r *run) play() {
	for i := range r.o.Faults {
		f := &r.o.Faults[i]
		r.world.At(lead+f.At, func() { r.fault(f) })
	}
	d, way, reads := r.o.Demand, r.o.Client/2, 0
	for i := range d.Leases {
		for ; reads < len(d.Reads) && d.Reads[reads].Due < d.Leases[i].Due && r.err == nil; reads++ {
			r.world.Until(lead + d.Reads[reads].Due + way)
			r.read(reads)
		}
		if r.err != nil {
			return
		}
		r.world.Until(lead + d.Leases[i].Due + way)
		r.acquire(i)
	}
	for ; reads < len(d.Reads) && r.err == nil; reads++ {
		r.world.Until(lead + d.Reads[reads].Due + way)
		r.read(reads)
	}
	r.world.Until(lead + d.Span + r.o.Wait)
	after := rest
	if len(r.o.Faults) > 0 {
		// The cost of coming to rest is not part of the run's cost.
		r.result.count(r.system.Counters())
		r.mend()
		after = mended
	}
	r.world.Until(r.world.Now() + after)
}
