package core_test

import (
	"fmt"
	"testing"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/internal/race"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
)

func TestAnswersOfChanges(t *testing.T) {
	r := newRig(t, 3, nil)
	r.create("e", 10)
	created := r.view("b", "e")
	for _, tc := range []struct {
		name string
		at   core.SiteID
		ch   input.Change
		want answer.Code
	}{
		{"exists", "b", input.Change{Kind: input.CreateEntity, Name: "e", Limit: 5, RequestID: "1"}, answer.Exists},
		{"repeated elsewhere", "c", input.Change{Kind: input.CreateEntity, Name: "e", Limit: 10, RequestID: "create e"}, answer.OK},
		{"id of another limit", "c", input.Change{Kind: input.CreateEntity, Name: "e", Limit: 11, RequestID: "create e"}, answer.Reused},
		{"id of another name", "c", input.Change{Kind: input.CreateEntity, Name: "f", Limit: 10, RequestID: "create e"}, answer.Reused},
		{"id of another kind", "c", input.Change{Kind: input.DeleteEntity, Name: "e", RequestID: "create e"}, answer.Reused},
		{"negative limit", "a", input.Change{Kind: input.CreateEntity, Name: "f", Limit: -1, RequestID: "2"}, answer.Invalid},
		{"limit too large", "a", input.Change{Kind: input.SetLimit, Name: "e", Limit: input.MaxTokens + 1, RequestID: "3"}, answer.Invalid},
		{"no id", "a", input.Change{Kind: input.CreateEntity, Name: "f", Limit: 1}, answer.Invalid},
		{"delete what is not there", "a", input.Change{Kind: input.DeleteEntity, Name: "f", RequestID: "4"}, answer.NotFound},
		{"delete another generation", "a", input.Change{Kind: input.DeleteEntity, Name: "e", Expected: created.Generation + 1, RequestID: "5"}, answer.Mismatch},
		{"limit what is not there", "a", input.Change{Kind: input.SetLimit, Name: "f", Limit: 1, RequestID: "6"}, answer.NotFound},
		{"limit", "b", input.Change{Kind: input.SetLimit, Name: "e", Limit: 20, Expected: 1, RequestID: "7"}, answer.OK},
		{"limit again", "c", input.Change{Kind: input.SetLimit, Name: "e", Limit: 20, Expected: 1, RequestID: "7"}, answer.OK},
		{"id of another limit", "c", input.Change{Kind: input.SetLimit, Name: "e", Limit: 21, Expected: 1, RequestID: "7"}, answer.Reused},
		{"id of another version", "c", input.Change{Kind: input.SetLimit, Name: "e", Limit: 20, Expected: 2, RequestID: "7"}, answer.Reused},
		{"limit of another version", "a", input.Change{Kind: input.SetLimit, Name: "e", Limit: 30, Expected: 1, RequestID: "8"}, answer.Mismatch},
		{"mismatch again", "b", input.Change{Kind: input.SetLimit, Name: "e", Limit: 30, Expected: 1, RequestID: "8"}, answer.Mismatch},
		{"limit of any version", "c", input.Change{Kind: input.SetLimit, Name: "e", Limit: 25, RequestID: "9"}, answer.OK},
		{"delete", "c", input.Change{Kind: input.DeleteEntity, Name: "e", Expected: created.Generation, RequestID: "10"}, answer.OK},
		{"delete again", "a", input.Change{Kind: input.DeleteEntity, Name: "e", Expected: created.Generation, RequestID: "10"}, answer.OK},
		{"created before", "b", input.Change{Kind: input.CreateEntity, Name: "e", Limit: 10, RequestID: "create e"}, answer.OK},
		{"create anew", "b", input.Change{Kind: input.CreateEntity, Name: "e", Limit: 3, RequestID: "11"}, answer.OK},
	} {
		call := r.changeAsync(tc.at, tc.ch)
		r.advance(2000)
		if a := r.answer(call); a.Code != tc.want {
			t.Errorf("%s: %+v, want %v", tc.name, a, tc.want)
		}
	}
	for _, site := range r.names {
		if v := r.view(site, "e"); v.Limit != 3 || v.Version != 1 || v.Generation <= created.Generation || v.Left != 1 {
			t.Errorf("%s: %+v", site, v)
		}
	}
}

