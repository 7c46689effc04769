package control

import (
	"runtime"
	"time"
)

// meter measures the processor time of a goroutine between start and stop.
type meter struct {
	now, cpu func() time.Duration
	// thread says that cpu measures the calling thread: the goroutine is locked to its
	// thread while it is measured.
	thread bool
	wall   time.Duration // when the meter was started
	used   time.Duration
	sum    time.Duration
}

func (o *Options[E]) meter() meter {
	if o.CPU == nil {
		return meter{now: o.Now, cpu: ThreadTime, thread: true}
	}
	return meter{now: o.Now, cpu: o.CPU}
}

func (m *meter) start() {
	if m.thread {
		runtime.LockOSThread()
	}
	m.wall, m.used = m.now(), m.cpu()
}

// stop adds the time used since start, but no more than wall time.
func (m *meter) stop() {
	used := m.cpu() - m.used
	m.sum += max(0, min(used, m.now()-m.wall))
	if m.thread {
		runtime.UnlockOSThread()
	}
}

// total returns the time counted since its last call.
func (m *meter) total() time.Duration {
	sum := m.sum
	m.sum = 0
	return sum
}

// started is about when the process started, for ThreadTime without a better clock.
var started = time.Now()
