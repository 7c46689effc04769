package core_test

import (
	"slices"
	"testing"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/coretest"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/stored"
)

// addSite has a site join, and expects that the change is decided.
func (r *rig) addSite(site core.SiteID) {
	r.t.Helper()
	r.joins(site)
	call := r.changeAsync("a", input.Change{Kind: input.AddSite, Name: string(site), RequestID: "add " + string(site)})
	r.advance(30_000)
	r.wantCode(r.answer(call), answer.OK)
}

// newDeafRig has d join two founders, and hear nothing of b. Then b goes away, and e
// joins.
func newDeafRig(t *testing.T) *rig {
	t.Helper()
	r := fenced(t, 2, nil)
	r.advance(1000)
	r.create("e", 30)
	r.loses = func(e *message.Envelope) bool { return e.From() == "b" && e.To() == "d" }
	r.addSite("d")
	if s := r.state("b", "d"); s != "member" {
		t.Fatalf("to b, d is %q", s)
	}
	r.cut["b"] = true
	r.addSite("e")
	if s := r.state("a", "e"); s != "member" {
		t.Fatalf("to a, e is %q", s)
	}
	return r
}

// TestALaterMemberIsNotWaitedFor: b has to be vouched for by half of the four members. It
// knows of a and d only, and d has never heard of it.
func TestALaterMemberIsNotWaitedFor(t *testing.T) {
	r := newDeafRig(t)
	r.restart("b")
	r.loses = nil
	delete(r.cut, "b")
	r.advance(30_000)
	for _, site := range r.names {
		if s := r.cores[site].Status(); !r.serves(site) || s.Members != 4 || s.Behind != 0 {
			t.Errorf("%s: serves %t, %+v", site, r.serves(site), s)
		}
	}
	r.wantCode(r.acquire("b", "e", 1, "x"), answer.OK)
}

// TestALaterMemberIsNotCounted: d joins a, b and c, and c is destroyed. Then b starts again.
// The word of a is enough, as before d joined: else nothing is decided any more, not even
// the loss of c.
func TestALaterMemberIsNotCounted(t *testing.T) {
	r := fenced(t, 3, nil)
	r.advance(1000)
	r.create("e", 30)
	r.loses = func(e *message.Envelope) bool { return e.From() == "b" && e.To() == "d" }
	r.addSite("d")
	r.cut["c"] = true
	r.restart("b")
	r.loses = nil
	r.advance(10_000)
	if !r.serves("b") {
		t.Fatal("b does not serve")
	}
	r.loseSite("a", "c")
}

// TestLostWhileASiteWaits: e joins, and knows a and b only. It waits for b, which is destroyed,
// and b is written off meanwhile. All others have vouched before, and are asked once more:
// else e waits for ever.
func TestLostWhileASiteWaits(t *testing.T) {
	r := fenced(t, 2, nil)
	r.advance(1000)
	r.create("x", 30)
	r.loses = func(e *message.Envelope) bool { return e.From() == "e" && e.Message.Kind == avantan.Applied }
	r.addSite("e")
	r.loses = func(e *message.Envelope) bool { return (e.From() == "e" || e.To() == "e") && e.Vouch == nil }
	r.addSite("f")
	r.addSite("g")
	r.restart("e")
	r.advance(10_000)
	r.cut["b"] = true
	r.restart("e")
	r.advance(10_000)
	if r.serves("e") {
		t.Fatal("e serves")
	}
	r.loseSite("a", "b")
	r.loses = nil
	r.advance(60_000)
	if !r.serves("e") {
		t.Errorf("e does not serve: %+v", r.cores["e"].Status())
	}
}

