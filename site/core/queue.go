package core

import (
	"math"

	"github.com/samya-db/samya/internal/portion"
	"github.com/samya-db/samya/internal/spanctx"
	"github.com/samya-db/samya/site/core/input"
)

// waiting is an acquire that waits for tokens.
type waiting struct {
	request
	// until is the tick at which the acquire is refused.
	until  Tick
	charge charge
	// at is the entity that it waits for, needs its tokens there.
	at    *entity
	needs Tokens
	// number orders it among all acquires that ever waited for that entity, arrived among
	// all that ever waited at the site. place is its place in the queue.
	number, arrived uint64
	place           int
	// since is the tick since which it waits there.
	since Tick
	// held says that others have waited for it: see hold.
	held bool
	// tenant is its slot in the counts of the table of requests, waits its slot in the
	// counts of waiting acquires.
	tenant, waits portion.Slot
	// queued is its slot in the counts of the queue; Nobody if it is not counted.
	queued portion.Slot
	// calls are the calls to answer: the first caller's and its repeats'.
	calls []input.Call
	// span is the span of its waiting, since began, if its trace is recorded; else nil.
	span  *spanctx.Context
	began int64
}

// MaxCallers bounds the callers that may wait for a request id: further callers are
// answered Unknown.
const MaxCallers = 16

// queue holds the waiting acquires of an entity in the order of their arrival. The core
// bounds the queue. Each operation on an acquire takes logarithmic time: a thousand
// callers who hang up must not stop the site.
type queue struct {
	// places has nil where an acquire has left.
	places []*waiting
	// minima is a tree over the places: the root at 1, the children of i at 2i and 2i+1,
	// the places in the second half.
	minima []minimum
	count  int
	tokens Tokens
	// number is the number of the last item that ever joined.
	number uint64
	hold   hold
	// drained is the number of waiting acquires when the entity was last drained.
	drained int
	// traced is a waiting acquire whose trace is recorded, and round the redistribution that
	// belongs to such a trace; nil if there is none.
	traced *waiting
	round  *round
	// of counts each tenant's acquires, where entities of tenants are below the queue's
	// entity; nil if there are none.
	of *portion.Counts
}

// told reports whether the number of waiting acquires is the same as at the last drain.
func (q *queue) told() bool { return q == nil || q.drained == q.len() }

// tell notes the number of waiting acquires at a drain.
func (q *queue) tell() {
	if q != nil {
		q.drained = q.len()
	}
}

// minimum is the least need and the first deadline in some places.
type minimum struct {
	needs Tokens
	until Tick
}

// nobody is the minimum of empty places: no acquire needs so much.
var nobody = minimum{needs: math.MaxInt64, until: math.MaxUint64}

// fewPlaces is the least number of places in a queue, keepPlaces the number that an empty
// queue keeps.
const fewPlaces, keepPlaces = 4, 64

func (q *queue) len() int {
	if q == nil {
		return 0
	}
	return q.count
}

// asked is the number of tokens that all waiting acquires ask for.
func (q *queue) asked() Tokens {
	if q == nil {
		return 0
	}
	return q.tokens
}

// last is the number of the last item that ever joined.
func (q *queue) last() uint64 {
	if q == nil {
		return 0
	}
	return q.number
}

// oldest is the acquire that has waited longest; nil if none waits.
func (q *queue) oldest() *waiting { return q.fits(input.MaxTokens) }

// first is the number of tokens that the longest waiting acquire asks for; 0 if none
// waits.
func (q *queue) first() Tokens {
	if w := q.oldest(); w != nil {
		return w.needs
	}
	return 0
}

// fewest is the smallest number of tokens that a waiting acquire needs; meaningless if no
// acquire waits.
func (q *queue) fewest() Tokens { return q.minima[1].needs }

// fits is the longest waiting acquire that needs at most left tokens; nil if there is
// none.
func (q *queue) fits(left Tokens) *waiting {
	return q.find(func(m *minimum) bool { return m.needs <= left })
}

