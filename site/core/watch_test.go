package core_test

import (
	"testing"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
)

func (r *rig) watch(site core.SiteID, entity string, after input.Revision) input.Call {
	call := r.nextCall()
	r.step(site, &input.Watch{Call: call, Entity: entity, After: after})
	return call
}

func TestWatchTellsThePresentStateAndEachLaterOne(t *testing.T) {
	r := newRig(t, 1, nil)
	r.create("vm", 10)
	first := r.answer(r.watch("a", "vm", 0))
	if first.Code != answer.OK || first.View().Left != 10 || first.Revision == 0 {
		t.Fatalf("the present state: %+v", first)
	}
	next := r.watch("a", "vm", first.Revision)
	r.unanswered(next)
	r.acquire("a", "vm", 3, "q1")
	second := r.answer(next)
	if second.View().Left != 7 || second.View().Net != 3 || second.Revision <= first.Revision {
		t.Errorf("after an acquire: %+v, before it revision %d", second, first.Revision)
	}
	// A watcher that has missed the state is told at once, any other waits.
	if a := r.answer(r.watch("a", "vm", first.Revision)); a.View().Left != 7 || a.Revision != second.Revision {
		t.Errorf("behind the first: %+v", a)
	}
	third := r.watch("a", "vm", second.Revision)
	r.unanswered(third)
	r.change("a", input.SetLimit, "vm", 12, "limit")
	if a := r.answer(third); a.View().Limit != 12 || a.View().Version != 2 {
		t.Errorf("after a change of the limit: %+v", a)
	}
}

// TestWatchTellsWholeTransactions: several inputs of a batch make one revision, and no
// watcher is told half of it.
func TestWatchTellsWholeTransactions(t *testing.T) {
	r := newRig(t, 1, nil)
	r.create("vm", 10)
	c := r.cores["a"]
	seen := r.answer(r.watch("a", "vm", 0)).Revision
	c.Step(r.now, &input.Watch{Call: "early", Entity: "vm", After: seen})
	c.Step(r.now, &input.Acquire{Call: "q1", Entity: "vm", Tokens: 1, Request: key("q1")})
	c.Step(r.now, &input.Watch{Call: "between", Entity: "vm"})
	c.Step(r.now, &input.Acquire{Call: "q2", Entity: "vm", Tokens: 2, Request: key("q2")})
	r.drain("a")
	for _, call := range []input.Call{"early", "between"} {
		if a := r.answer(call); a.View().Net != 3 || a.Revision <= seen {
			t.Errorf("%v is told %+v", call, a)
		}
	}
}

// TestWatchLosesNoChangeOfItsOwnBatch: a later input of the batch may change a state told
// at once. The new state has a later revision.
func TestWatchLosesNoChangeOfItsOwnBatch(t *testing.T) {
	r := newRig(t, 1, nil)
	r.create("vm", 10)
	c := r.cores["a"]
	c.Step(r.now, &input.Watch{Call: "first", Entity: "vm"})
	c.Step(r.now, &input.Acquire{Call: "q1", Entity: "vm", Tokens: 1, Request: key("q1")})
	r.drain("a")
	first := r.answer("first")
	if second := r.answer(r.watch("a", "vm", first.Revision)); second.View().Net != 1 {
		t.Errorf("told %+v, and then %+v", first, second)
	}
}

func TestWatchEnds(t *testing.T) {
	r := newRig(t, 1, func(c *core.Config) { c.MaxWatchers = 2 })
	r.create("vm", 10)
	r.wantCode(r.answer(r.watch("a", "none", 0)), answer.NotFound)
	seen := r.answer(r.watch("a", "vm", 0))
	one, two := r.watch("a", "vm", seen.Revision), r.watch("a", "vm", seen.Revision)
	r.wantCode(r.answer(r.watch("a", "vm", seen.Revision)), answer.Overloaded)
	if got := r.cores["a"].Status().Watchers; got != 2 {
		t.Errorf("%d watchers, want 2", got)
	}
	r.step("a", &input.Cancel{Call: one})
	three := r.watch("a", "vm", seen.Revision)
	r.change("a", input.DeleteEntity, "vm", 0, "delete")
	r.unanswered(one)
	for _, call := range []input.Call{two, three} {
		if a := r.answer(call); !a.Deleted || a.View().Name != "vm" || a.View().Generation != seen.View().Generation {
			t.Errorf("after the deletion: %+v", a)
		}
	}
	// An entity created anew under the same name has later revisions.
	r.wantCode(r.change("a", input.CreateEntity, "vm", 20, "create vm anew"), answer.OK)
	again := r.answer(r.watch("a", "vm", seen.Revision))
	if again.View().Limit != 20 || again.View().Generation <= seen.View().Generation {
		t.Errorf("created anew: %+v", again)
	}
	last := r.watch("a", "vm", again.Revision)
	r.step("a", input.Stop{})
	r.wantCode(r.answer(last), answer.Stopping)
	r.wantCode(r.answer(r.watch("a", "vm", 0)), answer.Stopping)
	if got := r.cores["a"].Status().Watchers; got != 0 {
		t.Errorf("%d watchers after the stop", got)
	}
}

