package earlyscheduling

import (
	"fmt"
	"math"

	"github.com/samya-db/samya/kvpart/early"
	"github.com/samya-db/samya/lab/earlylab"
	"github.com/samya-db/samya/lab/experiment"
)

// The bounds of the goals.
const (
	overEarly  = 4.0 // least busy-wait, and stealing, over barriers on the light list
	overOthers = 2.0 // least optimistic stealing over the variants with meetings
	nearOne    = 1.5 // most of any mode over the sequential run, heavy requests, most writes
)

// The loads that claims are about.
func (m *measured) few() float64    { return m.writes[0] }
func (m *measured) middle() float64 { return m.writes[len(m.writes)/2] }
func (m *measured) many() float64   { return m.writes[len(m.writes)-1] }

// between is the throughput of a mode over another on the same load, with threads that
// wait as the paper's.
func (m *measured) between(l load, a, b string) float64 {
	return m.rate(asPaper(l, a)) / m.rate(asPaper(l, b))
}

// skewLoss is the throughput that a mode loses by skew, in %.
func (m *measured) skewLoss(size, queue, k int, w float64, mode string) float64 {
	balanced, skewed := sharded(size, k, w, m.most(), false), sharded(size, k, w, m.most(), true)
	balanced.queue, skewed.queue = queue, queue
	return 100 * (1 - m.rate(asPaper(skewed, mode))/m.rate(asPaper(balanced, mode)))
}

// overMeetings is optimistic stealing over the better of the variants with meetings.
func (m *measured) overMeetings(l load) float64 {
	others := max(m.rate(asPaper(l, early.Conservative.String())), m.rate(asPaper(l, early.Moderate.String())))
	return m.rate(asPaper(l, optimistic)) / others
}

// parallel are the modes with several threads of Figures 2 and 4.
var parallel = []string{barriers, busyWait, optimistic, late}

// goals judges the claims that do not depend on the machine's costs, in virtual time.
func (m *measured) goals() []experiment.Goal {
	n := m.most()
	light := func(w float64) load { return list(sizes[0], w, n) }
	what := func(format string, args ...any) string {
		return fmt.Sprintf("virtual time, %d threads, ", n) + fmt.Sprintf(format, args...)
	}
	most := 0.0
	for _, mode := range parallel {
		most = max(most, m.over(asPaper(list(sizes[2], m.many(), n), mode)))
	}
	return []experiment.Goal{
		judged(experiment.AtLeast(what("light, %s writes: busy-wait over early", percent(m.middle())), m.between(light(m.middle()), busyWait, barriers), overEarly, "×")),
		judged(experiment.AtLeast(what("light, %s writes: busy-wait over early", percent(m.many())), m.between(light(m.many()), busyWait, barriers), overEarly, "×")),
		judged(experiment.AtLeast(what("light, %s writes: optimistic stealing over early", percent(m.middle())), m.between(light(m.middle()), optimistic, barriers), overEarly, "×")),
		judged(experiment.AtLeast(what("light, %s writes: optimistic stealing over conservative and moderate", percent(m.middle())), m.overMeetings(light(m.middle())), overOthers, "×")),
		judged(experiment.AtMost(what("heavy, %s writes: the best mode over the sequential run", percent(m.many())), most, nearOne, "×")),
	}
}

// judged marks a goal without a number as unmeasured.
func judged(g experiment.Goal) experiment.Goal {
	if math.IsNaN(g.Got) || math.IsInf(g.Got, 0) {
		return experiment.Unmeasured(g)
	}
	return g
}

