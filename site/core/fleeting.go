package core

import (
	"slices"

	"github.com/samya-db/samya/site/core/stored"
)

// forgets reports whether a request that rests on an entity leaves no record: nobody repeats
// it, and it need not be durable.
func (c *common) forgets(r *request, rests *entity) bool { return r.once && c.fleeting(r, rests) }

// fleeting reports whether a request that rests on an entity need not be durable: a crash
// takes its record along, as it takes all tokens of its entities for granted.
func (c *common) fleeting(r *request, rests *entity) bool {
	if !volatile(rests) || r.lease != nil || len(r.tries.Tried) > 0 || r.kind != stored.AcquireRequest && r.kind != stored.AllRequest {
		return false
	}
	if r.parts == nil {
		e := c.space.find(r.entity)
		if e == nil {
			e, _ = c.space.above(r.entity)
		}
		return passing(e)
	}
	return !slices.ContainsFunc(r.named, func(e *entity) bool { return !passing(e) })
}

// passing reports whether an entity and all its ancestors are volatile.
func passing(e *entity) bool {
	for a := range e.chain() {
		if !volatile(a) {
			return false
		}
	}
	return true
}
