package core

import (
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

// leaseInput handles requests about leases.
func (c *leasing) leaseInput(in input.Input) {
	switch in := in.(type) {
	case *input.RenewLease:
		c.renewLease(in)
	case *input.CommitLease:
		c.commitLease(in)
	case *input.ListLeases:
		c.listLeases(in)
	}
}

func (c *leasing) renewLease(r *input.RenewLease) {
	if r.TTL > input.MaxTTL {
		c.reply(r.Call, answer.Answer{Code: answer.Invalid})
		return
	}
	l, no := c.liveLease(r.Lease)
	if l != nil && r.Touches != nil && !r.Touches(l.Entity) {
		l, no = nil, answer.Answer{Code: answer.NoLease}
	}
	if l == nil {
		c.reply(r.Call, no)
		return
	}
	if l.Share && (indebted(l.entity) || l.entity.parent() != nil) {
		c.reply(r.Call, answer.Answer{Code: answer.OutOfTokens, Left: l.entity.usable(), Lacking: l.Entity})
		return
	}
	ttl := r.TTL
	if ttl == 0 {
		ttl = l.TTL
	}
	if l.Share {
		ttl = min(ttl, input.MaxShareTTL)
	}
	c.prolong(l, ttl)
	c.leaseEvent(l, event.LeaseRenewed)
	c.reply(r.Call, answer.Answer{Details: &answer.Details{Lease: c.leaseView(l)}})
}

// commitLease ends a lease and lets part of its tokens stay out without an end. It
// records the outcome, as the lease that could tell is gone.
func (c *leasing) commitLease(m *input.CommitLease) {
	if m.Tokens < 0 || m.Tokens > input.MaxTokens {
		c.reply(m.Call, answer.Answer{Code: answer.Invalid})
		return
	}
	q := request{key: m.Request, kind: stored.CommitRequest, tokens: m.Tokens}
	q.body = mixBody(bodyHash(q.kind, "", m.Tokens), textHash(string(m.Lease[:])))
	if old, ok := c.requests.find(q.key); ok {
		if old.body != q.body {
			c.reply(m.Call, answer.Answer{Code: answer.Reused})
			return
		}
		c.reply(m.Call, old.answer())
		return
	}
	if _, ok := c.waiting[q.key]; ok {
		c.reply(m.Call, answer.Answer{Code: answer.Reused})
		return
	}
	l, no := c.liveLease(m.Lease)
	switch {
	case l == nil:
		c.reply(m.Call, no)
		return
	case m.Touches != nil && !m.Touches(l.Entity):
		c.reply(m.Call, answer.Answer{Code: answer.NoLease})
		return
	case m.Tokens > l.Tokens:
		c.reply(m.Call, answer.Answer{Code: answer.Invalid})
		return
	case c.remembering.tableFull(m.Call, l.entity, 0):
		return
	}
	e, kept := l.entity, l.part(m.Tokens)
	returned := l.Tokens - kept
	if l.Share {
		c.endShare(e, l.Tokens)
		returned = 0
	}
	if returned > 0 {
		back, fits := c.charging.creditLease(l, returned)
		if !fits {
			c.reply(m.Call, answer.Answer{Code: answer.Overflow, Left: e.usable()})
			return
		}
		returned = back
	}
	c.dropLease(l)
	c.leaseEvent(l, event.LeaseCommitted)
	c.remembering.record(stored.Request{
		Key: q.key, Body: q.body, Kind: q.kind, State: stored.Ran, Attempt: q.tries.Number(),
		Generation: e.generation, Tokens: kept, Left: returned,
	}, c.remembering.takeFor(e.name, 1))
	c.reply(m.Call, answer.Answer{Tokens: kept, Returned: returned})
	c.freed(e)
}

// returnLease gives back tokens of a lease of this site, for a release.
func (c *leasing) returnLease(r *input.Release, q *request) {
	l, no := c.liveLease(r.Lease.Request)
	switch {
	case l == nil:
		c.reply(r.Call, no)
		return
	case l.Entity != r.Entity:
		c.reply(r.Call, answer.Answer{Code: answer.NoLease})
		return
	case c.remembering.tableFull(r.Call, l.entity, 0):
		return
	}
	e, tokens := l.entity, l.part(r.Tokens)
	if !c.takeBack(l, tokens) {
		c.reply(r.Call, answer.Answer{Code: answer.Overflow, Left: e.usable()})
		return
	}
	c.leaseEvent(l, event.LeaseReturned)
	c.asking.remember(q, e, stored.Ran, tokens)
	c.reply(r.Call, answer.Answer{Tokens: tokens, Left: e.usable()})
	c.freed(e)
}

// listLeases visits only matching leases, and some that have just ended.
func (c *leasing) listLeases(r *input.ListLeases) {
	if r.Count < 1 {
		c.reply(r.Call, answer.Answer{Code: answer.Invalid})
		return
	}
	from := &lease{Lease: stored.Lease{Number: r.After + 1, Holder: r.Holder}}
	index := c.leases.byNumber
	switch {
	case r.Entity == "" && r.Holder != "":
		index = c.leases.byHolder
	case r.Entity != "":
		e := c.space.find(r.Entity)
		if e == nil {
			c.reply(r.Call, answer.Answer{})
			return
		}
		from.Generation = e.generation
		index = c.leases.byEntity
		if r.Holder != "" {
			index = c.leases.byBoth
		}
	}
	var a answer.Answer
	var page []answer.Lease
	index.Ascend(from, func(l *lease) bool {
		if r.Holder != "" && l.Holder != r.Holder || r.Entity != "" && l.Generation != from.Generation {
			return false
		}
		if _, live := c.leaseOf(l.key); !live {
			return true
		}
		if len(page) == r.Count {
			a.More = true
			return false
		}
		page = append(page, c.leaseView(l))
		return true
	})
	a.Details = &answer.Details{Leases: page}
	c.reply(r.Call, a)
}
