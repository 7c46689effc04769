package core

import (
	"fmt"
	"slices"

	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

// All that a lost site held is written off. If the site's data turns up after all, it tells
// how many tokens are out through the site; the rest of what was written off is free. A
// change in the entity's own sequence takes the tokens that are out into the net of its
// first member, as a reconciliation does that finds more in use than is counted. The free
// tokens are shared out as those of a raised limit. Each entity knows the sites that were
// rescued, so a change counts once, whoever asks again and however late.

// rescue is the part of a limitChange that brings back all that a lost site held.
type rescue struct {
	Site SiteID `json:"site"`
	// Lost is the version of the roster at which the site was written off.
	Lost uint16 `json:"lost"`
	// Net are the tokens out through the site. Back are the tokens that are not written off
	// any more: those of Net, and the free ones.
	Net    Tokens         `json:"net,omitempty"`
	Back   Tokens         `json:"back,omitempty"`
	Leased []input.Leased `json:"leased,omitempty"`
}

// fits reports whether a rescue is within its bounds.
func (r *rescue) fits() bool {
	told := input.Rescue{Site: r.Site, Generation: 1, Net: r.Net, Leased: r.Leased}
	return told.Valid() && r.Lost > 0 && max(r.Back, -r.Back) <= mostLost
}

// settledOf is how far an entity's losses of sites are settled; see stored.Entity.
func settledOf(e *entity) (returned uint16, rescued []SiteID) {
	if e.seldom == nil {
		return 0, nil
	}
	return e.seldom.returned, e.seldom.rescued
}

func setSettled(e *entity, returned uint16, rescued []SiteID) {
	if returned > 0 || len(rescued) > 0 || e.seldom != nil {
		e.rarely().returned, e.rarely().rescued = returned, slices.Clone(rescued)
	}
}

// awaits reports whether all that a lost site held of the entity is not back.
func awaits(e *entity, site SiteID, lost uint16) bool {
	returned, rescued := settledOf(e)
	return max(e.born, returned) < lost && !slices.Contains(rescued, site)
}

// rescued works out the effect of a rescue. Where there is nothing to bring back it
// changes nothing.
func (r *settledLimit) rescued(e *entity, back *rescue) {
	switch {
	case !awaits(e, back.Site, back.Lost):
	case max(e.born, e.appraised) < back.Lost:
		r.Outcome = answer.Mismatch
	default:
		r.Version, r.drift, r.unretired, r.rescue = e.version+1, -back.Net, back.Back, back
		r.Returned = back.Back - back.Net
	}
}

// charges reports whether a change needs a member that takes tokens in use into its books.
func (r *settledLimit) charges() bool {
	return r.drift != 0 || r.rescue != nil && len(r.rescue.Leased) > 0
}

// settle notes the losses that a change has settled.
func (r *settledLimit) settle(e *entity) {
	returned, rescued := settledOf(e)
	if r.rescue != nil {
		rescued = append(slices.Clip(rescued), r.rescue.Site)
		slices.Sort(rescued)
	}
	if r.returned > returned || r.rescue != nil {
		setSettled(e, max(returned, r.returned), rescued)
	}
}

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

// ancestorAwaits reports whether all that a lost site held of an entity above is not back. A
// net below zero has to wait for that: it frees tokens of the entities above, and those
// written off there are fewer for the same reason.
func ancestorAwaits(e *entity, lost *stored.Seat) bool {
	for a := range e.parent().chain() {
		if awaits(a, lost.Site, lost.Lost) {
			return true
		}
	}
	return false
}

// rescueOf is the change that brings back all that a lost site held, at the entity's present
// version. What several sites held is known in sum only: while another one's data is
// missing, only what this site's data shows comes back.
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

// inheritRescued keeps the tokens of a lost site's leases until the leases have ended, by
// this site's clock. Nobody renews them. The two sites' clocks may differ by the skew, and
// the lost site may have stored its own time so long before its end.
func (c *rebalancing) inheritRescued(e *entity, r *rescue) {
	if r == nil {
		return
	}
	for i, l := range r.Leased {
		rest := Tick(min(max(1, l.Until-c.now.Wall+2*c.cfg.Skew), int64(input.MaxTTL)))
		// No client can name a lease with spaces.
		id := fmt.Sprintf("rescued from %s, generation %d, %d", r.Site, e.generation, i)
		c.admitting.leasing.inheritLease(e, packedLease{ID: id, Holder: "rescued from " + string(r.Site), TTL: rest, Remaining: rest}, l.Tokens)
	}
}

// unrescued reports whether a change says that all that a lost site held is back, and it is
// not.
func (c *cataloguing) unrescued(ch *input.Change) (some bool) {
	lost := c.roster.Seat(SiteID(ch.Name))
	if ch.Kind != input.RescueSite || lost == nil || lost.State != stored.SeatLost {
		return false
	}
	c.space.ascend("", func(e *entity) bool {
		some = awaits(e, lost.Site, lost.Lost)
		return !some
	})
	return some
}
