package core_test

import (
	"fmt"
	"testing"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
)

// adopters is a cluster of three sites with entities, that admits a fourth site.
func adopters(t *testing.T, entities int) *rig {
	t.Helper()
	r := newRig(t, 3, nil)
	for i := range entities {
		r.create(fmt.Sprintf("e%04d", i), 90)
	}
	r.joins("d")
	r.advance(1000)
	call := r.changeAsync("a", input.Change{Kind: input.AddSite, Name: "d", RequestID: "add d"})
	for range 1000 {
		if r.advance(10); r.cores["a"].Status().Behind > 0 {
			break
		}
	}
	if behind := r.cores["a"].Status().Behind; behind != entities {
		t.Fatalf("%d entities are behind", behind)
	}
	if a := r.answer(call); a.Code != answer.OK {
		t.Fatalf("adding d: %+v", a)
	}
	return r
}

// TestAdoptionMovesNoTokens: entities adopt a view, and each site has the tokens that it
// had.
func TestAdoptionMovesNoTokens(t *testing.T) {
	r := adopters(t, 5)
	a := r.acquire("b", "e0000", 25, "unequal")
	r.wantCode(a, answer.OK)
	r.advance(5000)
	for _, site := range r.names {
		if s := r.cores[site].Status(); s.Members != 4 || s.Behind != 0 {
			t.Errorf("%s: %+v", site, s)
		}
	}
	for site, left := range map[core.SiteID]core.Tokens{"a": 30, "b": 5, "c": 30} {
		if v := r.view(site, "e0000"); v.Left != left || v.Offered != 0 {
			t.Errorf("%s: %+v", site, v)
		}
	}
}