// TestSharesOfACreation: equal shares, the remainder to the first sites.
func TestSharesOfACreation(t *testing.T) {
	r := newRig(t, 3, nil)
	for _, limit := range []core.Tokens{0, 1, 2, 3, 10, input.MaxTokens} {
		name := fmt.Sprint("e", limit)
		r.create(name, limit)
		for i, site := range r.names {
			want := limit / 3
			if core.Tokens(i) < limit%3 {
				want++
			}
			if v := r.view(site, name); v.Left != want {
				t.Errorf("of %d, %s has %d, want %d", limit, site, v.Left, want)
			}
		}
	}
}

// TestChangesInACrash: a change answered by nobody is found by its id.
func TestChangesInACrash(t *testing.T) {
	r := newRig(t, 3, nil)
	call := r.changeAsync("a", input.Change{Kind: input.CreateEntity, Name: "e", Limit: 9, RequestID: "x"})
	// Its leader is cut off after its Accept-Value has left.
	r.advance(2*flight + 1)
	r.cut["a"] = true
	r.advance(5000)
	r.wantCode(r.answer(call), answer.Unknown)
	again := r.changeAsync("b", input.Change{Kind: input.CreateEntity, Name: "e", Limit: 9, RequestID: "x"})
	r.advance(5000)
	if a := r.answer(again); a.Code != answer.OK || a.View().Generation != 1 {
		t.Errorf("the repeat at another site: %+v", a)
	}
	delete(r.cut, "a")
	r.restart("a")
	r.advance(10_000)
	last := r.changeAsync("a", input.Change{Kind: input.CreateEntity, Name: "e", Limit: 9, RequestID: "x"})
	r.wantCode(r.answer(last), answer.OK)
	if left, _, _ := r.books("e"); left != 9 {
		t.Errorf("%d tokens", left)
	}
}

// TestNoQuorumMeansNothingDone: a change answered with NoQuorum is not decided when the
// site is back, at whatever point of the protocol's back-offs its time was up.
func TestNoQuorumMeansNothingDone(t *testing.T) {
	for wait := core.Tick(1); wait < 9000; wait += 97 {
		r := newRig(t, 3, nil)
		r.create("e", 9)
		r.cut["a"] = true
		create := r.changeAsync("a", input.Change{Kind: input.CreateEntity, Name: "f", Limit: 9, RequestID: "f", Wait: wait})
		limit := r.changeAsync("a", input.Change{Kind: input.SetLimit, Name: "e", Limit: 90, RequestID: "l", Wait: wait})
		r.advance(wait)
		delete(r.cut, "a")
		r.advance(20_000)
		for _, call := range []input.Call{create, limit} {
			a := r.answer(call)
			if a.Code != answer.NoQuorum && a.Code != answer.Unknown && a.Code != answer.OK {
				t.Errorf("wait %d: %v", wait, a.Code)
			}
			done := r.view("b", "e").Limit == 90
			if call == create {
				_, err := r.find("b", "f")
				done = err == nil
			}
			if done && a.Code == answer.NoQuorum || !done && a.Code == answer.OK {
				t.Fatalf("wait %d: answered %v, done %v", wait, a.Code, done)
			}
		}
	}
}

func (r *rig) find(site core.SiteID, entity string) (answer.View, error) {
	call := r.nextCall()
	r.step(site, &input.Read{Call: call, Entity: entity})
	a := r.answers[call]
	if a.Code != answer.OK {
		return answer.View{}, fmt.Errorf("%v", a.Code)
	}
	return *a.View(), nil
}

// TestNoQuorum: a site cut off for good answers in time, and plainly.
func TestNoQuorum(t *testing.T) {
	r := newRig(t, 3, nil)
	r.create("e", 9)
	r.cut["a"] = true
	for i := range 20 {
		wait := core.Tick(100 + 400*i)
		create := r.changeAsync("a", input.Change{Kind: input.CreateEntity, Name: "f", Limit: 9, RequestID: id("f", i), Wait: wait})
		limit := r.changeAsync("a", input.Change{Kind: input.SetLimit, Name: "e", Limit: 90, RequestID: id("l", i), Wait: wait})
		r.advance(wait + 500)
		r.wantCode(r.answer(create), answer.NoQuorum)
		r.wantCode(r.answer(limit), answer.NoQuorum)
	}
	if st := r.cores["a"].Status(); st.Changes != 0 {
		t.Errorf("%+v", st)
	}
}

