package core_test

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/coretest"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
)

// fenced makes a rig with fenced sites: each start is a run of its own.
func fenced(t *testing.T, n int, tweak func(*core.Config)) *rig {
	t.Helper()
	run := message.Run(0)
	return newRig(t, n, func(cfg *core.Config) {
		run++
		cfg.Run = run
		if tweak != nil {
			tweak(cfg)
		}
	})
}

func (r *rig) serves(site core.SiteID) bool {
	return r.cores[site].Refused() == nil && r.cores[site].Status().Missing == 0
}

// copied is a copy of a site's disk.
func (r *rig) copied(site core.SiteID) *coretest.Memory { return r.disks[site].Clone() }

// refused returns the reason for which a site is refused. It fails the test if the site
// is not.
func (r *rig) refused(site core.SiteID) (stale *core.StaleError) {
	r.t.Helper()
	stale, is := errors.AsType[*core.StaleError](r.cores[site].Refused())
	if !is {
		r.t.Fatalf("%s is not refused as stale: %v", site, r.cores[site].Refused())
	}
	return stale
}

// TestSitesVouchForEachOther: sites that start together serve after one round trip. Each
// serves with half of the others, once VouchWait is over for the silent sites.
func TestSitesVouchForEachOther(t *testing.T) {
	for n := 1; n <= 5; n++ {
		r := fenced(t, n, func(cfg *core.Config) { cfg.VouchWait = 300 })
		for _, name := range r.names {
			if got, want := r.cores[name].Status().Missing, n/2; got != want {
				t.Errorf("of %d: %s misses %d, want %d", n, name, got, want)
			}
		}
		for _, name := range r.names[n/2+1:] {
			r.cut[name] = true
		}
		r.advance(3 * flight)
		for i, name := range r.names {
			if got, want := r.serves(name), i <= n/2 && len(r.cut) == 0; got != want {
				t.Errorf("of %d with %d cut off: %s serves at once: %t", n, len(r.cut), name, got)
			}
		}
		r.advance(300)
		for i, name := range r.names {
			if got, want := r.serves(name), i <= n/2; got != want {
				t.Errorf("of %d with %d cut off: %s serves: %t", n, len(r.cut), name, got)
			}
		}
		clear(r.cut)
		r.advance(6000)
		for _, name := range r.names {
			if !r.serves(name) {
				t.Errorf("of %d: %s does not serve once all are there", n, name)
			}
		}
		if got := r.count(event.Serving); got != n {
			t.Errorf("of %d: %d begin to serve", n, got)
		}
		for _, name := range r.names {
			r.restart(name)
		}
		r.advance(3 * flight)
		for _, name := range r.names {
			if !r.serves(name) {
				t.Errorf("of %d, all there: %s waits", n, name)
			}
		}
	}
}

// TestUnvouchedDoesNothing: before others have vouched for it, a site answers only that
// it is unvouched, changes nothing and sends only its question.
func TestUnvouchedDoesNothing(t *testing.T) {
	// Records of requests expire while the site waits.
	r := fenced(t, 3, func(cfg *core.Config) { cfg.Retention = 30_000 })
	r.advance(100)
	r.create("e", 30)
	for n := range 300 {
		r.release("a", "e", 1, id("w", n))
	}
	r.advance(2000)
	before := r.copied("a")
	r.cut["a"] = true
	r.restart("a")
	r.sent = nil
	for _, in := range []func(input.Call) input.Input{
		func(c input.Call) input.Input {
			return &input.Acquire{Call: c, Entity: "e", Tokens: 1, Request: key("x"), Wait: 100}
		},
		func(c input.Call) input.Input {
			return &input.Release{Call: c, Entity: "e", Tokens: 1, Request: key("y")}
		},
		func(c input.Call) input.Input {
			return &input.AcquireAll{Call: c, Parts: []input.Part{{Entity: "e", Tokens: 1}}, Request: key("w")}
		},
		func(c input.Call) input.Input { return &input.Read{Call: c, Entity: "e"} },
		func(c input.Call) input.Input { return &input.ReadMode{Call: c} },
		func(c input.Call) input.Input { return &input.List{Call: c, Count: 1} },
		func(c input.Call) input.Input { return &input.Observe{Call: c, Entity: "e"} },
		func(c input.Call) input.Input {
			return &input.Change{Call: c, Kind: input.DeleteEntity, Name: "e", RequestID: "z", Wait: 100}
		},
	} {
		call := r.nextCall()
		r.step("a", in(call))
		if a := r.answer(call); a.Code != answer.Unvouched || a.Missing != 1 {
			t.Errorf("%T is answered %+v", in(call), a)
		}
	}
	r.advance(60_000)
	asked := 0
	for _, e := range r.sent {
		switch {
		case e.From() != "a":
		case e.Vouch == nil || e.Vouch.Kind != message.VouchAsk:
			t.Errorf("sent %+v", e)
		default:
			asked++
		}
	}
	if asked < 50 || asked > 200 {
		t.Errorf("asked %d times in a minute", asked)
	}
	if got := r.disks["a"]; !got.Equal(before) {
		t.Errorf("its disk has changed: %+v, before %+v", got, before)
	}
	clear(r.cut)
	r.advance(2000)
	if a := r.acquire("a", "e", 1, "x"); a.Code != answer.OK {
		t.Errorf("vouched for, it answers %+v", a)
	}
}

