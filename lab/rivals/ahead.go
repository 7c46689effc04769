package rivals

import (
	"time"

	"github.com/samya-db/samya/lab/virtual"
)

var _ virtual.Knower = (*Ahead)(nil)

const (
	// lowPart is the low-water mark of a site: that part of an equal share of the
	// limit.
	lowPart = 8
	// calm is how long a site that nobody waits at lets pass between two rounds.
	calm = time.Second
	// roundSpan is how long a round waits for its answers.
	roundSpan = time.Second
)

// Ahead is an escrow that borrows before it is in need, and from all others at once:
// the plainest design that could do what samya does. A site asks when it falls below
// a low-water mark, a constant, and at once when an acquire waits. It knows no
// forecast, and hears of others by their answers alone.
//
// A donor lends the difference to the one that asks, divided by the number of sites:
// so that all come nearer to each other, and none gives more than it keeps. Where
// acquires wait it lends as many tokens as these at least, if it has them. An acquire
// that waited through a whole round of answers is refused.
//
// Tokens lost on their way stay lost, as those of an Escrow do. But a site asks again
// when answers stay away.
type Ahead struct {
	loans
	mark   int
	rounds []round
}

// round is a site's round of questions to all others.
type round struct {
	// number is that of the latest, open counts its questions without an answer.
	number, open int
	// counted is the last of the acquires that waited as it began.
	counted int
	// next is when the next may begin while nobody waits.
	next time.Duration
}

// NewAhead makes one.
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

// give lends to a site that had so many tokens left, and so many in need.
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

// Crashed forgets what is not durable at a place, who waits there among it.
func (a *Ahead) Crashed(p virtual.Place) {
	a.at[p].crash()
	a.queues[p].all, a.rounds[p].open = nil, 0
}
