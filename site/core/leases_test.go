package core_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/input"
)

// lease asks for a lease and does not wait for tokens.
func (r *rig) lease(site core.SiteID, entity string, tokens core.Tokens, id string, ttl core.Tick) answer.Answer {
	r.t.Helper()
	return r.answer(r.leaseAsync(site, entity, tokens, id, ttl, 0))
}

func (r *rig) leaseAsync(site core.SiteID, entity string, tokens core.Tokens, id string, ttl, wait core.Tick) input.Call {
	call := r.nextCall()
	r.step(site, &input.Acquire{
		Call: call, Entity: entity, Tokens: tokens, Request: key(id), Wait: wait,
		Lease: &input.LeaseTerms{ID: id, TTL: ttl, Holder: "h"},
	})
	return call
}

func (r *rig) renew(site core.SiteID, lease string, ttl core.Tick) answer.Answer {
	r.t.Helper()
	call := r.nextCall()
	r.step(site, &input.RenewLease{Call: call, Lease: key(lease), TTL: ttl})
	return r.answer(call)
}

func (r *rig) commit(site core.SiteID, lease string, tokens core.Tokens, id string) answer.Answer {
	r.t.Helper()
	call := r.nextCall()
	r.step(site, &input.CommitLease{Call: call, Lease: key(lease), Tokens: tokens, Request: key(id)})
	return r.answer(call)
}

// giveBack releases tokens of a lease of the site.
func (r *rig) giveBack(site core.SiteID, entity, lease string, tokens core.Tokens, id string) answer.Answer {
	r.t.Helper()
	call := r.nextCall()
	r.step(site, &input.Release{
		Call: call, Entity: entity, Tokens: tokens, Request: key(id),
		Lease: &input.LeaseRef{Home: site, Request: key(lease)},
	})
	return r.answer(call)
}

func (r *rig) leases(site core.SiteID, q input.ListLeases) answer.Answer {
	r.t.Helper()
	q.Call = r.nextCall()
	if q.Count == 0 {
		q.Count = 100
	}
	r.step(site, &q)
	return r.answer(q.Call)
}

