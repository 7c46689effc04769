package appmgr

import (
	"sync"
	"time"

	"github.com/samya-db/samya/internal/apierr"
)

// portions bounds what is under way of one kind, and keeps the last of the bound for
// callers that have little: once it is nearly full, whoever has more than an equal part
// is refused.
type portions struct {
	bound int

	mu sync.Mutex
	// all is how many are under way, and of how many of each caller that has some.
	all int
	of  map[string]int
}

// lastPart is what part of a bound is kept for callers that have little.
const lastPart = 8

func newPortions(bound int) *portions { return &portions{bound: bound, of: make(map[string]int)} }

// begin counts one of a caller in, or refuses it; end counts it out.
func (p *portions) begin(caller string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	mine := p.of[caller]
	callers := len(p.of)
	if mine == 0 {
		callers++
	}
	// A place is left for who comes next.
	equal := max(1, p.bound/(callers+1))
	if p.all >= p.bound || p.all >= p.bound-p.bound/lastPart && mine >= equal {
		return apierr.Overload("", time.Second)
	}
	p.all++
	p.of[caller] = mine + 1
	return nil
}

func (p *portions) end(caller string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all--
	if p.of[caller]--; p.of[caller] == 0 {
		// The memory of callers that have gone comes back.
		delete(p.of, caller)
	}
}
