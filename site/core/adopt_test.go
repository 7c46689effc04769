package core_test

import (
	"fmt"
	"testing"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
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

// TestAdoptionsInTurn: the voters begin their batches at different times, and none begins
// a further batch while most of its last batch is under way.
func TestAdoptionsInTurn(t *testing.T) {
	const entities = 600
	r := adopters(t, entities)
	r.loses = func(e *message.Envelope) bool { return e.Entity != "" && e.Message.Kind == avantan.ElectionOk }
	begun := map[core.SiteID]map[string]bool{}
	at := map[core.SiteID]core.Tick{}
	for range 400 {
		seen := len(r.sent)
		r.advance(1)
		for _, e := range r.sent[seen:] {
			if e.Entity == "" || e.Message.Kind != avantan.Election {
				continue
			}
			from := e.From()
			if begun[from] == nil {
				begun[from], at[from] = map[string]bool{}, r.now.Tick
			}
			begun[from][e.Entity] = true
		}
	}
	if len(begun) != 3 {
		t.Fatalf("%d sites lead", len(begun))
	}
	for from, of := range begun {
		if n := len(of); n < 50 || n > 100 {
			t.Errorf("%s began %d adoptions, with none of them done", from, n)
		}
		for other := range begun {
			if other != from && at[other] == at[from] {
				t.Errorf("%s and %s began at once", from, other)
			}
		}
	}
	r.loses = nil
	r.advance(20_000)
	for _, site := range r.names {
		if s := r.cores[site].Status(); s.Members != 4 || s.Behind != 0 {
			t.Errorf("%s: %+v", site, s)
		}
	}
}
