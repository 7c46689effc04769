// Package rivaltest drives a rival under open load in its tests, and checks the
// duties of every system to its clients. It does not judge how good a rival is:
// experiments do, with the driver of package replay.
package rivaltest

import (
	"fmt"
	"slices"
	"time"

	"github.com/samya-db/samya/lab/virtual"
)

// Lease is an acquire and its release in a test.
type Lease struct {
	Due, Hold time.Duration
	Place     virtual.Place
	// Read makes it a read instead.
	Read virtual.Kind
}

// Load is the load of a test.
type Load struct {
	Limit  int
	Leases []Lease
	// Span is the time within which leases are released; default for ever.
	Span time.Duration
	// Wait is the longest wait of an acquire; default 5 s.
	Wait time.Duration
	// Unbounded says that clients may hold more than the limit.
	Unbounded bool
	// Faults are the faults and their times since the start of the load.
	Faults []Fault
	// Rest is the time for the system to come to rest in the end; default 20 s.
	Rest time.Duration
}

// Fault is a change of the world.
type Fault struct {
	At time.Duration
	Do func(*Run)
}

// Run is a run, under way or over.
type Run struct {
	World  *virtual.World
	System virtual.System
	load   Load
	calls  []call
	// Granted, Refused and TimedOut count acquires by their answer, Lost acquires of
	// a place that crashed before the answer. Released and Read count answers to the
	// other requests.
	Granted, Refused, TimedOut, Lost, Released, Read int
	// Held is the number of tokens that clients hold.
	Held int
	// Latency is the latency of acquires and reads, Acquired the latency of granted
	// acquires, in the order of the answers. At is the times of the grants.
	Latency, Acquired, At []time.Duration
	// lives counts the crashes of each place.
	lives []int
	down  []bool
	err   error
}

// call is the life of a lease.
type call struct {
	acquire, release virtual.Request
	asked, answered  [2]int
	// life is the life of the place at the request.
	life    int
	granted bool
}

// way is the time between a client and its server.
const way = 500 * time.Microsecond

// Drive runs a load, which must be sorted by time.
func Drive(s virtual.System, o virtual.Options, load Load) (*Run, error) {
	if load.Wait == 0 {
		load.Wait = 5 * time.Second
	}
	if load.Span == 0 {
		load.Span = 1 << 60
	}
	if load.Rest == 0 {
		load.Rest = 20 * time.Second
	}
	r := &Run{World: virtual.New(o), System: s, load: load, calls: make([]call, len(load.Leases))}
	if err := s.Start(r.World, load.Limit, r.answer); err != nil {
		return nil, err
	}
	r.lives, r.down = make([]int, r.World.Places()), make([]bool, r.World.Places())
	r.World.Watch(func() {
		for p := range r.down {
			down := !r.World.Up(virtual.Place(p))
			if down && !r.down[p] {
				r.lives[p]++
			}
			r.down[p] = down
		}
	})
	for _, f := range load.Faults {
		r.World.At(virtual.Lead+f.At, func() { f.Do(r) })
	}
	last := time.Duration(0)
	for i, l := range load.Leases {
		c := &r.calls[i]
		kind := virtual.Acquire
		if l.Read != 0 {
			kind = l.Read
		}
		due := virtual.Lead + l.Due
		c.acquire = virtual.Request{Kind: kind, Of: int32(i), Place: l.Place, Due: due, Deadline: due + load.Wait} //nolint:gosec // far fewer
		r.World.Until(due + way)
		r.ask(&c.acquire)
		last = l.Due
	}
	r.World.Until(virtual.Lead + last + load.Wait + load.Rest)
	r.check()
	return r, r.err
}

func (r *Run) ask(q *virtual.Request) {
	if !r.World.Up(q.Place) {
		return
	}
	c := &r.calls[q.Of]
	c.life = r.lives[q.Place]
	if q.Kind == virtual.Release {
		c.asked[1]++
	} else {
		c.asked[0]++
	}
	r.System.Handle(q)
}

func (r *Run) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%v after the start: %w", r.World.Now()-virtual.Lead, fmt.Errorf(format, args...))
	}
}

func (r *Run) answer(q *virtual.Request, o virtual.Outcome) {
	c, now := &r.calls[q.Of], r.World.Now()
	if !r.World.Up(q.Place) || c.life != r.lives[q.Place] {
		r.fail("place %d answers what it was asked before it crashed", q.Place)
	}
	if q.Kind == virtual.Release {
		c.answered[1]++
		r.Released++
		if o != virtual.Granted {
			r.fail("release %d comes to %d", q.Of, o)
		}
		return
	}
	c.answered[0]++
	if now > q.Deadline {
		r.fail("%d is answered at %v, its deadline was %v", q.Of, now, q.Deadline)
	}
	took := now + way - q.Due
	r.Latency = append(r.Latency, took)
	switch {
	case o == virtual.Refused:
		r.Refused++
		return
	case o == virtual.TimedOut:
		r.TimedOut++
		return
	case q.Kind != virtual.Acquire:
		r.Read++
		return
	}
	r.Granted++
	r.Held++
	r.Acquired, r.At = append(r.Acquired, took), append(r.At, now-virtual.Lead)
	c.granted = true
	if r.Held > r.load.Limit && !r.load.Unbounded {
		r.fail("clients hold %d tokens, the limit is %d", r.Held, r.load.Limit)
	}
	hold := r.load.Leases[q.Of].Hold
	if at := max(q.Due+hold, now+way); hold > 0 && at < virtual.Lead+r.load.Span {
		r.World.At(at+way, func() {
			c.release = virtual.Request{Kind: virtual.Release, Of: q.Of, Place: q.Place, Due: at, Deadline: at + r.load.Wait}
			r.Held--
			r.ask(&c.release)
		})
	}
}

// check checks the run after it has come to rest.
func (r *Run) check() {
	unanswered := 0
	// Of the tokens granted, at least the tokens without a release request are out,
	// and at most all but the tokens with an answered release.
	least, most := 0, 0
	for i := range r.calls {
		c := &r.calls[i]
		if c.answered[0] > 1 || c.answered[1] > 1 {
			r.fail("request %d has %d and %d answers", i, c.answered[0], c.answered[1])
		}
		if c.answered[0] == 0 {
			r.Lost++
		}
		if c.answered[1] < c.asked[1] {
			unanswered++
		}
		if c.granted && c.asked[1] == 0 {
			least++
		}
		if c.granted && c.answered[1] == 0 {
			most++
		}
	}
	if len(r.load.Faults) == 0 && (r.Lost > 0 || unanswered > 0) {
		r.fail("%d requests and %d releases have no answer", r.Lost, unanswered)
	}
	if err := r.System.Check(); err != nil {
		r.fail("the books: %w", err)
	}
	for p := range r.World.Places() {
		if !r.World.Up(virtual.Place(p)) {
			// A token granted just before a crash is not taken back before the place
			// is up.
			return
		}
	}
	if out := r.System.Out(); out < least || out > most {
		r.fail("%d tokens are out by the books, clients have %d, and asked to release those up to %d", out, least, most)
	}
}

// Quantile returns a quantile of durations, by nearest rank.
func Quantile(all []time.Duration, q float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}
