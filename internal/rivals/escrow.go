package rivals

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/samya-db/samya/internal/virtual"
)

var _ virtual.Knower = (*Escrow)(nil)

// Lend says how much a site lends.
type Lend string

const (
	// Exact lends what is asked for, or all there is.
	Exact Lend = "exact"
	// Half lends half of what there is, whatever is asked for.
	Half Lend = "half"
)

// ErrLend is the error of a Lend that is none of them.
var ErrLend = errors.New("unknown way to lend")

// Escrow is the paper's Demarcation/Escrow (Samya, Section 5, ii): sites serve from
// their escrow, and borrow from other sites when a request finds none.
//
// A site in need asks one other at a time, the nearest first, for as many tokens as
// requests wait then; what comes free at home meanwhile serves the queue as well.
// When it has asked all, it refuses who waited through all of that. It needs a
// network that loses nothing, as in the paper: a site that gets no answer borrows
// no more, and tokens lost on their way stay lost.
type Escrow struct {
	sites
	lend    Lend
	borrows []borrower
	// away are the tokens that left a site and are not durable at another.
	away int
	// episodes count times without tokens in which a site borrowed, asks its
	// questions, lent those that brought something, moved the tokens, waited the
	// requests.
	episodes, asks, lent, moved, waited int
}

// borrower is what a site has in memory.
type borrower struct {
	queue []*waiting
	// order are the others, the nearest first.
	order []virtual.Place
	// asking is set while a question is under way, the one to order[next-1].
	asking bool
	next   int
	// round is the last of the requests that have waited since the first site was
	// asked, seq the last of all.
	round, seq int
	// sent and got count tokens, by place.
	sent, got []int
}

type waiting struct {
	r *virtual.Request
	// seq numbers those that wait at a site.
	seq  int
	done bool
}

// NewEscrow makes one.
func NewEscrow(lend Lend) (*Escrow, error) {
	if lend != Exact && lend != Half {
		return nil, fmt.Errorf("%w %q: known are %s and %s", ErrLend, lend, Exact, Half)
	}
	return &Escrow{lend: lend}, nil
}

// Start divides the limit.
func (e *Escrow) Start(w *virtual.World, limit int, answer func(*virtual.Request, virtual.Outcome)) error {
	if err := e.start(w, limit, answer); err != nil {
		return err
	}
	o := w.Options()
	e.borrows = make([]borrower, w.Places())
	for i := range e.borrows {
		b := &e.borrows[i]
		b.sent, b.got = make([]int, w.Places()), make([]int, w.Places())
		for j := range w.Places() {
			if j != i {
				b.order = append(b.order, virtual.Place(j))
			}
		}
		way := func(p virtual.Place) time.Duration { return o.Network.OneWay(o.Places[i], o.Places[p]) }
		slices.SortStableFunc(b.order, func(p, q virtual.Place) int { return cmp.Compare(way(p), way(q)) })
	}
	return nil
}

// Handle serves a request. A stale read tells what the site has; an exact one asks
// all, again and again as long as tokens are on their way between them.
func (e *Escrow) Handle(r *virtual.Request) {
	e.w.Serve(r.Place, func() {
		if e.late(r) {
			return
		}
		at := e.at[r.Place]
		switch r.Kind {
		case virtual.ReadStale:
			e.settle(r, virtual.Granted)
		case virtual.ReadExact:
			e.read(r)
		case virtual.Release:
			at.commit(func() {
				at.left++
				at.net--
				e.settle(r, virtual.Granted)
				e.serve(at)
			})
		case virtual.Acquire:
			at.commit(func() { e.acquire(at, r) })
		}
	})
}

func (e *Escrow) acquire(at *site, r *virtual.Request) {
	b := &e.borrows[at.place]
	if len(b.queue) == 0 && at.left > 0 {
		at.left--
		at.net++
		e.settle(r, virtual.Granted)
		return
	}
	e.waited++
	b.seq++
	w := &waiting{r: r, seq: b.seq}
	b.queue = append(b.queue, w)
	e.w.After(at.place, r.Deadline-e.w.Now(), func() {
		if w.done {
			return
		}
		w.done = true
		b.queue = slices.DeleteFunc(b.queue, func(other *waiting) bool { return other == w })
		e.settle(r, virtual.TimedOut)
	})
	if !b.asking {
		e.episodes++
		b.next, b.round = 0, b.seq
		e.borrow(at)
	}
}

