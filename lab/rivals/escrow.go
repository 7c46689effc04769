package rivals

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/samya-db/samya/lab/virtual"
)

var _ virtual.Knower = (*Escrow)(nil)

// Lend is the rule for the size of a loan.
type Lend string

const (
	// Exact lends the tokens asked for, or all tokens left.
	Exact Lend = "exact"
	// Half lends half of the tokens left, whatever is asked for.
	Half Lend = "half"
)

// ErrLend is the error of an unknown Lend.
var ErrLend = errors.New("unknown way to lend")

// Escrow is the paper's Demarcation/Escrow (Samya, Section 5, ii): sites serve from
// their escrow, and borrow from other sites when a request finds no token.
//
// A site in need asks another site at a time, the nearest first, for as many tokens
// as requests wait then. Tokens released at home meanwhile serve the queue as well.
// When it has asked all sites, it refuses the requests that waited throughout. It
// needs a network without losses, as in the paper: a site without an answer borrows
// no more, and tokens lost on their way stay lost.
type Escrow struct {
	loans
	lend    Lend
	borrows []borrower
}

// borrower is the state of a site in memory beside its queue.
type borrower struct {
	// order are the other places, the nearest first.
	order []virtual.Place
	// asking is set while a question to order[next-1] is under way.
	asking bool
	next   int
	// round is the last request that has waited since the first question.
	round int
}

// NewEscrow makes the system. It fails with ErrLend.
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

// Handle serves a request.
func (e *Escrow) Handle(r *virtual.Request) { e.handle(r, e.acquire) }

func (e *Escrow) acquire(at *site, r *virtual.Request) {
	if e.grant(at, r) {
		return
	}
	q, b := &e.queues[at.place], &e.borrows[at.place]
	e.wait(q, r)
	if !b.asking {
		e.episodes++
		b.next, b.round = 0, q.last
		e.borrow(at)
	}
}

// borrow asks the next site while requests wait.
func (e *Escrow) borrow(at *site) {
	q, b := &e.queues[at.place], &e.borrows[at.place]
	if b.next == len(b.order) {
		e.refuse(q, b.round)
		b.next, b.round = 0, q.last
	}
	if b.asking = len(q.all) > 0 && len(b.order) > 0; !b.asking {
		return
	}
	from, need := b.order[b.next], len(q.all)
	b.next++
	e.asks++
	e.w.Send(at.place, from, askBytes, func() {
		e.w.Serve(from, func() {
			donor := e.at[from]
			donor.commit(func() { e.give(donor, at, need) })
		})
	})
}

// give lends tokens, which are away until the borrower has them.
func (e *Escrow) give(donor, to *site, need int) {
	n := min(need, donor.left)
	if e.lend == Half {
		n = (donor.left + 1) / 2
	}
	e.send(donor, to, n, func() { e.borrow(to) })
}

// Crashed forgets the state of a place that is not durable, waiting requests
// included.
func (e *Escrow) Crashed(p virtual.Place) {
	e.at[p].crash()
	e.queues[p].all, e.borrows[p].asking = nil, false
}