// TestALaterMemberObjects: b starts on an empty disk, which knows its founders only, and none of
// them is there. A member that joined later objects as soon as b hears of it.
func TestALaterMemberObjects(t *testing.T) {
	r := fenced(t, 3, nil)
	r.advance(1000)
	r.create("e", 30)
	r.addSite("d")
	r.cut["a"], r.cut["c"] = true, true
	// d says nothing unasked: it has told the commits that it has made.
	r.loses = func(e *message.Envelope) bool {
		return e.From() == "d" && e.To() == "b" && (e.Vouch == nil || e.Vouch.Kind != message.VouchNo)
	}
	founders, tweak := []core.SiteID{"a", "b", "c"}, r.tweak
	r.tweak = func(c *core.Config) {
		if tweak(c); c.Self == "b" {
			c.Members = founders
		}
	}
	r.disks["b"] = coretest.NewMemory(99)
	r.restart("b")
	r.step("b", input.Reachable{Sites: []core.SiteID{"d"}})
	r.advance(10_000)
	if e := r.refused("b"); e.By != "d" {
		t.Errorf("by %s", e.By)
	}
}

// newUnawareRig has d join three founders, and hear nothing of b. The founders admit d, and d
// does not hear of it.
func newUnawareRig(t *testing.T) *rig {
	t.Helper()
	r := fenced(t, 3, func(cfg *core.Config) { cfg.VouchWait = 500 })
	r.advance(1000)
	r.create("e", 30)
	r.joins("d")
	r.advance(2000)
	r.loses = func(e *message.Envelope) bool { return e.To() == "d" && (e.From() == "b" || r.admitted("d")) }
	call := r.changeAsync("a", input.Change{Kind: input.AddSite, Name: "d", RequestID: "add d"})
	r.advance(30_000)
	r.wantCode(r.answer(call), answer.OK)
	if !r.admitted("d") || r.cores["d"].Status().Members != 3 {
		t.Fatalf("d is admitted: %t, and knows %+v", r.admitted("d"), r.cores["d"].Status())
	}
	return r
}

// admitted reports whether a founder has decided that a site is a member.
func (r *rig) admitted(site core.SiteID) bool {
	for _, name := range []core.SiteID{"a", "b", "c"} {
		if c := r.disks[name].Catalogue; c != nil && c.Roster.Seat(site) != nil && c.Roster.Seat(site).State == stored.SeatMember {
			return true
		}
	}
	return false
}

// TestAnUnawareMemberIsNotCounted: d has not heard of its admission, c is destroyed, and a and
// b start again. Each needs the word of the other, as before d joined: else nobody can tell
// d, and nothing is decided any more.
func TestAnUnawareMemberIsNotCounted(t *testing.T) {
	r := newUnawareRig(t)
	r.cut["c"] = true
	for _, name := range []core.SiteID{"a", "b", "d"} {
		r.restart(name)
	}
	r.loses = nil
	r.advance(30_000)
	for _, name := range []core.SiteID{"a", "b"} {
		if !r.serves(name) {
			t.Errorf("%s does not serve", name)
		}
	}
	r.loseSite("a", "c")
	r.advance(10_000)
	if s := r.state("d", "d"); s != "member" || !r.serves("d") {
		t.Errorf("to d, d is %q; it serves: %t", s, r.serves("d"))
	}
}

// TestAnUnawareMemberIsKnown: that a site knows of no admission counts only from the data that
// the members admitted, and from a member. An empty disk may have lost the memory of later
// data.
func TestAnUnawareMemberIsKnown(t *testing.T) {
	for name, c := range map[string]struct {
		from        core.SiteID
		incarnation message.Incarnation
		serves      bool
	}{
		"the data of the admission": {"d", 103, true},
		"other data":                {"d", 104, false},
		"no data":                   {"d", 0, false},
		"a founder":                 {"c", 0, false},
		"a site that is no member":  {"z", 103, false},
	} {
		r := newUnawareRig(t)
		for _, name := range r.names {
			r.cut[name] = true
		}
		r.restart("a")
		r.step("a", input.Wake{})
		asked := r.askedWith("a")
		r.step("a", input.Deliver{From: "b", Messages: []message.Envelope{{Vouch: &message.Vouch{
			Kind: message.VouchYes, From: "b", To: "a", Asked: asked, Members: 4,
		}}}})
		r.step("a", input.Deliver{From: c.from, Messages: []message.Envelope{{
			Vouch: &message.Vouch{Kind: message.VouchNothing, From: c.from, To: "a", Asked: asked, Members: 1},
			Mark:  message.Mark{Incarnation: c.incarnation, Run: 7, Commits: 1},
		}}})
		r.advance(2000)
		if r.serves("a") != c.serves {
			t.Errorf("%s: the site serves: %t", name, r.serves("a"))
		}
	}
}