// TestLeaseStories follows a lease of 4 of 10 tokens, of 1000 ms.
func TestLeaseStories(t *testing.T) {
	type books struct{ left, net core.Tokens }
	type story struct {
		tell  func(*rig)
		books books
		live  int
	}
	ok := func(r *rig, got answer.Answer, tokens, returned core.Tokens) {
		r.t.Helper()
		if got.Code != answer.OK || got.Tokens != tokens || got.Returned != returned {
			r.t.Errorf("got %+v, want %d tokens, %d returned", got, tokens, returned)
		}
	}
	for name, s := range map[string]story{
		"held": {func(r *rig) { r.advance(999) }, books{6, 4}, 1},
		"ended": {func(r *rig) {
			r.advance(1000)
			r.wantCode(r.renew("a", "x", 0), answer.NoLease)
		}, books{10, 0}, 0},
		"late operations before the wake": {func(r *rig) {
			r.now.Tick += 1000
			r.wantCode(r.renew("a", "x", 0), answer.NoLease)
			r.wantCode(r.commit("a", "x", 0, "c"), answer.NoLease)
			r.wantCode(r.giveBack("a", "e", "x", 0, "g"), answer.NoLease)
			if a := r.lease("a", "e", 4, "x", 1000); a.Code != answer.OK || a.Lease().ID != "" {
				r.t.Errorf("the repeat tells of a lease that has ended: %+v", a)
			}
			r.advance(0)
			r.advance(1)
		}, books{10, 0}, 0},
		"renewed": {func(r *rig) {
			r.advance(900)
			a := r.renew("a", "x", 0)
			if a.Code != answer.OK || a.Lease().Remaining != 1000 || a.Lease().Tokens != 4 {
				r.t.Errorf("renewed: %+v", a)
			}
			r.advance(999)
		}, books{6, 4}, 1},
		"renewed for another time": {func(r *rig) {
			r.wantCode(r.renew("a", "x", 5000), answer.OK)
			r.advance(4999)
			r.wantCode(r.renew("a", "x", 0), answer.OK)
			r.advance(4999)
		}, books{6, 4}, 1},
		"renewed to end sooner": {func(r *rig) {
			r.wantCode(r.renew("a", "x", 10), answer.OK)
			r.advance(10)
		}, books{10, 0}, 0},
		"renewed for too long": {func(r *rig) {
			r.wantCode(r.renew("a", "x", input.MaxTTL+1), answer.Invalid)
		}, books{6, 4}, 1},
		"committed": {func(r *rig) {
			ok(r, r.commit("a", "x", 0, "c"), 4, 0)
			r.advance(5000)
		}, books{6, 4}, 0},
		"committed in part, and repeated": {func(r *rig) {
			for range 2 {
				ok(r, r.commit("a", "x", 1, "c"), 1, 3)
				r.restart("a")
				r.advance(5000)
			}
			r.wantCode(r.commit("a", "x", 2, "c"), answer.Reused)
			r.wantCode(r.commit("a", "y", 1, "c"), answer.Reused)
			r.wantCode(r.acquire("a", "e", 1, "c"), answer.Reused)
			r.wantCode(r.commit("a", "x", 1, "another"), answer.NoLease)
		}, books{9, 1}, 0},
		"committed beyond what it holds": {func(r *rig) {
			r.wantCode(r.commit("a", "x", 5, "c"), answer.Invalid)
			r.wantCode(r.commit("a", "x", -1, "c"), answer.Invalid)
		}, books{6, 4}, 1},
		"given back in parts": {func(r *rig) {
			ok(r, r.giveBack("a", "e", "x", 3, "g"), 3, 0)
			ok(r, r.giveBack("a", "e", "x", 3, "g"), 3, 0)
			ok(r, r.giveBack("a", "e", "x", 3, "g2"), 1, 0)
			ok(r, r.giveBack("a", "e", "x", 3, "g2"), 1, 0)
			r.wantCode(r.giveBack("a", "e", "x", 3, "g3"), answer.NoLease)
			r.advance(5000)
		}, books{10, 0}, 0},
		"given back in part, then ended": {func(r *rig) {
			ok(r, r.giveBack("a", "e", "x", 3, "g"), 3, 0)
			r.restart("a")
			r.advance(999)
			if l := r.leases("a", input.ListLeases{}).Leases(); len(l) != 1 || l[0].Tokens != 1 {
				r.t.Errorf("leases: %+v", l)
			}
			r.advance(1)
		}, books{10, 0}, 0},
		"given back whole": {func(r *rig) {
			ok(r, r.giveBack("a", "e", "x", 0, "g"), 4, 0)
			ok(r, r.giveBack("a", "e", "x", 0, "g"), 4, 0)
		}, books{10, 0}, 0},
		"given back for another site": {func(r *rig) {
			if n := r.cores["a"].GiveBack(key("x"), 3); n != 3 {
				r.t.Errorf("it gave back %d", n)
			}
			if n := r.cores["a"].GiveBack(key("x"), 3); n != 1 {
				r.t.Errorf("it gave back %d, of 1", n)
			}
			if n := r.cores["a"].GiveBack(key("x"), 3); n != 0 {
				r.t.Errorf("it gave back %d, of 0", n)
			}
			r.drain("a")
		}, books{10, 0}, 0},
		"undone": {func(r *rig) {
			r.giveBack("a", "e", "x", 1, "g")
			if n := r.cores["a"].EndLease(key("x")); n != 3 {
				r.t.Errorf("it gave back %d", n)
			}
			if n := r.cores["a"].EndLease(key("x")); n != 0 {
				r.t.Errorf("it gave back %d, of 0", n)
			}
			r.drain("a")
		}, books{10, 0}, 0},
		"given back to another entity": {func(r *rig) {
			r.create("f", 5)
			r.wantCode(r.renew("a", "x", 5000), answer.NoLease) // 2 s have passed
			r.wantCode(r.lease("a", "e", 4, "y", 5000), answer.OK)
			r.wantCode(r.giveBack("a", "f", "y", 0, "g"), answer.NoLease)
		}, books{6, 4}, 1},
		"the acquire repeated": {func(r *rig) {
			r.advance(100)
			a := r.lease("a", "e", 4, "x", 1000)
			ok(r, a, 4, 0)
			if a.Lease().Remaining != 900 || a.Lease().Tokens != 4 || a.Lease().Entity != "e" || a.Lease().Holder != "h" {
				r.t.Errorf("the repeat tells of %+v", a.Lease())
			}
			r.wantCode(r.lease("a", "e", 4, "x", 1001), answer.Reused)
			r.wantCode(r.acquire("a", "e", 4, "x"), answer.Reused)
		}, books{6, 4}, 1},
		"over a restart": {func(r *rig) {
			r.advance(600)
			r.restart("a")
			r.advance(399)
		}, books{6, 4}, 1},
		"ended over a restart": {func(r *rig) {
			r.advance(600)
			r.restart("a")
			r.advance(400)
			r.restart("a")
			r.advance(100)
		}, books{10, 0}, 0},
		"ended while the site was down": {func(r *rig) {
			r.now.Wall += 3600_000
			r.restart("a")
			r.wantCode(r.renew("a", "x", 0), answer.NoLease)
			r.advance(1)
		}, books{10, 0}, 0},
		"the wall clock put back over a restart": {func(r *rig) {
			r.advance(999)
			r.now.Wall -= 3600_000
			r.restart("a")
			r.advance(1000)
		}, books{10, 0}, 0},
		"the wall clock moved within a life": {func(r *rig) {
			r.now.Wall += 3600_000
			r.advance(999)
			r.now.Wall -= 7200_000
		}, books{6, 4}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 1, nil)
			r.create("e", 10)
			a := r.lease("a", "e", 4, "x", 1000)
			if a.Code != answer.OK || a.Tokens != 4 || a.Left != 6 || a.Lease().Tokens != 4 || a.Lease().Remaining != 1000 || a.Lease().ID != "x" {
				t.Fatalf("granted: %+v", a)
			}
			s.tell(r)
			if v := r.view("a", "e"); v.Left != s.books.left || v.Net != s.books.net {
				t.Errorf("books %d left, %d out, want %+v", v.Left, v.Net, s.books)
			}
			if n := r.cores["a"].Status().Leases; n != s.live {
				t.Errorf("%d leases, want %d", n, s.live)
			}
			restored, err := r.disks["a"].Load()
			if err != nil || len(restored.Leases) != s.live {
				t.Errorf("on disk: %+v, %v", restored.Leases, err)
			}
		})
	}
}

