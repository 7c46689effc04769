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
// the processor, then with. A thread without work yields less often.
const spins, yields, yieldsIdle = 100, 4, 2

// patience decides how a thread waits.
type patience struct {
	// vain counts the vain looks in a row. spinning says that the thread has a place among
	// the spinners.
	vain     int
	spinning bool
}

// action is the next action of a thread's goroutine.
type action uint8

const (
	goOn  action = iota // take the next step
	yield               // give others the processor first
	block               // park
	end                 // end the goroutine
)

// after is the action after a step. hunts says that the thread looks for work elsewhere.
func (p *patience) after(o outcome, hunts bool) action {
	if o == moved && hunts {
		return goOn
	}
	if o == moved || o == stopped {
		p.vain = 0
		p.rest()
		if o == stopped {
			return end
		}
		return goOn
	}
	most := yields
	if o == idle {
		most = yieldsIdle
	}
	if p.vain++; p.vain == 1 {
		if p.spinning = maySpin(o); !p.spinning {
			p.vain = spins
		}
	}
	if p.vain < spins {
		return goOn
	}
	p.rest()
	if p.vain < spins+most {
		return yield
	}
	p.vain = 0
	return block
}

// rest gives the place among the spinners back.
func (p *patience) rest() {
	if p.spinning {
		p.spinning = false
		spinners.Add(-1)
	}
}

// loop is a thread's goroutine.
func (w *worker) loop() {
	var p patience
	ended := false
	defer func() {
		p.rest()
		if !ended { // a job ended the goroutine
			w.running.Go(w.loop)
		}
	}()
	for {
		o := w.step()
		switch p.after(o, w.hunts()) {
		case goOn:
		case yield:
			runtime.Gosched()
		case block:
			w.park()
		case end:
			ended = true
			return
		}
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

// maySpin has a goroutine spin unless as many as there are processors do. A thread without
// work spins on half of the processors alone: the others are for those who bring work. On
// two processors its spinning halved the throughput of callers.
func maySpin(o outcome) bool {
	places := runtime.GOMAXPROCS(0)
	if o == idle {
		places /= 2
	}
	if int(spinners.Add(1)) < places {
		return true
	}
	spinners.Add(-1)
	return false
}
