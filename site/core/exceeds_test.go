package core_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/samya-db/samya/internal/race"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
)

// TestMoreThanALimit: an acquire of more than the limit of any entity that it charges is
// refused at once, of whatever kind, however long it may wait. The refusal names the
// limit and its entity. Nothing is sent, nothing moves, and repeats are answered alike.
func TestMoreThanALimit(t *testing.T) {
	lease := &input.LeaseTerms{ID: "x", TTL: 60_000, Holder: "h"}
	for name, tc := range map[string]struct {
		in      input.Input
		lacking string
		limit   core.Tokens
	}{
		"its own limit":          {&input.Acquire{Entity: "org", Tokens: 301}, "org", 300},
		"of the parent":          {&input.Acquire{Entity: "leaf", Tokens: 91}, "team", 90},
		"of all above":           {&input.Acquire{Entity: "leaf", Tokens: 501}, "team", 90},
		"without a wait":         {&input.Acquire{Entity: "org", Tokens: 301}, "org", 300},
		"at the least":           {&input.Acquire{Entity: "leaf", Tokens: 400, Least: 91}, "team", 90},
		"a lease":                {&input.Acquire{Entity: "leaf", Tokens: 91, Lease: lease}, "team", 90},
		"a dry run":              {&input.Acquire{Entity: "leaf", Tokens: 91, DryRun: true}, "team", 90},
		"one of several":         {&input.AcquireAll{Parts: []input.Part{part("org", 1), part("alone", 11)}}, "alone", 10},
		"one that is told twice": {&input.AcquireAll{Parts: []input.Part{part("alone", 5), part("org", 1), part("alone", 6)}}, "alone", 10},
		"a parent of several":    {&input.AcquireAll{Parts: []input.Part{part("leaf", 50), part("second", 41)}}, "team", 90},
		"a zero limit":           {&input.Acquire{Entity: "none", Tokens: 1}, "none", 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 3, nil)
			r.chain(400, 90, 300)
			r.below("second", "team", 400)
			r.create("alone", 10)
			r.create("none", 0)
			r.advance(20_000)
			sent, events := len(r.sent), len(r.events)
			ask := func() answer.Answer {
				call := r.nextCall()
				switch in := tc.in.(type) {
				case *input.Acquire:
					next := *in
					next.Call, next.Request, next.Wait = call, key("x"), 30_000
					if name == "without a wait" {
						next.Wait = 0
					}
					r.step("a", &next)
				case *input.AcquireAll:
					next := *in
					next.Call, next.Request, next.Wait = call, key("x"), 30_000
					r.step("a", &next)
				}
				return r.answer(call)
			}
			check := func(what string) {
				a := ask()
				if a.Code != answer.ExceedsLimit || a.Tokens != tc.limit || a.Lacking != tc.lacking || a.RetryAfter != 0 {
					t.Errorf("%s: %+v, want the limit %d of %q", what, a, tc.limit, tc.lacking)
				}
			}
			check("first")
			check("again")
			if len(r.sent) != sent {
				t.Errorf("%d messages for what can never be had", len(r.sent)-sent)
			}
			r.advance(20_000)
			if n := len(r.transfers()) + len(r.events) - events; n != 0 {
				t.Errorf("tokens were looked for: %v, %+v", r.transfers(), r.events[events:])
			}
			for _, entity := range []string{"leaf", "team", "org", "second", "alone", "none"} {
				v := r.view("a", entity)
				if v.Waiting != 0 || v.Net != 0 || v.Left < v.Limit/3 || v.Left > v.Limit/3+1 {
					t.Errorf("%+v", v)
				}
			}
			r.restart("a")
			check("after a restart")
			r.change("a", input.SetLimit, tc.lacking, 1000, "raise")
			if in, ok := tc.in.(*input.Acquire); !ok || !in.DryRun {
				// A repeat gets the first answer.
				check("after the limit was raised")
			}
		})
	}
}

// TestAsMuchAsALimit: an acquire of all that the limits allow is granted.
func TestAsMuchAsALimit(t *testing.T) {
	r := newRig(t, 3, nil)
	r.chain(400, 90, 300)
	r.wantCode(r.answer(r.waitAndAdvance("a", "leaf", 90, "all")), answer.OK)
	r.wantOut("a", 90, 90, 90)
}

// TestRaisedLimitIsTaken: once the site knows of a higher limit, it grants a new request
// for as much. Before that the site goes by the limit that it knows.
func TestRaisedLimitIsTaken(t *testing.T) {
	r := newRig(t, 3, nil)
	r.create("e", 30)
	r.advance(20_000)
	r.cut["c"] = true
	r.wantCode(r.change("a", input.SetLimit, "e", 300, "raise"), answer.OK)
	r.wantCode(r.answer(r.acquireAsync("c", "e", 100, "early", 10_000)), answer.ExceedsLimit)
	r.wantCode(r.answer(r.waitAndAdvance("a", "e", 100, "in time")), answer.OK)
	r.cut["c"] = false
	r.advance(30_000)
	r.wantCode(r.answer(r.waitAndAdvance("c", "e", 100, "new")), answer.OK)
	r.wantCode(r.acquire("c", "e", 100, "early"), answer.ExceedsLimit)
}