// TestLeaseTermsAreChecked: nothing is granted on invalid terms.
func TestLeaseTermsAreChecked(t *testing.T) {
	r := newRig(t, 1, nil)
	r.create("e", 10)
	for _, terms := range []input.LeaseTerms{
		{ID: "x"}, {ID: "x", TTL: input.MaxTTL + 1}, {TTL: 1000}, {ID: "y", TTL: 1000},
	} {
		call := r.nextCall()
		r.step("a", &input.Acquire{Call: call, Entity: "e", Tokens: 1, Request: key("x"), Lease: &terms})
		r.wantCode(r.answer(call), answer.Invalid)
	}
	r.wantCode(r.lease("a", "e", 1, "x", input.MaxTTL), answer.OK)
}

// TestEndedLeasesServeTheQueue: tokens of an ended lease go to the acquire that has
// waited longest.
func TestEndedLeasesServeTheQueue(t *testing.T) {
	r := newRig(t, 3, nil)
	r.create("e", 30)
	r.cut["b"], r.cut["c"] = true, true
	r.lease("a", "e", 6, "x", 1000)
	r.lease("a", "e", 4, "y", 2000)
	first := r.leaseAsync("a", "e", 5, "first", 9000, 5000)
	second := r.acquireAsync("a", "e", 4, "second", 5000)
	r.advance(999)
	r.unanswered(first)
	r.advance(1)
	if a := r.answer(first); a.Code != answer.OK || a.Lease().Remaining != 9000 || a.Lease().Tokens != 5 {
		t.Errorf("the first: %+v", a)
	}
	r.unanswered(second)
	r.giveBack("a", "e", "y", 3, "g")
	r.wantCode(r.answer(second), answer.OK)
	if v := r.view("a", "e"); v.Left != 0 || v.Net != 10 {
		t.Errorf("the books are %+v", v)
	}
}

