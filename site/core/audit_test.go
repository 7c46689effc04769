package core_test

import (
	"testing"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
	"pgregory.net/rapid"
)

// wantSurplus checks the tokens that all sites keep out of circulation, and that the
// books are short of the limit by as many.
func (r *rig) wantSurplus(entity string, limit, want core.Tokens) {
	r.t.Helper()
	for _, name := range r.names {
		if v := r.view(name, entity); v.Surplus != want || v.Limit != limit {
			r.t.Errorf("%s has a surplus of %d of a limit of %d, want %d of %d", name, v.Surplus, v.Limit, want, limit)
		}
		if s := r.cores[name].Status().Surplus; s != want {
			r.t.Errorf("%s tells of a surplus of %d, want %d", name, s, want)
		}
	}
	if left, offered, net := r.books(entity); left+offered+net != limit-want {
		r.t.Errorf("the books add up to %d + %d + %d, want %d less %d", left, offered, net, limit, want)
	}
}

// surplus is the largest number of an entity's tokens that a site keeps out of
// circulation.
func (r *rig) surplus(entity string) core.Tokens {
	r.t.Helper()
	var most core.Tokens
	for _, name := range r.names {
		most = max(most, r.view(name, entity).Surplus)
	}
	return most
}

// TestSurplusIsFoundAfterARestart: a release of tokens never acquired is found although
// its site stops before it has told anybody, and nobody asks for tokens.
func TestSurplusIsFoundAfterARestart(t *testing.T) {
	r := newRig(t, 3, nil)
	r.create("e", 30)
	r.release("c", "e", 8, "bogus")
	r.restart("c")
	r.advance(30_000)
	r.wantSurplus("e", 30, 8)
}

// TestSurplusBesideAnEarlierOne: a release of tokens never acquired is found although as
// much was set aside before. After a restart no site knows the tokens of the others.
func TestSurplusBesideAnEarlierOne(t *testing.T) {
	r := newRig(t, 3, nil)
	r.create("e", 30)
	r.release("b", "e", 8, "bogus")
	r.advance(30_000)
	r.wantSurplus("e", 30, 8)
	r.release("c", "e", 5, "as-bogus")
	for _, site := range r.names {
		r.restart(site)
	}
	r.advance(60_000)
	r.wantSurplus("e", 30, 13)
}

// TestSurplusBehindAnOldWord: a release of tokens never acquired is found although the
// others heard of tokens out elsewhere, which have come back since.
func TestSurplusBehindAnOldWord(t *testing.T) {
	r := newRig(t, 3, nil)
	r.create("e", 30)
	r.acquire("b", "e", 8, "honest")
	r.advance(2000)
	r.release("c", "e", 8, "bogus")
	r.advance(60_000)
	r.wantSurplus("e", 30, 0)
	r.restart("b")
	r.release("b", "e", 8, "back")
	r.advance(30_000)
	r.wantSurplus("e", 30, 8)
}

// TestSurplusBehindALostReport: a release of tokens never acquired is found although the last
// report of a site that had tokens out was lost, once that site runs anew or comes up again.
func TestSurplusBehindALostReport(t *testing.T) {
	for what, back := range map[string]func(*rig){
		"runs anew": func(r *rig) { r.restart("b") },
		"comes up": func(r *rig) {
			r.step("c", input.Reachable{Sites: []core.SiteID{"a"}})
			r.step("c", input.Reachable{Sites: []core.SiteID{"a", "b"}})
		},
	} {
		t.Run(what, func(t *testing.T) {
			r := fenced(t, 3, nil)
			r.advance(1000)
			r.create("e", 30)
			r.acquire("b", "e", 8, "honest")
			r.advance(2000)
			r.loses = func(e *message.Envelope) bool { return e.Gossip != nil && e.To() == "b" }
			r.release("c", "e", 8, "bogus")
			r.advance(60_000)
			r.loses = func(e *message.Envelope) bool { return e.Gossip != nil && e.From() == "b" }
			r.release("b", "e", 8, "back")
			r.advance(60_000)
			r.loses = nil
			r.advance(60_000)
			r.wantSurplus("e", 30, 0)
			back(r)
			r.advance(30_000)
			r.wantSurplus("e", 30, 8)
		})
	}
}

// TestSurplusThatAMoveShows: a release of tokens never acquired is found although an
// entity that leaves takes along the tokens that hid the release.
func TestSurplusThatAMoveShows(t *testing.T) {
	r := newRig(t, 3, nil)
	r.below("p", "", 30)
	r.below("e", "p", 30)
	r.acquire("b", "e", 8, "honest")
	r.advance(2000)
	r.release("b", "p", 8, "bogus")
	r.advance(60_000)
	r.wantSurplus("p", 30, 0)
	for _, site := range r.names {
		r.restart(site)
	}
	r.wantCode(r.move("a", "e", "", "away"), answer.OK)
	r.advance(30_000)
	r.wantSurplus("p", 30, 8)
}