// TestALaterMemberHasToBeSure: a site says that it joined later once it is vouched for
// itself. Its own data may be older than what it has heard of others.
func TestALaterMemberHasToBeSure(t *testing.T) {
	r := newDeafRig(t)
	if v := r.saysNothing("d", 2); v.Members != 4 {
		t.Errorf("a member that is vouched for says %+v", v)
	}
	r.cut["d"] = true
	r.restart("d")
	r.advance(30_000)
	if v := r.saysNothing("d", 2); v.Members != 0 {
		t.Errorf("a site that nobody vouches for says %+v", v)
	}
}

// saysNothing is what a site answers b about data of which it has never heard.
func (r *rig) saysNothing(site core.SiteID, of message.Incarnation) message.Vouch {
	r.t.Helper()
	ask := message.Vouch{Kind: message.VouchAsk, From: "b", To: site, Asked: message.Mark{Incarnation: of, Run: 77, Commits: 9}}
	r.sent = nil
	r.step(site, input.Deliver{From: "b", Messages: []message.Envelope{{Vouch: &ask}}})
	for _, e := range r.sent {
		if e.Vouch != nil && e.Vouch.Kind == message.VouchNothing {
			return *e.Vouch
		}
	}
	r.t.Fatalf("%s says %+v", site, r.sent)
	return message.Vouch{}
}

// TestAnUnawareMemberHasToBeSure: a site says that it joins once it is vouched for itself.
func TestAnUnawareMemberHasToBeSure(t *testing.T) {
	r := newUnawareRig(t)
	if v := r.saysNothing("d", 2); v.Members != 1 {
		t.Errorf("a site that is vouched for says %+v", v)
	}
	r.cut["d"] = true
	r.restart("d")
	r.advance(30_000)
	if v := r.saysNothing("d", 2); v.Members != 0 {
		t.Errorf("a site that nobody vouches for says %+v", v)
	}
}

// TestNobodyIsNotEnough: a site that all others have never heard of waits.
func TestNobodyIsNotEnough(t *testing.T) {
	r := fenced(t, 3, nil)
	r.advance(100)
	r.create("e", 30)
	for _, name := range r.names {
		r.cut[name] = true
	}
	r.restart("a")
	r.advance(100)
	for _, from := range []core.SiteID{"b", "c"} {
		r.step("a", input.Deliver{From: from, Messages: []message.Envelope{{Vouch: &message.Vouch{
			Kind: message.VouchNothing, From: from, To: "a", Asked: r.askedWith("a"), Members: 3,
		}}}})
	}
	r.advance(5000)
	if r.serves("a") {
		t.Error("the site serves on data that nobody knows")
	}
}

// askedWith is the mark that a site last asked others to vouch for.
func (r *rig) askedWith(site core.SiteID) message.Mark {
	for _, e := range slices.Backward(r.sent) {
		if e.Vouch != nil && e.Vouch.Kind == message.VouchAsk && e.Vouch.From == site {
			return e.Vouch.Asked
		}
	}
	r.t.Fatalf("%s has asked nobody", site)
	return message.Mark{}
}

// TestGuardByOlderWords: a member of older data tells of fewer members than there are. Its
// word does not make the guard ask for fewer.
func TestGuardByOlderWords(t *testing.T) {
	r := fenced(t, 5, func(cfg *core.Config) { cfg.VouchWait = 500 })
	r.advance(100)
	r.create("e", 50)
	for _, site := range sites("bcde") {
		r.cut[site] = true
	}
	r.restart("a")
	r.step("a", input.Wake{})
	r.step("a", input.Deliver{From: "d", Messages: []message.Envelope{{Vouch: &message.Vouch{
		Kind: message.VouchYes, From: "d", To: "a", Asked: r.askedWith("a"), Members: 3,
	}}}})
	r.advance(2000)
	if r.serves("a") {
		t.Error("the site serves by the word of one of four")
	}
}
