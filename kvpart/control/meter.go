package control

import (
	"runtime"
	"time"
)

// meter measures the processor time of a goroutine between start and stop.
type meter struct {
	now, cpu func() time.Duration
	// thread tells that cpu is of the calling thread: the goroutine stays on one
	// while it is measured.
	thread bool
	wall   time.Duration // when it was started
	used   time.Duration
	sum    time.Duration
}

func (o *Options[E]) meter() meter {
	if o.CPU == nil {
		return meter{now: o.Now, cpu: threadTime, thread: true}
	}
	return meter{now: o.Now, cpu: o.CPU}
}

func (m *meter) start() {
	if m.thread {
		runtime.LockOSThread()
	}
	m.wall, m.used = m.now(), m.cpu()
}

// stop counts what was used since start, and no more than passed.
func (m *meter) stop() {
	used := m.cpu() - m.used
	m.sum += max(0, min(used, m.now()-m.wall))
	if m.thread {
		runtime.UnlockOSThread()
	}
}

// total returns what was counted since it was last called.
func (m *meter) total() time.Duration {
	sum := m.sum
	m.sum = 0
	return sum
}

// started is when the process did, for threadTime where there is no better clock.
var started = time.Now()
