package replay

import "time"

// eventKind says what happens at an event.
type eventKind int8

const (
	// released: a release reaches its site; of is its call.
	released eventKind = iota
	// committed: the batch of a site is durable.
	committed
	// arrived: messages reach a site; of is their parcel.
	arrived
	// woken: the core of a site wants to be woken.
	woken
)

// event is something that happens to a site at a time. Things at the same time
// happen in the order of their numbers.
type event struct {
	at   time.Duration
	seq  uint64
	of   int32
	site int8
	kind eventKind
}

func (e *event) before(f *event) bool { return e.at < f.at || e.at == f.at && e.seq < f.seq }

// eventQueue is a heap of events, the next one first.
type eventQueue []event

func (q *eventQueue) push(e event) {
	h := append(*q, e)
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !e.before(&h[up]) {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = e
	*q = h
}

// pop removes the next event; there must be one.
func (q *eventQueue) pop() event {
	h := *q
	first, last := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	*q = h
	if len(h) == 0 {
		return first
	}
	i := 0
	for {
		down := 2*i + 1
		if down >= len(h) {
			break
		}
		if down+1 < len(h) && h[down+1].before(&h[down]) {
			down++
		}
		if !h[down].before(&last) {
			break
		}
		h[i] = h[down]
		i = down
	}
	h[i] = last
	return first
}
