package earlylab

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/samya-db/samya/kvpart/early"
)

// calibrated is the number of threads of the schedulers that Calibrate steps.
const calibrated = 32

// Calibrate measures the costs of steps on this machine. A single goroutine steps real
// schedulers of 32 threads; two goroutines measure the moves of cache lines and the
// wakes. Figures are medians; of the moves of lines the lowest decile.
func Calibrate(now func() time.Time, rounds int) (*Costs, error) {
	c := &calibration{now: now, rounds: max(rounds, 3), taken: make(map[string][]float64)}
	for range c.rounds {
		if err := c.round(); err != nil {
			return nil, err
		}
	}
	if err := c.transfer(); err != nil {
		return nil, err
	}
	for range 3 {
		c.yield()
	}
	if err := c.wakes(); err != nil {
		return nil, err
	}
	empty := c.median("clock")
	at := func(name string) float64 { return max(0, c.median(name)-empty/calibrated) }
	k := &Costs{
		Append: at("append"), Drain: at("drain"), DrainEach: at("drain 16") - at("drain"), Next: at("next"), Mark: at("markers") / calibrated,
		Enter: at("enter"), Leave: at("leave"), Arrive: at("arrive"), Watch: at("watch"), Start: at("start"), Finish: at("finish"),
		Seek: at("seek"), Rob: at("rob"), RobEach: at("rob 16") - at("rob"), Plunder: at("plunder"), Restore: at("restore"),
		Transfer: c.median("transfer"), Wake: c.median("wake"), Handover: c.median("hand-over"), Yield: c.median("yield"),
		// A manual graph takes no lock before a step of a thread.
		Take: at("take") + at("lock"),
	}
	k.DrainEach, k.RobEach = max(0, k.DrainEach/15), max(0, k.RobEach/15)
	k.Scan = max(0, (at("append stealing")-k.Append)/calibrated)
	// The step that lets threads go on looks at each of them.
	k.Open = max(0, c.median("open")-empty-calibrated*k.Scan)
	few, many := at("add"), at("add more")
	// The graph has 16 requests on average in the first part, and 48 in the second.
	k.Compare = max(0, (many-few)/32)
	k.Add = max(0, few-15.5*k.Compare)
	// Requests end in their order: each is the first of the open ones.
	k.End = max(0, at("end")-k.Compare)
	return k, nil
}

type calibration struct {
	now    func() time.Time
	rounds int
	taken  map[string][]float64
}