// TestOlderDataIsRefused: the first site that remembers more refuses the data, also when
// the refused site serves already. The refusal names that site and the commits it
// remembers.
func TestOlderDataIsRefused(t *testing.T) {
	r := fenced(t, 3, nil)
	r.advance(100)
	r.create("e", 30)
	old := r.copied("a")
	r.acquire("a", "e", 3, "x")
	r.advance(3000)
	right := r.disks["a"]
	r.disks["a"] = old
	r.restart("a")
	r.advance(100)
	if e := r.refused("a"); e.Known.Commits <= e.Mine.Commits || e.By != "b" && e.By != "c" ||
		!strings.Contains(e.Error(), "older copy") {
		t.Errorf("%+v: %v", e, e)
	}
	// Restarts of the sites that remember change nothing.
	r.restart("b")
	r.restart("c")
	r.restart("a")
	r.advance(100)
	_ = r.refused("a")
	// Nor does the operator's word.
	tweak := r.tweak
	r.tweak = func(cfg *core.Config) { tweak(cfg); cfg.Unvouched = true }
	r.restart("a")
	if !r.serves("a") {
		t.Error("it does not serve on the operator's word")
	}
	r.advance(100)
	_ = r.refused("a")
	r.tweak = tweak

	r.disks["a"] = right
	r.restart("a")
	r.advance(100)
	if v := r.view("a", "e"); v.Net != 3 {
		t.Errorf("on the right data: %+v", v)
	}
}

// TestOtherDataIsRefused: an empty directory of a site that has served and committed is
// refused. A site that never committed has nothing to lose.
func TestOtherDataIsRefused(t *testing.T) {
	r := fenced(t, 3, nil)
	r.advance(3000)
	r.disks["a"] = coretest.NewMemory(98)
	r.restart("a")
	r.advance(100)
	if !r.serves("a") {
		t.Fatalf("in the place of an empty directory: %v", r.cores["a"].Refused())
	}
	r.create("e", 30)
	right := r.disks["a"]
	r.disks["a"] = coretest.NewMemory(99)
	r.restart("a")
	r.advance(100)
	if e := r.refused("a"); !strings.Contains(e.Error(), "not the data that this site had") {
		t.Error(e)
	}
	r.disks["a"] = right
	r.restart("a")
	r.advance(100)
	if !r.serves("a") {
		t.Error("its own data is refused")
	}
}

// TestAWrongStartIsNotBelieved: a site was started on an empty directory where it could
// ask only a site that had never heard of it. Its own data is not refused for that.
func TestAWrongStartIsNotBelieved(t *testing.T) {
	r := fenced(t, 5, nil)
	r.cut["e"] = true
	r.advance(3000)
	r.create("e", 30)
	r.advance(3000)
	right := r.disks["a"]
	r.disks["a"] = coretest.NewMemory(99)
	r.cut = map[core.SiteID]bool{"b": true, "c": true, "d": true}
	r.restart("a")
	r.advance(2000)
	if r.serves("a") {
		t.Fatal("one of four is enough")
	}
	r.disks["a"] = right
	r.restart("a")
	r.advance(2000)
	clear(r.cut)
	r.advance(2000)
	if !r.serves("a") {
		t.Errorf("its own data is refused: %v", r.cores["a"].Refused())
	}
}

