package core_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/internal/rates"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
	"pgregory.net/rapid"
)

// orchard is a site that decides changes, and two sites that learn of them: one applies
// change by change, the other installs a whole snapshot. Both serve the same requests.
type orchard struct {
	leader  *rig
	sites   [2]*rig
	names   []string
	ids     int
	pending []held
	// direct are the tokens moved on each entity itself, by generation.
	direct map[uint64]core.Tokens
}

// settleTime is longer than a site leaves a debt that can be paid, in milliseconds. A
// change on the way may make a debt that a later change undoes: the site that applies
// change by change still has to take the returned tokens off the debt.
const settleTime core.Tick = 5000

// held is an acquire to give back, or a lease.
type held struct {
	entity string
	tokens core.Tokens
	lease  string
}

func newOrchard(t *testing.T) *orchard {
	t.Helper()
	f := &orchard{leader: newRig(t, 1, nil), direct: make(map[uint64]core.Tokens)}
	for i := range f.sites {
		f.sites[i] = newRig(t, 1, nil)
	}
	for i := range 12 {
		f.names = append(f.names, id("e", i))
	}
	return f
}

func (f *orchard) id() string {
	f.ids++
	return fmt.Sprint(f.ids)
}

// changes has the leader decide a random change.
func (f *orchard) changes(t *rapid.T) {
	names := rapid.SampledFrom(f.names)
	parents := rapid.SampledFrom(append([]string{""}, f.names...))
	ch := input.Change{Name: names.Draw(t, "entity"), RequestID: f.id(), Wait: 1000}
	switch rapid.IntRange(0, 6).Draw(t, "change") {
	case 0, 1, 2:
		ch.Kind, ch.Parent, ch.Limit = input.CreateEntity, parents.Draw(t, "parent"), core.Tokens(rapid.IntRange(0, 60).Draw(t, "limit"))
		ch.Rate = rapid.SampledFrom([]rates.Terms{{}, {}, minute, bucket}).Draw(t, "rate")
	case 3, 4, 5:
		ch.Kind, ch.Parent = input.MoveEntity, parents.Draw(t, "parent")
	default:
		ch.Kind, ch.Subtree = input.DeleteEntity, rapid.Bool().Draw(t, "subtree")
	}
	f.leader.answer(f.leader.changeAsync("a", ch))
}

// ask gives both sites the same input, and returns their answer.
func (f *orchard) ask(t *rapid.T, input func(call input.Call) input.Input) answer.Answer {
	var answers [2]answer.Answer
	for i, r := range f.sites {
		call := r.nextCall()
		r.step("a", input(call))
		answers[i] = r.answer(call)
		// RetryAfter is longer at a site that has looked elsewhere for a debt on the way.
		answers[i].RetryAfter = 0
	}
	if !reflect.DeepEqual(answers[0], answers[1]) {
		t.Fatalf("the sites answer %+v and %+v", answers[0], answers[1])
	}
	return answers[0]
}

// moves counts the tokens that a request moved on an entity itself. Tokens of a rate quota
// count at the lowest entity above that is none.
func (f *orchard) moves(entity string, tokens core.Tokens) {
	views := make(map[string]answer.View)
	for _, v := range f.views(0) {
		views[v.Name] = v
	}
	for v, found := views[entity]; found; v, found = views[v.Parent] {
		if v.Rate.None() {
			f.direct[v.Generation] += tokens
			return
		}
	}
}

// requests has both sites serve a random request.
func (f *orchard) requests(t *rapid.T) {
	name, key := rapid.SampledFrom(f.names).Draw(t, "of"), f.id()
	tokens := core.Tokens(rapid.IntRange(1, 20).Draw(t, "tokens"))
	if n := len(f.pending); n > 0 && rapid.Bool().Draw(t, "back") {
		at := rapid.IntRange(0, n-1).Draw(t, "which")
		h := f.pending[at]
		f.pending = slices.Delete(f.pending, at, at+1)
		in := &input.Release{Entity: h.entity, Tokens: h.tokens, Request: attempt.KeyOf(key)}
		if h.lease != "" {
			in.Tokens, in.Lease = 0, &input.LeaseRef{Home: "a", Request: attempt.KeyOf(h.lease)}
		}
		a := f.ask(t, func(call input.Call) input.Input {
			again := *in
			again.Call = call
			return &again
		})
		if a.Code == answer.OK {
			f.moves(h.entity, -a.Tokens)
		}
		return
	}
	h := held{entity: name, tokens: tokens}
	var terms *input.LeaseTerms
	if rapid.Bool().Draw(t, "lease") {
		h.lease, terms = key, &input.LeaseTerms{ID: key, TTL: input.MaxTTL}
	}
	a := f.ask(t, func(call input.Call) input.Input {
		return &input.Acquire{Call: call, Entity: name, Tokens: tokens, Request: attempt.KeyOf(key), Lease: terms}
	})
	if a.Code == answer.OK {
		f.pending = append(f.pending, h)
		f.moves(name, a.Tokens)
	}
}

