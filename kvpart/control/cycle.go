package control

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/samya-db/samya/kvpart/cut"
	"github.com/samya-db/samya/kvpart/workload"
)

// job is a snapshot to cut. The next job reuses its memory.
type job[E Entry] struct {
	began  time.Duration
	number int64
	cold   bool    // the cut starts from scratch
	noise  float64 // how far chance moves the balance
	pace   float64 // share of a core that the cut may take, while it is under way
	snap   workload.Snapshot
	owners []E         // by vertex of the snapshot's graph
	index  map[E]int32 // of owners
	start  []int32
	run    []E // the entries that ascend looks at
	order  order
}

// result is the outcome of a job. If apply is set the map is prepared: it counts from the
// next switch on.
type result struct {
	err   error
	apply bool
	next  quality
	took  time.Duration // since the snapshot
	spent time.Duration // processor time
	moved int64
	hubs  []string
}

// mostHubs is the most hubs reported by name.
const mostHubs = 16

// A cut yields each time it may, as long as others are soon done: short requests then
// hardly notice it. Where others always want the processor, and for long, the cut would
// get nowhere. Then it runs for a giveWay-th of the time it waited, at most mostAtOnce,
// before it yields again.
const (
	giveWay    = 4
	mostAtOnce = 10 * time.Millisecond
)

// Once a map was applied, a cut under way takes at most leastPace of a core, or twice the
// share if that is more. Requests lose no more of the core. A rest takes at least
// leastRest.
const (
	leastPace = .3
	leastRest = time.Millisecond
)

// pace returns the share of a core that a cut may take while it is under way.
func (c *Controller[E]) pace() float64 {
	if p := &c.opt.Policy; p.Kind != Base && p.Share < 1 && c.stats.Applied > 0 {
		return min(1, max(leastPace, 2*p.Share))
	}
	return 1
}

// snapshot fills the job with the graph as it is.
func (t *tracker[E]) snapshot(j *job[E]) {
	t.graph.Copy(&j.snap)
	clear(j.owners)
	j.owners = j.owners[:0]
	for _, v := range j.snap.Vertices {
		j.owners = append(j.owners, t.owners[v])
	}
}

// cycle does a job: it builds the graph, cuts it, and prepares the map if it is better
// than the present map.
func (c *Controller[E]) cycle(ctx context.Context, j *job[E]) *result {
	m := c.opt.meter()
	m.start()
	began := m.wall
	next := time.Duration(0) // when to yield again
	yield := func() {
		now := c.opt.Now()
		if now < next {
			return
		}
		m.stop()
		c.opt.Yield()
		waited := c.opt.Now() - now
		if owed := time.Duration(float64(m.sum)/j.pace) - (now + waited - began); owed >= leastRest {
			c.opt.Rest(ctx, owed)
		}
		m.start()
		next = m.wall + min(waited/giveWay, mostAtOnce)
	}
	r, err := c.compute(ctx, j, yield)
	m.stop()
	if err != nil {
		r = &result{err: err}
	}
	r.spent = m.total()
	return r
}

