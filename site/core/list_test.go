package core_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
)

// TestSearch: a list with filters has exactly the entities that pass all of them, whatever
// the size of its pages and however few entities a step looks at.
func TestSearch(t *testing.T) {
	r := newRig(t, 1, nil)
	r.create("Org", 100)
	r.below("Org/team", "Org", 50)
	r.below("Org/Team-vm", "Org/team", 20)
	r.below("other", "Org", 10)
	for i := range 60 {
		r.create(fmt.Sprintf("acme/vm%02d", i), 1)
	}
	list := func(l input.List) (names []string, steps int) {
		t.Helper()
		for {
			steps++
			call := r.nextCall()
			l.Call = call
			r.step("a", &l)
			a := r.answer(call)
			if a.Code != answer.OK || len(a.Views()) > l.Count {
				t.Fatalf("%+v: %+v", l, a)
			}
			for _, v := range a.Views() {
				names = append(names, v.Name)
			}
			if !a.More {
				return names, steps
			}
			l.After = a.After()
		}
	}
	for _, c := range []struct {
		filter input.List
		want   []string
	}{
		{input.List{Contains: "team"}, []string{"Org/Team-vm", "Org/team"}},
		{input.List{Contains: "vm0", Prefix: "acme/vm0", Top: true}, []string{
			"acme/vm00", "acme/vm01", "acme/vm02", "acme/vm03", "acme/vm04", "acme/vm05", "acme/vm06", "acme/vm07", "acme/vm08", "acme/vm09",
		}},
		{input.List{Contains: "vm59"}, []string{"acme/vm59"}},
		{input.List{Contains: "vm60"}, nil},
		{input.List{Parent: "Org"}, []string{"Org/team", "other"}},
		{input.List{Parent: "Org", Contains: "o"}, []string{"Org/team", "other"}},
		{input.List{Parent: "Org", Prefix: "ot"}, []string{"other"}},
		{input.List{Parent: "Org/team"}, []string{"Org/Team-vm"}},
		{input.List{Parent: "other"}, nil},
		{input.List{Parent: "none"}, nil},
		{input.List{Contains: "org", Top: true}, []string{"Org"}},
	} {
		for _, count := range []int{1, 3, 1000} {
			for _, look := range []int{0, 1, 7} {
				c.filter.Count, c.filter.Look = count, look
				got, steps := list(c.filter)
				if !slices.Equal(got, c.want) {
					t.Errorf("%+v: %q, want %q", c.filter, got, c.want)
				}
				if look == 1 && c.filter.Contains == "vm60" && steps < 60 {
					t.Errorf("%d steps for 64 entities", steps)
				}
			}
		}
	}
}

// TestSums: the sums of a list count the tokens of entities at the top alone, as the others'
// are acquired of those too.
func TestSums(t *testing.T) {
	r := newRig(t, 1, nil)
	r.create("org", 100)
	r.below("org/a", "org", 60)
	r.create("top", 7)
	r.acquire("a", "org/a", 20, "one")
	for _, look := range []int{0, 2} {
		call := r.nextCall()
		r.step("a", &input.List{Call: call, Count: 1, Look: look, Sum: true})
		a := r.answer(call)
		want := answer.Sum{Entities: 3, Left: 87, Net: 20}
		if look > 0 {
			want = answer.Sum{Entities: 2, Left: 80, Net: 20}
		}
		if a.Sum() != want || a.More != (look > 0) || len(a.Views()) != 0 {
			t.Errorf("look %d: %+v", look, a.Sum())
		}
	}
}
