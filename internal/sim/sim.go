package sim

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/samya-db/samya/site/core"
)

// Options say what to run. All but Seed may be left zero.
type Options struct {
	// Seed decides everything that is left to chance.
	Seed uint64
	// Sites is the size of the cluster; 0 lets the seed choose 1 to 5.
	Sites int
	// Calm leaves out all faults.
	Calm bool
	// Hungry has all clients acquire one token after the other at one site and
	// release nothing; it asks for Calm.
	Hungry bool
	// Encoded takes every message through its encoding.
	Encoded bool
	// Disk makes the disk of a site, beside the simulated one; they must agree
	// at every restart. Nil for none.
	Disk func(site core.SiteID) (Disk, error)
}

// Run runs one seed. Its error tells the seed, what did not hold, and the last
// things that happened before.
func Run(o Options) (Report, error) {
	s := newSim(o)
	s.start()
	s.runUntil(s.faultsEnd)
	s.heal()
	if s.err == nil {
		s.err = s.idle()
	}
	s.report.Hash = s.hash
	if s.err != nil {
		return s.report, fmt.Errorf("seed %d, %d sites, at %d ms, event %d: %w\n%s",
			o.Seed, len(s.nodes), s.now/1000, s.events, s.err, s.tail())
	}
	return s.report, nil
}

// micros is simulated time in microseconds since the start of the run.
type micros = int64

const (
	millisecond micros = 1000
	second             = 1000 * millisecond
)

type event struct {
	at  micros
	seq uint64
	do  func()
}

type sim struct {
	o       Options
	r       *rand.Rand
	now     micros
	queue   eventQueue
	seq     uint64
	events  uint64
	hash    uint64
	err     error
	trace   []traced
	report  Report
	chances chances

	nodes   []*node
	names   []core.SiteID
	cut     [][]bool
	latency [][]micros
	// arrived is, where nothing fails and messages stay in order, when the last
	// one of each link arrives.
	arrived [][]micros
	observe *observer
	clients []*client
	admin   *admin
	ops     int
	// opsByKey finds acquires and releases, changes are all others.
	opsByKey map[core.RequestKey]*op
	changes  []*op
	// pending are the operations whose clients still wait.
	pending   int
	faultsEnd micros
	healed    bool
}

// chances are how likely faults are in this run, in thousandths.
type chances struct {
	drop, repeat, lostReply, cancel, mutant, hedge int
	// crashes, partitions and hints are how many milliseconds lie between two on
	// average; 0 for none.
	crashes, partitions int
	sync                micros
	depth               int
}

func newSim(o Options) *sim {
	s := &sim{o: o, r: rand.New(rand.NewPCG(o.Seed, 0x5a3b)), hash: 14695981039346656037}
	s.opsByKey = make(map[core.RequestKey]*op)
	n := o.Sites
	if n == 0 {
		n = []int{5, 5, 5, 5, 3, 3, 4, 2, 1}[s.r.IntN(9)]
	}
	for i := range n {
		s.names = append(s.names, core.SiteID(string(rune('a'+i))))
	}
	s.observe = newObserver(s)
	s.faultsEnd = micros(15+s.r.IntN(40)) * second
	s.chances = chances{sync: micros(1+s.r.IntN(20)) * millisecond, depth: 1 + s.r.IntN(3), mutant: 20, hedge: 60}
	if !o.Calm {
		s.chances.drop, s.chances.repeat = s.r.IntN(120), s.r.IntN(100)
		s.chances.lostReply, s.chances.cancel = s.r.IntN(100), s.r.IntN(150)
		s.chances.crashes, s.chances.partitions = 500+s.r.IntN(6000), 1000+s.r.IntN(8000)
		if s.chance(300) {
			s.chances.drop, s.chances.repeat = 0, 0
		}
		if s.chance(200) {
			s.chances.sync *= 10
		}
	}
	s.cut, s.latency, s.arrived = make([][]bool, n), make([][]micros, n), make([][]micros, n)
	for i := range n {
		s.cut[i], s.latency[i], s.arrived[i] = make([]bool, n), make([]micros, n), make([]micros, n)
	}
	for i := range n {
		for j := range i {
			s.latency[i][j] = micros(1+s.r.IntN(150)) * millisecond
			s.latency[j][i] = s.latency[i][j]
		}
	}
	for i, name := range s.names {
		s.nodes = append(s.nodes, s.newNode(i, name))
	}
	return s
}

func (s *sim) start() {
	for _, n := range s.nodes {
		n.boot()
	}
	s.startClients()
	if s.chances.crashes > 0 {
		s.every(s.chances.crashes, s.crashSome)
	}
	if s.chances.partitions > 0 {
		s.every(s.chances.partitions, s.partition)
		s.every(s.chances.partitions/2, s.hint)
	}
}

// every does something again and again, at random intervals of a given mean,
// until faults end.
func (s *sim) every(mean int, do func()) {
	s.after(micros(1+s.r.IntN(2*mean))*millisecond, func() {
		if s.now < s.faultsEnd {
			do()
			s.every(mean, do)
		}
	})
}

func (s *sim) chance(thousandths int) bool { return s.r.IntN(1000) < thousandths }

// after does something later. Things at the same time happen in the order in
// which they were asked for.
func (s *sim) after(d micros, do func()) {
	s.seq++
	heap.Push(&s.queue, event{at: s.now + max(d, 0), seq: s.seq, do: do})
}

// runUntil lets things happen until a time, or until something does not hold.
func (s *sim) runUntil(end micros) {
	for s.err == nil && len(s.queue) > 0 && s.queue[0].at <= end {
		e := heap.Pop(&s.queue).(event)
		s.now = e.at
		s.events++
		s.mix(uint64(e.at))
		s.mix(e.seq)
		e.do()
	}
	s.now = max(s.now, end)
}

// mix adds to the hash of the run.
func (s *sim) mix(v uint64) {
	for range 8 {
		s.hash = (s.hash ^ v&0xff) * 1099511628211
		v >>= 8
	}
}

// fail keeps the first thing that must not happen.
func (s *sim) fail(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf(format, args...)
	}
}

const traceLength = 120

type traced struct {
	at     micros
	format string
	args   []any
}

// note keeps what happened for the case that the run fails, and adds the
// parts of it that are numbers to the hash.
func (s *sim) note(format string, args ...any) {
	if len(s.trace) >= 2*traceLength {
		s.trace = append(s.trace[:0], s.trace[traceLength:]...)
	}
	for _, a := range args {
		switch a := a.(type) {
		case int:
			s.mix(uint64(a))
		case core.Tokens:
			s.mix(uint64(a))
		case core.SiteID:
			s.mix(uint64(a[0]))
		}
	}
	s.trace = append(s.trace, traced{s.now, format, args})
}

func (s *sim) tail() string {
	var b strings.Builder
	for _, t := range s.trace[max(0, len(s.trace)-traceLength):] {
		fmt.Fprintf(&b, "%10.3f  ", float64(t.at)/float64(millisecond))
		fmt.Fprintf(&b, t.format, t.args...)
		b.WriteByte('\n')
	}
	return b.String()
}

// eventQueue orders events by time, then by number.
type eventQueue []event

func (q eventQueue) Len() int      { return len(q) }
func (q eventQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q eventQueue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].seq < q[j].seq
}

// Push implements heap.Interface.
func (q *eventQueue) Push(x any) { *q = append(*q, x.(event)) }

// Pop implements heap.Interface.
func (q *eventQueue) Pop() any {
	old := *q
	e := old[len(old)-1]
	old[len(old)-1] = event{}
	*q = old[:len(old)-1]
	return e
}
