package seats

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

const (
	joining  = samyav1.MemberState_MEMBER_STATE_JOINING
	member   = samyav1.MemberState_MEMBER_STATE_MEMBER
	draining = samyav1.MemberState_MEMBER_STATE_DRAINING
	gone     = samyav1.MemberState_MEMBER_STATE_GONE
	lost     = samyav1.MemberState_MEMBER_STATE_LOST
)

// list is a list of seats in the order given, by name.
func list(version uint64, seats ...*samyav1.Member) *samyav1.ListMembersResponse {
	return &samyav1.ListMembersResponse{Version: version, Members: seats}
}

func seat(name string, state samyav1.MemberState, heir string) *samyav1.Member {
	return &samyav1.Member{Name: name, State: state, Heir: heir}
}

// TestLearn: a later list counts and an earlier list does not. At the same version seats
// only go on, whoever lags behind.
func TestLearn(t *testing.T) {
	var none *Book
	if none.List() != nil || none.Drains("a") || none.Out("a") || none.Heir("a") != "" {
		t.Error("a book without lists knows something")
	}
	if home, isLost := none.Home("a"); home != "a" || isLost {
		t.Errorf("the home of an unknown site: %q, %t", home, isLost)
	}
	b := none.Learn(list(3, seat("a", member, ""), seat("b", draining, "a")))
	for what, stale := range map[string]*samyav1.ListMembersResponse{
		"an earlier version":  list(2, seat("a", member, ""), seat("b", member, "")),
		"an empty list":       list(9),
		"the same list":       list(3, seat("a", member, ""), seat("b", draining, "a")),
		"a list without seat": list(3, seat("a", member, "")),
		"an earlier state":    list(3, seat("a", joining, ""), seat("b", member, "")),
		"too many seats":      {Version: 9, Members: make([]*samyav1.Member, Max+1)},
	} {
		if got := b.Learn(stale); got != b {
			t.Errorf("%s tells %v", what, got.List())
		}
	}
	left := b.Learn(list(3, seat("a", member, ""), seat("b", gone, "a"), seat("c", joining, "")))
	if !left.Out("b") || left.Drains("b") || len(left.List().GetMembers()) != 3 || b.Out("b") {
		t.Errorf("a site that left: %v, before %v", left.List(), b.List())
	}
	if kept := b.Learn(list(4, seat("a", member, ""), seat("b", member, ""))); kept.Drains("b") || kept.Out("b") {
		t.Errorf("a drain that ended: %v", kept.List())
	}
	if heir := b.Learn(list(3, seat("a", member, ""), seat("b", draining, "c"))).Heir("b"); heir != "c" {
		t.Errorf("another heir: %q", heir)
	}
}

// TestAddressesStay: a list without the address of a site, as a site tells that has just
// started, takes no known address away. Another address counts.
func TestAddressesStay(t *testing.T) {
	at := func(address, region string, state samyav1.MemberState) *samyav1.Member {
		m := seat("b", state, "")
		m.Address, m.Region = address, region
		return m
	}
	b := (*Book)(nil).Learn(list(3, seat("a", member, ""), at("b:7001", "us", member)))
	for what, test := range map[string]struct {
		told *samyav1.ListMembersResponse
		want string
	}{
		"the same version":  {list(3, seat("a", member, ""), at("", "", member)), "b:7001 us"},
		"a later version":   {list(4, seat("a", member, ""), at("", "", draining)), "b:7001 us"},
		"another address":   {list(3, seat("a", member, ""), at("b:7002", "eu", member)), "b:7002 eu"},
		"another, later on": {list(4, seat("a", member, ""), at("b:7002", "eu", member)), "b:7002 eu"},
	} {
		before := proto.CloneOf(test.told)
		m := b.Learn(test.told).List().GetMembers()[1]
		if got := m.GetAddress() + " " + m.GetRegion(); got != test.want || m.GetState() != before.GetMembers()[1].GetState() {
			t.Errorf("%s: %v, want %s", what, m, test.want)
		}
		if !proto.Equal(test.told, before) {
			t.Errorf("%s: the list that was told has changed", what)
		}
	}
}

