package early

import (
	"runtime"
	"sync/atomic"
)

// wakeAll wakes the threads of a class.
func (w *worker) wakeAll(c *class) {
	for _, t := range c.Threads {
		if t != w.id {
			w.workers[t].wake()
		}
	}
}

// wake wakes the thread if it has parked, and reports whether it had.
func (w *worker) wake() bool {
	if !w.parked.CompareAndSwap(true, false) {
		return false
	}
	w.sema <- struct{}{}
	return true
}

// spins and yields are the numbers of vain looks before a thread parks: without yielding
// the processor, then with.
const spins, yields = 100, 4

// loop is a thread's goroutine.
func (w *worker) loop() {
	vain, spinning := 0, false
	rest := func() {
		if spinning {
			spinning = false
			spinners.Add(-1)
		}
	}
	defer rest()
	for {
		o := w.step()
		if o == stopped {
			return
		}
		if o == moved {
			if !w.hunts() {
				vain = 0
				rest()
			}
			continue
		}
		if vain++; vain == 1 {
			if spinning = maySpin(); !spinning {
				vain = spins
			}
		}
		if vain < spins {
			continue
		}
		rest()
		if vain < spins+yields {
			runtime.Gosched()
			continue
		}
		w.park()
		vain = 0
	}
}

// hunts reports whether the thread looks for work elsewhere, or has just found none.
func (w *worker) hunts() bool {
	return w.at == seek || w.at == rob || w.at == w.back && w.mode.steals()
}

// park blocks the thread until there may be work for it, or the request at hand has
// ended.
func (w *worker) park() {
	w.parked.Store(true)
	// Whoever changed something before did not see the thread parked.
	for {
		o := w.step()
		if o == moved && w.hunts() {
			continue
		}
		if o == waiting || o == idle {
			<-w.sema
			return
		}
		if o == stopped {
			w.at = drain
		}
		break
	}
	if !w.parked.CompareAndSwap(true, false) {
		<-w.sema
	}
}

// spinners counts the goroutines that spin, of all schedulers.
var spinners atomic.Int32

// maySpin has a goroutine spin unless as many as there are processors do.
func maySpin() bool {
	if int(spinners.Add(1)) < runtime.GOMAXPROCS(0) {
		return true
	}
	spinners.Add(-1)
	return false
}
