// Package virtual is a world for experiments: virtual time, places that crash
// and have one processor and one disk each, and a network between them that is
// slow and may be cut. Real code of several systems runs in it, all under the
// same load and delays. It refuses to judge: what is asked, and what an answer is
// worth, is for its users to say. The same seed gives the same run.
package virtual

import (
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/samya-db/samya/internal/wan"
	"github.com/samya-db/samya/lab/due"
)

const (
	// Of a way between places, the mean of what is added to half the round trip: a
	// part of it, and a constant.
	jitterShare = .03
	jitter      = 200 * time.Microsecond
)

// Place is a machine of the world, by its number.
type Place int

// Options say what a world is like.
type Options struct {
	// Places name the region of each place, by its number; two may share a region.
	Places []string
	// Network holds the round trips between regions.
	Network *wan.Matrix
	Seed    uint64
	// Service is how long a processor is busy with a request, zero or more; Commit
	// how long a disk takes to make a transaction durable.
	Service, Commit time.Duration
}

// World is where systems run. It is of one goroutine.
type World struct {
	o      Options
	now    time.Duration
	queue  due.Queue[time.Duration, event]
	random *rand.Rand
	places []place
	// half are half the round trips, last when the last message arrives: those of
	// one link stay in order.
	half, last [][]time.Duration
	// watchers are told of changes of who reaches whom.
	watchers []func()
	// Messages and Bytes are what was sent between places so far.
	Messages, Bytes int
}

// place is the state of a machine.
type place struct {
	// life counts crashes: what was begun in an earlier life does not happen.
	life int32
	down bool
	// side is on which side of a cut it is.
	side int
	// free is when the processor has done all it was given.
	free time.Duration
}

// New makes a world at time zero, with all places up and nothing cut.
func New(o Options) *World {
	w := &World{o: o, random: rand.New(rand.NewPCG(o.Seed, 0x6e65)), places: make([]place, len(o.Places))} //nolint:gosec // a simulation, to be repeated
	for _, a := range o.Places {
		row := make([]time.Duration, len(o.Places))
		for j, b := range o.Places {
			row[j] = o.Network.OneWay(a, b)
		}
		w.half = append(w.half, row)
		w.last = append(w.last, make([]time.Duration, len(o.Places)))
	}
	return w
}

// Now is the time since the beginning.
func (w *World) Now() time.Duration { return w.now }

// Options are what the world was made of.
func (w *World) Options() *Options { return &w.o }

// Places is how many there are.
func (w *World) Places() int { return len(w.places) }

// At has something happen at a time, or now if that is over. Things at the same
// time happen in the order in which they were asked for.
func (w *World) At(at time.Duration, do func()) { w.Let(at, call(do)) }

// Let is At for an event.
func (w *World) Let(at time.Duration, e Event) {
	w.queue.Push(max(at, w.now), event{what: e, to: nowhere, from: nowhere})
}

// After has something happen at a place after a while, unless it crashes before.
func (w *World) After(p Place, d time.Duration, do func()) {
	w.queue.Push(w.now+max(0, d), event{what: call(do), to: int32(p), from: nowhere, life: w.places[p].life}) //nolint:gosec // few places
}

// Serve has something happen once the processor of a place has served a request
// for it, which it does one after the other, unless the place crashes before.
func (w *World) Serve(p Place, do func()) { w.Work(p, 1, do) }

// Work is Serve for several requests at once.
func (w *World) Work(p Place, requests int, do func()) {
	at := &w.places[p]
	at.free = max(at.free, w.now) + time.Duration(requests)*w.o.Service
	w.After(p, at.free-w.now, do)
}

// Commit has something happen once a transaction is durable at a place, unless it
// crashes before. A disk takes one at a time: the caller waits for it before it
// begins the next.
func (w *World) Commit(p Place, do func()) { w.After(p, w.o.Commit, do) }

// Send has something happen at another place once a message of so many bytes has
// got there. It is lost if the sender is down as it leaves, if the receiver is down
// or has crashed since as it arrives, or if a cut is between them at either end of
// the way. Messages of one link arrive in order.
func (w *World) Send(from, to Place, bytes int, do func()) {
	if !w.Reaches(from, to) {
		return
	}
	w.Messages++
	w.Bytes += bytes
	half := float64(w.half[from][to])
	way := half*(1+jitterShare*w.random.ExpFloat64()) + float64(jitter)*w.random.ExpFloat64()
	at := max(w.now+time.Duration(way), w.last[from][to])
	w.last[from][to] = at
	w.queue.Push(at, event{what: call(do), to: int32(to), from: int32(from), life: w.places[to].life}) //nolint:gosec // few places
}

// happens tells whether an event still happens, at the time that it is due.
func (w *World) happens(e *event) bool {
	if e.to == nowhere {
		return true
	}
	at := &w.places[e.to]
	return at.life == e.life && !at.down && (e.from == nowhere || w.places[e.from].side == at.side)
}

// Reaches tells whether both places are up and no cut is between them.
func (w *World) Reaches(from, to Place) bool {
	a, b := &w.places[from], &w.places[to]
	return !a.down && !b.down && a.side == b.side
}

// Up tells whether a place is up.
func (w *World) Up(p Place) bool { return !w.places[p].down }

// Crash ends a place: what it had under way does not happen.
func (w *World) Crash(p Place) {
	at := &w.places[p]
	at.down = true
	at.life++
	at.free = 0
	w.changed()
}

// Restart brings a place up again.
func (w *World) Restart(p Place) {
	w.places[p].down = false
	w.changed()
}

// Cut parts places: those with the same number reach each other. Heal ends it.
func (w *World) Cut(side []int) {
	for i := range w.places {
		w.places[i].side = side[i]
	}
	w.changed()
}

// Heal ends a cut.
func (w *World) Heal() {
	for i := range w.places {
		w.places[i].side = 0
	}
	w.changed()
}

// Watch has a func called after each change of who reaches whom, at once: what
// systems are told of it, and how late, is theirs to model.
func (w *World) Watch(changed func()) { w.watchers = append(w.watchers, changed) }

func (w *World) changed() {
	for _, told := range w.watchers {
		told()
	}
}

// Until lets happen what is due by a time, which it then is.
func (w *World) Until(to time.Duration) {
	for {
		next, ok := w.queue.Pop(to)
		if !ok {
			break
		}
		w.now = next.At
		if e := &next.What; w.happens(e) {
			e.what.Happen()
		}
	}
	w.now = max(w.now, to)
}

// Names are short names of places in regions: that of the region for the first
// in each, and with a number for the others.
func Names(regions []string) []string {
	names := make([]string, len(regions))
	count := make(map[string]int)
	for i, r := range regions {
		count[r]++
		names[i] = r
		if n := count[r]; n > 1 {
			names[i] = r + "-" + strconv.Itoa(n)
		}
	}
	return names
}
