package core

import (
	"slices"
)

// waiting is an acquire that waits for tokens.
type waiting struct {
	request
	// until is when it is refused.
	until Tick
	// named are the entities that it names, and charge is what it takes of each.
	named  []*entity
	charge charge
	// at is the entity that it waits for, and needs what it takes of that one.
	at    *entity
	needs Tokens
	// number orders it among all that ever waited for that entity, arrived among all
	// that ever waited at the site.
	number, arrived uint64
	// behind says, while acquires end their waiting, that one before it goes on.
	behind bool
	// calls are whom to answer: the first caller and those that repeated its id.
	calls []Call
}

// maxCallers bounds how many callers may wait for one request id.
const maxCallers = 16

// queue holds an entity's waiting acquires in the order of their arrival. It
// is bounded by the core.
type queue struct {
	items  []*waiting
	tokens Tokens
	// number is that of the last item that ever joined.
	number uint64
	// next is no later than the first until of all items.
	next Tick
}

func (q *queue) len() int {
	if q == nil {
		return 0
	}
	return len(q.items)
}

// asked is what all that wait ask for.
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

// first is what the acquire asks for that has waited longest; 0 if none waits.
func (q *queue) first() Tokens {
	if q.len() == 0 {
		return 0
	}
	return q.items[0].needs
}

func (q *queue) push(w *waiting) {
	q.number++
	w.number = q.number
	if len(q.items) == 0 || w.until < q.next {
		q.next = w.until
	}
	q.items = append(q.items, w)
	q.tokens += w.needs
}

// take removes and visits the items for which pick says so, in order.
func (q *queue) take(pick func(w *waiting) bool) []*waiting {
	var taken []*waiting
	if q == nil {
		return taken
	}
	q.items = slices.DeleteFunc(q.items, func(w *waiting) bool {
		if !pick(w) {
			return false
		}
		taken = append(taken, w)
		q.tokens -= w.needs
		return true
	})
	q.soonest()
	return taken
}

// remove takes one item out.
func (q *queue) remove(w *waiting) { q.take(func(x *waiting) bool { return x == w }) }

// pop removes the item that has waited longest.
func (q *queue) pop() *waiting {
	w := q.items[0]
	q.items = slices.Delete(q.items, 0, 1)
	q.tokens -= w.needs
	if q.next == w.until {
		q.soonest()
	}
	return w
}

// soonest finds the first until of all items.
func (q *queue) soonest() {
	q.next = 0
	for i, w := range q.items {
		if i == 0 || w.until < q.next {
			q.next = w.until
		}
	}
}

// hasten has those that need no more than so many tokens wait until a time at most.
func (q *queue) hasten(until Tick, needs Tokens) {
	if q == nil {
		return
	}
	for _, w := range q.items {
		if w.needs <= needs {
			w.until = min(w.until, until)
		}
	}
	q.soonest()
}
