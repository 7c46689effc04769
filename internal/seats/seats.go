// Package seats is a caller's knowledge of the sites with a seat in a cluster: which sites
// take new acquires, which have left, and who has the leases of a site that has left. The
// knowledge comes from lists of members, which several sites tell in any order. It is plain
// data: the package asks nobody.
package seats

import (
	"google.golang.org/protobuf/proto"

	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// Max bounds the seats in a list; a cluster has at most 64.
const Max = 128

// Book is the knowledge from lists. A nil Book knows nothing. A Book is never changed, so that
// goroutines can share it.
type Book struct {
	told   *samyav1.ListMembersResponse
	byName map[string]*samyav1.Member
}

// Learn returns a Book that knows a list as well, or b itself if the list tells nothing
// new. A site that lags behind cannot take back a later state: lists of earlier versions
// count for nothing, and at the same version a seat only goes on. The list must not be
// changed afterwards.
func (b *Book) Learn(list *samyav1.ListMembersResponse) *Book {
	if n := len(list.GetMembers()); n == 0 || n > Max {
		return b
	}
	known := b.List()
	if known.GetVersion() > list.GetVersion() {
		return b
	}
	if known != nil {
		list = proto.CloneOf(list)
		if known.GetVersion() == list.GetVersion() {
			list.Members = merge(known.GetMembers(), list.GetMembers())
		}
		b.keepAddresses(list.GetMembers())
	}
	if proto.Equal(known, list) {
		return b
	}
	learned := &Book{told: list, byName: make(map[string]*samyav1.Member, len(list.GetMembers()))}
	for _, m := range list.GetMembers() {
		learned.byName[m.GetName()] = m
	}
	return learned
}

// keepAddresses completes seats whose address is not told with what is known. A site that
// has just started knows the seats, and hears of the addresses a moment later. A site that
// has not heard of a take-over yet cannot take back the address of the later node. A site
// of a single process has no term: its address counts.
func (b *Book) keepAddresses(told []*samyav1.Member) {
	for _, m := range told {
		known := b.seat(m.GetName())
		if known.GetAddress() != "" && (m.GetAddress() == "" || m.GetTerm() > 0 && m.GetTerm() < known.GetTerm()) {
			m.Address, m.Region = known.GetAddress(), known.GetRegion()
			m.Node, m.Term, m.Standbys = known.GetNode(), known.GetTerm(), known.GetStandbys()
		}
	}
}

// merge joins two lists of the same version, both in the order of names. Of a seat in both
// it takes the state that comes later, and else the seat in the newer list. It may change
// the newer list.
func merge(known, told []*samyav1.Member) []*samyav1.Member {
	var all []*samyav1.Member
	for len(known) > 0 || len(told) > 0 {
		switch {
		case len(told) == 0 || len(known) > 0 && known[0].GetName() < told[0].GetName():
			all, known = append(all, known[0]), known[1:]
		case len(known) == 0 || told[0].GetName() < known[0].GetName():
			all, told = append(all, told[0]), told[1:]
		default:
			m := told[0]
			// The states are numbered in the order in which a seat takes them.
			if known[0].GetState() > m.GetState() {
				m = known[0]
			}
			if d := known[0].GetDrain(); m.GetDrain() == nil && m.GetState() == known[0].GetState() && d != nil {
				// The site alone that drains tells how much it still holds.
				m.Drain, m.WaitsFor, m.Knows = d, known[0].GetWaitsFor(), true
			}
			all, known, told = append(all, m), known[1:], told[1:]
		}
	}
	return all
}

// List returns the latest list, nil if none was told. The caller must not change it.
func (b *Book) List() *samyav1.ListMembersResponse {
	if b == nil {
		return nil
	}
	return b.told
}

// seat returns the seat of a site, nil if none is known.
func (b *Book) seat(site string) *samyav1.Member {
	if b == nil {
		return nil
	}
	return b.byName[site]
}

// Drains reports whether a site is about to leave and takes no new acquires.
func (b *Book) Drains(site string) bool {
	return b.seat(site).GetState() == samyav1.MemberState_MEMBER_STATE_DRAINING
}

// Out reports whether a site has left or was written off, so that nothing is sent to it.
func (b *Book) Out(site string) bool {
	switch b.seat(site).GetState() {
	case samyav1.MemberState_MEMBER_STATE_GONE, samyav1.MemberState_MEMBER_STATE_LOST:
		return true
	}
	return false
}

// Term returns the number of the latest take-over of a site that lists tell; 0 for none.
func (b *Book) Term(site string) int64 { return b.seat(site).GetTerm() }

// Heir returns the site that takes over from a site that leaves; empty for none.
func (b *Book) Heir(site string) string { return b.seat(site).GetHeir() }

// Home returns the site that answers for the leases of a site: the site itself, or if the
// site has left its heir, and so on. It is empty for a site that never was a member, and where the
// heirs do not end. lost reports that the site at the end was written off: nobody answers
// for it.
func (b *Book) Home(site string) (home string, lost bool) {
	for range Max {
		switch b.seat(site).GetState() {
		case samyav1.MemberState_MEMBER_STATE_LOST:
			return site, true
		case samyav1.MemberState_MEMBER_STATE_GONE:
			if site = b.Heir(site); site == "" {
				return "", false
			}
		default:
			return site, false
		}
	}
	return "", false
}
