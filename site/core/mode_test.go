package core_test

import (
	"testing"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/policy"
)

func (r *rig) setMode(site core.SiteID, mode, id string) answer.Answer {
	r.t.Helper()
	call := r.changeAsync(site, input.Change{Kind: input.SetMode, Mode: mode, RequestID: id})
	r.advance(2000)
	return r.answer(call)
}

func (r *rig) wantMode(mode string, version uint64) {
	r.t.Helper()
	for _, name := range r.names {
		if got := r.cores[name].Status().Mode; got.Protocol() != mode || got.Decided.Version != version {
			r.t.Errorf("%s goes by %+v, want %s, version %d", name, got, mode, version)
		}
	}
}

func TestAnswersOfModeChanges(t *testing.T) {
	r := newRig(t, 3, nil)
	r.wantMode("majority", 0)
	set := func(mode string, expected uint64, id string) input.Change {
		return input.Change{Kind: input.SetMode, Mode: mode, Expected: expected, RequestID: id}
	}
	for _, tc := range []struct {
		name    string
		at      core.SiteID
		ch      input.Change
		want    answer.Code
		decided answer.DecidedMode
	}{
		{"first", "a", set("star", 0, "1"), answer.OK, answer.DecidedMode{Protocol: "star", Version: 1}},
		{"expected", "b", set("auto", 1, "2"), answer.OK, answer.DecidedMode{Protocol: "auto", Version: 2}},
		{"repeated elsewhere", "c", set("star", 0, "1"), answer.OK, answer.DecidedMode{Protocol: "star", Version: 1}},
		{"id of another mode", "c", set("auto", 0, "1"), answer.Reused, answer.DecidedMode{}},
		{"id of another version", "a", set("star", 2, "1"), answer.Reused, answer.DecidedMode{}},
		{"id of a creation", "a", input.Change{Kind: input.CreateEntity, Name: "star", RequestID: "1"}, answer.Reused, answer.DecidedMode{}},
		{"another version", "a", set("majority", 1, "3"), answer.Mismatch, answer.DecidedMode{Version: 2}},
		{"mismatch again", "b", set("majority", 1, "3"), answer.Mismatch, answer.DecidedMode{Version: 2}},
		{"the same mode", "b", set("auto", 2, "4"), answer.OK, answer.DecidedMode{Protocol: "auto", Version: 3}},
		{"unknown mode", "b", set("paxos", 0, "5"), answer.Invalid, answer.DecidedMode{}},
		{"no mode", "b", set("", 0, "6"), answer.Invalid, answer.DecidedMode{}},
		{
			"creation with a mode", "b",
			input.Change{Kind: input.CreateEntity, Name: "e", Mode: "star", RequestID: "7"},
			answer.Invalid,
			answer.DecidedMode{},
		},
	} {
		call := r.changeAsync(tc.at, tc.ch)
		r.advance(2000)
		if a := r.answer(call); a.Code != tc.want || a.Mode().Decided != tc.decided {
			t.Errorf("%s: %v, %+v; want %v, %+v", tc.name, a.Code, a.Mode(), tc.want, tc.decided)
		}
	}
	r.wantMode("auto", 3)
}

// TestModeIsDurable restarts all sites. They go by the decided mode, whatever their
// configuration says.
func TestModeIsDurable(t *testing.T) {
	r := newRig(t, 3, nil)
	r.wantCode(r.setMode("a", "star", "1"), answer.OK)
	r.tweak = func(c *core.Config) { c.Protocol = "auto" }
	for _, name := range r.names {
		r.restart(name)
	}
	r.wantMode("star", 1)
}

// TestModeIsLearntLate has a site miss a change of the mode, alone and then with more
// other changes than are kept: the site learns of the mode either way.
func TestModeIsLearntLate(t *testing.T) {
	r := newRig(t, 3, nil)
	r.cut["c"] = true
	r.wantCode(r.setMode("a", "star", "1"), answer.OK)
	r.cut["c"] = false
	r.advance(10_000)
	r.wantMode("star", 1)
	r.cut["c"] = true
	r.wantCode(r.setMode("a", "auto", "2"), answer.OK)
	for n := range 5000 {
		r.changeAsync("a", input.Change{Kind: input.DeleteEntity, Name: "none", RequestID: id("none", n)})
	}
	r.advance(5000)
	r.cut["c"] = false
	r.advance(20_000)
	r.wantMode("auto", 2)
	r.restart("c")
	r.wantMode("auto", 2)
}

