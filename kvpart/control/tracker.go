package control

import (
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/samya-db/samya/kvpart/workload"
)

// tracker takes requests from dispatchers and records them in the graph. Anybody may call
// observe; the rest belongs to the controller alone.
type tracker[E Entry] struct {
	sched  Scheduler[E]
	random func() uint64
	wake   chan struct{}

	_      [64]byte
	rate   atomic.Uint64 // requests tracked, of each 1<<32
	base   int64         // requests between two cuts of Base, or 0
	shards []shard[E]
	_      [64]byte
	count  atomic.Int64 // requests since Base's last cut
	_      [64]byte

	graph   *workload.Graph
	owners  []E // by vertex
	signal  signal
	disk    diskCost
	tracked int64
	dropped int64
	looked  []looked
	vs      []workload.Vertex
	swept   int // where sweeping goes on
}

// shard is a buffer of a share of the requests, so that dispatchers seldom meet.
type shard[E Entry] struct {
	mu      sync.Mutex
	filling *batch[E]
	spare   *batch[E] // empty, the controller's
	dropped int64
	_       [64]byte
}

// batch is requests in sequence; ends holds the end of each in entries.
type batch[E Entry] struct {
	entries []E
	ends    []int32
	loads   []workload.Load // of the keys of each
}

// looked is the scheduler's answer on an entry.
type looked struct {
	slot      *atomic.Int32
	partition int32
	gone      bool
}

// The bounds of a shard, in keys and in requests.
const (
	shardKeys     = 1 << 12
	shardRequests = 1 << 12
	whole         = 1 << 32 // the rate at which every request is tracked
)

func newTracker[E Entry](o *Options[E]) (*tracker[E], error) {
	n := 1 << bits.Len(uint(2*runtime.GOMAXPROCS(0)-1))
	t := &tracker[E]{
		sched: o.Scheduler, random: o.Rand, wake: make(chan struct{}, 1), shards: make([]shard[E], n),
		signal: newSignal(o.Scheduler.Partitions(), o.Policy.dims()), disk: newDiskCost(o.Scheduler.Partitions()),
	}
	for i := range t.shards {
		s := &t.shards[i]
		s.filling, s.spare = newBatch[E](), newBatch[E]()
	}
	if o.Policy.Kind == Base {
		t.base = o.Policy.Operations
	}
	g, err := workload.New(workload.Options{
		Window: o.Policy.Window, Vertices: o.Policy.Vertices, Edges: o.Policy.Edges, Dims: o.Policy.dims(), Freed: t.freed,
	})
	t.graph = g
	return t, err
}

func newBatch[E Entry]() *batch[E] {
	return &batch[E]{make([]E, 0, shardKeys), make([]int32, 0, shardRequests), make([]workload.Load, 0, shardRequests)}
}

// Ticket is of a sampled request.
type Ticket struct {
	// Weight is how many requests the request stands for.
	Weight float64
	draw   uint64
}

// pick reports whether the next request is sampled. The ticket is for put.
func (t *tracker[E]) pick() (ticket Ticket, ok bool) {
	if t.base > 0 && t.count.Add(1) == t.base {
		t.nudge()
	}
	r := t.random()
	rate := t.rate.Load()
	return Ticket{float64(whole) / float64(max(rate, 1)), r}, r>>32 < rate
}

// put takes a sampled request; load is of each of its keys. It counts a request that finds
// no room.
func (t *tracker[E]) put(ticket Ticket, entries []E, load workload.Load) {
	s := &t.shards[ticket.draw&uint64(len(t.shards)-1)]
	s.mu.Lock()
	half := s.add(entries, load)
	s.mu.Unlock()
	if half {
		t.nudge()
	}
}

// add takes a request. It reports whether that made the buffer half full.
func (s *shard[E]) add(entries []E, load workload.Load) bool {
	entries = entries[:min(len(entries), workload.MaxKeys)]
	b := s.filling
	before := len(b.entries)
	if before+len(entries) > shardKeys || len(b.ends) == shardRequests {
		s.dropped++
		return false
	}
	var none E
	for _, e := range entries {
		if e != none {
			b.entries = append(b.entries, e)
		}
	}
	b.ends = append(b.ends, int32(len(b.entries)))
	b.loads = append(b.loads, load)
	return before < shardKeys/2 && len(b.entries) >= shardKeys/2
}

// nudge makes the controller look soon.
func (t *tracker[E]) nudge() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// drain records the observed requests, and returns their number and their keys.
func (t *tracker[E]) drain() (requests, keys int) {
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		t.dropped += s.dropped
		s.dropped = 0
		b := s.filling
		if len(b.ends) == 0 {
			s.mu.Unlock()
			continue
		}
		s.filling, s.spare = s.spare, b
		s.mu.Unlock()
		requests += len(b.ends)
		keys += len(b.entries)
		t.take(b)
	}
	t.tracked += int64(requests)
	t.sweep(16 + requests/8)
	return requests, keys
}

// take records a batch and empties it.
func (t *tracker[E]) take(b *batch[E]) {
	// All entries are looked at before any is used, so that memory loads overlap.
	t.looked = t.looked[:0]
	for _, e := range b.entries {
		p, gone, slot := t.sched.Look(e)
		t.looked = append(t.looked, looked{slot, int32(p), gone})
	}
	from := int32(0)
	for i, to := range b.ends {
		t.record(b.entries[from:to], t.looked[from:to], b.loads[i])
		from = to
	}
	clear(b.entries)
	b.entries, b.ends, b.loads = b.entries[:0], b.ends[:0], b.loads[:0]
}

func (t *tracker[E]) record(entries []E, looked []looked, load workload.Load) {
	t.graph.Reserve(len(entries))
	vs := t.vs[:0]
	for i, e := range entries {
		l := &looked[i]
		if l.gone {
			continue
		}
		v := workload.Vertex(l.slot.Load() - 1)
		if v == workload.None {
			v = t.graph.Add()
			l.slot.Store(int32(v) + 1)
			t.own(v, e)
		}
		vs = append(vs, v)
	}
	t.vs = vs
	weight := float64(whole) / float64(max(t.rate.Load(), 1))
	load = t.disk.charge(looked, load, weight)
	t.graph.Record(vs, load)
	t.signal.add(looked, load, weight)
}

func (t *tracker[E]) own(v workload.Vertex, e E) {
	if int(v) == len(t.owners) {
		t.owners = append(t.owners, e)
		return
	}
	t.owners[v] = e
}

// freed frees the vertex after its last request left the window.
func (t *tracker[E]) freed(v workload.Vertex) {
	_, _, slot := t.sched.Look(t.owners[v])
	slot.Store(0)
	var none E
	t.owners[v] = none
}

// sweep looks at the next n vertices, and removes vertices of keys that are gone.
func (t *tracker[E]) sweep(n int) {
	var none E
	for range min(n, len(t.owners)) {
		t.swept = (t.swept + 1) % len(t.owners)
		e := t.owners[t.swept]
		if e == none {
			continue
		}
		if _, gone, slot := t.sched.Look(e); gone {
			t.graph.Remove(workload.Vertex(t.swept))
			t.owners[t.swept] = none
			slot.Store(0) // the key may come back
		}
	}
}
