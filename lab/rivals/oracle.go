package rivals

import (
	"fmt"

	"github.com/samya-db/samya/lab/virtual"
)

var _ virtual.System = (*Oracle)(nil)

// Oracle is one counter that all places share, at no distance and in no time: what
// it refuses, no system can be blamed for. It lets nobody wait, so a system that
// does may refuse less.
type Oracle struct {
	w          *virtual.World
	answer     func(*virtual.Request, virtual.Outcome)
	limit, out int
	refused    int
}

// NewOracle makes one.
func NewOracle() *Oracle { return &Oracle{} }

// Start gives it its limit.
func (o *Oracle) Start(w *virtual.World, limit int, answer func(*virtual.Request, virtual.Outcome)) error {
	o.w, o.limit, o.answer = w, limit, answer
	return nil
}

// Handle answers at once.
func (o *Oracle) Handle(r *virtual.Request) {
	switch r.Kind {
	case virtual.Acquire:
		if o.out >= o.limit {
			o.refused++
			o.answer(r, virtual.Refused)
			return
		}
		o.out++
	case virtual.Release:
		o.out--
	}
	o.answer(r, virtual.Granted)
}

// Crashed and Restarted mean nothing to it.
func (*Oracle) Crashed(virtual.Place) {}

// Restarted means nothing to it.
func (*Oracle) Restarted(virtual.Place) {}

// Out is how many tokens are granted and not released.
func (o *Oracle) Out() int { return o.out }

// Check looks whether that is within the limit.
func (o *Oracle) Check() error {
	if o.out < 0 || o.out > o.limit {
		return fmt.Errorf("%d tokens out, the limit is %d", o.out, o.limit)
	}
	return nil
}

// Counters tell what it refused.
func (o *Oracle) Counters() map[string]float64 {
	return map[string]float64{"refused": float64(o.refused)}
}
