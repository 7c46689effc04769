package rivals

import (
	"fmt"

	"github.com/samya-db/samya/lab/virtual"
)

var _ virtual.System = (*Oracle)(nil)

// Oracle is a single counter for all places, without distance and in no time: no
// system is to blame for its refusals. It lets no request wait, so a system with
// waits may refuse less.
type Oracle struct {
	w          *virtual.World
	answer     func(*virtual.Request, virtual.Outcome)
	limit, out int
	refused    int
}

// NewOracle makes the system.
func NewOracle() *Oracle { return &Oracle{} }

// Start sets the limit.
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

// Crashed does nothing.
func (*Oracle) Crashed(virtual.Place) {}

// Restarted does nothing.
func (*Oracle) Restarted(virtual.Place) {}

// Out returns the tokens granted and not released.
func (o *Oracle) Out() int { return o.out }

// Check checks that the tokens out are within the limit.
func (o *Oracle) Check() error {
	if o.out < 0 || o.out > o.limit {
		return fmt.Errorf("%d tokens out, the limit is %d", o.out, o.limit)
	}
	return nil
}

// Counters returns the number of refusals.
func (o *Oracle) Counters() map[string]float64 {
	return map[string]float64{"refused": float64(o.refused)}
}