// TestContentWithLessThanALimit: an acquire of more than the limit that is content with
// less gets the tokens left. To others it is an acquire of as many as the limit.
func TestContentWithLessThanALimit(t *testing.T) {
	run := func(tokens core.Tokens) *rig {
		r := newRig(t, 3, nil)
		r.chain(900, 90, 300)
		ask := func(dry bool) answer.Answer {
			call := r.nextCall()
			r.step("a", &input.Acquire{Call: call, Entity: "leaf", Tokens: tokens, Least: 2, DryRun: dry, Request: key("x"), Wait: 5000})
			r.advance(5000)
			return r.answer(call)
		}
		if a := ask(true); a.Code != answer.OK || a.Tokens != 30 {
			t.Errorf("told %+v, want the 30 that are here", a)
		}
		if a := ask(false); a.Code != answer.OK || a.Tokens != 90 {
			t.Errorf("%+v, want as many as the limit of the team", a)
		}
		r.wantOut("a", 90, 90, 90)
		return r
	}
	more, asMany := run(500), run(90)
	if !reflect.DeepEqual(more.sent, asMany.sent) || !reflect.DeepEqual(more.events, asMany.events) {
		t.Errorf("%d messages, %d events; for as many as the limit %d and %d, or others", len(more.sent), len(more.events), len(asMany.sent), len(asMany.events))
	}
}

// TestLimitFallsBelowWhatWaits: an acquire that waits for more than a new limit is
// refused when the limit comes into force, also if it waits for another entity. An
// acquire that is content with less goes on and asks for no more than the limit.
func TestLimitFallsBelowWhatWaits(t *testing.T) {
	r := newRig(t, 3, nil)
	r.chain(600, 300, 300)
	r.advance(20_000)
	for _, site := range r.names {
		r.wantCode(r.acquire(site, "org", 100, "all "+string(site)), answer.OK)
	}
	r.cut["c"] = true
	least, wait := r.nextCall(), core.Tick(60_000)
	r.step("c", &input.Acquire{Call: least, Entity: "team", Tokens: 250, Least: 20, Request: key("least"), Wait: wait})
	tooMany, several := r.acquireAsync("c", "leaf", 51, "too many", wait), r.allAsync("c", "several", wait, part("leaf", 26), part("team", 25))
	fits := r.acquireAsync("c", "leaf", 50, "fits", wait)
	ofOrg := r.acquireAsync("c", "org", 70, "of org alone", wait)
	waiting := []input.Call{least, tooMany, several, fits, ofOrg}
	for _, call := range waiting {
		r.unanswered(call)
	}
	asked := func() core.Tokens { return r.cores["c"].Asked("team") + r.cores["c"].Asked("org") }
	if n := asked(); n != 250+51+51+50+70 {
		t.Errorf("%d asked for", n)
	}
	r.wantCode(r.change("a", input.SetLimit, "team", 50, "lower"), answer.OK)
	r.cut["c"] = false
	for range 20_000 {
		// Nothing is heard of the entity that the acquires wait for.
		r.net = slices.DeleteFunc(r.net, func(s sent) bool { return s.e.Entity == "org" })
		if r.advance(1); r.view("c", "team").Limit == 50 {
			break
		}
	}
	for _, call := range waiting {
		switch call {
		case tooMany, several:
			if a := r.answer(call); a.Code != answer.ExceedsLimit || a.Tokens != 50 || a.Lacking != "team" {
				t.Errorf("%+v, want the limit of team", a)
			}
		default:
			r.unanswered(call)
		}
	}
	if n := asked(); n != 50+50+70 {
		t.Errorf("%d asked for", n)
	}
	r.wantCode(r.acquire("c", "leaf", 51, "too many"), answer.ExceedsLimit)
	r.release("c", "org", 60, "back")
	r.wantCode(r.answer(fits), answer.OK)
	r.release("c", "leaf", 50, "what fits")
	for _, call := range []input.Call{least, fits} {
		if a := r.answer(call); a.Code != answer.OK || a.Tokens != 50 {
			t.Errorf("%+v, want all that the limit allows", a)
		}
	}
}

// TestMoveBelowALowLimit: a waiting acquire is refused once its entity stands below an
// entity of a lower limit.
func TestMoveBelowALowLimit(t *testing.T) {
	inGroves(t, func(_ *testing.T, g *grove) {
		g.grow("small", "", 24)
		tooMany, few := g.waits("e", 25), g.waits("e", 24)
		g.moveBelow("e", "small")
		if a := g.answer(tooMany); a.Code != answer.ExceedsLimit || a.Tokens != 24 || a.Lacking != "small" {
			g.t.Errorf("%+v, want the limit of small", a)
		}
		g.unanswered(few)
	})
}