// due is the longest waiting acquire whose time is up; nil if there is none.
func (q *queue) due(now Tick) *waiting {
	return q.find(func(m *minimum) bool { return m.until <= now })
}

// next is the first until of all items.
func (q *queue) next() Tick { return q.minima[1].until }

// find is the first item whose minimum satisfies a condition.
func (q *queue) find(holds func(m *minimum) bool) *waiting {
	if q.len() == 0 || !holds(&q.minima[1]) {
		return nil
	}
	half, i := len(q.minima)/2, 1
	for i < half {
		if i *= 2; !holds(&q.minima[i]) {
			i++
		}
	}
	return q.places[i-half]
}

func (q *queue) push(w *waiting) {
	q.number++
	w.number = q.number
	if len(q.places) == len(q.minima)/2 {
		q.grow()
	}
	w.place = len(q.places)
	q.places = append(q.places, w)
	q.count++
	q.tokens += w.needs
	if w.span != nil && q.traced == nil {
		q.traced = w
	}
	q.fix(w)
}

// grow closes the gaps, and makes room for as many items again.
func (q *queue) grow() {
	old := q.places
	leaves := fewPlaces
	for leaves < 2*q.count {
		leaves *= 2
	}
	q.places, q.minima = make([]*waiting, 0, leaves), make([]minimum, 2*leaves)
	for i := range q.minima {
		q.minima[i] = nobody
	}
	for _, w := range old {
		if w != nil {
			w.place = len(q.places)
			q.places = append(q.places, w)
			q.minima[leaves+w.place] = minimum{w.needs, w.until}
		}
	}
	for i := leaves - 1; i > 0; i-- {
		q.minima[i] = least(&q.minima[2*i], &q.minima[2*i+1])
	}
}

func least(a, b *minimum) minimum { return minimum{min(a.needs, b.needs), min(a.until, b.until)} }

// fix updates minima after an item's until has changed, or the item has come or gone.
func (q *queue) fix(w *waiting) {
	m := nobody
	if q.places[w.place] == w {
		m = minimum{w.needs, w.until}
	}
	i := len(q.minima)/2 + w.place
	for q.minima[i] = m; i > 1; {
		i /= 2
		q.minima[i] = least(&q.minima[2*i], &q.minima[2*i+1])
	}
}

// renew changes the number of tokens that an item needs. Its place stays.
func (q *queue) renew(w *waiting, needs Tokens) {
	q.tokens += needs - w.needs
	w.needs = needs
	q.fix(w)
}

// remove removes an item.
func (q *queue) remove(w *waiting) {
	q.places[w.place] = nil
	q.fix(w)
	q.count--
	q.tokens -= w.needs
	if q.traced == w {
		q.traced = nil
	}
	if q.hold.by == w {
		q.hold.by, q.hold.over = nil, true
	}
	if w.queued != portion.Nobody {
		q.of.Give(w.queued, 1)
		w.queued = portion.Nobody
	}
	if q.count > 0 {
		return
	}
	q.of = nil
	if q.places = q.places[:0]; cap(q.places) > keepPlaces {
		q.places, q.minima = nil, nil
	}
}

// take removes the items that pick chooses, and returns them in order.
func (q *queue) take(pick func(w *waiting) bool) []*waiting {
	var taken []*waiting
	for _, w := range q.items() {
		if pick(w) {
			taken = append(taken, w)
		}
	}
	for _, w := range taken {
		q.remove(w)
	}
	return taken
}

// items are all items, in order.
func (q *queue) items() []*waiting {
	items := make([]*waiting, 0, q.len())
	if q == nil {
		return items
	}
	for _, w := range q.places {
		if w != nil {
			items = append(items, w)
		}
	}
	return items
}

// hasten limits until for the items that need at most needs tokens, but for lasting ones.
func (q *queue) hasten(until Tick, needs Tokens, lasts func(w *waiting) bool) {
	for _, w := range q.items() {
		if w.needs <= needs && w.until > until && !lasts(w) {
			w.until = until
			q.fix(w)
		}
	}
}