func (c *calibration) median(name string) float64 {
	all := c.taken[name]
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// each measures a call for each thread, in nanoseconds a call.
func (c *calibration) each(name string, n int, call func(i int)) {
	began := c.now()
	for i := range n {
		call(i)
	}
	c.taken[name] = append(c.taken[name], float64(c.now().Sub(began).Nanoseconds())/float64(n))
}

// manual returns a scheduler with a concurrent class on each thread, and a sequential
// class on all.
func (c *calibration) manual(mode early.Mode) (*early.Manual, error) {
	classes, err := early.NewClasses(calibrated + 1)
	if err != nil {
		return nil, err
	}
	m := &early.Mapping{Threads: calibrated, Of: make([]early.Assignment, calibrated+1)}
	for i := range calibrated {
		m.Of[i].Threads = []int{i}
		m.Of[calibrated].Threads = append(m.Of[calibrated].Threads, i)
	}
	m.Of[calibrated].Sequential = true
	s, err := early.NewManual(early.Options{Mode: mode, Classes: classes, Mapping: m, Queue: 64})
	if err != nil {
		return nil, fmt.Errorf("start a scheduler to measure: %w", err)
	}
	return s, nil
}

// round measures each kind of step once for each thread.
func (c *calibration) round() error {
	const n = calibrated
	c.each("clock", 1, func(int) {})
	m, err := c.manual(early.BusyWait)
	if err != nil {
		return err
	}
	step := m.Bare
	give := func(i int) { m.BarePush(i, mute(i)) }
	for range 4 { // the first are cold
		c.each("append", n, give)
		c.each("drain", n, step)
		c.each("next", n, step)
		c.each("start", n, step)
		c.each("finish", n, step)
		c.each("", n, step) // the batch is over
		for range 16 {
			for i := range n {
				give(i)
			}
		}
		c.each("drain 16", n, step)
		for range 16*3 + 1 {
			for i := range n {
				step(i)
			}
		}
		m.BarePush(n, mute(n))
		c.each("", n, step)
		c.each("", n, step)
		c.each("markers", n, step)
		c.each("arrive", n, step)
		c.each("watch", n-1, step)
		step(n - 1)
		step(n - 1)
		c.each("open", 1, func(int) { step(n - 1) })
		c.each("", n-1, step)
		c.each("", n, step)
	}
	if err := c.meetings(); err != nil {
		return err
	}
	if err := c.steals(); err != nil {
		return err
	}
	return c.graph()
}

// meetings measures the steps of a meeting.
func (c *calibration) meetings() error {
	const n = calibrated
	m, err := c.manual(early.Barriers)
	if err != nil {
		return err
	}
	step := m.Bare
	for range 4 {
		m.BarePush(n, mute(n))
		for range 3 {
			c.each("", n, step)
		}
		c.each("enter", n-1, step)
		c.each("leave", n-1, step)
		step(n - 1)
		c.each("", n, step) // the first meeting is over
		step(0)
		step(0)
		c.each("", n, step)
		c.each("", n, step)
		c.each("", n, step)
	}
	return nil
}

// steals measures steps of threads that steal: even threads from odd ones.
func (c *calibration) steals() error {
	const n = calibrated
	m, err := c.manual(early.Optimistic)
	if err != nil {
		return err
	}
	for range 4 {
		for _, requests := range []int{1, 16} {
			for range requests {
				c.each("append stealing", n/2, func(i int) { m.BarePush(2*i+1, mute(i)) })
			}
			step := func(i int) { m.Bare(2 * i) }
			c.each("", n/2, step) // no work
			c.each("seek", n/2, step)
			name := "rob"
			if requests > 1 {
				name = "rob 16"
			}
			c.each(name, n/2, step)
			c.each("plunder", n/2, step)
			for range 3*requests - 1 {
				c.each("", n/2, step)
			}
			c.each("", n/2, step)
			c.each("restore", n/2, step)
		}
	}
	return nil
}

// graph measures the graph of dependencies, with requests that do not conflict.
func (c *calibration) graph() error {
	m, err := c.manual(early.Late)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	for range 4 {
		c.each("lock", calibrated, func(int) { mu.Lock(); mu.Unlock() }) //nolint:staticcheck // the lock alone is measured
		add := func(int) { m.Add(0, mute(0)); m.Push() }
		c.each("add", 32, add)
		c.each("add more", 32, add)
		for range 64 / calibrated {
			c.each("take", calibrated, func(i int) { m.Step(i) })
			c.each("", calibrated, func(i int) { m.Step(i) })
			c.each("end", calibrated, func(i int) { m.Step(i) })
		}
	}
	return nil
}

// shared is more than a move of a cache line takes on any machine, in nanoseconds: the two
// goroutines ran on a single core in turns.
const shared = 1000

// transfer measures the move of a cache line between two cores: two goroutines change a
// counter in turns. Other programs slow turns down, and none makes them fast, so the
// lowest decile counts of the parts in which both had a core.
func (c *calibration) transfer() error {
	for range 200 {
		if c.turns(); len(c.taken["transfer"]) >= 200 {
			all := c.taken["transfer"]
			slices.Sort(all)
			c.taken["transfer"] = all[:1+len(all)/5] // whose median is the lowest decile
			return nil
		}
		runtime.Gosched()
	}
	return errCores
}

// errCores says that a cost cannot be measured.
var errCores = errors.New("the move of a cache line and the wake need two cores at the same time, and this process never had them")

// turns plays turns for a while.
func (c *calibration) turns() {
	const parts, turns = 50, 200
	var at atomic.Int64
	done := make(chan struct{})
	play := func(mine int64, part func()) {
		for looks := 0; ; looks++ {
			v := at.Load()
			switch {
			case v >= parts*turns:
				return
			case v%2 == mine:
				if mine == 0 && v%turns == 0 {
					part()
				}
				at.Add(1)
				looks = 0
			case looks > 1<<14: // the other has no processor
				runtime.Gosched()
			}
		}
	}
	go func() {
		defer close(done)
		play(1, nil)
	}()
	began := time.Time{}
	play(0, func() {
		now := c.now()
		// A turn moves the line twice: to look at it, and to change it.
		if nanos := float64(now.Sub(began).Nanoseconds()) / turns / 2; !began.IsZero() && nanos < shared {
			c.taken["transfer"] = append(c.taken["transfer"], nanos)
		}
		began = now
	})
	<-done
}

func (c *calibration) yield() {
	const n = 1000
	began := c.now()
	for range n {
		runtime.Gosched()
	}
	c.taken["yield"] = append(c.taken["yield"], float64(c.now().Sub(began).Nanoseconds())/n)
}

// wakes measures the wake of a goroutine that has slept for a while, and the time until
// it runs.
func (c *calibration) wakes() error {
	const enough, most, pause = 300, 6000, 60 * time.Microsecond
	begun, seen := make(chan time.Time, 1), make(chan time.Duration, 1)
	go func() {
		for at := range begun {
			seen <- c.now().Sub(at)
		}
		close(seen)
	}()
	for tries := 0; tries < most && len(c.taken["wake"]) < enough; tries++ {
		for until := c.now().Add(pause); c.now().Before(until); {
			continue // keep this processor, so that the other goroutine's sleeps
		}
		at := c.now()
		begun <- at
		woke := c.now().Sub(at)
		// A receive would park this goroutine, which then would run the other.
		var took time.Duration
		for got := false; !got; {
			select {
			case took = <-seen:
				got = true
			default:
			}
		}
		c.wake(woke, took)
	}
	close(begun)
	for range seen {
		continue
	}
	if len(c.taken["wake"]) < enough/3 {
		return errCores
	}
	return nil
}

// wake notes the time until the wake returned, and the time until the woken goroutine ran.
// Where that goroutine ran first, the other had lost its core to it or to another program,
// and the wake counts for nothing.
func (c *calibration) wake(woke, took time.Duration) {
	if took <= woke {
		return
	}
	c.taken["wake"] = append(c.taken["wake"], float64(woke.Nanoseconds()))
	c.taken["hand-over"] = append(c.taken["hand-over"], float64((took - woke).Nanoseconds()))
}

// MeasureWork measures requests on a single thread, n at a time.
func (o *Options) MeasureWork(n int) *Work {
	state := o.state()
	rnd := rand.New(rand.NewPCG(o.Seed, 7))
	timed := func(write bool, value func() uint64) (nanos, elements float64) {
		var took []float64
		sum := 0.0
		for range 9 {
			began := o.Now()
			for range n {
				v := value()
				sum += float64(v / 2)
				if shard := rnd.IntN(o.Shards); write {
					state.write(shard, v)
				} else {
					state.read(shard, v)
				}
			}
			took = append(took, float64(o.Now().Sub(began).Nanoseconds())/float64(n))
		}
		slices.Sort(took)
		return took[len(took)/2], sum / float64(9*n)
	}
	if o.App == KV {
		key := func() uint64 { return rnd.Uint64N(uint64(o.values())) }
		read, _ := timed(false, key)
		write, _ := timed(true, key)
		return &Work{Read: read, Write: write}
	}
	first := func() uint64 { return 0 }
	spread := func() uint64 { return rnd.Uint64N(uint64(o.Size)) * 2 }
	read, _ := timed(false, first)
	write, _ := timed(true, first)
	all, elements := timed(false, spread)
	return &Work{Read: read, Write: write, Element: max(0, all-read) / max(elements, 1)}
}
