package core

import (
	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/stored"
)

// limiting handles changes of limits, the debts that they make, and who has applied them.
type limiting struct {
	*common
	*assessing
}

// A change of a limit is decided before all members have applied it. For each entity a
// site keeps the members known to have applied the last change: each message of the
// entity's sequence tells how far its sender is. The site forgets this in a restart;
// callers that wait after a restart have the members asked.

// acks holds the members that have not applied the last change of an entity's limit, and
// the callers that wait for them.
type acks struct {
	// at is the instance of the last change applied here, or a later instance. missing
	// are the members not known to have applied it.
	at      avantan.Instance
	missing members
	waits   []ackWait
	// askAt is the next time to ask the missing members.
	askAt Tick
}

// ackWait is a caller that waits for all members to apply a change.
type ackWait struct {
	changeCaller
	// result is the outcome to tell the caller.
	result stored.LimitResult
	// at and missing are as in acks, of the time when the caller began to wait.
	at      avantan.Instance
	missing members
}

// decidedLimit answers a caller of a limit change that is decided and applied here, or
// has the caller wait for the other members.
func (c *limiting) decidedLimit(e *entity, caller changeCaller, r *stored.LimitResult) {
	a := e.acks()
	if a == nil {
		// The change was applied in an earlier life.
		c.limitChanged(e, e.applied())
		a = e.acks()
	}
	w := ackWait{changeCaller: caller, result: *r, at: a.at, missing: a.missing}
	if !caller.applied || r.Outcome != answer.OK || w.missing == 0 || c.stopping || caller.until <= c.now.Tick ||
		len(a.waits) >= c.cfg.MaxChanges {
		c.replyLimit(e, &w)
		return
	}
	if len(a.waits) == 0 {
		a.askAt = c.now.Tick + c.cfg.Patience
	}
	a.waits = append(a.waits, w)
}

// replyLimit answers a caller of a limit change that is decided.
func (c *limiting) replyLimit(e *entity, w *ackWait) {
	v := e.view()
	v.Limit, v.Version = w.result.Limit, w.result.Version
	d := &answer.Details{View: v}
	if w.result.Outcome == answer.OK {
		d.Unapplied = c.namesOf(w.missing)
	}
	c.reply(w.call, answer.Answer{Code: w.result.Outcome, Returned: w.result.Returned, Details: d})
}

// misses reports whether this site needs to know how far other members are.
func (e *entity) misses() bool {
	d, a := e.debt(), e.acks()
	return d != nil && d.unheard != 0 || a != nil && (a.missing != 0 || len(a.waits) > 0)
}

// heardApplied notes how far the sender of a message of the entity's sequence is. It
// tells a sender that asked in vain that nothing was missed.
func (c *limiting) heardApplied(e *entity, m *avantan.Message) {
	if m == nil || m.Kind != avantan.CatchUpAsk && !e.misses() || m.Validate() != nil {
		return
	}
	i := c.roster.place(m.From)
	if i < 0 {
		return
	}
	applied := m.SenderApplied()
	if m.Kind == avantan.CatchUpAsk && applied == e.applied() {
		c.tellApplied(e, avantan.Applied, 1<<i)
	}
	c.heardOfDebt(e, i, applied)
	a := e.acks()
	if a == nil {
		return
	}
	if applied >= a.at {
		a.missing.remove(i)
	}
	c.endWaits(e, func(w *ackWait) bool {
		if applied >= w.at {
			w.missing.remove(i)
		}
		return w.missing == 0
	})
}

// tellApplied tells members which instance was last applied here.
func (c *limiting) tellApplied(e *entity, kind avantan.Kind, to members) {
	for _, m := range c.namesOf(to) {
		c.send(e.name, e.generation, []avantan.Message{{Kind: kind, From: c.cfg.Self, To: m, Applied: e.applied()}})
	}
}

// askApplied asks the members in reach that a wait misses for their last applied
// instances.
func (c *limiting) askApplied(e *entity) {
	a := e.acks()
	if a == nil || len(a.waits) == 0 {
		return
	}
	var missing members
	for i := range a.waits {
		missing |= a.waits[i].missing
	}
	for i, m := range c.roster.all() {
		if !c.seemsUp(m) {
			missing.remove(i)
		}
	}
	c.tellApplied(e, avantan.CatchUpAsk, missing)
	a.askAt = c.now.Tick + c.cfg.Patience
}

// expireAcks ends the waits that have lasted long enough, and asks for the others.
func (c *limiting) expireAcks(e *entity) {
	c.endWaits(e, func(w *ackWait) bool { return w.until <= c.now.Tick })
	if a := e.acks(); a != nil && a.askAt <= c.now.Tick {
		c.askApplied(e)
	}
}

// forgetOut has callers wait for no member that is out; members are the others that are
// in.
func (c *limiting) forgetOut(e *entity, members members) {
	a := e.acks()
	if a == nil {
		return
	}
	a.missing &= members
	c.endWaits(e, func(w *ackWait) bool {
		w.missing &= members
		return w.missing == 0
	})
}

// endAcks ends all waits of an entity: the site stops, or the entity is gone.
func (c *limiting) endAcks(e *entity) {
	c.endWaits(e, func(*ackWait) bool { return true })
}

// endWaits answers the callers that need wait no longer.
func (c *limiting) endWaits(e *entity, over func(*ackWait) bool) {
	a := e.acks()
	if a == nil || len(a.waits) == 0 {
		return
	}
	kept := a.waits[:0]
	for i := range a.waits {
		w := a.waits[i]
		if over(&w) {
			c.replyLimit(e, &w)
			continue
		}
		kept = append(kept, w)
	}
	clear(a.waits[len(kept):])
	if a.waits = kept; len(kept) == 0 {
		a.waits = nil
	}
}
