package sim

import (
	"slices"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/stored"
)

// settleSite applies a decided change of the sites, and returns its result.
func (m *catalogueModel) settleSite(next *catalogueState, ch *stored.CatalogueChange) catalogueResult {
	r := next.roster.Clone()
	code := (&seatModel{&r, ch, uint64(len(m.states)), next.numbered}).settle()
	if code == answer.OK {
		next.roster = r
	}
	return catalogueResult{code: code, generation: uint64(next.roster.Version)}
}

// seatModel is a change of a roster, written down as a table of states.
type seatModel struct {
	r      *stored.Roster
	ch     *stored.CatalogueChange
	t      uint64
	number uint64
}

func (m *seatModel) members() []core.SiteID {
	var list []core.SiteID
	for i := range m.r.Seats {
		if m.r.Seats[i].State == stored.SeatMember {
			list = append(list, m.r.Seats[i].Site)
		}
	}
	return list
}

// settle changes the roster, and returns the outcome. Nothing but OK counts.
func (m *seatModel) settle() answer.Code {
	name := core.SiteID(m.ch.Name)
	seat := m.r.Seat(name)
	if m.ch.Kind == input.AddSite {
		if seat == nil {
			m.r.Add(stored.Seat{Site: name, State: stored.SeatJoining, Since: avantan.Instance(m.t)})
		}
		return answer.OK
	}
	if seat == nil {
		return answer.NotFound
	}
	stale := m.ch.Generation != uint64(m.r.Version)
	voted := m.r.View(m.r.Version).Has(name)
	becomes := func(state stored.SeatState, votes bool) answer.Code {
		if votes != voted {
			m.r.Version++
			seat.Votes = append(seat.Votes, m.r.Version)
		}
		seat.State, seat.Since, seat.Unsettled, m.r.Changed = state, avantan.Instance(m.t), false, m.number
		return answer.OK
	}
	type from struct {
		kind  input.ChangeKind
		state stored.SeatState
	}
	switch (from{m.ch.Kind, seat.State}) {
	case from{input.AdmitSite, stored.SeatMember}, from{input.KeepSite, stored.SeatMember}, from{input.RetireSite, stored.SeatGone},
		from{input.RemoveSite, stored.SeatGone}, from{input.DrainSite, stored.SeatGone}, from{input.LoseSite, stored.SeatLost}:
		return answer.OK
	case from{input.RemoveSite, stored.SeatJoining}:
		return becomes(stored.SeatGone, false)
	case from{input.DrainSite, stored.SeatDraining}:
		if slices.Contains(m.members(), seat.Heir) {
			return answer.OK
		}
		heir := m.heir(name)
		if heir == "" && m.ch.Heir == "" {
			return answer.OK
		}
		return m.inherit(seat, heir)
	}
	if m.ch.Kind == input.SettleSite {
		if seat.State != stored.SeatMember || uint64(seat.Since) != m.ch.Generation {
			return answer.Mismatch
		}
		seat.Unsettled = false
		return answer.OK
	}
	if stale {
		return answer.Mismatch
	}
	switch (from{m.ch.Kind, seat.State}) {
	case from{input.AdmitSite, stored.SeatJoining}:
		seat.Incarnation = message.Incarnation(m.ch.Incarnation)
		return becomes(stored.SeatMember, true)
	case from{input.KeepSite, stored.SeatDraining}:
		defer func() { seat.Unsettled = true }()
		return becomes(stored.SeatMember, true)
	case from{input.RetireSite, stored.SeatDraining}:
		return becomes(stored.SeatGone, false)
	case from{input.DrainSite, stored.SeatMember}:
		if handsOver(m.r) {
			return answer.Changing
		}
		if code := m.inherit(seat, m.heir(name)); code != answer.OK {
			return code
		}
		return becomes(stored.SeatDraining, false)
	case from{input.LoseSite, stored.SeatMember}, from{input.LoseSite, stored.SeatDraining}:
		if voted && len(m.r.View(m.r.Version)) == 1 {
			return answer.Invalid
		}
		if !voted {
			m.r.Version++
		}
		seat.Heir = ""
		m.r.Losses = m.r.Version
		if voted {
			m.r.Losses++
		}
		seat.Lost = m.r.Losses
		code := becomes(stored.SeatLost, false)
		for i := range m.r.Seats {
			if leaver := &m.r.Seats[i]; leaver.State == stored.SeatDraining && leaver.Heir == name {
				leaver.Heir = m.heir(leaver.Site)
			}
		}
		return code
	}
	return answer.Mismatch
}

// heir is the member that follows a site in the order of names, the first after the last.
func (m *seatModel) heir(site core.SiteID) core.SiteID {
	list := slices.DeleteFunc(m.members(), func(s core.SiteID) bool { return s == site })
	if len(list) == 0 {
		return ""
	}
	i, _ := slices.BinarySearch(list, site)
	return list[i%len(list)]
}

// inherit names the heir of a site: the site asked for, else usual.
func (m *seatModel) inherit(seat *stored.Seat, usual core.SiteID) answer.Code {
	heir := m.ch.Heir
	if heir == "" {
		heir = usual
	}
	if heir == seat.Site || !slices.Contains(m.members(), heir) {
		return answer.Invalid
	}
	seat.Heir = heir
	return answer.OK
}

// handsOver reports whether a site drains, or may have bequests of a cancelled drain open.
func handsOver(r *stored.Roster) bool {
	return draining(r) != "" || slices.ContainsFunc(r.Seats, func(s stored.Seat) bool { return s.Unsettled })
}
