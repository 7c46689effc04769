package appmgr

import (
	"sync"
	"time"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/portion"
)

// portions bounds the calls under way of a kind, and divides the bound among the callers.
// A caller with more than an equal part is refused first.
type portions struct {
	bound int

	mu sync.Mutex
	of portion.Counts
}

func newPortions(bound int) *portions { return &portions{bound: bound} }

// begin counts a call of a caller in, or refuses it. It returns the slot to pass to end.
func (p *portions) begin(caller string) (portion.Slot, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.of.Fits(caller, p.bound, 1) {
		return portion.Nobody, apierr.Overload("", time.Second)
	}
	return p.of.Take(caller, 1), nil
}

func (p *portions) end(at portion.Slot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.of.Give(at, 1)
}