// TestLaterNodesStay: a list of a site that has not heard of a take-over does not take the
// address back. A later take-over counts, and so does a site of a single process.
func TestLaterNodesStay(t *testing.T) {
	at := func(node string, term int64, state samyav1.MemberState) *samyav1.Member {
		m := seat("b", state, "")
		m.Address, m.Region, m.Node, m.Term, m.Standbys = "b:"+node, "us", node, term, uint32(term) //nolint:gosec // small
		return m
	}
	b := (*Book)(nil).Learn(list(3, at("2", 9, member)))
	for what, test := range map[string]struct {
		told *samyav1.ListMembersResponse
		want *samyav1.Member
	}{
		"an earlier node":             {list(3, at("1", 7, member)), at("2", 9, member)},
		"an earlier node, later on":   {list(4, at("1", 7, draining)), at("2", 9, draining)},
		"a later node":                {list(3, at("1", 12, member)), at("1", 12, member)},
		"a later node in an old list": {list(2, at("1", 12, member)), at("2", 9, member)},
		"a site of a single process":  {list(3, at("", 0, member)), at("", 0, member)},
		"a site nothing is known of":  {list(4, seat("b", member, "")), at("2", 9, member)},
	} {
		before := proto.CloneOf(test.told)
		got := b.Learn(test.told)
		if m := got.List().GetMembers()[0]; !proto.Equal(m, test.want) || got.Term("b") != test.want.GetTerm() {
			t.Errorf("%s: %v, want %v", what, m, test.want)
		}
		if !proto.Equal(test.told, before) {
			t.Errorf("%s: the list that was told has changed", what)
		}
	}
	if b.Term("c") != 0 || (*Book)(nil).Term("b") != 0 {
		t.Error("a site that nobody told has a term")
	}
}

// TestProgress: the word of a site that drains about itself outlasts the lists of other sites,
// until it drains no more.
func TestProgress(t *testing.T) {
	own := seat("b", draining, "a")
	own.Drain, own.WaitsFor, own.Knows = &samyav1.Drain{Leases: 3}, "3 leases to end", true
	b := (*Book)(nil).Learn(list(3, seat("a", member, ""), own)).Learn(list(3, seat("a", member, ""), seat("b", draining, "a")))
	if m := b.List().GetMembers()[1]; m.GetDrain().GetLeases() != 3 || m.GetWaitsFor() == "" || !m.GetKnows() {
		t.Errorf("after the list of another site: %v", m)
	}
	if m := b.Learn(list(3, seat("a", member, ""), seat("b", gone, "a"))).List().GetMembers()[1]; m.GetDrain() != nil {
		t.Errorf("after the end of the drain: %v", m)
	}
	if m := b.Learn(list(4, seat("a", member, ""), seat("b", member, ""))).List().GetMembers()[1]; m.GetDrain() != nil {
		t.Errorf("after the drain was taken back: %v", m)
	}
}

// TestHome: the leases of a site are at its heirs, as far as heirs go.
func TestHome(t *testing.T) {
	b := (*Book)(nil).Learn(list(1,
		seat("a", member, ""), seat("b", draining, "a"), seat("c", gone, "b"), seat("d", gone, "c"), seat("e", lost, ""),
		seat("f", gone, "e"), seat("g", gone, ""), seat("h", gone, "i"), seat("i", gone, "h"),
	))
	for site, want := range map[string]struct {
		home string
		lost bool
	}{
		"a": {"a", false}, "b": {"b", false}, "c": {"b", false}, "d": {"b", false}, "e": {"e", true}, "f": {"e", true},
		"g": {"", false}, "h": {"", false}, "x": {"x", false},
	} {
		if home, isLost := b.Home(site); home != want.home || isLost != want.lost {
			t.Errorf("the home of %s: %q, %t; want %q, %t", site, home, isLost, want.home, want.lost)
		}
	}
}

// TestOrderOfLists: lists of the same history may come from several sites in any order.
// In the end the caller knows the latest of each version.
func TestOrderOfLists(t *testing.T) {
	history := []*samyav1.ListMembersResponse{
		list(1, seat("a", member, ""), seat("b", member, "")),
		list(1, seat("a", member, ""), seat("b", member, ""), seat("c", joining, "")),
		list(2, seat("a", member, ""), seat("b", member, ""), seat("c", member, "")),
		list(3, seat("a", member, ""), seat("b", draining, "c"), seat("c", member, "")),
		list(4, seat("a", member, ""), seat("b", member, ""), seat("c", member, "")),
		list(5, seat("a", member, ""), seat("b", draining, "a"), seat("c", member, "")),
		list(5, seat("a", member, ""), seat("b", gone, "a"), seat("c", member, "")),
		list(6, seat("a", member, ""), seat("b", gone, "a"), seat("c", lost, "")),
	}
	rapid.Check(t, func(t *rapid.T) {
		var b *Book
		version, latest := uint64(0), 0
		for _, i := range rapid.SliceOfN(rapid.IntRange(0, len(history)-1), 1, 20).Draw(t, "lists") {
			b = b.Learn(history[i])
			latest = max(latest, i)
			if v := b.List().GetVersion(); v < version {
				t.Fatalf("version %d after %d", v, version)
			}
			version = b.List().GetVersion()
		}
		want := history[latest]
		for i, m := range want.GetMembers() {
			if got := b.List().GetMembers(); len(got) != len(want.GetMembers()) || got[i].GetState() != m.GetState() {
				t.Fatalf("%v, want %v", got, want)
			}
		}
	})
}
