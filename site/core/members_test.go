package core_test

import (
	"testing"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/coretest"
	"github.com/samya-db/samya/site/core/input"
	"github.com/samya-db/samya/site/core/message"
)

// joins starts a site that joins, and tells all sites of all.
func (r *rig) joins(site core.SiteID) {
	r.t.Helper()
	tweak, names := r.tweak, r.names
	r.tweak = func(c *core.Config) {
		if tweak != nil {
			tweak(c)
		}
		if c.Self == site {
			c.Joining, c.Members = true, names
		}
	}
	r.disks[site] = coretest.NewMemory(message.Incarnation(100 + len(r.names)))
	r.restart(site)
	r.names = append(r.names, site)
}

// TestASiteJoins adds a fourth site while the others serve: it learns, is admitted, all
// entities adopt the new view, and it gets tokens from the others.
func TestASiteJoins(t *testing.T) {
	r := newRig(t, 3, nil)
	r.create("e", 900)
	r.create("f", 90)
	for i, site := range r.names {
		if a := r.acquire(site, "e", 20, "first"+string(rune('0'+i))); a.Code != answer.OK {
			t.Fatalf("%s: %+v", site, a)
		}
	}
	r.joins("d")
	r.advance(1000)
	if a := r.acquire("d", "e", 1, "early"); a.Code != answer.Unvouched || a.Missing == 0 {
		t.Errorf("a site without a seat answers %+v", a)
	}
	call := r.changeAsync("b", input.Change{Kind: input.AddSite, Name: "d", RequestID: "add d"})
	r.advance(1000)
	if a := r.answer(call); a.Code != answer.OK {
		t.Fatalf("adding d: %+v", a)
	}
	r.advance(30_000)
	for _, site := range r.names {
		if s := r.cores[site].Status(); s.Members != 4 || s.Behind != 0 || s.Missing != 0 {
			t.Errorf("%s: %+v", site, s)
		}
	}
	if a := r.acquire("d", "e", 1, "now"); a.Code != answer.OutOfTokens {
		t.Errorf("a new site begins with tokens: %+v", a)
	}
	late := r.acquireAsync("d", "e", 300, "wait", 5000)
	r.advance(3000)
	if a := r.answer(late); a.Code != answer.OK {
		t.Errorf("%+v", a)
	}
	r.create("g", 400)
	if a := r.acquire("d", "g", 100, "share"); a.Code != answer.OK {
		t.Errorf("a new entity's share: %+v", a)
	}
	// Two of four are no majority.
	r.cut["a"], r.cut["b"] = true, true
	call = r.changeAsync("c", input.Change{Kind: input.SetLimit, Name: "e", Limit: 950, RequestID: "limit"})
	r.advance(10_000)
	if a := r.answer(call); a.Code != answer.NoQuorum {
		t.Errorf("a half decides: %+v", a)
	}
	delete(r.cut, "a")
	call = r.changeAsync("d", input.Change{Kind: input.SetLimit, Name: "e", Limit: 1000, RequestID: "limit 2"})
	r.advance(10_000)
	if a := r.answer(call); a.Code != answer.OK {
		t.Errorf("three of four do not decide: %+v", a)
	}
	delete(r.cut, "b")
	for _, site := range r.names {
		r.restart(site)
	}
	r.advance(10_000)
	for _, site := range r.names {
		if s := r.cores[site].Status(); s.Members != 4 || s.Behind != 0 {
			t.Errorf("%s, started again: %+v", site, s)
		}
	}
}