// TestEmptySiteDoesNotVouch: a site that lost its disk may not serve itself. It does not
// vouch for an old copy of another's data while the third site, which knows both, is
// away. It does not, however often both ask, and whatever the copy remembers.
func TestEmptySiteDoesNotVouch(t *testing.T) {
	for _, after := range []core.Tick{0, 3000} {
		r := fenced(t, 3, nil)
		r.advance(100)
		r.create("e", 30)
		r.advance(after)
		old, b := r.copied("a"), r.disks["b"]
		r.wantCode(r.acquire("a", "e", 10, "x"), answer.OK)
		r.advance(5000)
		a := r.disks["a"]
		r.cut["c"] = true
		r.disks["a"], r.disks["b"] = old, coretest.NewMemory(77)
		r.restart("b")
		for range 3 {
			r.restart("a")
			r.advance(5000)
			if r.serves("a") || r.serves("b") {
				t.Fatalf("copied %d ms after the creation: a, on an old copy, serves: %t; b, on an empty disk: %t", after, r.serves("a"), r.serves("b"))
			}
			r.restart("b")
			r.advance(5000)
		}
		clear(r.cut)
		r.advance(5000)
		_, _ = r.refused("a"), r.refused("b")

		r.disks["a"], r.disks["b"] = a, b
		r.restart("a")
		r.restart("b")
		r.advance(5000)
		if !r.serves("a") || !r.serves("b") {
			t.Errorf("on their own data: a serves: %t, b: %t", r.serves("a"), r.serves("b"))
		}
	}
}

// TestServingSiteVouchesForWhomItDoesNotKnow: the word of a site that comes to serve
// counts from then on, without another question.
func TestServingSiteVouchesForWhomItDoesNotKnow(t *testing.T) {
	r := fenced(t, 3, func(cfg *core.Config) { cfg.VouchWait = 100 })
	r.cut["c"] = true
	r.advance(3000)
	r.create("e", 30)
	r.advance(3000)
	// Neither of b and c knows the other; a restarts last.
	clear(r.cut)
	r.cut["a"] = true
	r.restart("c")
	r.restart("b")
	r.advance(3000)
	if r.serves("b") || r.serves("c") {
		t.Errorf("without a, b serves: %t, c: %t", r.serves("b"), r.serves("c"))
	}
	clear(r.cut)
	r.restart("a")
	r.advance(2000)
	for _, name := range r.names {
		if !r.serves(name) {
			t.Errorf("%s does not serve once all are there", name)
		}
	}
}

// TestAllAreAskedBeforeServing: a site that objects after enough have vouched is heard
// before the asking site serves. The asking site waits for a silent site no longer than
// VouchWait.
func TestAllAreAskedBeforeServing(t *testing.T) {
	r := fenced(t, 5, func(cfg *core.Config) { cfg.VouchWait = 500 })
	r.advance(100)
	r.cut["b"], r.cut["c"] = true, true
	r.create("e", 50)
	old := r.copied("a")
	r.wantCode(r.acquire("a", "e", 3, "x"), answer.OK)
	r.advance(3000)
	right := r.disks["a"]
	// b and c know no later data than the copy.
	clear(r.cut)
	r.cut["d"], r.cut["e"] = true, true
	r.disks["a"] = old
	r.restart("a")
	r.advance(400)
	if r.serves("a") {
		t.Error("it serves before d and e can have said anything")
	}
	r.cut["d"] = false
	r.advance(2000)
	_ = r.refused("a")

	r.cut["d"] = true
	r.disks["a"] = right
	r.restart("a")
	r.advance(400)
	if r.serves("a") {
		t.Error("it does not wait for d and e")
	}
	r.advance(101)
	if !r.serves("a") {
		t.Error("it waits for d and e for ever")
	}
}

// TestAnswersToAnotherStartDoNotCount: a site serves by the answers about its data at
// this start. A late answer to the question of an earlier start says nothing of this
// data.
func TestAnswersToAnotherStartDoNotCount(t *testing.T) {
	for _, kind := range []message.VouchKind{message.VouchYes, message.VouchNothing} {
		r := fenced(t, 3, func(cfg *core.Config) { cfg.VouchWait = 500 })
		r.advance(100)
		r.create("e", 30)
		r.cut["b"], r.cut["c"] = true, true
		r.restart("a")
		for _, from := range []core.SiteID{"b", "c"} {
			r.step("a", input.Deliver{From: from, Messages: []message.Envelope{{Vouch: &message.Vouch{
				Kind: kind, From: from, To: "a", Asked: message.Mark{Incarnation: 1, Run: 1 << 20, Commits: 1},
			}}}})
		}
		r.advance(2000)
		if r.serves("a") {
			t.Errorf("kind %d: the site serves by answers to another start", kind)
		}
		clear(r.cut)
		r.advance(3000)
		if !r.serves("a") {
			t.Errorf("kind %d: the site does not serve though others vouch for it", kind)
		}
	}
}

