package core

import (
	"github.com/samya-db/samya/internal/portion"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/stored"
)

// remembering knows the requests that were answered, and the acquires that wait.
type remembering struct {
	*common
	*reading
	requests requestTable
	// waiting finds the acquires that wait, by request and by caller.
	waiting      map[attempt.Key]*waiting
	waitingCalls map[input.Call]*waiting
	// arrivals counts the acquires that ever waited; charges counts the entities charged
	// by waiting acquires, waitingParts their parts.
	arrivals              uint64
	charges, waitingParts int
	// waitingOf counts each tenant's waiting acquires.
	waitingOf portion.Counts
}

// definitive reports whether a request without a record never ran here: no record is
// forgotten from the earliest time at which the request may have run, or from later.
func (c *remembering) definitive(a *message.ClaimAsk) bool {
	return c.requests.lost < a.NotAfter-c.cfg.RequestHorizon()
}

// recordAsked records a request that another site asked about, or this site asked others
// about, and that has no record here. The caller fills in kind, state, attempt and
// tokens, and the entity's generation if it is known; 0 stands for the present entity's
// generation.
func (c *remembering) recordAsked(a *message.ClaimAsk, r *stored.Request) {
	r.Key, r.Body = a.Key, a.Body
	if e := c.space.find(a.Entity); e != nil && (r.Generation == 0 || r.Generation == e.generation) {
		r.Generation, r.Left = e.generation, e.usable()
	} else {
		r.Tenant = c.cfg.tenantOf(a.Entity)
	}
	c.record(*r, c.takeFor(a.Entity, 1))
}

// recordAgain records a new state of a request that has a record.
func (c *remembering) recordAgain(old *remembered, r stored.Request) {
	r.Tenant = c.requests.held.Name(old.tenant)
	c.requests.held.More(old.tenant, 1)
	c.record(r, old.tenant)
}

// record records a request that was counted in a tenant's slot.
func (c *remembering) record(r stored.Request, tenant portion.Slot) {
	c.requests.add(&r, tenant)
	c.out.Records.Block.Records = append(c.out.Records.Block.Records, r)
}

// recordFleeting is record for a request that need not be durable.
func (c *remembering) recordFleeting(r *stored.Request, tenant portion.Slot) {
	c.requests.add(r, tenant)
}
