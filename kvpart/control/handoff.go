package control

import "sync/atomic"

// handoff hands a job to the cutter and its result back, a single job at a time. The
// controller knows whether a cycle is under way: it gives no job before it has taken the
// result of the last job.
type handoff[E Entry] struct {
	job    atomic.Pointer[job[E]]
	result atomic.Pointer[result]
	// nudge tells the controller of a result.
	nudge func()
}

// give hands a job to the cutter.
func (h *handoff[E]) give(j *job[E]) { h.job.Store(j) }

// do works on the waiting job, and reports whether there was a job.
func (h *handoff[E]) do(work func(*job[E]) *result) bool {
	j := h.job.Load()
	if j == nil {
		return false
	}
	r := work(j)
	// First the job is cleared, then its result is seen. In the other order the
	// controller could take the result and give the next job in between. Then the new job
	// would be cleared undone, and no cycle would ever begin again.
	h.job.Store(nil)
	h.result.Store(r)
	h.nudge()
	return true
}

// take takes the result, nil if there is none.
func (h *handoff[E]) take() *result { return h.result.Swap(nil) }
