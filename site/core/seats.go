package core

import (
	"math"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/stored"
)

// seated changes a roster by a decided change of the sites, the number-th change of the
// catalogue. It changes nothing unless the code is OK. A repeat finds the site in its new
// state and has nothing to do.
func seated(r *stored.Roster, t avantan.Instance, ch *stored.CatalogueChange, number uint64) answer.Code {
	seat := r.Seat(SiteID(ch.Name))
	switch {
	case ch.Kind == input.AddSite && seat != nil:
		return answer.OK
	case ch.Kind == input.AddSite && len(r.Seats) >= maxSeats:
		return answer.Overloaded
	case ch.Kind == input.AddSite:
		r.Add(stored.Seat{Site: SiteID(ch.Name), State: stored.SeatJoining, Since: t})
		return answer.OK
	case seat == nil:
		return answer.NotFound
	case ch.Kind.OfVoters() && r.Version == math.MaxUint16:
		return answer.Overloaded
	}
	s := seating{r, seat, t, ch, number}
	switch ch.Kind {
	case input.AdmitSite:
		return s.admit()
	case input.DrainSite:
		return s.drain()
	case input.KeepSite:
		return s.keep()
	case input.SettleSite:
		return s.settle()
	case input.RetireSite:
		return s.retire()
	case input.RemoveSite:
		return s.remove()
	case input.RescueSite:
		return s.rescue()
	}
	return s.lose()
}

// seating is a change of a single seat.
type seating struct {
	r      *stored.Roster
	seat   *stored.Seat
	t      avantan.Instance
	ch     *stored.CatalogueChange
	number uint64
}

// current reports whether the change was proposed for the present voters.
func (s *seating) current() bool { return s.ch.Generation == uint64(s.r.Version) }

// enter gives the seat a state.
func (s *seating) enter(state stored.SeatState) {
	s.seat.State, s.seat.Since, s.seat.Unsettled = state, s.t, false
	s.r.Changed = s.number
}

// vote has the site begin to vote, or end.
func (s *seating) vote() {
	s.r.Version++
	s.seat.Votes = append(s.seat.Votes, s.r.Version)
}

// voting reports whether the site votes at present.
func (s *seating) voting() bool { return s.r.View(s.r.Version).Has(s.seat.Site) }

// admit makes a member of a site that joins.
func (s *seating) admit() answer.Code {
	switch {
	case s.seat.State == stored.SeatMember:
		return answer.OK
	case s.seat.State != stored.SeatJoining || !s.current():
		return answer.Mismatch
	}
	s.vote()
	s.enter(stored.SeatMember)
	s.seat.Incarnation = message.Incarnation(s.ch.Incarnation)
	return answer.OK
}

// drain has a member leave. For a site that drains already, it replaces an heir that is
// no member any more.
func (s *seating) drain() answer.Code {
	heir := s.ch.Heir
	switch s.seat.State {
	case stored.SeatGone:
		return answer.OK
	case stored.SeatDraining:
		if s.isMember(s.seat.Heir) || heir == "" && s.heir() == "" {
			return answer.OK
		}
	case stored.SeatMember:
		if !s.current() {
			return answer.Mismatch
		}
		for range s.r.HandsOver() {
			return answer.Changing
		}
	default:
		return answer.Mismatch
	}
	if heir == "" {
		heir = s.heir()
	}
	if heir == s.seat.Site || !s.isMember(heir) {
		return answer.Invalid
	}
	s.seat.Heir = heir
	if s.seat.State == stored.SeatMember {
		s.vote()
		s.enter(stored.SeatDraining)
	}
	return answer.OK
}

func (s *seating) isMember(site SiteID) bool {
	seat := s.r.Seat(site)
	return seat != nil && seat.State == stored.SeatMember
}

// heir is the first member after the site in the order of names; empty for none.
func (s *seating) heir() SiteID {
	var first, next SiteID
	for i := range s.r.Seats {
		m := &s.r.Seats[i]
		switch {
		case m.State != stored.SeatMember || m.Site == s.seat.Site:
		case m.Site < s.seat.Site && first == "":
			first = m.Site
		case m.Site > s.seat.Site && next == "":
			next = m.Site
		}
	}
	if next != "" {
		return next
	}
	return first
}

// keep ends a drain: the site is a member again. Its heir may have leases of the site, so
// the seat still names the heir. The last bequests may be open.
func (s *seating) keep() answer.Code {
	switch {
	case s.seat.State == stored.SeatMember:
		return answer.OK
	case s.seat.State != stored.SeatDraining || !s.current():
		return answer.Mismatch
	}
	s.vote()
	s.enter(stored.SeatMember)
	s.seat.Unsettled = true
	return answer.OK
}

// settle notes that a member has closed the bequests of its cancelled drain. A change that
// was proposed after an earlier cancelled drain does nothing.
func (s *seating) settle() answer.Code {
	if s.seat.State != stored.SeatMember || s.ch.Generation != uint64(s.seat.Since) {
		return answer.Mismatch
	}
	s.seat.Unsettled = false
	return answer.OK
}

// retire ends a drain: the site holds nothing and has left.
func (s *seating) retire() answer.Code {
	switch {
	case s.seat.State == stored.SeatGone:
		return answer.OK
	case s.seat.State != stored.SeatDraining || !s.current():
		return answer.Mismatch
	}
	s.enter(stored.SeatGone)
	return answer.OK
}

// remove withdraws the seat of a site that has not become a member.
func (s *seating) remove() answer.Code {
	switch s.seat.State {
	case stored.SeatGone:
		return answer.OK
	case stored.SeatJoining:
		s.enter(stored.SeatGone)
		return answer.OK
	}
	return answer.Mismatch
}

// lose writes a site off. Other sites must be left to vote. A site that drains to it gets
// another heir.
func (s *seating) lose() answer.Code {
	switch {
	case s.seat.State == stored.SeatLost:
		return answer.OK
	case !s.seat.State.Serves() || !s.current():
		return answer.Mismatch
	case s.voting() && len(s.r.View(s.r.Version)) == 1:
		return answer.Invalid
	}
	if s.voting() {
		s.vote()
	} else {
		s.r.Version++
	}
	s.enter(stored.SeatLost)
	s.seat.Heir = ""
	s.r.Losses, s.seat.Lost = s.r.Version, s.r.Version
	for i := range s.r.Seats {
		if m := &s.r.Seats[i]; m.State == stored.SeatDraining && m.Heir == s.seat.Site {
			m.Heir = (&seating{r: s.r, seat: m}).heir()
		}
	}
	return answer.OK
}

// rescue notes that all that a lost site held is back.
func (s *seating) rescue() answer.Code {
	if s.seat.State != stored.SeatLost {
		return answer.Mismatch
	}
	s.seat.Rescued = true
	return answer.OK
}
