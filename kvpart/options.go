package kvpart

import (
	"fmt"
	"math"
	"runtime"
	"slices"

	"github.com/samya-db/samya/kvpart/early"
	"github.com/samya-db/samya/kvpart/engine"
	_ "github.com/samya-db/samya/kvpart/engine/btree" // the default
	"github.com/samya-db/samya/kvpart/sched"
	"github.com/samya-db/samya/kvpart/workload"
)

// DefaultBackend is the backend of a store if Options.Backend is empty.
const DefaultBackend = "btree"

// Strategies returns all strategies.
func Strategies() []Strategy { return []Strategy{Bare, Soft, Hard, Threaded, HardThreaded} }

// Balances returns all balances.
func Balances() []Balance {
	return []Balance{BalanceGraph, BalanceLibra, BalanceBoth, BalanceCPU, BalanceDisk}
}

// hard reports whether each partition has engines of its own.
func (s Strategy) hard() bool { return s == Hard || s == HardThreaded }

// workers reports whether workers run requests.
func (s Strategy) workers() bool { return s == Threaded || s == HardThreaded }

// Schedulers returns all schedulers.
func Schedulers() []Scheduler {
	all := []Scheduler{Workers}
	for _, m := range early.Modes() {
		all = append(all, Scheduler(m.String()))
	}
	return all
}

// early returns the mode of early scheduling, false for Workers.
func (s Scheduler) early() (early.Mode, bool) {
	i := slices.IndexFunc(early.Modes(), func(m early.Mode) bool { return Scheduler(m.String()) == s })
	if i < 0 {
		return 0, false
	}
	return early.Modes()[i], true
}

func bad(field string, format string, args ...any) error {
	return fmt.Errorf("%w: %s: %s", ErrOptions, field, fmt.Sprintf(format, args...))
}

// check fails unless lo <= v <= hi.
func check[T int | int64 | float64](field string, v, lo, hi T) error {
	if lo <= v && v <= hi {
		return nil
	}
	return bad(field, "%v, want %v to %v", v, lo, hi)
}

// checkBound is check for a field that may be 0.
func checkBound(field string, v, lo, hi int) error {
	if v == 0 {
		return nil
	}
	return check(field, v, lo, hi)
}

// complete fills defaults in and fails with ErrOptions if a field is out of range.
func (o *Options) complete() (engine.Factory, error) {
	if !slices.Contains(Strategies(), o.Strategy) {
		return engine.Factory{}, bad("Strategy", "%q, want one of %q", o.Strategy, Strategies())
	}
	if o.Partitions == 0 {
		o.Partitions = min(runtime.GOMAXPROCS(0), MaxPartitions)
	}
	if o.Queue == 0 {
		o.Queue = sched.DefaultQueue
	}
	if o.Scheduler == "" {
		o.Scheduler = Workers
	}
	if o.Generations == 0 {
		o.Generations = DefaultGenerations
	}
	for _, err := range []error{
		check("Partitions", o.Partitions, 1, MaxPartitions),
		check("Queue", o.Queue, 1, sched.MaxQueue),
		check("Generations", o.Generations, 2, MaxGenerations),
		check("Cache", o.Cache, int64(0), math.MaxInt64),
		o.Policy.complete(),
	} {
		if err != nil {
			return engine.Factory{}, err
		}
	}
	if err := o.checkScheduler(); err != nil {
		return engine.Factory{}, err
	}
	if o.Strategy == Bare && o.Policy.Kind != Static {
		return engine.Factory{}, bad("Policy.Kind", "%q, want %q with strategy %q", o.Policy.Kind, Static, Bare)
	}
	switch o.Place {
	case "":
		switch {
		case o.Policy.ranges():
			o.Place = Within
		case o.Policy.Kind == Async:
			o.Place = Beside
		default:
			o.Place = RoundRobin
		}
	case RoundRobin, Hash, Together, Beside, Within:
	default:
		return engine.Factory{}, bad("Place", "%q, want %q, %q, %q, %q or %q", o.Place, RoundRobin, Hash, Together, Beside, Within)
	}
	return o.engine()
}