// TestAVoucherThatIsBehind: a voucher whose data is of before sites were lost takes them for
// members. A site that knows better needs the word of half of those that are left.
func TestAVoucherThatIsBehind(t *testing.T) {
	r := fenced(t, 6, func(cfg *core.Config) { cfg.Retention = leavingRetention })
	r.advance(100)
	all := r.names
	for i, site := range []core.SiteID{"f", "e"} {
		r.cut[site] = true
		r.loseSite("b", site)
		r.names = all[:5-i]
		r.advance(2000)
	}
	for _, site := range []core.SiteID{"b", "c", "d"} {
		r.cut[site] = true
	}
	r.restart("a")
	before := len(r.sent)
	r.advance(100)
	for _, m := range r.sent[before:] {
		if m.Vouch == nil || m.To() != "b" && m.To() != "c" {
			continue
		}
		yes := message.Vouch{Kind: message.VouchYes, From: m.To(), To: "a", Asked: m.Vouch.Asked, Members: 6}
		if m.To() == "c" {
			yes.Members, yes.Out = 4, []core.SiteID{"e", "f"}
		}
		r.step("a", input.Deliver{From: m.To(), Messages: []message.Envelope{{Vouch: &yes}}})
	}
	r.advance(2000)
	if !r.serves("a") {
		t.Error("the site does not serve though half of the others vouch for it")
	}
}

// TestTwins: of two sites that run on copies of the same data, at most one goes on.
func TestTwins(t *testing.T) {
	r := fenced(t, 3, nil)
	r.advance(100)
	r.create("e", 30)
	twin := r.copied("a")
	r.restart("a")
	r.advance(100)
	r.acquire("a", "e", 1, "x")
	r.advance(3000)
	first, disk := r.cores["a"], r.disks["a"]
	r.disks["a"] = twin
	r.restart("a")
	r.advance(100)
	_ = r.refused("a")
	r.cores["a"], r.disks["a"] = first, disk
	r.advance(3000)
	if !r.serves("a") {
		t.Errorf("the first is refused: %v", first.Refused())
	}
}

// TestNothingIsTakenFromWhoIsNotVouchedFor: a site that has not vouched for a run takes
// none of the run's messages, and is asked to vouch.
func TestNothingIsTakenFromWhoIsNotVouchedFor(t *testing.T) {
	r := fenced(t, 3, nil)
	r.advance(3000)
	stranger := message.Envelope{
		Entity: "", Message: avantan.Message{Kind: avantan.Applied, From: "a", To: "b", Applied: 1000},
		Mark: message.Mark{Incarnation: 1, Run: 77, Commits: 1000},
	}
	before := r.copied("b")
	r.sent = nil
	r.step("b", input.Deliver{From: "a", Messages: []message.Envelope{stranger, stranger}})
	if len(r.sent) != 1 || r.sent[0].Vouch == nil || r.sent[0].Vouch.Kind != message.VouchWho {
		t.Errorf("answered with %+v", r.sent)
	}
	r.advance(100)
	if !r.disks["b"].Equal(before) {
		t.Error("something of it was remembered")
	}
}

// TestQuietSitesTellNothing: sites with nothing new to say commit nothing, and only their
// rounds go on.
func TestQuietSitesTellNothing(t *testing.T) {
	r := fenced(t, 3, nil)
	r.advance(100)
	r.create("e", 30)
	r.acquire("a", "e", 3, "x")
	// After a minute the state of the forecast is stored.
	r.advance(80_000)
	before := maps.Clone(r.disks)
	for name := range before {
		before[name] = r.copied(name)
	}
	r.sent = nil
	r.advance(60_000)
	for _, e := range r.sent {
		if e.Vouch != nil {
			t.Errorf("a quiet site sends %+v", *e.Vouch)
		}
	}
	for name, disk := range r.disks {
		if !disk.Equal(before[name]) {
			t.Errorf("quiet site %s commits", name)
		}
	}
}

// TestServesWithAllThatIsDue: a site that begins to serve as it wakes does all else that
// is due then, and asks for no wake in the past.
func TestServesWithAllThatIsDue(t *testing.T) {
	r := fenced(t, 3, func(cfg *core.Config) { cfg.VouchWait = 500 })
	r.advance(1000)
	r.create("e", 50)
	r.wantCode(r.lease("a", "e", 3, "x", 120_000), answer.OK)
	// The site's time is to be stored again by now.
	r.advance(30_000)
	r.cut["c"] = true
	r.restart("a")
	r.advance(2000)
	if !r.serves("a") {
		t.Error("it does not serve")
	}
}