// TestSurplusIsSetAside: a release of tokens never acquired is found and kept out of
// circulation, once, under all protocols. Sites that were away or start anew keep the
// tokens out as well. Clients can acquire as much as before.
func TestSurplusIsSetAside(t *testing.T) {
	for _, protocol := range []string{"majority", "star", "auto"} {
		for _, n := range []int{1, 3} {
			r := newRig(t, n, func(c *core.Config) { c.Protocol = protocol })
			r.create("e", 30)
			last := r.names[n-1]
			r.acquire("a", "e", 3, "honest")
			r.release(last, "e", 8, "bogus")
			r.advance(8000)
			r.wantSurplus("e", 30, 5)
			if r.count(event.SurplusFound) != 1 {
				t.Errorf("found %d times", r.count(event.SurplusFound))
			}
			r.advance(60_000)
			r.wantSurplus("e", 30, 5)
			r.restart("a")
			r.wantSurplus("e", 30, 5)
			r.release("a", "e", 2, "bogus 2")
			r.acquire(last, "e", 2, "honest 2")
			r.advance(1)
			r.release("a", "e", 2, "honest 3")
			r.advance(30_000)
			r.wantSurplus("e", 30, 7)
			if a := r.answer(r.waitAndAdvance("a", "e", 30, "all")); a.Code != answer.OK {
				t.Errorf("not all can be acquired: %+v", a)
			}
			r.wantCode(r.answer(r.waitAndAdvance("a", "e", 1, "more")), answer.OutOfTokens)
			r.change("a", input.SetLimit, "e", 40, "raise")
			r.wantSurplus("e", 40, 7)
			r.wantCode(r.answer(r.waitAndAdvance(last, "e", 10, "raised")), answer.OK)
			r.change("a", input.DeleteEntity, "e", 0, "delete")
			if s := r.cores[last].Status().Surplus; s != 0 {
				t.Errorf("a deleted entity leaves a surplus of %d", s)
			}
		}
	}
}

func (r *rig) waitAndAdvance(site core.SiteID, entity string, tokens core.Tokens, id string) input.Call {
	r.t.Helper()
	call := r.acquireAsync(site, entity, tokens, id, 10_000)
	r.advance(15_000)
	return call
}

// TestNoAuditWithoutAll: while a member is away no audit proves anything. When it is back
// and the entity is busy again, an audit does.
func TestNoAuditWithoutAll(t *testing.T) {
	r := newRig(t, 3, nil)
	r.create("e", 30)
	r.cut["c"] = true
	r.release("b", "e", 5, "bogus")
	r.advance(60_000)
	if n := r.count(event.SurplusFound); n != 0 {
		t.Fatalf("found %d times", n)
	}
	delete(r.cut, "c")
	r.acquire("a", "e", 1, "x")
	r.advance(30_000)
	r.wantSurplus("e", 30, 4)
}

// TestTwoAuditsSetAsideOnce: both audits prove the same surplus.
func TestTwoAuditsSetAsideOnce(t *testing.T) {
	r := newRig(t, 3, nil)
	r.create("e", 30)
	r.release("b", "e", 5, "bogus")
	for _, name := range r.names {
		r.cores[name].Audit("e")
		r.drain(name)
	}
	r.advance(30_000)
	if n := r.count(event.SurplusFound); n < 2 {
		t.Fatalf("found %d times", n)
	}
	r.wantSurplus("e", 30, 5)
}

// TestAuditOfAMemberThatRestarts: the member does not tell of a time when it did not
// watch.
func TestAuditOfAMemberThatRestarts(t *testing.T) {
	for _, restart := range []bool{false, true} {
		r := newRig(t, 3, nil)
		r.create("e", 30)
		r.release("b", "e", 5, "bogus")
		r.cores["a"].Audit("e")
		r.drain("a")
		r.advance(flight)
		if restart {
			r.restart("c")
		}
		r.advance(3 * flight)
		if n := r.count(event.SurplusFound); (n != 0) == restart {
			t.Errorf("restart %v: found %d times", restart, n)
		}
	}
}

// TestAuditRestsOnOneWatch: a member restarts and then watches again, because of a
// duplicate. It does not tell of the second watch to an auditor that asks for the first.
func TestAuditRestsOnOneWatch(t *testing.T) {
	r := newRig(t, 3, nil)
	r.create("e", 30)
	r.release("b", "e", 5, "bogus")
	r.cores["a"].Audit("e")
	r.drain("a")
	var ask message.Envelope
	for _, s := range r.net {
		if s.e.Audit != nil && s.e.To() == "c" {
			ask = s.e
		}
	}
	r.advance(flight)
	r.restart("c")
	r.step("c", input.Deliver{From: "a", Messages: []message.Envelope{ask}})
	r.advance(3 * flight)
	if n := r.count(event.SurplusFound); n != 0 {
		t.Errorf("found %d times", n)
	}
}

