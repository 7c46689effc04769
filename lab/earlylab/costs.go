package earlylab

import (
	"math"

	"github.com/samya-db/samya/kvpart/early"
)

// Costs are durations of steps of package kvpart/early, in nanoseconds, for data that the
// thread's own core has at hand. [Calibrate] measures them.
type Costs struct {
	// Append is for a request appended to a queue, under its lock. Scan is for each thread
	// that a step looks at to wake it.
	Append float64 `json:"append"`
	Scan   float64 `json:"scan"`
	// Drain takes over a queue of one request; DrainEach is for each request.
	Drain     float64 `json:"drain"`
	DrainEach float64 `json:"drain_each"`
	// Next looks at the next request. Mark is for each mark of a thief.
	Next float64 `json:"next"`
	Mark float64 `json:"mark"`
	// Enter enters a meeting and Leave looks whether it is over, both under its lock.
	Enter float64 `json:"enter"`
	Leave float64 `json:"leave"`
	// Arrive counts an arrival, and Watch looks at the count.
	Arrive float64 `json:"arrive"`
	Watch  float64 `json:"watch"`
	// Start and Finish are around the run of a request, and Open after it.
	Start  float64 `json:"start"`
	Finish float64 `json:"finish"`
	Open   float64 `json:"open"`
	// Seek looks for a victim, Rob looks at its queue under its lock and RobEach takes a
	// request. Plunder looks at the next stolen request, and Restore clears the mark.
	Seek    float64 `json:"seek"`
	Rob     float64 `json:"rob"`
	RobEach float64 `json:"rob_each"`
	Plunder float64 `json:"plunder"`
	Restore float64 `json:"restore"`
	// Add, Take and End are for the graph, under its lock, and Compare for each request
	// compared.
	Add     float64 `json:"graph_add"`
	Take    float64 `json:"graph_take"`
	End     float64 `json:"graph_end"`
	Compare float64 `json:"graph_compare"`
	// Transfer moves a cache line from another core.
	Transfer float64 `json:"transfer"`
	// Wake is the cost of waking a parked thread, for the thread that wakes, and Handover
	// the time until the parked thread runs. Yield gives the processor to nobody.
	Wake     float64 `json:"wake"`
	Handover float64 `json:"handover"`
	Yield    float64 `json:"yield"`
}

// Work is the duration of a request on one shard, in nanoseconds: Read or Write, and for
// a list Element for each element before the value.
type Work struct {
	Read    float64 `json:"read"`
	Write   float64 `json:"write"`
	Element float64 `json:"element"`
}

// of is the duration of a request.
func (w *Work) of(r *request) float64 {
	each := w.Read
	if r.write {
		each = w.Write
	}
	return float64(r.n) * (each + w.Element*float64(r.value/2))
}

// line is a cache line that threads share: a lock with its data, or a counter.
type line struct {
	// free is the time at which the last lock or atomic change of the line ends.
	free float64
	// writer changed the line last, to version; shared says that others have read it since.
	writer  int
	version uint32
	shared  bool
}

// memory is all shared lines, and the version of each that each actor has at hand.
type memory struct {
	transfer float64
	lines    []line
	seen     [][]uint32
}

func newMemory(lines, actors int, transfer float64) *memory {
	m := &memory{transfer: transfer, lines: make([]line, lines), seen: make([][]uint32, actors)}
	for i := range m.lines {
		m.lines[i].writer = -1
	}
	for i := range m.seen {
		m.seen[i] = make([]uint32, lines)
	}
	return m
}

// read returns the delay of a read. Reads of a line do not wait for each other.
func (m *memory) read(actor, at int) float64 {
	l := &m.lines[at]
	if m.seen[actor][at] == l.version {
		return 0
	}
	m.seen[actor][at] = l.version
	if l.writer != actor {
		l.shared = true
	}
	return m.transfer
}

// change returns the end of an atomic change of a line, or of a lock of it held for a
// time. Changes wait for each other, first come, first served.
func (m *memory) change(actor, at int, now, hold float64) float64 {
	l := &m.lines[at]
	start := max(now, l.free)
	if l.writer != actor || l.shared {
		start += m.transfer
	}
	l.writer, l.shared = actor, false
	l.version++
	m.seen[actor][at] = l.version
	l.free = start + hold
	return l.free
}

