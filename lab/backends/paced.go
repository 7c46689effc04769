package backends

import (
	"sync"
	"time"

	"github.com/samya-db/samya/kvpart/engine"
)

// Paced returns a durable backend with engines that have a disk each, of a bandwidth in bytes
// a second: a write ends when the disk would have written all bytes of the engine, its log
// and pages included. So a machine with a single fast disk behaves as with several slow
// disks. The engine's own writes and syncs go on as they are.
func Paced(f engine.Factory, bandwidth float64) engine.Factory {
	open := f.Open
	f.Open = func(c engine.Config) (engine.Engine, error) {
		e, err := open(c)
		if err != nil {
			return nil, err
		}
		p := &paced{Engine: e, bandwidth: bandwidth}
		p.written = p.WrittenBytes()
		return p, nil
	}
	return f
}

// paced is an engine with a disk of its own.
type paced struct {
	engine.Engine
	bandwidth float64

	mu      sync.Mutex
	written int64     // when the disk was last asked to write
	free    time.Time // when the disk has written all
}

var (
	_ engine.Engine  = (*paced)(nil)
	_ engine.Counter = (*paced)(nil)
)

// WrittenBytes implements engine.Counter.
func (p *paced) WrittenBytes() int64 {
	if c, ok := p.Engine.(engine.Counter); ok {
		return c.WrittenBytes()
	}
	return 0
}

// wait waits until the disk has written all that the engine wrote since the last call.
func (p *paced) wait(began time.Time) {
	p.mu.Lock()
	n := p.WrittenBytes()
	if p.free.Before(began) {
		p.free = began
	}
	p.free = p.free.Add(time.Duration(float64(n-p.written) / p.bandwidth * float64(time.Second)))
	p.written = n
	until := p.free
	p.mu.Unlock()
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	<-timer.C
}

// Put implements engine.Engine.
func (p *paced) Put(key string, value []byte) error {
	defer p.wait(time.Now())
	return p.Engine.Put(key, value)
}

// Delete implements engine.Engine.
func (p *paced) Delete(key string) error {
	defer p.wait(time.Now())
	return p.Engine.Delete(key)
}

// Apply implements engine.Engine.
func (p *paced) Apply(writes []engine.Write) error {
	defer p.wait(time.Now())
	return p.Engine.Apply(writes)
}
