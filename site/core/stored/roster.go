package stored

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/site/core/message"
)

// SeatState is the state of a site in its cluster.
type SeatState string

const (
	// SeatJoining: the site may learn from others. It votes on nothing and serves nobody.
	SeatJoining SeatState = "joining"
	// SeatMember: the site serves, and votes in the sequences whose view names it.
	SeatMember SeatState = "member"
	// SeatDraining: the site takes no new acquires, votes on nothing new, and hands what it
	// holds to its heir.
	SeatDraining SeatState = "draining"
	// SeatGone: the site has left, or its seat was withdrawn before it became a member.
	SeatGone SeatState = "gone"
	// SeatLost: the site was written off. What it held is retired.
	SeatLost SeatState = "lost"
)

// Seat is the place of a site in its cluster, for ever: no later site has its name.
type Seat struct {
	Site  avantan.SiteID `json:"site"`
	State SeatState      `json:"state"`
	// Since is the instance of the catalogue that decided the state; 0 for the founders.
	Since avantan.Instance `json:"since,omitempty"`
	// Incarnation is the incarnation of the data with which the site was admitted; 0 for
	// the founders and for sites that join. Other data under the name is refused.
	Incarnation message.Incarnation `json:"incarnation,omitempty"`
	// Votes are the versions of the roster at which the site began to vote, ended, began
	// again and so on, ascending.
	Votes []uint16 `json:"votes,omitempty"`
	// Heir is the member that takes over from a site that drains or is gone, or that has
	// taken over leases of a member whose drain was cancelled; empty for other sites, and
	// for a seat that was withdrawn.
	Heir avantan.SiteID `json:"heir,omitempty"`
	// Lost is the version of the roster at which the site was written off; 0 for never.
	Lost uint16 `json:"lost,omitempty"`
	// Rescued says that all that the lost site held is back.
	Rescued bool `json:"rescued,omitempty"`
	// Unsettled says that the drain of this member was cancelled, and that a bequest of the
	// member may still be open.
	Unsettled bool `json:"unsettled,omitempty"`
}

// Serves reports whether a site in this state holds tokens and is heard by others.
func (s SeatState) Serves() bool { return s == SeatMember || s == SeatDraining }

// handsOver reports whether a bequest of the site may be open.
func (s *Seat) handsOver() bool { return s.State == SeatDraining || s.Unsettled }

// known reports whether the state is one of the states.
func (s SeatState) known() bool {
	return s.Serves() || s == SeatJoining || s == SeatGone || s == SeatLost
}

// Roster is the sites of a cluster, as its catalogue decided. The zero Roster is unknown.
type Roster struct {
	// Version counts the changes of the voters from 1, which is the founders', to 65535.
	Version uint16 `json:"version"`
	// Changed is the number of the change of the catalogue that last changed the voters; 0
	// for the founders.
	Changed uint64 `json:"changed,omitempty"`
	// Losses is the version at which a site was last written off; 0 for never.
	Losses uint16 `json:"losses,omitempty"`
	// Seats are in the order of their sites.
	Seats []Seat `json:"seats"`
}

// Founded is the roster of a new cluster: its founders vote. The sites must be sorted.
func Founded(sites []avantan.SiteID) Roster {
	r := Roster{Version: 1}
	for _, s := range sites {
		r.Seats = append(r.Seats, Seat{Site: s, State: SeatMember, Votes: []uint16{1}})
	}
	return r
}

// Seat returns the seat of a site, nil for none.
func (r *Roster) Seat(site avantan.SiteID) *Seat {
	i, found := r.index(site)
	if !found {
		return nil
	}
	return &r.Seats[i]
}

func (r *Roster) index(site avantan.SiteID) (int, bool) {
	return slices.BinarySearchFunc(r.Seats, site, func(s Seat, name avantan.SiteID) int {
		switch {
		case s.Site < name:
			return -1
		case s.Site > name:
			return 1
		}
		return 0
	})
}

// Heirs returns the heir of each site with a seat, empty for none.
func (r *Roster) Heirs() map[avantan.SiteID]avantan.SiteID {
	heirs := make(map[avantan.SiteID]avantan.SiteID, len(r.Seats))
	for i := range r.Seats {
		heirs[r.Seats[i].Site] = r.Seats[i].Heir
	}
	return heirs
}

// Add gives a site a seat; it must not have one.
func (r *Roster) Add(s Seat) {
	i, _ := r.index(s.Site)
	r.Seats = slices.Insert(r.Seats, i, s)
}

// HandsOver yields the sites that may have a bequest open.
func (r *Roster) HandsOver() iter.Seq[avantan.SiteID] {
	return func(yield func(avantan.SiteID) bool) {
		for i := range r.Seats {
			if s := &r.Seats[i]; s.handsOver() && !yield(s.Site) {
				return
			}
		}
	}
}

// View returns the voters at a version, nil for a version that is not known.
func (r *Roster) View(version uint16) avantan.View {
	if version == 0 || version > r.Version {
		return nil
	}
	var view avantan.View
	for i := range r.Seats {
		if s := &r.Seats[i]; s.votes(version) {
			view = append(view, s.Site)
		}
	}
	return view
}

// votes reports whether the site votes at a version: it began to more often than it ended.
func (s *Seat) votes(version uint16) bool {
	n := 0
	for n < len(s.Votes) && s.Votes[n] <= version {
		n++
	}
	return n%2 == 1
}

// Clone returns a deep copy.
func (r *Roster) Clone() Roster {
	c := Roster{Version: r.Version, Changed: r.Changed, Losses: r.Losses, Seats: slices.Clone(r.Seats)}
	for i := range c.Seats {
		c.Seats[i].Votes = slices.Clone(c.Seats[i].Votes)
	}
	return c
}

// Validate reports a roster that no catalogue can have decided.
func (r *Roster) Validate() error {
	if r.Version == 0 {
		if len(r.Seats) > 0 {
			return errors.New("roster: seats without a version")
		}
		return nil
	}
	members := 0
	for i := range r.Seats {
		s := &r.Seats[i]
		switch {
		case s.Site == "", i > 0 && r.Seats[i-1].Site >= s.Site:
			return fmt.Errorf("roster: seat %d, of %q, is out of order", i, s.Site)
		case !s.State.known():
			return fmt.Errorf("roster: site %q has the unknown state %.64q", s.Site, s.State)
		case s.Unsettled && s.State != SeatMember:
			return fmt.Errorf("roster: site %q, %s, cannot be unsettled", s.Site, s.State)
		case s.Heir != "" && (s.Heir == s.Site || r.Seat(s.Heir) == nil || s.State == SeatJoining || s.State == SeatLost):
			return fmt.Errorf("roster: site %q, %s, cannot have the heir %.64q", s.Site, s.State, s.Heir)
		}
		if lost := s.State == SeatLost; s.Lost > r.Losses || (s.Lost > 0 || s.Rescued) && !lost {
			return fmt.Errorf("roster: site %q, %s, cannot have been lost at version %d", s.Site, s.State, s.Lost)
		}
		last := uint16(0)
		for _, v := range s.Votes {
			if v <= last || v > r.Version {
				return fmt.Errorf("roster: site %q votes from version %d on, of %d", s.Site, v, r.Version)
			}
			last = v
		}
		if s.State.Serves() {
			members++
		}
	}
	if members > avantan.MaxMembers {
		return fmt.Errorf("roster: %d members, at most %d", members, avantan.MaxMembers)
	}
	for v := range r.Version {
		if err := r.View(v + 1).Validate(); err != nil {
			return fmt.Errorf("roster: version %d: %w", v+1, err)
		}
	}
	return nil
}
