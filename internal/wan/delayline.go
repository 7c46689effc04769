package wan

import (
	"sync"
	"time"
)

// DelayLine delivers values some time after they were sent, in the order they were sent,
// without holding up the sender. It is the cable under a stream. The zero DelayLine is
// not usable; use NewDelayLine.
type DelayLine[T any] struct {
	deliver  func(T)
	capacity int

	mu     sync.Mutex
	queue  []delayed[T]
	closed bool

	// filled holds a token while the queue may have become non-empty.
	filled   chan struct{}
	stop     chan struct{}
	finished chan struct{}
}

type delayed[T any] struct {
	value T
	due   time.Time
}

// NewDelayLine returns a line that carries at most capacity values at a time, at least 1.
// It calls deliver from its own goroutine, value by value; while deliver runs, the later
// values wait.
func NewDelayLine[T any](capacity int, deliver func(T)) *DelayLine[T] {
	d := &DelayLine[T]{
		deliver:  deliver,
		capacity: max(capacity, 1),
		filled:   make(chan struct{}, 1),
		stop:     make(chan struct{}),
		finished: make(chan struct{}),
	}
	go d.run()
	return d
}

// Send puts a value on the line, to be delivered after the delay, and not before
// the values sent earlier. It never blocks: it reports false, and the value is
// lost, if the line is full or closed. It may be called by several goroutines.
func (d *DelayLine[T]) Send(value T, delay time.Duration) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed || len(d.queue) >= d.capacity {
		return false
	}
	d.queue = append(d.queue, delayed[T]{value, time.Now().Add(delay)})
	select {
	case d.filled <- struct{}{}:
	default:
	}
	return true
}

// Len returns how many values are under way.
func (d *DelayLine[T]) Len() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.queue)
}

// Close drops the values under way and returns once no delivery runs any more; so deliver
// must not call Close. Closing twice is allowed.
func (d *DelayLine[T]) Close() {
	d.mu.Lock()
	if !d.closed {
		d.closed = true
		d.queue = nil
		close(d.stop)
	}
	d.mu.Unlock()
	<-d.finished
}

func (d *DelayLine[T]) run() {
	defer close(d.finished)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		due, waiting := d.next()
		if !waiting {
			select {
			case <-d.filled:
				continue
			case <-d.stop:
				return
			}
		}
		timer.Reset(time.Until(due))
		select {
		case <-timer.C:
		case <-d.stop:
			return
		}
		if value, ok := d.take(); ok {
			d.deliver(value)
		}
	}
}

// next returns when the oldest value is due. Later values wait for it, even if they are
// due earlier.
func (d *DelayLine[T]) next() (due time.Time, waiting bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.queue) == 0 {
		return time.Time{}, false
	}
	return d.queue[0].due, true
}

// take removes and returns the oldest value; ok is false if the line is empty or closed.
func (d *DelayLine[T]) take() (value T, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.queue) == 0 {
		return value, false
	}
	value = d.queue[0].value
	d.queue[0] = delayed[T]{}
	d.queue = d.queue[1:]
	return value, true
}