func TestWatchTellsOfWaitingButNotOfGossip(t *testing.T) {
	r := newRig(t, 3, nil)
	r.create("vm", 9)
	r.acquire("b", "vm", 1, "busy")
	r.acquire("a", "vm", 3, "all")
	r.advance(20_000)
	seen := r.answer(r.watch("a", "vm", 0))
	call := r.watch("a", "vm", seen.Revision)
	r.step("a", input.Deliver{From: "b", Messages: []message.Envelope{{Gossip: &message.Gossip{
		From: "b", To: "a", Summaries: []message.Summary{{Entity: "vm", Generation: seen.View().Generation, Left: 1}},
	}}}})
	r.unanswered(call)
	r.acquireAsync("a", "vm", 8, "waits", 5000)
	if a := r.answer(call); a.View().Waiting != 1 {
		t.Errorf("told %+v, one waits", a)
	}
	next := r.watch("a", "vm", r.answer(call).Revision)
	r.advance(10_000)
	for r.answer(next).View().Waiting != 0 {
		next = r.watch("a", "vm", r.answer(next).Revision)
	}
}

// TestWatchTellsOfWhoNoLongerWaits: a change of who waits is told also if nobody watched
// when it happened.
func TestWatchTellsOfWhoNoLongerWaits(t *testing.T) {
	r := newRig(t, 3, nil)
	r.create("vm", 9)
	r.cut["b"], r.cut["c"] = true, true
	waits := r.acquireAsync("a", "vm", 8, "waits", 60_000)
	seen := r.answer(r.watch("a", "vm", 0))
	if seen.View().Waiting != 1 {
		t.Fatalf("told %+v, one waits", seen)
	}
	r.step("a", &input.Cancel{Call: waits})
	if next := r.answer(r.watch("a", "vm", seen.Revision)); next.View().Waiting != 0 || next.Revision <= seen.Revision {
		t.Errorf("told %+v, nobody waits", next)
	}
}

func TestReadTellsWhatOthersHaveToldAndItsAge(t *testing.T) {
	r := newRig(t, 3, nil)
	r.create("vm", 90)
	for _, o := range r.view("a", "vm").Others {
		if o.Age != answer.Never {
			t.Errorf("before any gossip: %+v", o)
		}
	}
	r.acquire("b", "vm", 7, "q1")
	r.advance(3000)
	r.cut["b"] = true
	r.advance(4000)
	others := r.view("a", "vm").Others
	if len(others) != 2 || others[0].Site != "b" || others[1].Site != "c" {
		t.Fatalf("others: %+v", others)
	}
	if b := others[0]; b.Left != 23 || b.Net != 7 || b.Age < 4000 || b.Age > 6000 {
		t.Errorf("of b, that is cut off: %+v", b)
	}
	if c := others[1]; c.Age > 2000 || c.Left != 30 {
		t.Errorf("of c, that tells each second: %+v", c)
	}
}

func TestReadTellsOfMoves(t *testing.T) {
	r := newRig(t, 2, nil)
	r.create("vm", 20)
	r.acquireAsync("a", "vm", 12, "more than its share", 5000)
	r.advance(5)
	r.advance(2 * flight)
	m := r.view("b", "vm").Moves
	if len(m.Sent) != 1 || m.Sent[0].Site != "a" || m.Sent[0].Seq != 1 || m.Sent[0].Tokens < 2 {
		t.Errorf("b has sent: %+v", m)
	}
	r.advance(5000)
	if m := r.view("b", "vm").Moves; len(m.Sent) != 1 || m.Sent[0].Tokens != 0 {
		t.Errorf("b, acknowledged: %+v", m)
	}
	if m := r.view("a", "vm").Moves; len(m.Received) != 1 || m.Received[0].Site != "b" || m.Received[0].Seq != 1 {
		t.Errorf("a has received: %+v", m)
	}
}
