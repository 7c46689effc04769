package control

import "sync/atomic"

// handoff hands a job to the cutter and what became of it back, one at a time.
// That a cycle is under way is the controller's to know: it gives no job before it
// took the result of the last one.
type handoff[E Entry] struct {
	job    atomic.Pointer[job[E]]
	result atomic.Pointer[result]
	// nudge tells the controller of a result.
	nudge func()
}

// give hands a job to the cutter.
func (h *handoff[E]) give(j *job[E]) { h.job.Store(j) }

// do has work done if there is some, and tells whether there was.
func (h *handoff[E]) do(work func(*job[E]) *result) bool {
	j := h.job.Load()
	if j == nil {
		return false
	}
	r := work(j)
	// First the job is cleared, then its result is seen. In the other order the
	// controller could take the result and give the next job in between: that one
	// would be cleared undone, and no cycle would ever begin again.
	h.job.Store(nil)
	h.result.Store(r)
	h.nudge()
	return true
}

// take takes the result, nil if there is none.
func (h *handoff[E]) take() *result { return h.result.Swap(nil) }