// checkScheduler checks the scheduler against the strategy and the partitions.
func (o *Options) checkScheduler() error {
	_, threads := o.Scheduler.early()
	switch {
	case !slices.Contains(Schedulers(), o.Scheduler):
		return bad("Scheduler", "%q, want one of %q", o.Scheduler, Schedulers())
	case threads && !o.Strategy.workers():
		return bad("Scheduler", "%q, want %q with strategy %q", o.Scheduler, Workers, o.Strategy)
	case !threads && o.Threads != 0:
		return bad("Threads", "%d, want 0 with scheduler %q", o.Threads, o.Scheduler)
	case o.Threads < 0 || threads && max(o.Threads, 1)*o.Partitions > early.MaxThreads:
		return bad("Threads", "%d for each of %d partitions, want %d at most in all", o.Threads, o.Partitions, early.MaxThreads)
	}
	return nil
}

// engine finds the backend and checks the directories against it.
func (o *Options) engine() (engine.Factory, error) {
	if o.Backend == "" && o.Engine == nil {
		o.Backend = DefaultBackend
	}
	f, err := engine.Lookup(o.Backend)
	if o.Engine != nil {
		f, err = *o.Engine, nil
		if o.Backend == "" || !validBackend(o.Backend) {
			return f, bad("Backend", "%q, want a name of letters for Engine", o.Backend)
		}
	}
	if err != nil {
		return f, fmt.Errorf("%w: Backend: %w", ErrOptions, err)
	}
	switch {
	case f.Durable && len(o.Dirs) == 0:
		return f, bad("Dirs", "none, want one at least for backend %q", o.Backend)
	case !f.Durable && len(o.Dirs) > 0:
		return f, bad("Dirs", "%q, want none: backend %q keeps nothing on disks", o.Dirs, o.Backend)
	}
	for i, dir := range o.Dirs {
		if dir == "" || slices.Contains(o.Dirs[:i], dir) {
			return f, bad("Dirs", "%q at %d, want names that differ", dir, i)
		}
	}
	return f, nil
}

// ranges reports whether ranges of keys are kept together.
func (p *Policy) ranges() bool {
	return p.Kind != Static && p.Balance != BalanceGraph && p.Balance != BalanceBoth
}

// complete fills defaults in and fails with ErrOptions if a field is out of range.
func (p *Policy) complete() error {
	switch p.Kind {
	case "":
		p.Kind = Static
	case Static, Base, Async:
	default:
		return bad("Policy.Kind", "%q, want %q, %q or %q", p.Kind, Static, Base, Async)
	}
	if p.Balance == "" {
		p.Balance = BalanceGraph
	}
	switch {
	case !slices.Contains(Balances(), p.Balance):
		return bad("Policy.Balance", "%q, want one of %q", p.Balance, Balances())
	case p.Balance != BalanceGraph && p.Kind == Static:
		return bad("Policy.Balance", "%q, want %q with policy %q", p.Balance, BalanceGraph, Static)
	case p.Tolerance != 0 && !(p.Tolerance > 0 && p.Tolerance < 1):
		return bad("Policy.Tolerance", "%v, want above 0 and below 1", p.Tolerance)
	}
	if p.Kind == Base && p.Operations < 1 {
		return bad("Policy.Operations", "%d, want 1 at least for %q", p.Operations, Base)
	}
	for _, err := range []error{
		check("Policy.Operations", p.Operations, int64(0), math.MaxInt64),
		check("Policy.Window", p.Window, 0, workload.MaxWindow),
		check("Policy.Every", int64(p.Every), int64(0), math.MaxInt64),
		check("Policy.Gain", p.Gain, -math.MaxFloat64, 1),
		check("Policy.Share", p.Share, 0, math.MaxFloat64),
		check("Policy.Sample", p.Sample, 0, 1),
		checkBound("Policy.Vertices", p.Vertices, workload.MinVertices, workload.MaxVertices),
		checkBound("Policy.Edges", p.Edges, workload.MinEdges, workload.MaxEdges),
		check("Policy.Imbalance", p.Imbalance, 0, math.MaxFloat64),
		check("Policy.Stretch", p.Stretch, -math.MaxFloat64, 1e3),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

func checkKey(key string) error {
	if key == "" || len(key) > MaxKey {
		return fmt.Errorf("%w: %d bytes, want 1 to %d", ErrKey, len(key), MaxKey)
	}
	return nil
}

func checkValue(value []byte) error {
	if len(value) > MaxValue {
		return fmt.Errorf("%w: %d bytes, want %d at most", ErrValue, len(value), MaxValue)
	}
	return nil
}