// compared are the claims of the paper beside ours in virtual time.
func (m *measured) compared() []experiment.Comparison {
	n, few, middle, many := m.most(), m.few(), m.middle(), m.many()
	light := func(w float64) load { return list(sizes[0], w, n) }
	waiting := func(l load, waits earlylab.Waits) float64 {
		return m.rate(run{load: l, mode: busyWait, waits: waits}) / m.rate(run{load: l, mode: barriers, waits: waits})
	}
	cheap := func(mode string) run {
		r := asPaper(light(middle), mode)
		r.cheap = true
		return r
	}
	loss := func(size, queue int, mode string) float64 { return m.skewLoss(size, queue, 8, few, mode) }
	all := []experiment.Comparison{
		{What: fmt.Sprintf("Fig. 2a: light, %s writes, 8 threads: busy-wait over early", percent(few)), Unit: "×", Ours: m.between(list(sizes[0], few, 8), busyWait, barriers), Why: "The paper says slightly better. A sleep costs more here, beside a shorter request."},
		{What: fmt.Sprintf("Fig. 2b: light, %s writes: busy-wait over early", percent(middle)), Unit: "×", Paper: new(4.0), Ours: m.between(light(middle), busyWait, barriers), Why: "As above."},
		{What: "– wakes ten times as cheap", Unit: "×", Paper: new(4.0), Ours: m.rate(cheap(busyWait)) / m.rate(cheap(barriers)), Why: "Even then a sleep costs as much as several requests."},
		{What: "– no thread sleeps", Unit: "×", Paper: new(4.0), Ours: waiting(light(middle), earlylab.SpinLonger), Why: "What is left is the lock of a meeting beside a counter, twice a request."},
		{What: fmt.Sprintf("Fig. 2c: light, %s writes: busy-wait over early", percent(many)), Unit: "×", Paper: new(4.0), Ours: m.between(light(many), busyWait, barriers), Why: "As for Fig. 2b."},
		{What: fmt.Sprintf("Fig. 2d: moderate, %s writes: busy-wait over early", percent(few)), Unit: "×", Ours: m.between(list(sizes[1], few, n), busyWait, barriers), Why: "The paper says by a large margin."},
		{What: fmt.Sprintf("Fig. 2i: heavy, %s writes: busy-wait over sequential", percent(many)), Unit: "×", Paper: new(1.0), Ours: m.over(asPaper(list(sizes[2], many, n), busyWait)), Why: "No difference."},
		{What: fmt.Sprintf("Fig. 2i: heavy, %s writes: early over sequential", percent(many)), Unit: "×", Paper: new(1.0), Ours: m.over(asPaper(list(sizes[2], many, n), barriers)), Why: fmt.Sprintf("Waking %d threads costs more than a heavy request here; the paper's is several times as long.", n)},
		{What: fmt.Sprintf("Fig. 3: light, %s writes: conservative over early", percent(middle)), Unit: "×", Paper: new(1.0), Ours: m.between(light(middle), early.Conservative.String(), barriers), Why: "No difference."},
		{What: fmt.Sprintf("Fig. 3: light, %s writes: moderate over early", percent(middle)), Unit: "×", Paper: new(1.0), Ours: m.between(light(middle), early.Moderate.String(), barriers), Why: "One meeting of two is left."},
		{What: fmt.Sprintf("Fig. 3: light, %s writes: optimistic over conservative and moderate", percent(middle)), Unit: "×", Paper: new(2.0), Ours: m.overMeetings(light(middle)), Why: "As for Fig. 2b."},
		{What: fmt.Sprintf("Fig. 3: light, %s writes: optimistic over aggressive", percent(middle)), Unit: "×", Paper: new(2.0), Ours: m.between(light(middle), optimistic, early.Aggressive.String()), Why: "The price of locks that nobody waits for is small; virtual time lets no thread sleep at a lock."},
		{What: fmt.Sprintf("Fig. 4b: light, %s writes: optimistic over early", percent(middle)), Unit: "×", Paper: new(4.0), Ours: m.between(light(middle), optimistic, barriers), Why: "As for Fig. 2b."},
		{What: fmt.Sprintf("Fig. 4b: light, %s writes: optimistic over late", percent(middle)), Unit: "×", Paper: new(4.0), Ours: m.between(light(middle), optimistic, late), Why: "The graph's lock, and its sleeps."},
		{What: fmt.Sprintf("Fig. 4: light, %s writes: busy-wait over optimistic", percent(middle)), Unit: "×", Ours: m.between(light(middle), busyWait, optimistic), Why: "The paper says slightly better. Thieves take the lines of queues from the producer."},
		{What: fmt.Sprintf("Fig. 5: light, 8 shards, %s writes: busy-wait loses by skew", percent(few)), Unit: "%", Paper: new(33.0), Ours: loss(sizes[0], 0, busyWait), Why: "Four of 32 threads have more than half of the requests. The producer bounds such short requests as well."},
		{What: fmt.Sprintf("Fig. 5: light, 8 shards, %s writes: optimistic loses by skew", percent(few)), Unit: "%", Paper: new(6.0), Ours: loss(sizes[0], 0, optimistic), Why: "Thieves of other shards help."},
		{What: fmt.Sprintf("– heavy, short queues, 8 shards, %s writes: busy-wait loses by skew", percent(few)), Unit: "%", Paper: new(33.0), Ours: loss(sizes[2], shortQueue, busyWait), Why: "The threads of the busy shard bound the rate."},
		{What: fmt.Sprintf("– heavy, short queues, 8 shards, %s writes: optimistic loses by skew", percent(few)), Unit: "%", Paper: new(6.0), Ours: loss(sizes[2], shortQueue, optimistic), Why: "Thieves of other shards help."},
		{What: fmt.Sprintf("– heavy, long queues, 8 shards, %s writes: optimistic loses by skew", percent(few)), Unit: "%", Paper: new(6.0), Ours: loss(sizes[2], 0, optimistic), Why: "Threads take over whole queues, and nobody can steal from a batch taken over."},
		{What: fmt.Sprintf("Fig. 5: light, 4 shards, %s writes, skewed: optimistic over busy-wait", percent(many)), Unit: "×", Ours: m.between(sharded(sizes[0], 4, many, n, true), optimistic, busyWait), Why: "The paper says better. With so many writes there is little to steal."},
		{What: fmt.Sprintf("– heavy, 4 shards, %s writes, skewed: optimistic over busy-wait", percent(many)), Unit: "×", Ours: m.between(sharded(sizes[2], 4, many, n, true), optimistic, busyWait), Why: "As above."},
		{What: fmt.Sprintf("Fig. 7: light, %s writes: share stolen with 8 shards over 2", percent(middle)), Unit: "×", Ours: m.stolenShare(m.stolenRun(sizes[0], 8, middle)) / m.stolenShare(m.stolenRun(sizes[0], 2, middle)), Why: "The paper says that it grows."},
		{What: fmt.Sprintf("Fig. 7: light, 8 shards: share stolen with %s writes over %s", percent(many), percent(few)), Unit: "×", Ours: m.stolenShare(m.stolenRun(sizes[0], 8, many)) / m.stolenShare(m.stolenRun(sizes[0], 8, few)), Why: "The paper says that it grows. Here a queue with a write is left alone, and threads without work look at all times."},
		{What: fmt.Sprintf("Fig. 7: heavy, 8 shards: requests of a steal with %s writes over %s", percent(many), percent(few)), Unit: "×", Ours: m.batch(m.stolenRun(sizes[2], 8, many)) / m.batch(m.stolenRun(sizes[2], 8, few)), Why: "The paper says that fewer are stolen at a time."},
		{What: fmt.Sprintf("Fig. 9: keys, 8 shards, %s writes: busy-wait over sequential", percent(few)), Unit: "×", Ours: m.over(asPaper(m.keyed(8, few, n), busyWait)), Why: "The paper says that its techniques surpass all others in most cases."},
		{What: fmt.Sprintf("Fig. 9: keys, 8 shards, %s writes: busy-wait over early", percent(many)), Unit: "×", Ours: m.between(m.keyed(8, many, n), busyWait, barriers), Why: "As above."},
	}
	kept := all[:0]
	for _, c := range all {
		if !math.IsNaN(c.Ours) && !math.IsInf(c.Ours, 0) {
			kept = append(kept, c)
		}
	}
	return kept
}