// TestHonestClientsWhileAnAuditRuns: a client that acquires at a site and then releases
// at another, at any two times of an audit, is no surplus.
func TestHonestClientsWhileAnAuditRuns(t *testing.T) {
	for acquired := core.Tick(0); acquired <= 45; acquired += 5 {
		for released := acquired; released <= 45; released += 5 {
			for _, from := range []core.SiteID{"a", "b", "c"} {
				for _, to := range []core.SiteID{"a", "b", "c"} {
					r := newRig(t, 3, nil)
					r.create("e", 30)
					r.cores["a"].Audit("e")
					r.drain("a")
					r.advance(acquired)
					r.wantCode(r.acquire(from, "e", 5, "x"), answer.OK)
					r.advance(released - acquired)
					r.wantCode(r.release(to, "e", 5, "y"), answer.OK)
					r.advance(100 - released)
					if n := r.count(event.SurplusFound); n != 0 {
						t.Errorf("acquired at %s at %d, released at %s at %d: found", from, acquired, to, released)
					}
				}
			}
		}
	}
}

// TestAuditsAroundALimitChange: a site proves a surplus under the old limit, and another
// under the new limit. They do not both set it aside.
func TestAuditsAroundALimitChange(t *testing.T) {
	for change := core.Tick(0); change <= 100; change += 10 {
		for second := change; second <= 200; second += 10 {
			r := newRig(t, 3, nil)
			r.create("e", 30)
			r.release("b", "e", 5, "bogus")
			r.cores["a"].Audit("e")
			r.drain("a")
			r.advance(change)
			r.changeAsync("c", input.Change{Kind: input.SetLimit, Name: "e", Limit: 40, RequestID: "raise"})
			r.advance(second - change)
			r.cores["b"].Audit("e")
			r.drain("b")
			r.advance(20_000)
			r.wantSurplus("e", 40, 5)
		}
	}
}

// TestAuditsNeverFindMoreThanThereIs: clients acquire at one site and release at another
// all the time, some release tokens that they never had, and audits run at any time. The
// sites set aside no more than was missing at some instant, and in the end no less than
// is missing then.
func TestAuditsNeverFindMoreThanThereIs(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		const limit = 300
		r := newRig(t, 3, nil)
		r.create("e", limit)
		var out, held, missing core.Tokens
		site := rapid.SampledFrom(r.names)
		for i := range rapid.IntRange(1, 80).Draw(rt, "steps") {
			tokens := core.Tokens(rapid.IntRange(1, 20).Draw(rt, "tokens"))
			switch rapid.SampledFrom([]string{"acquire", "acquire", "release", "release", "bogus", "audit", "audit", "advance", "advance", "raise", "restart"}).Draw(rt, "op") {
			case "acquire":
				if r.acquire(site.Draw(rt, "at"), "e", tokens, id("a", i)).Code == answer.OK {
					out, held = out+tokens, held+tokens
				}
			case "release":
				if tokens = min(tokens, held); tokens > 0 {
					r.wantCode(r.release(site.Draw(rt, "at"), "e", tokens, id("r", i)), answer.OK)
					out, held = out-tokens, held-tokens
				}
			case "bogus":
				if rapid.IntRange(0, 3).Draw(rt, "rarely") == 0 {
					r.wantCode(r.release(site.Draw(rt, "at"), "e", tokens, id("r", i)), answer.OK)
					out -= tokens
				}
			case "audit":
				at := site.Draw(rt, "at")
				r.cores[at].Audit("e")
				r.drain(at)
			case "advance":
				r.advance(core.Tick(rapid.SampledFrom([]int{1, 5, 10, 11, 20, 1000}).Draw(rt, "time")))
			case "raise":
				r.changeAsync(site.Draw(rt, "at"), input.Change{Kind: input.SetLimit, Name: "e", Limit: limit, RequestID: id("l", i)})
			case "restart":
				r.restart(site.Draw(rt, "at"))
			}
			missing = max(missing, -out)
			for _, name := range r.names {
				if s := r.view(name, "e").Surplus; s > missing {
					rt.Fatalf("%s keeps out %d, no more than %d were ever missing", name, s, missing)
				}
			}
		}
		r.acquire("a", "e", 1, "wake")
		out++
		r.advance(60_000)
		surplus := r.view("a", "e").Surplus
		r.wantSurplus("e", limit, surplus)
		if surplus > missing || out+surplus < 0 {
			rt.Fatalf("%d are kept out, %d are out, %d were missing at most", surplus, out, missing)
		}
	})
}