// The lines: three of each thread, four of each class, and two of all.
func (s *simulation) queueLine(t int) int  { return 3 * t }
func (s *simulation) lookLine(t int) int   { return 3*t + 1 }
func (s *simulation) robbedLine(t int) int { return 3*t + 2 }
func (s *simulation) markLine(c, k int) int {
	return 3*s.threads + 4*c + k
}

func (s *simulation) meetingLine(c int, after bool) int {
	if after {
		return 3*s.threads + 4*c + 3
	}
	return 3*s.threads + 4*c + 2
}
func (s *simulation) counters() int  { return len(s.lines) - 2 }
func (s *simulation) graphLine() int { return len(s.lines) - 1 }

// charge returns the time at which a step ends that an actor took, without the wakes.
func (s *simulation) charge(a int, now float64, t *early.Taken) float64 {
	c := &s.Costs
	n := float64(t.Count)
	switch t.Kind {
	case early.StepAppend:
		switch {
		case s.mode == early.Late:
			return s.change(a, s.graphLine(), now, c.Add+n*c.Compare)
		case t.Outcome == early.Waiting:
			return s.change(a, s.queueLine(t.Other), now, c.Append)
		}
		now = s.change(a, s.queueLine(t.Other), now, c.Append)
		now = s.change(a, s.lookLine(t.Other), now, 0)
		if s.steals() && len(t.Woken) == 0 {
			now += float64(s.threads) * c.Scan
		}
		return now
	case early.StepDrain:
		now = s.change(a, s.queueLine(a), now, c.Drain+max(0, n-1)*c.DrainEach)
		if t.Count > 0 {
			now = s.change(a, s.lookLine(a), now, 0)
		}
		return now
	case early.StepNext:
		return now + c.Next
	case early.StepMarkers:
		return now + s.read(a, s.robbedLine(a)) + n*c.Mark
	case early.StepEnter:
		now = s.change(a, s.meetingLine(t.Class, t.After), now, c.Enter)
		if t.Complete {
			now += s.scanAll(t.Class)
		}
		return now
	case early.StepLeave:
		return s.change(a, s.meetingLine(t.Class, t.After), now, c.Leave)
	case early.StepArrive:
		return s.change(a, s.markLine(t.Class, t.Cycle), now, c.Arrive)
	case early.StepWatch:
		return now + s.read(a, s.markLine(t.Class, t.Cycle)) + c.Watch
	case early.StepStart:
		return now + c.Start + s.work(t.Job)
	case early.StepFinish:
		return s.change(a, s.counters(), now, c.Finish)
	case early.StepOpen:
		return s.change(a, s.markLine(t.Class, t.Cycle), now, c.Open) + s.scanAll(t.Class)
	case early.StepSeek:
		now += c.Seek
		if t.Other >= 0 && s.mode >= early.Optimistic {
			now += s.read(a, s.lookLine(t.Other))
		}
		return now
	case early.StepRob:
		now = s.change(a, s.queueLine(t.Other), now, c.Rob+n*c.RobEach)
		if t.Count > 0 {
			now = s.change(a, s.lookLine(t.Other), now, 0)
			now = s.change(a, s.robbedLine(t.Other), now, 0)
			now = s.change(a, s.counters(), now, 0)
		}
		return now
	case early.StepPlunder:
		return now + c.Plunder
	case early.StepRestore:
		return s.change(a, s.robbedLine(t.Other), now, c.Restore)
	case early.StepTake:
		if s.actors[a].last.Kind == early.StepEnd { // the thread still has the lock
			return now
		}
		return s.change(a, s.graphLine(), now, c.Take)
	case early.StepEnd:
		return s.change(a, s.graphLine(), now, c.End+n*c.Compare+c.Take)
	}
	return math.Inf(1)
}

// scanAll is the cost of looking which threads of a class are parked.
func (s *simulation) scanAll(class int) float64 {
	return float64(len(s.mapping.Of[class].Threads)) * s.Costs.Scan
}
