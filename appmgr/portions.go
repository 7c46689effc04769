package appmgr

import (
	"sync"
	"time"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/portion"
)

// portions bounds what is under way of one kind, and divides the bound among the
// callers: whoever has more than an equal part is refused first.
type portions struct {
	bound int

	mu sync.Mutex
	of portion.Counts
}

func newPortions(bound int) *portions { return &portions{bound: bound} }

// begin counts one of a caller in, or refuses it. end counts out what began in the slot
// that begin returns.
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
