package core_test

import (
	"testing"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/transfer"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
)

// TestCatchUpIsPaced: however many late messages a site gets, it asks for the catalogue
// once at a time. However often it asks, it gets one answer. It asks again after a loss
// on the way.
func TestCatchUpIsPaced(t *testing.T) {
	r := newRig(t, 3, nil)
	r.create("first", 900)
	r.cut["c"] = true
	for i := range 100 {
		r.changeAsync("a", input.Change{Kind: input.CreateEntity, Name: id("e", i), Limit: 1000, RequestID: id("create", i), Wait: 60_000})
	}
	r.advance(5000)
	delete(r.cut, "c")
	r.net, r.sent = nil, nil
	count := func(kind avantan.Kind) (n int) {
		for _, e := range r.sent {
			if e.Entity == "" && e.Message.Kind == kind && (e.From() == "c" || e.To() == "c") {
				n++
			}
		}
		return n
	}
	for i := range 100 {
		m := transfer.Message{Kind: transfer.Ask, From: "a", To: "c", Ask: 1, Amount: 5}
		r.step("c", input.Deliver{From: "a", Messages: []message.Envelope{{Entity: id("e", i), Generation: uint64(2 + i), Transfer: &m}}})
	}
	if n := count(avantan.CatchUpAsk); n != 1 {
		t.Errorf("100 late messages have the site ask %d times", n)
	}
	// The ask is lost, and a later message has the site ask again.
	r.net, r.sent = nil, nil
	r.advance(1000)
	ask := message.Envelope{Message: avantan.Message{Kind: avantan.CatchUpAsk, From: "c", To: "a", Applied: 1}}
	r.net, r.sent = nil, nil
	for range 100 {
		r.step("a", input.Deliver{From: "c", Messages: []message.Envelope{ask}})
	}
	if n := count(avantan.CatchUp); n != 1 {
		t.Errorf("100 asks are answered %d times", n)
	}
	r.net = nil
	r.advance(10_000)
	if _, err := r.find("c", id("e", 99)); err != nil {
		t.Errorf("the site never catches up: %v", err)
	}
}

// TestClaimsOnALostMember: claims on a member that is lost for good are given up in the
// end, so that repeats are not refused for ever.
func TestClaimsOnALostMember(t *testing.T) {
	r := newRig(t, 3, func(c *core.Config) { c.MaxClaims = 10 })
	r.create("e", 9000)
	r.cut["c"] = true
	repeat := func(name string) answer.Code {
		call := r.nextCall()
		r.step("a", &input.Acquire{
			Call: call, Entity: "e", Tokens: 1, Request: key(name),
			Tries: input.Tries{Attempt: attempt.Of(2, 0), NotAfter: r.now.Wall + 60_000},
		})
		r.advance(100)
		return r.answer(call).Code
	}
	for i := range 10 {
		r.wantCode(answer.Answer{Code: repeat(id("x", i))}, answer.OK)
	}
	if got := repeat("too soon"); got != answer.Overloaded {
		t.Errorf("beyond the bound: %v", got)
	}
	release := r.nextCall()
	r.advance(600_000)
	for i := range 25 {
		got := repeat(id("y", i))
		if want := map[bool]answer.Code{true: answer.OK, false: answer.Overloaded}[i < 10]; got != want {
			t.Errorf("repeat %d, long after: %v, want %v", i, got, want)
		}
		if n := r.cores["a"].Status().Claims; n > 20 {
			t.Errorf("%d claims are open", n)
		}
	}
	_ = release
	if given, full := r.count(event.ClaimGivenUp), r.count(event.ClaimsFull); given != 10 || full != 1 {
		t.Errorf("%d claims are given up, and it is told %d times that there are too many", given, full)
	}
}

// TestReleaseOnALostMember: a parked release is given up after acquires, and is then not
// counted: the lost member may have counted it.
func TestReleaseOnALostMember(t *testing.T) {
	r := newRig(t, 3, func(c *core.Config) { c.MaxClaims = 2 })
	r.create("e", 9000)
	r.wantCode(r.acquire("a", "e", 10, "mine"), answer.OK)
	r.cut["c"] = true
	tries := func() input.Tries { return input.Tries{Attempt: attempt.Of(2, 0), NotAfter: r.now.Wall + 60_000} }
	step := func(in input.Input) {
		r.step("a", in)
		r.advance(100)
	}
	step(&input.Release{Call: "release", Entity: "e", Tokens: 4, Request: key("release"), Tries: tries()})
	step(&input.Acquire{Call: "one", Entity: "e", Tokens: 1, Request: key("one"), Tries: tries()})
	net := r.view("a", "e").Net
	r.advance(700_000)
	step(&input.Acquire{Call: "two", Entity: "e", Tokens: 1, Request: key("two"), Tries: tries()})
	if got := r.view("a", "e").Net; got != net+1 {
		t.Errorf("net %d, want %d", got, net+1)
	}
	r.advance(700_000)
	step(&input.Acquire{Call: "three", Entity: "e", Tokens: 1, Request: key("three"), Tries: tries()})
	step(&input.Acquire{Call: "four", Entity: "e", Tokens: 1, Request: key("four"), Tries: tries()})
	for _, call := range []input.Call{"release", "one", "two", "three", "four"} {
		r.wantCode(r.answer(call), answer.OK)
	}
	delete(r.cut, "c")
	r.advance(60_000)
	if got := r.view("a", "e").Net; got != 14 {
		t.Errorf("in the end %d are out at a, want 10 and 4 acquires, and the release not counted", got)
	}
}

// TestCreatedWithoutAMember: the answer tells that a member's share of a new entity is of
// no use.
func TestCreatedWithoutAMember(t *testing.T) {
	r := newRig(t, 3, nil)
	r.cut["c"] = true
	r.reach("a", "b")
	r.create("e", 90)
	if n := r.count(event.CreatedWithout); n != 1 {
		t.Errorf("told %d times", n)
	}
}
