package control

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"github.com/samya-db/samya/kvpart/libra"
	"github.com/samya-db/samya/kvpart/workload"
)

const (
	// look is the least time between two judgements of the signal. A judgement waits for
	// enough requests, but after patience it makes do with some.
	look = 100 * time.Millisecond
	// A policy that balances loads looks less often, as files grow in steps, and makes do
	// with fewer requests: where disks are the bottleneck there are no more.
	lookLoad   = time.Second
	enoughLoad = 200
	freshLoad  = 1000
	enough     = 4000
	patience   = 5 * time.Second
	some       = 100
	// fresh is the number of requests since the last cut that make another cut
	// worthwhile.
	fresh = 10_000
	// mostBacking bounds how often backing off doubles the interval, from Every or
	// leastInterval on. Each time it also quarters the share of requests tracked, but
	// calm requests a second stay.
	mostBacking   = 5
	leastInterval = 50 * time.Millisecond
	calm          = 4000
	// noCut is the largest share of requests on several partitions not worth a cut.
	noCut = .005
	// fluctuation is the change of a partition's load between two judgements, beyond chance,
	// that suspends balancing (Zhang et al., section IV-A).
	fluctuation = .2
	// saved is for how long the budget saves unspent time.
	saved = time.Second
)

// policy decides when to cut and how much to track: a state machine that is handed the
// time, the time spent and the requests seen.
//
// A cycle begins with start and ends with done. The worth of its map shows only
// afterwards: the outcome under the map is compared with the outcome before. Cuts that do
// not pay, and maps under which all is well, make the policy back off. An outcome worse
// than at that time makes it come back.
type policy struct {
	Policy
	budget budget
	busy   bool
	began  time.Duration // when the last cycle began
	ever   bool          // there was a cycle

	judged  time.Duration // when the signal was last judged
	need    bool          // a cut may bring something, as of judged
	guard   libra.Guard   // of a policy that balances loads
	settled bool          // no data is on its way to its partition
	level   int           // of backing off, 0 to mostBacking
	basis   outcome       // outcome when the policy last backed off
	last    outcome       // outcome when last judged
	applied bool          // a map was applied and has not shown its worth
	before  outcome       // outcome under the previous map

	fits    float64 // share of requests that can be tracked within the budget
	few     float64 // share of requests that amounts to calm a second
	adapted time.Duration
	spent   time.Duration // time spent on tracking since adapted
	tracked int           // requests tracked since adapted
}

// check sets defaults for fields that are 0. It fails with errOptions if a field is out
// of its range.
func (p *Policy) check() error {
	set := func(v *float64, to float64) {
		if *v == 0 {
			*v = to
		}
	}
	set(&p.Gain, defaultGain)
	set(&p.Share, defaultShare)
	set(&p.Imbalance, defaultImbalance)
	set(&p.Stretch, defaultStretch)
	set(&p.Tolerance, libra.DefaultTolerance)
	if p.Balance != Graph && p.Window == 0 {
		p.Window = defaultWindow
	}
	p.Vertices = cmp.Or(p.Vertices, defaultVertices)
	p.Edges = cmp.Or(p.Edges, defaultEdges)
	switch {
	case p.Kind > Base:
		return fmt.Errorf("%w: kind %d", errOptions, p.Kind)
	case p.Kind == Base && p.Operations < 1:
		return fmt.Errorf("%w: operations of %d, below 1", errOptions, p.Operations)
	case p.Every < 0:
		return fmt.Errorf("%w: every %v, below 0", errOptions, p.Every)
	case p.Window < 0 || p.Window > workload.MaxWindow:
		return fmt.Errorf("%w: window of %d, not from 0 to %d", errOptions, p.Window, workload.MaxWindow)
	case !(p.Gain < 1):
		return fmt.Errorf("%w: gain of %v, not below 1", errOptions, p.Gain)
	case !(p.Share > 0):
		return fmt.Errorf("%w: share of %v, not above 0", errOptions, p.Share)
	case !(p.Sample >= 0 && p.Sample <= 1):
		return fmt.Errorf("%w: sample of %v, not from 0 to 1", errOptions, p.Sample)
	case !(p.Imbalance > 0):
		return fmt.Errorf("%w: imbalance of %v, not above 0", errOptions, p.Imbalance)
	case math.IsNaN(p.Stretch):
		return fmt.Errorf("%w: stretch of %v", errOptions, p.Stretch)
	case p.Balance > Both:
		return fmt.Errorf("%w: balance %d", errOptions, p.Balance)
	case !(p.Tolerance > 0 && p.Tolerance < 1):
		return fmt.Errorf("%w: tolerance of %v, not above 0 and below 1", errOptions, p.Tolerance)
	}
	return nil
}

// dims is the number of loads of a key.
func (p *Policy) dims() int {
	if p.Balance == Graph {
		return 1
	}
	return 2
}

// tolerated returns the largest imbalance of a map worth applying, which is no reason to
// cut either.
func (p *Policy) tolerated() float64 {
	if p.Balance != Graph {
		return p.Tolerance
	}
	return max(p.Imbalance, p.Stretch)
}

func newPolicy(p Policy, now time.Duration) *policy {
	b := budget{share: p.Share, at: now}
	if p.Kind == Base {
		b.share = 1
	}
	return &policy{Policy: p, budget: b, fits: 1, few: 1, judged: now, adapted: now, settled: true}
}

