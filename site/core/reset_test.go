package core_test

import (
	"testing"

	"github.com/samya-db/samya/internal/rates"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
)

// reset resets an entity or a key at a site.
func (r *rig) reset(site core.SiteID, name string) answer.Answer {
	r.t.Helper()
	call := r.nextCall()
	r.step(site, &input.Reset{Call: call, Entity: name})
	r.drain(site)
	return r.answer(call)
}

// TestReset: all tokens out of a rate quota come back at the site, but tokens of open leases. A
// lease that ends afterwards brings back no more than it had.
func TestReset(t *testing.T) {
	for _, terms := range []rates.Terms{bucket, sliding, {Kind: rates.Window, Count: 1, Unit: rates.Hour}} {
		t.Run(string(terms.Kind), func(t *testing.T) {
			r := flowing(t, terms, nil)
			r.wantCode(r.acquire("a", "llm", 5, "use"), answer.OK)
			r.wantCode(r.lease("a", "llm", 3, "estimate", 200_000), answer.OK)
			if a := r.reset("a", "llm"); a.Code != answer.OK || a.Tokens != 5 {
				t.Errorf("%+v", a)
			}
			if v := r.view("a", "llm"); v.Left != 7 || v.Net != 3 {
				t.Errorf("%d left, %d out", v.Left, v.Net)
			}
			r.wantCode(r.acquire("a", "llm", 7, "all"), answer.OK)
			a := r.commit("a", "estimate", 1, "actual")
			if v := r.view("a", "llm"); a.Code != answer.OK || a.Returned > 2 || v.Left != a.Returned || v.Net != 10-a.Returned {
				t.Errorf("%+v, %d left, %d out", a, v.Left, v.Net)
			}
			r.restart("a")
			if terms.Volatile {
				return
			}
			if v := r.view("a", "llm"); v.Left != 2 {
				t.Errorf("after a start %d are left", v.Left)
			}
		})
	}
}

// TestResetKeys: a key has all its tokens again, others are as they were; a template resets all.
func TestResetKeys(t *testing.T) {
	for _, terms := range []rates.Terms{keyedBucket, keyedWindow} {
		t.Run(string(terms.Kind), func(t *testing.T) {
			r := templated(t, terms, 30, nil)
			for _, key := range []string{"api/x", "api/y", "api/z"} {
				r.wantCode(r.acquire("a", key, 10, key), answer.OK)
			}
			if a := r.reset("a", "api/x"); a.Code != answer.OK || a.Tokens != 10 {
				t.Errorf("%+v", a)
			}
			r.wantKey("a", "api/x", 10, 0)
			r.wantKey("a", "api/y", 0, 10)
			r.wantCode(r.reset("a", "api"), answer.OK)
			r.wantKey("a", "api/y", 10, 0)
			if n := r.cores["a"].Status().Keys; n != 0 {
				t.Errorf("%d keys", n)
			}
		})
	}
}

// TestNoReset: other entities have no reset.
func TestNoReset(t *testing.T) {
	r := newRig(t, 3, nil)
	r.create("vm", 30)
	r.wantCode(r.reset("a", "vm"), answer.Unrated)
	r.wantCode(r.reset("a", "none"), answer.NotFound)
}
