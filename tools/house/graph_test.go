package main

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// of makes a graph of arrows such as "a>b", or "a>>b" of twice the weight.
func of(arrows string) graph {
	g := make(graph)
	for arrow := range strings.FieldsSeq(arrows) {
		a, b, _ := strings.Cut(arrow, ">")
		g.add(a, strings.TrimPrefix(b, ">"), 1+strings.Count(b, ">"))
	}
	return g
}

func TestCircles(t *testing.T) {
	for _, tc := range []struct {
		name   string
		arrows string
		want   [][]string
	}{
		{"none", "a>b b>c a>c", nil},
		{"to itself", "a>a a>b", nil},
		{"two", "a>b b>a", [][]string{{"a", "b"}}},
		{"the biggest first", "a>b b>a b>c c>d d>e e>c", [][]string{{"c", "d", "e"}, {"a", "b"}}},
		{"two that share a node are one", "a>b b>a b>c c>b", [][]string{{"a", "b", "c"}}},
		{"a side way back", "a>b b>c c>d d>b c>a", [][]string{{"a", "b", "c", "d"}}},
	} {
		if got := of(tc.arrows).circles(); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestOrder(t *testing.T) {
	for _, tc := range []struct {
		name, arrows string
		order        string // empty: any of several
		against      int
	}{
		{"nothing runs up", "c>b b>a c>a", "c b a", 0},
		{"the lighter arrow runs up", "a>>b b>a", "a b", 1},
		{"the cheapest of a circle", "a>>b b>>c c>a", "a b c", 1},
		{"two circles", "a>b b>a c>d d>c", "", 2},
	} {
		g := of(tc.arrows)
		order, against := g.order()
		if against != tc.against || tc.order != "" && strings.Join(order, " ") != tc.order {
			t.Errorf("%s: %v, %d against; want %s, %d", tc.name, order, against, tc.order, tc.against)
		}
		count := 0
		for i, a := range order {
			for b, weight := range g[a] {
				if slices.Contains(order[:i], b) {
					count += weight
				}
			}
		}
		if count != against {
			t.Errorf("%s: %d arrows run up in %v, %d told", tc.name, count, order, against)
		}
	}
}