// track accounts for tracked requests and the processor time of tracking. It adapts the
// sampling: tracking takes at most half of the share.
func (p *policy) track(now, spent time.Duration, requests int, dropped bool) {
	p.budget.spend(now, spent)
	p.spent += spent
	p.tracked += requests
	over := now - p.adapted
	if over < look {
		return
	}
	offered := float64(p.tracked) / p.sample() / over.Seconds()
	p.few = min(1, calm/max(offered, 1))
	may := float64(over) * p.Share / 2
	switch {
	case p.Share < 1 && float64(p.spent) > may:
		p.fits *= max(.1, .9*may/float64(p.spent))
	case dropped:
		p.fits /= 2
	default:
		p.fits *= 1.2
	}
	p.fits = min(max(p.fits, 1./(1<<16)), 1)
	p.spent, p.tracked, p.adapted = 0, 0, now
}

// sample returns the share of requests to track.
func (p *policy) sample() float64 {
	switch {
	case p.Sample > 0:
		return p.Sample
	case p.Kind == Base:
		return 1
	}
	return min(p.fits, max(p.few, math.Ldexp(1, -2*p.level)))
}

// interval returns the least time between the beginnings of two cycles.
func (p *policy) interval() time.Duration {
	if p.level == 0 {
		return p.Every
	}
	return max(p.Every, leastInterval) << p.level
}

// always reports whether to cut whatever a cut brings.
func (p *policy) always() bool { return p.Gain < 0 }

// start reports whether to begin a cycle; if so the cycle has begun. tracked is the
// number of requests recorded since the last cycle began. start resets the signal after
// judging it.
func (p *policy) start(now time.Duration, s *signal, tracked int64) bool {
	if p.Kind != Async {
		return false
	}
	if !p.busy && p.due(now, s) {
		o := s.outcome()
		p.judge(o)
		p.need = p.need && p.steady(s, o, now-p.judged)
		p.judged = now
		s.reset()
	}
	if p.busy || !p.need || p.ever && now-p.began < p.interval() || !p.budget.ok(now) || !p.collected(now, tracked) {
		return false
	}
	p.busy, p.began, p.ever = true, now, true
	return true
}

// due reports whether the signal is worth judging.
func (p *policy) due(now time.Duration, s *signal) bool {
	over := now - p.judged
	if p.always() {
		return s.requests > 0
	}
	if p.Balance != Graph {
		return p.dueLoad(over, s)
	}
	return over >= look && s.requests >= min(enough, p.window()) || over >= patience && s.requests >= some
}

// dueLoad is due of a policy that balances loads. An imbalance beyond chance is judged
// soon; small imbalances take as many requests as make chance smaller than the tolerance.
func (p *policy) dueLoad(over time.Duration, s *signal) bool {
	if over < lookLoad || s.requests < min(enoughLoad, p.window()) {
		return over >= patience && s.requests >= some
	}
	o := s.outcome()
	return over >= patience || o.balanceNoise <= p.Tolerance || o.balance > 1+p.Tolerance+o.balanceNoise
}

// steady reports whether the loads of partitions are steady enough to act on.
func (p *policy) steady(s *signal, o outcome, over time.Duration) bool {
	if p.Balance == Graph || p.always() {
		return true
	}
	if !p.settled {
		p.guard = libra.Guard{}
		return false
	}
	rates := make([]libra.Load, len(s.loads))
	for i, l := range s.loads {
		for d := range l {
			rates[i][d] = l[d] / over.Seconds()
		}
	}
	p.guard.Limit = fluctuation + o.balanceNoise
	return p.guard.Steady(rates)
}

// collected reports whether enough requests came since the last cut.
func (p *policy) collected(now time.Duration, tracked int64) bool {
	least := int64(fresh)
	if p.Balance != Graph {
		least = freshLoad
	}
	return tracked >= min(least, p.window()) || now-p.began >= patience && tracked >= some
}

func (p *policy) window() int64 {
	if p.Window == 0 {
		return math.MaxInt64
	}
	return int64(p.Window)
}

// judge takes in the outcome of the present map.
func (p *policy) judge(o outcome) {
	p.last = o
	if p.always() {
		p.need = true
		return
	}
	p.need = p.Balance != Libra && o.multi > noCut || o.balance > 1+p.tolerated()+o.balanceNoise
	switch {
	case p.applied && o.better(p.before, p.Gain):
		p.level = 0
	case p.applied || !p.need:
		p.back(o)
	case p.level > 0 && o.worse(p.basis):
		p.level = 0
	}
	p.applied = false
}

// back backs off.
func (p *policy) back(o outcome) {
	if p.level < mostBacking {
		p.level++
	}
	p.basis = o
}

// cut accounts for processor time of a cut.
func (p *policy) cut(now, spent time.Duration) { p.budget.spend(now, spent) }

// done ends a cycle; applied says whether its map was applied.
func (p *policy) done(now time.Duration, applied bool, s *signal) {
	p.busy = false
	if p.Kind != Async || p.always() {
		return
	}
	if !applied {
		p.back(p.last)
		return
	}
	// p.last is the best knowledge of the replaced map.
	p.before, p.applied = p.last, true
	p.need = false
	p.judged = now
	s.reset()
}

// budget is the processor time that may be spent: share of the time that passes. Work
// begun within the budget may overdraw it; the debt is paid back before other work
// begins. So at any time no more than the share plus the time of a single cut was spent.
type budget struct {
	share  float64
	credit time.Duration
	at     time.Duration
}

func (b *budget) accrue(now time.Duration) {
	b.credit += time.Duration(b.share * float64(now-b.at))
	b.credit = min(b.credit, time.Duration(b.share*float64(saved)))
	b.at = now
}

func (b *budget) spend(now, d time.Duration) {
	b.accrue(now)
	b.credit -= d
}

// ok reports whether work may begin.
func (b *budget) ok(now time.Duration) bool {
	b.accrue(now)
	return b.share >= 1 || b.credit >= 0
}