func (c *Controller[E]) compute(ctx context.Context, j *job[E], yield func()) (*result, error) {
	k := c.opt.Scheduler.Partitions()
	g := j.snap.Build(yield)
	j.start = j.start[:0]
	defer clear(j.index)
	for i, e := range j.owners {
		p, gone, _ := c.opt.Scheduler.Look(e)
		if gone {
			p = unplaced
		}
		j.start = append(j.start, int32(p))
		j.index[e] = int32(i)
		if i%stride == stride-1 {
			yield()
		}
	}
	present := weigh(g, j.start, k, yield)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	// A map at least half as bad as a random map is not worth keeping to.
	j.cold = j.cold || present.share() > (1-1/float64(k))/2
	parts, err := c.newMap(ctx, j, g, k, yield)
	if err != nil {
		return nil, fmt.Errorf("map %d keys: %w", len(j.owners), err)
	}
	r := &result{next: weigh(g, parts.Parts, k, yield)}
	r.took = c.opt.Now() - j.began
	for _, v := range parts.Hubs[:min(mostHubs, len(parts.Hubs))] {
		r.hubs = append(r.hubs, j.owners[v].Key())
	}
	p := &c.opt.Policy
	noise := j.noise
	if p.Balance == Graph {
		noise = balanceNoise(k, present.weight)
	}
	if p.Balance == Libra {
		present.cut, r.next.cut = 0, 0 // ranges are kept together, not keys of the same requests
	}
	r.apply = better(present, r.next, p.Gain, p.tolerated(), noise)
	if r.apply {
		if r.moved, err = c.prepare(j, g, parts.Parts, yield); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// newMap finds a new map by the policy's balance.
func (c *Controller[E]) newMap(ctx context.Context, j *job[E], g *cut.Graph, k int, yield func()) (*cut.Result, error) {
	if c.opt.Policy.Balance == Libra {
		parts, err := c.ranges(j, g, k, yield)
		return &cut.Result{Parts: parts}, err
	}
	r, err := c.cut(ctx, j, c.neighbors(j, g, yield), k, yield)
	if err == nil && c.opt.Policy.Balance == Both {
		err = c.groups(ctx, j, g, k, r.Parts, yield)
	}
	return r, err
}

// cut cuts the graph, from the present map or from scratch. After a cut from scratch it
// names each part after the present part it resembles most.
func (c *Controller[E]) cut(ctx context.Context, j *job[E], g *cut.Graph, k int, yield func()) (*cut.Result, error) {
	o := cut.Options{
		Parts: k, Imbalance: c.opt.Policy.Imbalance, Stretch: c.opt.Policy.Stretch,
		Seed: c.opt.Seed + uint64(j.number), Yield: yield,
	}
	if !j.cold {
		o.Start = j.start
		return c.opt.Cut(ctx, g, o)
	}
	r, err := c.opt.Cut(ctx, g, o)
	if err == nil {
		cut.Relabel(r.Parts, j.start, k)
	}
	return r, err
}

// prepare assigns every key of the map, and further keys by fill.
func (c *Controller[E]) prepare(j *job[E], g *cut.Graph, parts []int32, yield func()) (moved int64, err error) {
	assign := func(e E, p int) error {
		moves, err := c.opt.Scheduler.Assign(e, p)
		if err != nil {
			return fmt.Errorf("assign %q to partition %d: %w", e.Key(), p, err)
		}
		if moves {
			moved++
		}
		return nil
	}
	for i, e := range j.owners {
		if err := assign(e, int(parts[i])); err != nil {
			return moved, err
		}
		if i%stride == stride-1 {
			yield()
		}
	}
	// Where all requests have a single key, neighbours say nothing, except of ranges.
	if c.opt.Policy.Replace || len(g.Neighbors) > 0 || c.opt.Policy.Balance == Libra {
		err = c.fill(j, parts, assign, yield)
	}
	return moved, err
}

// fill deals with the keys missing from the map. With Replace they become unplaced.
// Otherwise keys between two keys of the same new partition follow both, lest a scan
// cross partitions. All other keys stay.
func (c *Controller[E]) fill(j *job[E], parts []int32, assign func(E, int) error, yield func()) error {
	const most = 1 << 12 // longest gap that is closed, in keys
	var gap []E
	before := int32(unplaced) // new partition of the last key of the map
	return c.ascend(j, func(e E) error {
		p := int32(unplaced)
		if v := j.vertex(e); v >= 0 {
			p = parts[v]
		}
		switch {
		case p < 0 && c.opt.Policy.Replace:
			return assign(e, unplaced)
		case p < 0 && len(gap) < most:
			gap = append(gap, e)
		case p < 0:
			before = unplaced
		default:
			if p == before {
				for _, e := range gap {
					if err := assign(e, int(p)); err != nil {
						return err
					}
				}
			}
			gap, before = gap[:0], p
		}
		return nil
	}, yield)
}

// ascend visits the keys of the scheduler in ascending order.
func (c *Controller[E]) ascend(j *job[E], visit func(E) error, yield func()) error {
	const step = 256 // entries at a time, while the index of the scheduler is locked
	defer func() { clear(j.run) }()
	for from := ""; ; {
		j.run = c.opt.Scheduler.Entries(j.run[:0], from, step)
		for _, e := range j.run {
			if err := visit(e); err != nil {
				return err
			}
		}
		if len(j.run) < step {
			return nil
		}
		from = j.run[len(j.run)-1].Key() + "\x00"
		yield()
	}
}

// vertex returns the vertex of e in the snapshot's graph, or -1. The number in the entry
// would not do: by now it may name the vertex of another entry.
func (j *job[E]) vertex(e E) int32 {
	if v, ok := j.index[e]; ok {
		return v
	}
	return -1
}

// finish deals with the result of a cycle: it switches to a prepared map.
func (c *Controller[E]) finish(r *result) {
	now := c.opt.Now()
	c.policy.cut(now, r.spent)
	s := &c.stats
	s.CuttingTime += r.spent
	if r.err == nil && r.apply {
		if err := c.opt.Scheduler.Switch(); err != nil {
			r.err = fmt.Errorf("switch the map: %w", err)
		}
	}
	switch {
	case r.err != nil && c.ctx.Err() != nil:
		// Close gave the cycle up.
	case r.err != nil:
		s.Failed++
		if c.opt.Failed != nil {
			c.opt.Failed(r.err)
		}
	case r.apply:
		s.Applied++
		s.Moved += r.moved
	default:
		s.Skipped++
	}
	if r.err == nil {
		s.Computed++
		s.LastCut, s.LastBalance, s.LastCutTime = r.next.share(), r.next.balance, r.took
		s.Hubs = r.hubs
	}
	c.policy.done(now, r.err == nil && r.apply, &c.tracker.signal)
}

// rateOf converts a share of requests for the tracker.
func rateOf(share float64) uint64 { return uint64(math.Round(share * whole)) }