// TestDeletedEntitysLeases: leases end with their entity and give back nothing, also to
// an entity of the same name, and also if the site goes down in between.
func TestDeletedEntitysLeases(t *testing.T) {
	for _, restart := range []bool{false, true} {
		r := newRig(t, 1, nil)
		r.create("e", 5000)
		for i := range 2500 {
			r.wantCode(r.lease("a", "e", 1, id("x", i), 600_000), answer.OK)
		}
		r.step("a", &input.Change{Call: "delete", Kind: input.DeleteEntity, Name: "e", RequestID: "d", Wait: 1000})
		r.wantCode(r.answer("delete"), answer.OK)
		r.step("a", &input.Change{Call: "create", Kind: input.CreateEntity, Name: "e", Limit: 7, RequestID: "c", Wait: 1000})
		r.wantCode(r.answer("create"), answer.OK)
		r.wantCode(r.renew("a", id("x", 3), 0), answer.NoLease)
		r.wantCode(r.commit("a", id("x", 3), 0, "c3"), answer.NoLease)
		r.wantCode(r.giveBack("a", "e", id("x", 3), 0, "g3"), answer.NoLease)
		if l := r.leases("a", input.ListLeases{Entity: "e"}); len(l.Leases()) != 0 || l.More {
			t.Errorf("it has leases: %+v", l)
		}
		if restart {
			r.restart("a")
		}
		r.advance(10)
		if n := r.cores["a"].Status().Leases; n != 0 {
			t.Errorf("%d leases are left", n)
		}
		if v := r.view("a", "e"); v.Left != 7 || v.Net != 0 {
			t.Errorf("the books are %+v", v)
		}
		restored, err := r.disks["a"].Load()
		if err != nil || len(restored.Leases) != 0 {
			t.Errorf("on disk: %d, %v", len(restored.Leases), err)
		}
	}
}

// TestManyLeasesEndAtOnce: a step ends a thousand leases, and all end soon.
func TestManyLeasesEndAtOnce(t *testing.T) {
	r := newRig(t, 1, nil)
	r.create("e", 10_000)
	for i := range 3500 {
		r.wantCode(r.lease("a", "e", 1, id("x", i), 1000), answer.OK)
	}
	r.now.Tick += 1000
	for want := 2500; want > 0; want -= 1000 {
		r.step("a", input.Wake{})
		if n := r.cores["a"].Status().Leases; n != want {
			t.Fatalf("%d leases are left, want %d", n, want)
		}
		if at := r.cores["a"].WakeAt(); at != r.now.Tick+1 {
			t.Fatalf("at %d it wants to be woken at %d", r.now.Tick, at)
		}
		r.now.Tick++
	}
	r.step("a", input.Wake{})
	if v := r.view("a", "e"); v.Left != 10_000 || v.Net != 0 || r.cores["a"].Status().Leases != 0 {
		t.Errorf("the books are %+v", v)
	}
	if n := r.count(event.LeaseExpired); n != 3500 {
		t.Errorf("%d ends were told", n)
	}
}

