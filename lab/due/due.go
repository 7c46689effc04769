// Package due is a priority queue of things to happen at future times, for simulations.
// The caller supplies the clock.
package due

// Thing is something that is due.
type Thing[At ~int64, What any] struct {
	At At
	// Number counts the things of a queue from 1, in the order in which they were
	// pushed.
	Number uint64
	What   What
}

func (a *Thing[At, What]) before(b *Thing[At, What]) bool {
	return a.At < b.At || a.At == b.At && a.Number < b.Number
}

// Queue holds things in the order of their times. Things due at the same time keep the
// order in which they were pushed. The zero Queue is empty.
type Queue[At ~int64, What any] struct {
	heap   []Thing[At, What]
	pushed uint64
}

// Push adds a thing that is due at a time.
func (q *Queue[At, What]) Push(at At, what What) {
	q.pushed++
	e := Thing[At, What]{at, q.pushed, what}
	h := append(q.heap, e)
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
	q.heap = h
}

// Next returns the time of the next thing; false if the queue is empty.
func (q *Queue[At, What]) Next() (At, bool) {
	if len(q.heap) == 0 {
		return 0, false
	}
	return q.heap[0].At, true
}

// Pop removes the next thing that is due by a time; false if there is none.
func (q *Queue[At, What]) Pop(by At) (Thing[At, What], bool) {
	h := q.heap
	if len(h) == 0 || h[0].At > by {
		return Thing[At, What]{}, false
	}
	first, last := h[0], h[len(h)-1]
	h[len(h)-1] = Thing[At, What]{}
	h = h[:len(h)-1]
	q.heap = h
	if len(h) == 0 {
		return first, true
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
	return first, true
}
