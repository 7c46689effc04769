package core

import (
	"github.com/samya-db/samya/internal/portion"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/input"
)

// tableFull refuses a call if the table of requests has no room for the tenant of an
// entity: for a record and this many parts.
func (c *remembering) tableFull(call input.Call, e *entity, parts int) bool {
	held := &c.requests.held
	if held.Fits(c.cfg.tenantOf(e.name), c.cfg.MaxRequests, 1+parts) {
		return false
	}
	if held.All()+parts < c.cfg.MaxRequests {
		c.out.Events = append(c.out.Events, event.Event{Kind: event.TenantRefused, Entity: e.name})
	}
	c.reply(call, answer.Answer{Code: answer.Overloaded, RetryAfter: 1000})
	return true
}

// roomToWait implements till.
func (c *remembering) roomToWait(e *entity, tokens Tokens, named string, first int) bool {
	q, tenant := e.queue, c.cfg.tenantOf(named)
	if q.len() >= c.cfg.MaxWaiting || q.asked() > maxQueued-tokens || q.fullFor(tenant, c.cfg.MaxWaiting) {
		return false
	}
	return first == 0 || c.waitingOf.Fits(tenant, c.cfg.MaxWaitingAll, 1) && c.charges <= maxCharges*c.cfg.MaxWaitingAll-first
}

// fullFor reports whether no more acquires of a tenant may wait in a queue of up to most
// acquires that tenants share.
func (q *queue) fullFor(tenant string, most int) bool {
	if q == nil || q.of == nil {
		return false
	}
	mine, others := q.of.Held(tenant), q.of.Holders()
	if mine > 0 {
		others--
	}
	return !portion.Fits(most, q.count, mine, others, 1)
}

// roomForAsked reports whether the table has room for a request that a member asks about.
func (c *remembering) roomForAsked() bool {
	return c.requests.size() < c.cfg.MaxRequests+max(1, c.cfg.MaxRequests/askedPart)
}