// TestTooManyLeases: a lease beyond MaxLeases is refused, and nothing is done.
func TestTooManyLeases(t *testing.T) {
	r := newRig(t, 1, func(c *core.Config) { c.MaxLeases = 2 })
	r.create("e", 10)
	r.lease("a", "e", 1, "x", 1000)
	r.lease("a", "e", 1, "y", 2000)
	r.wantCode(r.lease("a", "e", 1, "z", 1000), answer.Overloaded)
	r.wantCode(r.acquire("a", "e", 1, "plain"), answer.OK)
	r.wantCode(r.lease("a", "e", 1, "y", 2000), answer.OK)
	if v := r.view("a", "e"); v.Left != 7 || v.Net != 3 {
		t.Errorf("the books are %+v", v)
	}
	r.advance(1000)
	r.wantCode(r.lease("a", "e", 1, "z", 1000), answer.OK)
}

// TestLeaseOutlivesItsRecord: a repeat of an acquire that is no longer remembered does
// not become a second lease of the same name.
func TestLeaseOutlivesItsRecord(t *testing.T) {
	r := newRig(t, 1, func(c *core.Config) { c.Retention = 1000 })
	r.create("e", 10)
	r.lease("a", "e", 4, "x", 100_000)
	r.advance(5000)
	r.view("a", "e")
	if n := r.cores["a"].Status().Requests; n != 0 {
		t.Fatalf("%d requests are remembered", n)
	}
	r.wantCode(r.lease("a", "e", 4, "x", 100_000), answer.Reused)
	r.now.Tick += 100_000
	r.now.Wall += 100_000
	r.wantCode(r.lease("a", "e", 3, "x", 100_000), answer.OK)
	if v := r.view("a", "e"); v.Left != 7 || v.Net != 3 || r.cores["a"].Status().Leases != 1 {
		t.Errorf("the books are %+v", v)
	}
}

// TestLeasesOutliveAClockSetAhead: a wall clock is set ahead, or set right after it was
// behind. When the site starts again, no lease ends early by more than the allowed skew.
// No lease lasts longer by more than the site was down.
func TestLeasesOutliveAClockSetAhead(t *testing.T) {
	const skew = 10_000
	for name, step := range map[string]func(r *rig){
		"while it is down":  func(r *rig) { r.now.Wall += 700_000; r.restart("a") },
		"while it runs":     func(r *rig) { r.now.Wall += 700_000; r.advance(skew); r.restart("a") },
		"again and again":   func(r *rig) { r.now.Wall += 700_000; r.restart("a"); r.restart("a"); r.restart("a") },
		"right after a lag": func(r *rig) { r.now.Wall -= 700_000; r.advance(2 * skew); r.now.Wall += 700_000; r.restart("a") },
	} {
		r := newRig(t, 1, func(cfg *core.Config) { cfg.Skew = skew })
		r.create("e", 10)
		r.wantCode(r.lease("a", "e", 10, "x", 600_000), answer.OK)
		r.advance(1000)
		began := r.now.Tick
		step(r)
		r.advance(599_000 - 2*skew - (r.now.Tick - began))
		if a := r.acquire("a", "e", 10, "early"); a.Code == answer.OK {
			t.Errorf("%s: a lease of 600 s has ended after 580 s", name)
		}
		r.advance(3 * skew)
		if a := r.acquire("a", "e", 10, "late"); a.Code != answer.OK {
			t.Errorf("%s: a lease of 600 s has not ended after 610 s: %+v", name, a)
		}
	}
}

// TestLeasesOfARestartingSiteEnd: a site that starts again and again, and grants nothing
// meanwhile, stores how far its time has come.
func TestLeasesOfARestartingSiteEnd(t *testing.T) {
	r := newRig(t, 1, func(cfg *core.Config) { cfg.Skew = 1000 })
	r.create("e", 10)
	r.wantCode(r.lease("a", "e", 10, "x", 60_000), answer.OK)
	for range 20 {
		r.advance(5000)
		r.now.Wall -= 5000 // no help from this
		r.restart("a")
	}
	if a := r.acquire("a", "e", 10, "y"); a.Code != answer.OK {
		t.Errorf("a lease of 60 s lasts for 100 s: %+v", a)
	}
}

