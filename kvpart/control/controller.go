package control

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/samya-db/samya/kvpart/cut"
	"github.com/samya-db/samya/kvpart/workload"
)

// Controller tracks requests and assigns keys anew. It has two loops, around Step and
// around Cut. A simulator calls Step and Cut itself.
type Controller[E Entry] struct {
	opt     Options[E]
	tracker *tracker[E]
	policy  *policy
	handoff handoff[E]
	job     job[E]
	since   int64 // requests tracked when the last cycle began
	meter   meter
	cutter  chan struct{} // wakes the loop around Cut

	ctx    context.Context // ended by Close
	cancel context.CancelFunc
	loops  sync.WaitGroup

	mu        sync.Mutex
	stats     Stats // of the controller
	published Stats // guarded by mu
}

// New makes a controller. Its loops do not run before Start. It fails if an option is out of range.
func New[E Entry](o Options[E]) (*Controller[E], error) {
	if err := o.Policy.check(); err != nil {
		return nil, err
	}
	if o.Rand == nil {
		o.Rand = rand.Uint64
	}
	if o.Yield == nil {
		o.Yield = runtime.Gosched
	}
	if o.Rest == nil {
		o.Rest = rest
	}
	if o.Cut == nil {
		o.Cut = cut.Partition
	}
	t, err := newTracker(&o)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errOptions, err)
	}
	c := &Controller[E]{
		opt: o, tracker: t, policy: newPolicy(o.Policy, o.Now()),
		meter: o.meter(), cutter: make(chan struct{}, 1),
	}
	c.job.index = map[E]int32{}
	c.handoff.nudge = t.nudge
	c.ctx, c.cancel = context.WithCancel(context.Background())
	t.rate.Store(rateOf(c.policy.sample()))
	c.publish()
	return c, nil
}

// Observe takes the entries of a request; zero elements are ignored. It may be called at
// the same time, and is quick.
func (c *Controller[E]) Observe(entries []E) {
	if ticket, ok := c.tracker.pick(); ok {
		c.tracker.put(ticket, entries, workload.Load{1})
	}
}

// Pick is called for each request, before it runs, where loads are balanced. It reports
// whether to measure the load of the request, for Record.
func (c *Controller[E]) Pick() (ticket Ticket, ok bool) { return c.tracker.pick() }

// Record takes the entries of a measured request, zero elements are ignored, and the load
// of each of its keys: nanoseconds of processor time, and bytes of values written. It may
// be called at the same time, and is quick.
func (c *Controller[E]) Record(ticket Ticket, entries []E, load workload.Load) {
	c.tracker.put(ticket, entries, load)
}

// Start runs the loops until Close.
func (c *Controller[E]) Start() {
	c.loops.Go(func() {
		timer := time.NewTimer(0)
		defer timer.Stop()
		for {
			select {
			case <-c.ctx.Done():
				return
			case <-timer.C:
			case <-c.tracker.wake:
			}
			timer.Reset(c.Step())
		}
	})
	c.loops.Go(func() {
		for {
			select {
			case <-c.ctx.Done():
				return
			case <-c.cutter:
			}
			c.Cut()
		}
	})
}

// rest waits for d, or until ctx ends.
func rest(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// Close ends the loops, and with them a cut under way.
func (c *Controller[E]) Close() {
	c.cancel()
	c.loops.Wait()
}

// Stats returns the counts as of the last Step.
func (c *Controller[E]) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.published
}

// The longest wait of Step for its next call: while requests come, and while none come.
const (
	busyStep = 10 * time.Millisecond
	idleStep = 100 * time.Millisecond
)

// The approximate cost of tracking to a dispatcher, which is not measured.
const (
	observeTime    = 40 * time.Nanosecond
	observeKeyTime = 2 * time.Nanosecond
	// measureTime is for two readings of the clock of a thread.
	measureTime = 700 * time.Nanosecond
)

func (p *Policy) observeTime() time.Duration {
	if p.Balance == Graph {
		return observeTime
	}
	return observeTime + measureTime
}

// Step records the observed requests, begins a cycle if it is time, and ends a cycle that
// is done. It returns the time until its next call, unless it is nudged earlier. It does
// not wait for a cut of Async; a cycle of Base runs within Step.
func (c *Controller[E]) Step() time.Duration {
	wait := idleStep
	if c.record() {
		wait = busyStep
	}
	if r := c.handoff.take(); r != nil {
		c.finish(r)
	}
	now := c.opt.Now()
	t := c.tracker
	c.policy.settled = t.disk.measure(now, c.opt.Written)
	switch {
	case c.opt.Policy.Kind == Base:
		if t.count.Load() >= t.base {
			c.opt.Scheduler.Hold(c.baseCycle)
			t.count.Store(0)
		}
	case c.policy.start(now, &t.signal, t.tracked-c.since):
		c.begin(now)
		c.handoff.give(&c.job)
		select {
		case c.cutter <- struct{}{}:
		default:
		}
	}
	t.rate.Store(rateOf(c.policy.sample()))
	c.publish()
	return wait
}

// Cut does the waiting job, and reports whether there was a job.
func (c *Controller[E]) Cut() bool {
	return c.handoff.do(func(j *job[E]) *result { return c.cycle(c.ctx, j) })
}

// record takes the observed requests into the graph, and reports whether there were any.
func (c *Controller[E]) record() bool {
	dropped := c.tracker.dropped
	c.meter.start()
	requests, keys := c.tracker.drain()
	c.meter.stop()
	spent := c.meter.total() + time.Duration(requests)*c.opt.Policy.observeTime() + time.Duration(keys)*observeKeyTime
	c.stats.TrackingTime += spent
	c.policy.track(c.opt.Now(), spent, requests, c.tracker.dropped > dropped)
	return requests > 0
}

// begin fills the job with a snapshot.
func (c *Controller[E]) begin(now time.Duration) {
	c.since = c.tracker.tracked
	c.meter.start()
	c.tracker.snapshot(&c.job)
	c.meter.stop()
	spent := c.meter.total()
	c.stats.CuttingTime += spent
	c.policy.cut(now, spent)
	c.job.began = now
	c.job.number = c.stats.Computed
	c.job.pace = c.pace()
	even := c.policy.last.even
	if c.opt.Policy.Kind == Base { // never judged
		even = c.tracker.signal.outcome().even
	}
	c.job.noise = balanceNoise(c.opt.Scheduler.Partitions(), int64(even*float64(c.tracker.graph.Requests())))
	// The first map is not worth keeping to. And where cuts that start from the present
	// map bring nothing, a cut from scratch may.
	c.job.cold = c.job.number == 0 || c.policy.level > 0
}

// baseCycle is a cycle while no request is dispatched.
func (c *Controller[E]) baseCycle() {
	c.record()
	c.begin(c.opt.Now())
	c.finish(c.cycle(c.ctx, &c.job))
}

// publish copies the counts for Stats.
func (c *Controller[E]) publish() {
	s, t := &c.stats, c.tracker
	s.Tracked, s.Dropped = t.tracked, t.dropped
	s.Sample, s.Interval = c.policy.sample(), c.policy.interval()
	s.Vertices, s.Edges = t.graph.Vertices(), t.graph.Edges()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.published = *s
}
