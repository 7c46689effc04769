package rivals

import (
	"fmt"
	"time"

	"github.com/samya-db/samya/lab/virtual"
)

var _ virtual.System = (*Approximate)(nil)

// syncWait is the time that hits gather before they are sent, and totals before
// they are told.
const syncWait = 500 * time.Microsecond

// Approximate is an approximate limiter, after the design of Gubernator's GLOBAL
// behaviour. Each server answers at once from a cached count, gathers its hits, and
// sends them to the owner of the counter. The owner adds the hits up and tells the
// total to all servers. Until a total counts a hit, other servers do not see it. So
// servers may grant more than the limit: as much as all servers grant within two
// ways. Nothing is on disk: a crash forgets its counts.
//
// It is kinder than the original in three ways. A server counts its own hits until
// the next total comes. The owner counts hits beyond the limit as well, so that
// they block others until released. And a release takes a hit back.
type Approximate struct {
	w       *virtual.World
	answer  func(*virtual.Request, virtual.Outcome)
	limit   int
	servers []counter
	// total is the owner's count; telling is set while the owner gathers.
	total   int
	telling bool
	// away are the hits on their way to the owner, or lost there; lost are hits that
	// a crash forgot.
	away, lost int
	// granted, refused and reads count answers; most is the most tokens out.
	granted, refused, reads, most int
}

// counter is the state of a server.
type counter struct {
	// net is the tokens granted and not returned here: it survives crashes, and no
	// server looks at it.
	net int
	// told is the last total of the owner, with the server's own hits since; pending
	// are the hits not yet sent.
	told, pending int
	sending       bool
}

// NewApproximate makes the system.
func NewApproximate() *Approximate { return &Approximate{} }

// Start brings the servers up. The server of the first place is the owner.
func (a *Approximate) Start(w *virtual.World, limit int, answer func(*virtual.Request, virtual.Outcome)) error {
	if w.Places() == 0 || limit < 0 {
		return fmt.Errorf("%d places and a limit of %d: want at least 1 and 0", w.Places(), limit)
	}
	a.w, a.answer, a.limit, a.servers = w, answer, limit, make([]counter, w.Places())
	return nil
}

// Handle answers a request at once, except for an exact read, which asks the owner.
func (a *Approximate) Handle(r *virtual.Request) {
	a.w.Serve(r.Place, func() {
		switch r.Kind {
		case virtual.ReadStale:
			a.read(r)
		case virtual.ReadExact:
			a.ask(r)
		case virtual.Release:
			a.hit(r.Place, -1)
			a.answer(r, virtual.Granted)
		case virtual.Acquire:
			if a.servers[r.Place].told >= a.limit {
				a.refused++
				a.answer(r, virtual.Refused)
				return
			}
			a.granted++
			a.hit(r.Place, 1)
			a.answer(r, virtual.Granted)
		}
	})
}

func (a *Approximate) read(r *virtual.Request) {
	a.reads++
	a.answer(r, virtual.Granted)
}

// ask reads at the owner.
func (a *Approximate) ask(r *virtual.Request) {
	done := false
	settle := func(o virtual.Outcome) {
		if !done {
			done = true
			a.reads++
			a.answer(r, o)
		}
	}
	a.w.After(r.Place, r.Deadline-a.w.Now(), func() { settle(virtual.TimedOut) })
	a.w.Send(r.Place, centre, askBytes, func() {
		a.w.Serve(centre, func() {
			a.w.Send(centre, r.Place, tellBytes, func() { settle(virtual.Granted) })
		})
	})
}

// hit counts a hit at a server, which sends it together with the hits meanwhile.
func (a *Approximate) hit(p virtual.Place, n int) {
	c := &a.servers[p]
	c.net += n
	c.told += n
	c.pending += n
	a.most = max(a.most, a.Out())
	if c.sending {
		return
	}
	c.sending = true
	a.w.After(p, syncWait, func() {
		hits := c.pending
		c.sending, c.pending = false, 0
		a.away += hits
		a.w.Send(p, centre, tellBytes, func() {
			a.w.Serve(centre, func() {
				a.away -= hits
				a.total += hits
				a.tell()
			})
		})
	})
}

// tell tells the total to all servers, with the hits meanwhile.
func (a *Approximate) tell() {
	if a.telling {
		return
	}
	a.telling = true
	a.w.After(centre, syncWait, func() {
		a.telling = false
		total := a.total
		for p := range a.servers {
			a.w.Send(centre, virtual.Place(p), tellBytes, func() {
				c := &a.servers[p]
				c.told = total + c.pending
			})
		}
	})
}

// Crashed forgets the counts of a place, and the total if the place is the owner's.
func (a *Approximate) Crashed(p virtual.Place) {
	c := &a.servers[p]
	a.lost += c.pending
	c.told, c.pending, c.sending = 0, 0, false
	if p == centre {
		a.lost += a.total
		a.total, a.telling = 0, false
	}
}

// Restarted does nothing: nothing is durable.
func (a *Approximate) Restarted(virtual.Place) {}

// Out returns the true number of tokens granted and not released.
func (a *Approximate) Out() int {
	out := 0
	for i := range a.servers {
		out += a.servers[i].net
	}
	return out
}

// Check checks that every hit is counted, on its way, or lost.
func (a *Approximate) Check() error {
	sum := a.total + a.away + a.lost
	for i := range a.servers {
		sum += a.servers[i].pending
	}
	if sum != a.Out() {
		return fmt.Errorf("%d hits counted, on their way and lost, and %d tokens out", sum, a.Out())
	}
	return nil
}

// Counters returns its counters, among them the most tokens beyond the limit.
func (a *Approximate) Counters() map[string]float64 {
	return map[string]float64{
		virtual.Messages: float64(a.w.Messages), virtual.MessageBytes: float64(a.w.Bytes), "reads": float64(a.reads),
		"granted": float64(a.granted), "refused": float64(a.refused), "beyond": float64(max(0, a.most-a.limit)),
	}
}
