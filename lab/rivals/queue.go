package rivals

import (
	"slices"

	"github.com/samya-db/samya/lab/virtual"
)

// queue holds the acquires that wait at a site, in the order of their arrival.
type queue struct {
	all []*waiting
	// last is the number of the latest acquire that joined.
	last int
}

// waiting is an acquire in a queue.
type waiting struct {
	r    *virtual.Request
	seq  int
	done bool
}

// wait puts an acquire into the queue of its site, until its deadline.
func (s *sites) wait(q *queue, r *virtual.Request) {
	s.waited++
	q.last++
	w := &waiting{r: r, seq: q.last}
	q.all = append(q.all, w)
	s.w.After(r.Place, r.Deadline-s.w.Now(), func() {
		if w.done {
			return
		}
		w.done = true
		q.all = slices.DeleteFunc(q.all, func(other *waiting) bool { return other == w })
		s.settle(r, virtual.TimedOut)
	})
}

// serve grants waiting acquires in order, while tokens are left.
func (s *sites) serve(at *site, q *queue) {
	n := min(at.left, len(q.all))
	for _, w := range q.all[:n] {
		w.done = true
		at.left--
		at.net++
		s.settle(w.r, virtual.Granted)
	}
	q.all = slices.Delete(q.all, 0, n)
}

// refuse refuses the acquires with numbers up to upTo.
func (s *sites) refuse(q *queue, upTo int) {
	n := 0
	for n < len(q.all) && q.all[n].seq <= upTo {
		q.all[n].done = true
		s.settle(q.all[n].r, virtual.Refused)
		n++
	}
	q.all = slices.Delete(q.all, 0, n)
}
