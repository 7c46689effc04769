package core

import (
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

// refusedRescue answers a rescue that cannot be proposed now, or that has nothing to bring
// back. It reports whether it did.
func (c *limiting) refusedRescue(e *entity, ch *input.Change) bool {
	if c.tooEarly(ch) {
		return true
	}
	seat := c.roster.Seat(ch.Rescue.Site)
	switch {
	case seat == nil || seat.State != stored.SeatLost:
		c.reply(ch.Call, answer.Answer{Code: answer.Invalid})
	case ch.Rescue.Generation != e.generation:
		c.reply(ch.Call, answer.Answer{Code: answer.Mismatch})
	case !awaits(e, seat.Site, seat.Lost):
		done := stored.LimitResult{RequestID: ch.RequestID, Limit: e.limit, Version: e.version}
		c.decidedLimit(e, changeCaller{ch.Call, c.now.Tick + ch.Wait, ch.Applied}, &done)
		c.askApplied(e)
		c.assessing.schedule(e)
	case c.unappraised(e):
		c.reply(ch.Call, answer.Answer{Code: answer.Changing, RetryAfter: 1000, Details: &answer.Details{
			Members: answer.Members{Version: uint64(c.roster.Version), Behind: c.roster.behind},
		}})
	case ch.Rescue.Net < 0 && ancestorAwaits(e, seat):
		c.reply(ch.Call, answer.Answer{Code: answer.NoParent})
	default:
		return false
	}
	return true
}

// rescueOf is the change that brings back all that a lost site held, at the entity's present
// version. Tokens that several sites held are known in sum only: while another site's data is
// missing, only the tokens that this site's data shows come back.
func (c *limiting) rescueOf(e *entity, told *input.Rescue) *rescue {
	r := &rescue{Site: told.Site, Net: told.Net, Back: e.writtenOff(), Leased: told.Leased}
	for i := range c.roster.Seats {
		s := &c.roster.Seats[i]
		switch {
		case s.Site == told.Site:
			r.Lost = s.Lost
		case s.State == stored.SeatLost && awaits(e, s.Site, s.Lost):
			r.Back = told.Held
		}
	}
	return r
}