// learn has the first site apply the leader's changes one by one, and the other all at
// once.
func (f *orchard) learn(t *rapid.T) {
	leader := f.leader.cores["a"]
	for i, follow := range []func() error{
		func() error { return f.sites[0].cores["a"].FollowEach(leader) },
		func() error { return f.sites[1].cores["a"].Follow(leader, true) },
	} {
		if err := follow(); err != nil {
			t.Fatal(err)
		}
		f.sites[i].drain("a")
		f.sites[i].advance(settleTime)
	}
	f.check(t)
}

func (f *orchard) views(site int) []answer.View {
	r := f.sites[site]
	call := r.nextCall()
	r.step("a", &input.List{Call: call, Count: 100})
	views := r.answer(call).Details.Views
	for i := range views {
		// Debts on the way take instances of their own.
		views[i].Applied, views[i].DebtSince = 0, 0
	}
	return views
}

// check compares the two sites, on disk too, and their books with the tokens moved on
// each entity.
func (f *orchard) check(t *rapid.T) {
	views := f.views(0)
	if whole := f.views(1); !reflect.DeepEqual(views, whole) {
		t.Fatalf("one by one\n%+v\nat once\n%+v", views, whole)
	}
	out := make(map[string]core.Tokens)
	parents := make(map[string]string)
	for _, v := range views {
		parents[v.Name] = v.Parent
	}
	for _, v := range views {
		for name := v.Name; name != ""; name = parents[name] {
			out[name] += f.direct[v.Generation]
		}
	}
	for _, v := range views {
		if v.Rate.None() && v.Net != out[v.Name] || v.Left != v.Limit+v.Debt-v.Net-v.Surplus {
			t.Fatalf("%+v, want %d out", v, out[v.Name])
		}
	}
	var stored [3]stored.Restored
	for i, r := range append(f.sites[:], f.leader) {
		var err error
		if stored[i], err = r.disks["a"].Load(); err != nil {
			t.Fatal(err)
		}
	}
	for i := range f.sites {
		for at := range stored[i].Entities {
			e := &stored[i].Entities[at]
			e.Protocol, e.DebtSince = avantan.State{}, 0
			if l := stored[2].Entities[at]; l.Parent != e.Parent || l.Shape != e.Shape {
				t.Fatalf("%+v, the leader has %+v", e, l)
			}
		}
	}
	for what, both := range map[string][2]any{
		"entities":  {stored[0].Entities, stored[1].Entities},
		"books":     {stored[0].Books, stored[1].Books},
		"catalogue": {stored[0].Catalogue, stored[1].Catalogue},
		"leases":    {stored[0].Leases, stored[1].Leases},
	} {
		if !reflect.DeepEqual(both[0], both[1]) {
			t.Fatalf("%s, one by one\n%+v\nat once\n%+v", what, both[0], both[1])
		}
	}
}

// TestASnapshotIsAllItsChanges: a site that installs a whole snapshot has the same tree
// and books as a site that applied the changes one by one. Clients acquire, lease and
// give back in between.
func TestASnapshotIsAllItsChanges(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := newOrchard(t)
		for range rapid.IntRange(1, 6).Draw(rt, "rounds") {
			for range rapid.IntRange(1, 15).Draw(rt, "changes") {
				f.changes(rt)
			}
			f.learn(rt)
			for range rapid.IntRange(0, 20).Draw(rt, "requests") {
				f.requests(rt)
			}
			if rapid.Bool().Draw(rt, "restart") {
				for _, r := range f.sites {
					r.restart("a")
				}
			}
			f.check(rt)
		}
	})
}