func TestPendingChangesAreJoinedAndBounded(t *testing.T) {
	r := newRig(t, 3, func(c *core.Config) { c.MaxChanges = 2 })
	r.create("e", 9)
	r.cut["a"] = true
	for _, kind := range []input.ChangeKind{input.CreateEntity, input.SetLimit} {
		name := map[input.ChangeKind]string{input.CreateEntity: "f", input.SetLimit: "e"}[kind]
		ask := func(id string, limit core.Tokens) input.Call {
			return r.changeAsync("a", input.Change{Kind: kind, Name: name, Limit: limit, RequestID: id, Wait: 60_000})
		}
		first := ask("1", 5)
		same := ask("1", 5)
		r.wantCode(r.answer(ask("1", 6)), answer.Reused)
		second := ask("2", 7)
		r.wantCode(r.answer(ask("3", 8)), answer.Overloaded)
		r.unanswered(first)
		r.cut["a"] = false
		r.advance(20_000)
		for _, call := range []input.Call{first, same} {
			r.wantCode(r.answer(call), answer.OK)
		}
		if a := r.answer(second); kind == input.SetLimit && a.Code != answer.OK || kind == input.CreateEntity && a.Code != answer.Exists {
			t.Errorf("the second %s: %+v", kind, a)
		}
		r.cut["a"] = true
	}
}

// TestRecreation: messages of a deleted entity have no effect on a new entity of the same
// name.
func TestRecreation(t *testing.T) {
	r := newRig(t, 3, nil)
	r.create("e", 9)
	r.acquireAsync("a", "e", 6, "x", 3000)
	r.advance(3000)
	old := r.sent
	r.wantCode(r.change("b", input.DeleteEntity, "e", 0, "d"), answer.OK)
	r.wantCode(r.change("c", input.CreateEntity, "e", 30, "again"), answer.OK)
	for round := range 3 {
		for _, e := range old {
			if e.Entity == "e" {
				r.step(e.To(), input.Deliver{From: e.From(), Messages: []message.Envelope{e}})
			}
		}
		r.advance(5000)
		for _, site := range r.names {
			if v := r.view(site, "e"); v.Left != 10 || v.Net != 0 || v.Offered != 0 || v.Applied != 0 || v.Limit != 30 {
				t.Fatalf("round %d: %s has %+v", round, site, v)
			}
		}
	}
	// A site that has not heard of the deletion learns of it by the messages.
	r.cut["c"] = true
	r.wantCode(r.change("b", input.DeleteEntity, "e", 0, "d2"), answer.OK)
	r.wantCode(r.change("b", input.CreateEntity, "e", 3, "third"), answer.OK)
	delete(r.cut, "c")
	call := r.acquireAsync("a", "e", 3, "y", 5000)
	r.advance(5000)
	r.wantCode(r.answer(call), answer.OK)
	if v := r.view("c", "e"); v.Limit != 3 || v.Net != 0 {
		t.Errorf("c has %+v", v)
	}
}

// TestForeignMessages: a message of a foreign sender, receiver or ballot, or of an
// unknown kind, is a fault and moves no tokens.
func TestForeignMessages(t *testing.T) {
	r := newRig(t, 3, nil)
	r.create("e", 9)
	for _, e := range []message.Envelope{
		{Entity: "e", Generation: 1, Message: avantan.Message{Kind: avantan.Election, From: "b", To: "a", Instance: 1, Ballot: avantan.Ballot{Number: 9, Site: "b"}}},
		{Entity: "e", Generation: 1, Message: avantan.Message{Kind: avantan.Election, From: "c", To: "b", Instance: 1, Ballot: avantan.Ballot{Number: 9, Site: "c"}}},
		{Entity: "e", Generation: 1, Message: avantan.Message{Kind: avantan.Election, From: "c", To: "a", Instance: 1, Ballot: avantan.Ballot{Number: 9, Site: "z"}}},
		{Entity: "e", Generation: 1, Message: avantan.Message{Kind: 99, From: "c", To: "a", Instance: 1}},
	} {
		before := r.count(event.ProtocolFault)
		r.step("a", input.Deliver{From: "c", Messages: []message.Envelope{e}})
		if r.count(event.ProtocolFault) != before+1 {
			t.Errorf("%+v is no fault", e)
		}
		if v := r.view("a", "e"); v.Offered != 0 || v.Left != 3 {
			t.Errorf("%+v moved tokens: %+v", e, v)
		}
	}
}

