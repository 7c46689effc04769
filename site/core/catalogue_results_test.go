package core

import (
	"testing"

	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/stored"
	"pgregory.net/rapid"
)

// TestPackedChange compares each record with its packed form unpacked. The generator
// fills every field, so a field that packing leaves out is seen.
func TestPackedChange(t *testing.T) {
	records := rapid.Make[stored.Change]()
	kinds := rapid.OneOf(rapid.SampledFrom(packedKinds[:]), rapid.Map(rapid.String(), func(s string) input.ChangeKind { return input.ChangeKind(s) }))
	rapid.Check(t, func(rt *rapid.T) {
		r := records.Draw(rt, "record")
		r.Change.Kind = kinds.Draw(rt, "kind")
		if got := packChange(&r).unpack(); got != r {
			rt.Fatalf("unpacked %+v, packed %+v", got, r)
		}
	})
}

// TestChangeResults compares the results that are kept with a plain list, while
// request ids are decided anew and the oldest are forgotten.
func TestChangeResults(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rs, want := newChangeResults(), []stored.Change(nil)
		number := uint64(0)
		rt.Repeat(map[string]func(*rapid.T){
			"add": func(rt *rapid.T) {
				number++
				r := stored.Change{Number: number, Change: stored.CatalogueChange{Kind: input.CreateEntity, RequestID: rapid.StringMatching("[a-d]").Draw(rt, "id")}}
				rs.add(&r)
				want = append(want, r)
			},
			"forget": func(rt *rapid.T) {
				n := rapid.IntRange(0, len(want)).Draw(rt, "oldest")
				rs.forgetOldest(n)
				want = want[n:]
			},
			"": func(rt *rapid.T) {
				last := make(map[string]stored.Change)
				for i, w := range want {
					if got := rs.at(i); got != w {
						rt.Fatalf("at %d: %+v, want %+v", i, got, w)
					}
					last[w.Change.RequestID] = w
				}
				if rs.len() != len(want) || len(rs.byID) != len(last) {
					rt.Fatalf("%d results of %d ids, want %d of %d", rs.len(), len(rs.byID), len(want), len(last))
				}
				for _, id := range []string{"a", "b", "c", "d"} {
					w, there := last[id]
					if got, ok := rs.find(id); got != w || ok != there {
						rt.Fatalf("result of %q: %+v, %t, want %+v, %t", id, got, ok, w, there)
					}
				}
			},
		})
	})
}
