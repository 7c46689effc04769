package core

import (
	"hash/fnv"
	"iter"
	"math/bits"
	"slices"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/site/core/stored"
)

// roster is the sites of the cluster as this site knows them. The catalogue decides it.
//
// Each site has a place, a small number that stays the same as long as this core runs:
// reports and sets of members go by places. Founders come first, in the order of their
// names, then other sites in the order in which this core heard of them.
type roster struct {
	stored.Roster
	self SiteID
	// home is this site's place.
	home  int
	names []SiteID
	// serving are the places of the members, this site's included, and of sites that
	// drain: they hold tokens. A site that has just joined, and knows of no roster, counts
	// all sites that it was told of.
	serving members
	// leavers are the places of sites that drain. leaves says that this site is one.
	leavers members
	leaves  bool
	// without are the sites destroyed by the word of an operator, sorted. The catalogue
	// need not have decided yet that they are lost.
	without []SiteID
	// views are the views of known versions.
	views map[uint16]avantan.View
	// behind is the number of entities whose view is of an older version.
	behind int
}

func newRoster(self SiteID, told []SiteID, decided stored.Roster) roster {
	r := roster{self: self}
	if decided.Version == 0 {
		for _, site := range told {
			r.serving |= 1 << r.sit(site)
		}
		r.serving |= 1 << r.sit(self)
	}
	r.decided(decided)
	r.home = r.sit(self)
	return r
}

// sit returns the place of a site, a new one if it has none.
func (r *roster) sit(site SiteID) int {
	if i := slices.Index(r.names, site); i >= 0 {
		return i
	}
	r.names = append(r.names, site)
	return len(r.names) - 1
}

// decided takes over a decided roster.
func (r *roster) decided(d stored.Roster) {
	r.Roster, r.views = d, make(map[uint16]avantan.View)
	if d.Version == 0 {
		return
	}
	r.serving, r.leavers = 0, 0
	for i := range d.Seats {
		place := r.sit(d.Seats[i].Site)
		if d.Seats[i].State.Serves() {
			r.serving |= 1 << place
		}
		if d.Seats[i].State == stored.SeatDraining {
			r.leavers |= 1 << place
		}
	}
	r.leaves = r.draining(r.self)
}

// meet has a site without a roster take other sites for members that it may learn from.
func (r *roster) meet(sites []SiteID) {
	for _, site := range sites {
		if len(r.names) < maxSeats {
			r.serving |= 1 << r.sit(site)
		}
	}
}

// view returns the voters at a version; nil for a version that this site does not know.
func (r *roster) view(version uint16) avantan.View {
	if v, known := r.views[version]; known {
		return v
	}
	v := r.Roster.View(version)
	if v != nil {
		r.views[version] = v
	}
	return v
}

// place returns the place of a member, and -1 for any other site.
func (r *roster) place(site SiteID) int {
	i := slices.Index(r.names, site)
	if i >= 0 && !r.serving.has(i) {
		return -1
	}
	return i
}

// places is the number of places given out.
func (r *roster) places() int { return len(r.names) }

// size is the number of members.
func (r *roster) size() int { return bits.OnesCount64(uint64(r.serving)) }

// alone reports whether there is no other member.
func (r *roster) alone() bool { return r.size() <= 1 }

// all yields the members in the order of their places.
func (r *roster) all() iter.Seq2[int, SiteID] {
	return func(yield func(int, SiteID) bool) {
		for i, m := range r.names {
			if r.serving.has(i) && !yield(i, m) {
				return
			}
		}
	}
}

// others yields the members but this site, in the order of their places.
func (r *roster) others() iter.Seq2[int, SiteID] {
	return func(yield func(int, SiteID) bool) {
		for i, m := range r.all() {
			if m != r.self && !yield(i, m) {
				return
			}
		}
	}
}

// partners yields the others with tokens to share out: no site that drains.
func (r *roster) partners() iter.Seq2[int, SiteID] {
	return func(yield func(int, SiteID) bool) {
		for i, m := range r.others() {
			if !r.leavers.has(i) && !yield(i, m) {
				return
			}
		}
	}
}

// shares reports whether a site takes part in redistributions.
func (r *roster) shares(site SiteID) bool { return r.in(site, stored.SeatMember) || r.Version == 0 }

// links yields all other sites to have links to: also those that are out, to tell them so.
func (r *roster) links() iter.Seq[SiteID] {
	return func(yield func(SiteID) bool) {
		for _, m := range r.names {
			if m != r.self && !yield(m) {
				return
			}
		}
	}
}

// handsOver reports whether a site may have a bequest open.
func (r *roster) handsOver() bool {
	for range r.HandsOver() {
		return true
	}
	return false
}

// heir is the site that stands for another one: the site itself, or the heir of a site
// that is gone.
func (r *roster) heir(site SiteID) SiteID {
	for range r.Seats {
		s := r.Seat(site)
		if s == nil || s.State != stored.SeatGone || s.Heir == "" {
			break
		}
		site = s.Heir
	}
	return site
}

// out reports whether a site has no place in the cluster any more.
func (r *roster) out(site SiteID) bool { return r.in(site, stored.SeatGone) || r.lost(site) }

// peers yields all other sites to be in touch with: the members, and sites that join.
func (r *roster) peers() iter.Seq[SiteID] {
	return func(yield func(SiteID) bool) {
		for i, m := range r.names {
			if m != r.self && (r.serving.has(i) || r.joining(m)) && !yield(m) {
				return
			}
		}
	}
}

// joining reports whether a site is about to become a member.
func (r *roster) joining(site SiteID) bool {
	return r.in(site, stored.SeatJoining)
}

// in reports whether a site's seat is in a state.
func (r *roster) in(site SiteID, state stored.SeatState) bool {
	s := r.Seat(site)
	return s != nil && s.State == state
}

// lost reports whether a site was written off.
func (r *roster) lost(site SiteID) bool { return r.in(site, stored.SeatLost) }

// draining reports whether a site leaves.
func (r *roster) draining(site SiteID) bool { return r.in(site, stored.SeatDraining) }

// turn is the voter with the turn to look after an entity in a round.
func (r *roster) turn(e *entity, round uint64) SiteID {
	h := fnv.New64a()
	_, _ = h.Write([]byte(e.name))
	view := r.view(e.voters)
	return view[(h.Sum64()+round)%uint64(len(view))]
}

// rank counts the members with lower names than this site's.
func (r *roster) rank() int {
	n := 0
	for _, m := range r.others() {
		if m < r.self {
			n++
		}
	}
	return n
}

// changed is the decided roster; unknown if the founders are the only sites ever.
func (r *roster) changed() stored.Roster {
	if r.Version == 0 || r.Changed == 0 && len(r.Seats) == len(r.view(1)) && r.view(1).Has(r.self) {
		return stored.Roster{}
	}
	return r.Roster.Clone()
}

// destroyed reports whether a site is destroyed by the word of an operator, after a
// majority was lost.
func (r *roster) destroyed(site SiteID) bool {
	_, found := slices.BinarySearch(r.without, site)
	return found
}

// banned reports whether nobody takes a message of a site any more.
func (r *roster) banned(site SiteID) bool { return r.out(site) || r.destroyed(site) }

// survivors yields the members that are not destroyed.
func (r *roster) survivors() iter.Seq[SiteID] {
	return func(yield func(SiteID) bool) {
		for _, m := range r.all() {
			if !r.destroyed(m) && !yield(m) {
				return
			}
		}
	}
}

// left counts the members that are not destroyed.
func (r *roster) left() (n int) {
	for range r.survivors() {
		n++
	}
	return n
}