// TestUnknownChangesAreRefused: a site accepts no value that it cannot apply.
func TestUnknownChangesAreRefused(t *testing.T) {
	r := newRig(t, 3, nil)
	r.create("e", 9)
	for sequence, changes := range map[string][]string{
		"e": {`{"limit":-1}`, `{"limit":9007199254740992}`, `{`, `[]`},
		"":  {`[{"kind":"drop","name":"e","request_id":"x"}]`, `{`, `[{"kind":"create","request_id":"x"}]`, `[{"kind":"create","name":"x"}]`, `[{"kind":"create","name":"x","request_id":"x","limit":-1}]`},
	} {
		generation := uint64(0)
		if sequence != "" {
			generation = 1
		}
		for _, change := range changes {
			before := r.count(event.ProtocolFault)
			instance := avantan.Instance(2)
			if sequence != "" {
				instance = 1
			}
			r.step("a", input.Deliver{From: "c", Messages: []message.Envelope{{Entity: sequence, Generation: generation, Message: avantan.Message{
				Kind: avantan.Accept, From: "c", To: "a", Instance: instance, Ballot: avantan.Ballot{Number: 7, Site: "c"},
				Value: &avantan.Value{Policy: "demand", Change: []byte(change)},
			}}}})
			if r.count(event.ProtocolFault) != before+1 {
				t.Errorf("%q: change %s is no fault", sequence, change)
			}
		}
	}
}

// TestManyChanges has one site miss some changes, and another so many that no site keeps
// them all any more. Both sites learn all, also after restarts. The changes kept on every
// disk stay bounded.
func TestManyChanges(t *testing.T) {
	race.OneGoroutine(t)
	if testing.Short() {
		t.Skip("decides 9000 changes")
	}
	const kept = 4096
	r := newRig(t, 5, nil)
	r.create("old", 50)
	r.create("stays", 50)
	r.acquire("e", "stays", 4, "before")
	r.cut["e"] = true
	n := 0
	batch := func(size int) {
		t.Helper()
		var calls []input.Call
		for range size {
			n++
			calls = append(calls, r.changeAsync("a", input.Change{Kind: input.CreateEntity, Name: id("e", n), Limit: core.Tokens(n), RequestID: id("c", n)}))
			if n > 10 {
				calls = append(calls, r.changeAsync("a", input.Change{Kind: input.DeleteEntity, Name: id("e", n-10), RequestID: id("d", n-10)}))
			}
		}
		r.advance(4000)
		for _, c := range calls {
			r.wantCode(r.answer(c), answer.OK)
		}
	}
	r.wantCode(r.change("a", input.DeleteEntity, "old", 0, "delete old"), answer.OK)
	for range 6 {
		batch(600)
	}
	r.cut["d"] = true
	batch(100)
	r.restart("d")
	delete(r.cut, "d")
	r.advance(10_000)
	batch(10)
	r.restart("b")
	delete(r.cut, "e")
	r.restart("e")
	r.advance(15_000)
	// Results are kept by time, and beyond that by count.
	r.advance(700_000)
	batch(10)
	r.advance(10_000)
	want := r.cores["a"].Status()
	for _, site := range r.names {
		if got := r.cores[site].Status(); got.Entities != want.Entities || got.Catalogue != want.Catalogue {
			t.Errorf("%s: %+v, want %+v", site, got, want)
		}
		restored, err := r.disks[site].Load()
		if err != nil {
			t.Fatal(err)
		}
		if got := len(restored.Changes); got != kept {
			t.Errorf("%s keeps %d changes on disk", site, got)
		}
		if got := restored.Catalogue.Numbered; got != uint64(2*n-10+3) {
			t.Errorf("%s has numbered %d changes, want %d", site, got, 2*n-10+3)
		}
		if v := r.view(site, "stays"); v.Left+v.Net != 10 {
			t.Errorf("%s: %+v", site, v)
		}
		if _, err := r.find(site, "old"); err == nil {
			t.Errorf("%s still has what was deleted", site)
		}
		r.restart(site)
		again := r.changeAsync(site, input.Change{Kind: input.CreateEntity, Name: id("e", n), Limit: core.Tokens(n), RequestID: id("c", n)})
		r.wantCode(r.answer(again), answer.OK)
	}
	if r.view("e", "stays").Net != 4 {
		t.Error("an acquire is lost")
	}
	if faults := r.count(event.ProtocolFault); faults != 0 {
		t.Errorf("%d protocol faults", faults)
	}
}

// TestCallersOfAChange: callers of the same id wait for the same change. A caller beyond
// the bound is not told that nothing was done: the change may yet be decided.
func TestCallersOfAChange(t *testing.T) {
	r := newRig(t, 3, nil)
	change := input.Change{Kind: input.CreateEntity, Name: "e", Limit: 9, RequestID: "x"}
	var calls []input.Call
	for range core.MaxCallers {
		calls = append(calls, r.changeAsync("a", change))
	}
	r.wantCode(r.answer(r.changeAsync("a", change)), answer.Unknown)
	r.advance(5000)
	for _, call := range calls {
		r.wantCode(r.answer(call), answer.OK)
	}
}
