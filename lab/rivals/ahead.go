package rivals

import (
	"time"

	"github.com/samya-db/samya/lab/virtual"
)

var _ virtual.Knower = (*Ahead)(nil)

const (
	// lowPart sets the low-water mark of a site: an equal share of the limit divided
	// by lowPart.
	lowPart = 8
	// calm is the least time between two rounds of a site without waiting acquires.
	calm = time.Second
	// roundSpan is the longest wait of a round for its answers.
	roundSpan = time.Second
)

// Ahead is an escrow that borrows before it is in need, from all others at once:
// the plainest design that could do samya's work. A site asks when it falls below a
// low-water mark, a constant, and at once when an acquire waits. It has no
// forecast, and learns of other sites by their answers alone.
//
// A donor lends the difference to the asking site, divided by the number of sites.
// So all sites come nearer to each other, and no donor gives more than it keeps. If
// acquires wait, it lends at least as many tokens, if it has them. An acquire that
// waited through a whole round of answers is refused.
//
// Tokens lost on their way stay lost, as in Escrow. But a site asks again when
// answers stay away.
type Ahead struct {
	loans
	mark   int
	rounds []round
}

// round is a site's round of questions to all others.
type round struct {
	// number is the number of the latest round; open counts its unanswered
	// questions.
	number, open int
	// counted is the last acquire that waited at its start.
	counted int
	// next is the earliest start of the next round without waiting acquires.
	next time.Duration
}

// NewAhead makes the system.
func NewAhead() *Ahead { return &Ahead{} }

// Start divides the limit.
func (a *Ahead) Start(w *virtual.World, limit int, answer func(*virtual.Request, virtual.Outcome)) error {
	if err := a.start(w, limit, answer); err != nil {
		return err
	}
	a.mark, a.rounds = limit/w.Places()/lowPart, make([]round, w.Places())
	return nil
}

// Handle serves a request.
func (a *Ahead) Handle(r *virtual.Request) {
	a.handle(r, func(at *site, r *virtual.Request) {
		if !a.grant(at, r) {
			a.wait(&a.queues[at.place], r)
		}
		a.look(at)
	})
}

// look begins a round if the site needs one.
func (a *Ahead) look(at *site) {
	q, r := &a.queues[at.place], &a.rounds[at.place]
	early := at.left < a.mark && a.w.Now() >= r.next
	if r.open > 0 || len(a.at) == 1 || len(q.all) == 0 && !early {
		return
	}
	a.episodes++
	r.number++
	r.open, r.counted, r.next = len(a.at)-1, q.last, a.w.Now()+calm
	number, need, left := r.number, len(q.all), at.left
	for _, donor := range a.at {
		if donor == at {
			continue
		}
		a.asks++
		a.w.Send(at.place, donor.place, askBytes, func() {
			a.w.Serve(donor.place, func() {
				donor.commit(func() { a.give(donor, at, number, need, left) })
			})
		})
	}
	a.w.After(at.place, roundSpan, func() {
		if r.number == number && r.open > 0 {
			r.open = 0
			a.look(at)
		}
	})
}

// give lends tokens to a site that had left tokens and needed need.
func (a *Ahead) give(donor, to *site, number, need, left int) {
	n := min(donor.left, max(need, (donor.left-left)/len(a.at)))
	a.send(donor, to, n, func() { a.answered(to, number) })
}

// answered ends a round with its last answer.
func (a *Ahead) answered(at *site, number int) {
	r := &a.rounds[at.place]
	if r.number != number || r.open == 0 {
		return
	}
	if r.open--; r.open == 0 {
		a.refuse(&a.queues[at.place], r.counted)
		a.look(at)
	}
}

// Crashed forgets the state of a place that is not durable, waiting acquires
// included.
func (a *Ahead) Crashed(p virtual.Place) {
	a.at[p].crash()
	a.queues[p].all, a.rounds[p].open = nil, 0
}
