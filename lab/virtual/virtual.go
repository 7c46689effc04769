// Package virtual is a world for experiments: virtual time, places that crash and
// have a processor and a disk each, and a slow network between them that may be
// cut. Real code of several systems runs in the world, all under the same load and
// delays. The package does not judge: its users make the requests and judge the
// answers. The same seed gives the same run.
package virtual

import (
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/samya-db/samya/internal/wan"
	"github.com/samya-db/samya/lab/due"
)

const (
	// The mean delays added to half the round trip between places: a share of the
	// half, and a constant.
	jitterShare = .03
	jitter      = 200 * time.Microsecond
)

// Place is a machine of the world, by its number.
type Place int

// Options are the options of a world.
type Options struct {
	// Places name the region of each place, by its number; two may share a region.
	Places []string
	// Network holds the round trips between regions.
	Network *wan.Matrix
	Seed    uint64
	// Service is the time that a processor takes for a request, zero or more. Commit
	// is the time that a disk takes to make a transaction durable.
	Service, Commit time.Duration
}

// World is the world of systems. A single goroutine uses it.
type World struct {
	o      Options
	now    time.Duration
	queue  due.Queue[time.Duration, event]
	random *rand.Rand
	places []place
	// half are half the round trips. last are the times of the last arrivals:
	// messages of a link stay in order.
	half, last [][]time.Duration
	// watchers are called when places begin or cease to reach each other.
	watchers []func()
	// Messages and Bytes count the messages sent between places so far.
	Messages, Bytes int
}

// place is the state of a machine.
type place struct {
	// life counts crashes: events of an earlier life do not happen.
	life int32
	down bool
	// side is the place's side of a cut.
	side int
	// free is the time at which the processor has done all its work.
	free time.Duration
}

// New makes a world at time zero, with all places up and no cut.
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

// Now returns the time since the start of the world.
func (w *World) Now() time.Duration { return w.now }

// Options returns the options of the world.
func (w *World) Options() *Options { return &w.o }

// Places returns the number of places.
func (w *World) Places() int { return len(w.places) }

// At calls do at a time, or now if the time is past. Calls at the same time happen
// in the order in which they were scheduled.
func (w *World) At(at time.Duration, do func()) { w.Let(at, call(do)) }

// Let is At for an event.
func (w *World) Let(at time.Duration, e Event) {
	w.queue.Push(max(at, w.now), event{what: e, to: nowhere, from: nowhere})
}

// After calls do at a place after a delay, unless the place crashes before.
func (w *World) After(p Place, d time.Duration, do func()) {
	w.queue.Push(w.now+max(0, d), event{what: call(do), to: int32(p), from: nowhere, life: w.places[p].life}) //nolint:gosec // few places
}

// Serve calls do once the processor of a place has served a request, unless the
// place crashes before. The processor serves requests in turn.
func (w *World) Serve(p Place, do func()) { w.Work(p, 1, do) }

// Work is Serve for several requests at once.
func (w *World) Work(p Place, requests int, do func()) {
	at := &w.places[p]
	at.free = max(at.free, w.now) + time.Duration(requests)*w.o.Service
	w.After(p, at.free-w.now, do)
}

// Commit calls do once a transaction is durable at a place, unless the place
// crashes before. A disk takes a transaction at a time: the caller waits before it
// begins the next.
func (w *World) Commit(p Place, do func()) { w.After(p, w.o.Commit, do) }

// Send calls do at another place once a message of the given bytes has arrived. The
// message is lost if either place is down or a cut separates the places when it
// leaves. On arrival it is lost if the receiver is down or has crashed since, or if
// a cut separates the places. Messages of a link arrive in order.
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

// happens reports whether an event still happens when it is due.
func (w *World) happens(e *event) bool {
	if e.to == nowhere {
		return true
	}
	at := &w.places[e.to]
	return at.life == e.life && !at.down && (e.from == nowhere || w.places[e.from].side == at.side)
}

// Reaches reports whether both places are up and no cut separates them.
func (w *World) Reaches(from, to Place) bool {
	a, b := &w.places[from], &w.places[to]
	return !a.down && !b.down && a.side == b.side
}

// Up reports whether a place is up.
func (w *World) Up(p Place) bool { return !w.places[p].down }

// Crash crashes a place: its events under way do not happen.
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

// Cut separates places: places with the same number reach each other. Heal ends the
// cut.
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

// Watch has changed called at once after each change of the places that reach each
// other. A system models itself how and when it learns of the change.
func (w *World) Watch(changed func()) { w.watchers = append(w.watchers, changed) }

func (w *World) changed() {
	for _, told := range w.watchers {
		told()
	}
}

// Until runs all events due by a time, and sets the clock to it.
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

// Names returns short names of places in regions: the name of the region for its
// first place, with a number for the others.
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
