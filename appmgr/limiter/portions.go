package limiter

import (
	"sync"
	"time"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/portion"
)

// Portions bounds the calls under way of a kind, and divides the bound among the callers.
// A caller with more than an equal part is refused first.
type Portions struct {
	bound int

	mu sync.Mutex
	of portion.Counts
}

// NewPortions returns portions of bound calls.
func NewPortions(bound int) *Portions { return &Portions{bound: bound} }

// Begin counts a call of a caller in, or refuses it. It returns the slot to pass to end.
func (p *Portions) Begin(caller string) (portion.Slot, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.of.Fits(caller, p.bound, 1) {
		return portion.Nobody, apierr.Overload("", time.Second)
	}
	return p.of.Take(caller, 1), nil
}

// UnderWay returns how many calls are under way, of all callers and of a caller.
func (p *Portions) UnderWay(caller string) (all, own int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.of.All(), p.of.Held(caller)
}

// End counts a call out.
func (p *Portions) End(at portion.Slot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.of.Give(at, 1)
}
