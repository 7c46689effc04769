package core

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/stored"
)

// refuseHalted answers an input about a halted entity, and reports whether it was one.
func (c *Core) refuseHalted(in input.Input) bool {
	if c.halt.generations == nil {
		return false
	}
	named := func(name string) bool {
		for e := range c.space.find(name).chain() {
			if e.halted() {
				return true
			}
		}
		return false
	}
	leased := func(key attempt.Key) bool {
		l := c.leases.byKey[key]
		return l != nil && c.halt.generations[l.Generation]
	}
	var call input.Call
	halted := false
	switch in := in.(type) {
	case *input.Acquire:
		call, halted = in.Call, named(in.Entity)
	case *input.AcquireAll:
		call, halted = in.Call, slices.ContainsFunc(in.Parts, func(p input.Part) bool { return named(p.Entity) })
	case *input.Release:
		call, halted = in.Call, named(in.Entity)
	case *input.Reset:
		call, halted = in.Call, named(in.Entity)
	case *input.RenewLease:
		call, halted = in.Call, leased(in.Lease)
	case *input.CommitLease:
		call, halted = in.Call, leased(in.Lease)
	case *input.Change:
		call, halted = in.Call, (in.Kind == input.SetLimit || in.Kind == input.Reconcile) && named(in.Name)
	}
	if halted {
		c.reply(call, answer.Answer{Code: answer.Halted})
	}
	return halted
}

// verify halts the entities about to be stored with a mismatch between the tokens set
// aside in the books and the pledges of the protocols. It then ends all work begun for
// entities halted since the last Drain.
func (c *Core) verify() {
	for _, e := range c.touched {
		if c.serves(e) && e.books.Aside() != e.offered() {
			c.keepWhole(e, fmt.Errorf("%w: %d and %d", errPledges, e.books.Aside(), e.offered()))
		}
	}
	if !c.halt.fresh {
		return
	}
	c.halt.fresh = false
	if len(c.out.Records.Changes) > 0 {
		panic("core: a balance broke in a commit that changes the catalogue, which all entities rest on")
	}
	c.haltPartners()
	c.endHalted()
	for i := range c.out.Replies {
		// It is no longer known whether the request was about a halted entity and was
		// done. A repeat tells.
		if a := &c.out.Replies[i].Answer; a.Code == answer.OK {
			*a = answer.Answer{Code: answer.Unknown}
		}
	}
}

// withhold removes effects about halted entities before they are handed over.
func (c *Core) withhold() {
	if c.halt.generations == nil {
		return
	}
	gone := c.halt.generations
	r := &c.out.Records
	r.Leases = slices.DeleteFunc(r.Leases, func(l stored.Lease) bool { return gone[l.Generation] })
	r.Block.Unpack()
	r.Block.Records = slices.DeleteFunc(r.Block.Records, func(q stored.Request) bool { return gone[q.Generation] })
	c.out.Messages = slices.DeleteFunc(c.out.Messages, func(m message.Envelope) bool {
		if m.Gossip != nil {
			return slices.ContainsFunc(m.Gossip.Summaries, func(s message.Summary) bool { return gone[s.Generation] })
		}
		return m.Entity != "" && gone[m.Generation]
	})
}

// haltPartners halts the entities from which a request has taken tokens together with
// tokens of a halted entity: the record of that request is not stored.
func (c *Core) haltPartners() {
	for again := true; again; {
		again = false
		for i := range c.out.Records.Block.Records {
			parts := c.out.Records.Block.Records[i].Parts
			halted := func(p stored.Part) bool { return c.halt.generations[p.Generation] }
			if !slices.ContainsFunc(parts, halted) {
				continue
			}
			for _, p := range parts {
				if e := c.space.find(p.Entity); e != nil && e.generation == p.Generation && !e.halted() {
					c.haltTree(e)
					again = true
				}
			}
		}
	}
}

// endHalted answers all callers that wait for a halted entity. Nothing was done for the
// acquires; other sites may yet decide the changes of a limit.
func (c *Core) endHalted() {
	var ws []*waiting
	for _, w := range c.waiting {
		if slices.ContainsFunc(w.charge, func(x charged) bool { return x.of.halted() }) {
			ws = append(ws, w)
		}
	}
	slices.SortFunc(ws, func(a, b *waiting) int { return cmp.Compare(a.arrived, b.arrived) })
	for _, w := range ws {
		w.at.queue.remove(w)
		c.remembering.ended(w, answer.Answer{Code: answer.Halted})
	}
	c.space.ascend("", func(e *entity) bool {
		if !e.halted() {
			return true
		}
		for _, p := range e.limitChanges() {
			c.answerAll(p, answer.Answer{Code: answer.Unknown})
		}
		e.setLimitChanges(nil)
		c.limiting.endAcks(e)
		c.sharding.unsplit(e)
		return true
	})
}