func TestListOfLeases(t *testing.T) {
	r := newRig(t, 1, nil)
	r.create("e", 100)
	r.create("f", 100)
	want := map[[2]string][]string{}
	for i := range 30 {
		name, entity, holder := id("x", i), []string{"e", "f"}[i%2], []string{"", "h1", "h2"}[i%3]
		call := r.nextCall()
		r.step("a", &input.Acquire{
			Call: call, Entity: entity, Tokens: 1, Request: key(name),
			Lease: &input.LeaseTerms{ID: name, TTL: core.Tick(100_000 - 1000*i), Holder: holder},
		})
		r.wantCode(r.answer(call), answer.OK)
		for _, h := range slices.Compact([]string{"", holder}) {
			for _, e := range []string{"", entity} {
				want[[2]string{h, e}] = append(want[[2]string{h, e}], name)
			}
		}
	}
	check := func(when string) {
		t.Helper()
		for _, holder := range []string{"", "h1", "h2", "h3"} {
			for _, entity := range []string{"", "e", "f", "g"} {
				for _, count := range []int{1, 4, 5, 100} {
					var got []string
					q := input.ListLeases{Holder: holder, Entity: entity, Count: count}
					for more := true; more; {
						a := r.leases("a", q)
						if len(a.Leases()) > count || a.More && len(a.Leases()) != count {
							t.Fatalf("%s: a page of %d for %+v", when, len(a.Leases()), q)
						}
						for _, l := range a.Leases() {
							got = append(got, l.ID)
							q.After = l.Number
						}
						more = a.More
					}
					if w := want[[2]string{holder, entity}]; !slices.Equal(got, w) {
						t.Errorf("%s, %+v: got %v, want %v", when, q, got, w)
					}
				}
			}
		}
	}
	check("at once")
	r.restart("a")
	check("after a restart")
	call := r.nextCall()
	r.step("a", &input.ListLeases{Call: call})
	r.wantCode(r.answer(call), answer.Invalid)
	// The last two end; the wake that ends them has not come.
	r.now.Tick += 72_000
	for k, names := range want {
		want[k] = slices.DeleteFunc(names, func(n string) bool { return n == id("x", 28) || n == id("x", 29) })
	}
	check("when two have ended")
}

// TestUnvouchedSiteHasNoLeases: a site that does not serve says so.
func TestUnvouchedSiteHasNoLeases(t *testing.T) {
	r := newRig(t, 3, func(c *core.Config) { c.Run = 1 })
	for i, in := range []input.Input{
		&input.RenewLease{Call: "0"}, &input.CommitLease{Call: "1"}, &input.ListLeases{Call: "2", Count: 1}, &input.Watch{Call: "3"},
	} {
		r.step("a", in)
		r.wantCode(r.answer(fmt.Sprint(i)), answer.Unvouched)
	}
}

// TestAWakeThatGrantsALease: a wake that grants the first lease for a long time leaves
// nothing due: the clock is stored with the lease.
func TestAWakeThatGrantsALease(t *testing.T) {
	r := newRig(t, 3, func(c *core.Config) { c.Skew = 2000 })
	r.create("e", 30)
	r.cut["a"] = true
	r.wantCode(r.lease("a", "e", 5, "first", 1000), answer.OK)
	r.advance(4000)
	call := r.nextCall()
	r.step("a", &input.Acquire{
		Call: call, Entity: "e", Tokens: 20, Least: 5, Request: key("second"), Wait: 1500,
		Lease: &input.LeaseTerms{ID: "second", TTL: 60_000},
	})
	r.unanswered(call)
	r.advance(1499)
	r.now.Tick, r.now.Wall = r.now.Tick+1, r.now.Wall+1
	r.cores["a"].Step(r.now, input.Wake{})
	if at := r.cores["a"].WakeAt(); at != 0 && at <= r.now.Tick {
		t.Errorf("woken at %d, it wants to be woken at %d again", r.now.Tick, at)
	}
	r.drain("a")
	if a := r.answer(call); a.Code != answer.OK || a.Tokens != 10 {
		t.Errorf("%+v, want the 10 that are here", a)
	}
}