// serve grants in order what the escrow allows.
func (e *Escrow) serve(at *site) {
	b := &e.borrows[at.place]
	n := min(at.left, len(b.queue))
	for _, w := range b.queue[:n] {
		w.done = true
		at.left--
		at.net++
		e.settle(w.r, virtual.Granted)
	}
	b.queue = slices.Delete(b.queue, 0, n)
}

// borrow asks the next site, as long as requests wait.
func (e *Escrow) borrow(at *site) {
	b := &e.borrows[at.place]
	if b.next == len(b.order) {
		e.refuse(b)
		b.next, b.round = 0, b.seq
	}
	if b.asking = len(b.queue) > 0 && len(b.order) > 0; !b.asking {
		return
	}
	from, need := b.order[b.next], len(b.queue)
	b.next++
	e.asks++
	e.w.Send(at.place, from, askBytes, func() {
		e.w.Serve(from, func() {
			donor := e.at[from]
			donor.commit(func() { e.give(donor, at, need) })
		})
	})
}

// refuse gives up on who has waited while all others were asked.
func (e *Escrow) refuse(b *borrower) {
	n := 0
	for n < len(b.queue) && b.queue[n].seq <= b.round {
		b.queue[n].done = true
		e.settle(b.queue[n].r, virtual.Refused)
		n++
	}
	b.queue = slices.Delete(b.queue, 0, n)
}

// give lends tokens, which are away until the borrower has them.
func (e *Escrow) give(donor, to *site, need int) {
	n := min(need, donor.left)
	if e.lend == Half {
		n = (donor.left + 1) / 2
	}
	donor.left -= n
	e.away += n
	e.borrows[donor.place].sent[to.place] += n
	e.w.Send(donor.place, to.place, tellBytes, func() {
		to.commit(func() {
			to.left += n
			e.away -= n
			e.borrows[to.place].got[donor.place] += n
			if n > 0 {
				e.lent++
				e.moved += n
			}
			e.serve(to)
			e.borrow(to)
		})
	})
}

// read asks all sites for what they have, and looks whether all that was sent
// has arrived: then it is what all had at one time, as far as they know of each
// other.
func (e *Escrow) read(r *virtual.Request) {
	n := len(e.at)
	sent, got := make([][]int, n), make([][]int, n)
	e.gather(r, func(p virtual.Place) {
		b := &e.borrows[p]
		sent[p], got[p] = slices.Clone(b.sent), slices.Clone(b.got)
	}, func() bool {
		for i := range n {
			for j := range n {
				if sent[i][j] != got[j][i] {
					return false
				}
			}
		}
		return true
	})
}

// Crashed forgets what is not durable at a place, who waits there among it.
func (e *Escrow) Crashed(p virtual.Place) {
	e.at[p].crash()
	b := &e.borrows[p]
	b.queue, b.asking = nil, false
}

// Restarted has nothing to do: what is durable is there.
func (e *Escrow) Restarted(virtual.Place) {}

// Out is how many tokens are granted and not released.
func (e *Escrow) Out() int { return e.out() }

// Free is how many tokens are free for the clients of a place: at it and at those it
// reaches, and between them.
func (e *Escrow) Free(p virtual.Place) int {
	free := e.away
	for _, at := range e.at {
		if e.w.Reaches(p, at.place) {
			free += at.left
		}
	}
	return free
}

// Check looks whether the sites have what was not granted, but for what a crash or
// a cut lost on its way, and whether nobody waits.
func (e *Escrow) Check() error {
	for i, at := range e.at {
		if at.left < 0 {
			return fmt.Errorf("site %d has %d tokens left", i, at.left)
		}
		if n := len(e.borrows[i].queue); n > 0 {
			return fmt.Errorf("%d requests still wait at site %d", n, i)
		}
	}
	if got := e.left() + e.out() + e.away; got != e.limit {
		return fmt.Errorf("%d tokens at sites, %d between them and %d out, the limit is %d", e.left(), e.away, e.out(), e.limit)
	}
	return nil
}

// Counters tell what it did. Redistributions begun are times without tokens in which a
// site borrowed, however many it asked.
func (e *Escrow) Counters() map[string]float64 {
	c := e.counters()
	c[virtual.Begun+" borrow"], c["asks"], c["loans"] = float64(e.episodes), float64(e.asks), float64(e.lent)
	c[virtual.Moved], c[virtual.Waited], c["lost"] = float64(e.moved), float64(e.waited), float64(e.away)
	return c
}