// TestExcessIsUndone: a refusal for a limit binds all attempts. Tokens that an earlier
// attempt took at another site, under another limit, are given back.
func TestExcessIsUndone(t *testing.T) {
	r := newRig(t, 3, nil)
	r.create("e", 300)
	r.advance(20_000)
	r.cut["c"] = true
	r.wantCode(r.change("a", input.SetLimit, "e", 60, "lower"), answer.OK)
	r.base = r.now.Wall
	r.wantCode(r.try("c", 90, "x", r.tries(1)), answer.OK)
	r.wantCode(r.try("a", 90, "x", r.tries(2, "c")), answer.ExceedsLimit)
	r.cut["c"] = false
	r.advance(20_000)
	if left, offered, net := r.books("e"); left != 60 || offered != 0 || net != 0 {
		t.Errorf("books %d, %d, %d", left, offered, net)
	}
	r.wantClaims(0)
}

// play runs a random story, the same story for a seed, with or without acquires beyond a
// limit. It returns the messages between the sites and the answers to clients.
func play(t *testing.T, seed uint64, excess bool) (messages []message.Envelope, answers map[input.Call]answer.Answer, events []event.Event, refused int) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 3))
	r := newRig(t, 3, func(c *core.Config) {
		c.Protocol = []string{"majority", "star", "auto"}[seed%3]
		c.Admission = []string{"wait", "proof", "refuse"}[seed/3%3]
	})
	r.chain(200, 120, 160)
	r.below("second", "team", 200)
	r.create("other", 60)
	names := []string{"leaf", "second", "team", "org", "other"}
	for i := range 300 {
		site, name := r.names[rnd.IntN(3)], names[rnd.IntN(len(names))]
		tokens, wait := core.Tokens(1+rnd.IntN(30)), core.Tick(rnd.IntN(2)*rnd.IntN(4000))
		kind, more := rnd.IntN(20), core.Tokens(1+rnd.IntN(50))
		switch {
		case kind < 8:
			r.acquireAsync(site, name, tokens, id("acquire", i), wait)
		case kind < 12:
			r.release(site, name, tokens, id("release", i))
		case kind < 13:
			r.changeAsync(site, input.Change{Kind: input.SetLimit, Name: name, Limit: core.Tokens(40 + rnd.IntN(160)), RequestID: id("limit", i)})
		case kind < 14:
			r.cut[site] = !r.cut[site]
		default:
			r.advance(core.Tick(rnd.IntN(400)))
		}
		most := input.MaxTokens
		for up := name; up != ""; {
			v := r.view(site, up)
			most, up = min(most, v.Limit), v.Parent
		}
		if !excess {
			continue
		}
		call := input.Call(fmt.Sprint("excess ", i))
		in := input.Acquire{Call: call, Entity: name, Tokens: most + more, Request: key(fmt.Sprint(call)), Wait: 4000}
		switch more % 5 {
		case 0:
			in.DryRun = true
		case 1:
			in.Lease = &input.LeaseTerms{ID: fmt.Sprint(call), TTL: 1000}
		case 2:
			in.Least, in.Tokens = most+1, most+more
		}
		if more%5 == 3 {
			r.step(site, &input.AcquireAll{Call: call, Parts: []input.Part{part(name, most), part(name, more)}, Request: in.Request, Wait: 4000})
		} else {
			r.step(site, &in)
		}
		r.wantCode(r.answer(call), answer.ExceedsLimit)
		delete(r.answers, call)
		refused++
	}
	r.advance(5000)
	return r.sent, r.answers, r.events, refused
}

// TestExcessLeavesNoTrace: acquires beyond a limit change no message, no redistribution
// and no answer to another client: they are no demand.
func TestExcessLeavesNoTrace(t *testing.T) {
	race.OneGoroutine(t)
	for seed := range uint64(45) {
		want, wantAnswers, wantEvents, _ := play(t, seed, false)
		got, answers, events, refused := play(t, seed, true)
		if refused != 300 {
			t.Fatalf("seed %d: %d asked for", seed, refused)
		}
		for i := range min(len(got), len(want)) {
			if !reflect.DeepEqual(got[i], want[i]) {
				t.Fatalf("seed %d: message %d is %+v, without %+v", seed, i, got[i], want[i])
			}
		}
		if len(got) != len(want) || !reflect.DeepEqual(events, wantEvents) || !reflect.DeepEqual(answers, wantAnswers) {
			t.Fatalf("seed %d: %d messages, %d events and %d answers, without %d, %d and %d, or others",
				seed, len(got), len(events), len(answers), len(want), len(wantEvents), len(wantAnswers))
		}
	}
}
