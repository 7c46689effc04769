package main

import (
	"reflect"
	"testing"

	"github.com/samya-db/samya/internal/httpapi"
	"github.com/samya-db/samya/site/rescue"
)

// TestRescueSteps: parts above zero are rescued from the bottom up, then parts below zero
// from the top down. Settled entities are left out, and entities that the data lacks count as zero.
func TestRescueSteps(t *testing.T) {
	s := &salvage{settled: map[uint64]bool{9: true}, estates: map[uint64]*rescue.Estate{
		1: {Net: 3}, 2: {Net: -1}, 3: {Net: 4}, 4: {Net: -2}, 5: {Net: -5},
	}}
	all := []httpapi.Entity{
		{Name: "a", Generation: 1},
		{Name: "a/b", Generation: 2, Parent: "a"},
		{Name: "a/b/c", Generation: 3, Parent: "a/b"},
		{Name: "a/b/d", Generation: 4, Parent: "a/b"},
		{Name: "e", Generation: 5},
		{Name: "f", Generation: 6},
		{Name: "g", Generation: 9},
	}
	var got [][]string
	for _, step := range s.steps(all) {
		var names []string
		for _, e := range step {
			names = append(names, e.Name)
		}
		got = append(got, names)
	}
	if want := [][]string{{"a/b/c"}, {"a", "f"}, {"e"}, {"a/b"}, {"a/b/d"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("the steps are %v, want %v", got, want)
	}
}
