package core

import (
	"slices"

	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
)

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

// awaitsAbove reports whether all that some lost site held is back neither of an entity nor
// of an entity above it. Tokens in use that are fewer than the books count may have come
// back at the lost site. To free them frees tokens of the entities above, which have as many
// too few written off.
func (c *common) awaitsAbove(e *entity) bool {
	for i := range c.roster.Seats {
		s := &c.roster.Seats[i]
		if s.State == stored.SeatLost && awaits(e, s.Site, s.Lost) && ancestorAwaits(e, s) {
			return true
		}
	}
	return false
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