// TestModeNeedsAMajority changes the mode where there is no majority: nothing is done.
func TestModeNeedsAMajority(t *testing.T) {
	r := newRig(t, 5, nil)
	for _, name := range []core.SiteID{"c", "d", "e"} {
		r.cut[name] = true
	}
	call := r.changeAsync("a", input.Change{Kind: input.SetMode, Mode: "star", RequestID: "1", Wait: 1000})
	r.advance(20_000)
	r.wantCode(r.answer(call), answer.NoQuorum)
	r.cut = make(map[core.SiteID]bool)
	r.advance(20_000)
	r.wantMode("majority", 0)
}

// TestModeSaysWhatBegins cuts two sites off from three: under the majority variant they
// get nothing from each other, under the others they do.
func TestModeSaysWhatBegins(t *testing.T) {
	for _, configured := range policy.ProtocolNames() {
		for mode, want := range map[string]answer.Code{"majority": answer.OutOfTokens, "star": answer.OK, "auto": answer.OK} {
			r := newRig(t, 5, func(c *core.Config) { c.Protocol, c.Strategy = configured, "instance" })
			r.create("acme/vm", 500)
			r.wantCode(r.setMode("c", mode, "1"), answer.OK)
			for _, name := range []core.SiteID{"a", "b", "c"} {
				r.cut[name] = true
			}
			call := r.acquireAsync("d", "acme/vm", 150, "more", 10_000)
			r.advance(20_000)
			if a := r.answer(call); a.Code != want {
				t.Errorf("configured %s, decided %s: %v, want %v", configured, mode, a.Code, want)
			}
		}
	}
}

// TestWhatIsOpenEndsUnderItsOwn switches the mode at every moment of an instance: the
// instance ends under the variant under which it began, and no token is lost.
func TestWhatIsOpenEndsUnderItsOwn(t *testing.T) {
	for _, tc := range []struct{ from, to string }{{"majority", "star"}, {"star", "majority"}, {"star", "auto"}} {
		for at := core.Tick(0); at <= 120; at += 10 {
			r := newRig(t, 5, func(c *core.Config) { c.Protocol, c.Strategy = tc.from, "instance" })
			r.create("acme/vm", 500)
			// The switch is decided while the instance is under way: at its beginning, in
			// its middle, or just after it.
			change := r.changeAsync("e", input.Change{Kind: input.SetMode, Mode: tc.to, RequestID: "switch"})
			r.advance(at)
			acquire := r.acquireAsync("a", "acme/vm", 250, "half", 20_000)
			r.advance(60_000)
			r.wantCode(r.answer(change), answer.OK)
			r.wantCode(r.answer(acquire), answer.OK)
			balanced(t, r, 500, 250)
			r.wantMode(tc.to, 1)
		}
	}
}

// TestSlicesOutliveTheMode leaves slices of a star instance undecided, as a member of it
// is out of reach, and switches to the majority variant meanwhile: the slices end once
// that member is back.
func TestSlicesOutliveTheMode(t *testing.T) {
	r := newRig(t, 5, func(c *core.Config) { c.Protocol, c.Strategy = "star", "instance" })
	r.create("acme/vm", 500)
	r.acquireAsync("a", "acme/vm", 500, "all", 60_000)
	// The offers have come to the leader. A member is gone before it has accepted.
	r.advance(25)
	r.cut["e"] = true
	r.advance(5000)
	if v := r.view("b", "acme/vm"); v.Offered == 0 {
		t.Fatalf("nothing is set aside: %+v", v)
	}
	r.wantCode(r.setMode("b", "majority", "1"), answer.OK)
	if v := r.view("b", "acme/vm"); v.Offered == 0 {
		t.Errorf("what was set aside is gone with the mode: %+v", v)
	}
	r.cut["e"] = false
	r.advance(60_000)
	r.wantMode("majority", 1)
	balanced(t, r, 500, r.view("a", "acme/vm").Net)
	if v := r.view("b", "acme/vm"); v.Moved == 0 {
		t.Errorf("no star instance was applied: %+v", v)
	}
}
