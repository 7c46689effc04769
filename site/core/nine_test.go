package core_test

import (
	"testing"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
)

// TestFromOneToNineAndBack adds eight sites to a site alone, one after the other, and
// drains them again, the first site first. Each change is decided by the voters of then.
// Meanwhile all members serve. In the end the last site has all tokens.
func TestFromOneToNineAndBack(t *testing.T) {
	variants(t, func(t *testing.T, choose func(*core.Config)) {
		t.Helper()
		r := newRig(t, 1, func(c *core.Config) {
			choose(c)
			c.Retention = leavingRetention
		})
		r.create("e", 900)
		out := core.Tokens(0)
		acquire := func() {
			t.Helper()
			for _, site := range r.names {
				call := r.acquireAsync(site, "e", 2, id("at "+string(site), r.calls), 5000)
				r.advance(5000)
				r.wantCode(r.answer(call), answer.OK)
				out += 2
			}
			if left, offered, net := r.books("e"); left+offered != 900-out || net != out {
				t.Fatalf("%v: %d left, %d offered, %d out of %d", r.names, left, offered, net, out)
			}
		}
		for _, site := range sites("bcdefghi") {
			r.addSite(site)
			r.advance(5000)
			if got := r.cores["a"].Status().Members; got != len(r.names) {
				t.Fatalf("%d members, want %d", got, len(r.names))
			}
			acquire()
		}
		for _, site := range sites("abcdefgh") {
			last := r.names[len(r.names)-1]
			r.drainSite(last, site, last)
			for range 40 {
				r.advance(5000)
				if r.state(last, site) == "gone" {
					break
				}
			}
			if got := r.state(last, site); got != "gone" {
				t.Fatalf("%s is %s", site, got)
			}
			r.names = r.remaining(site)
			r.advance(10_000)
			acquire()
		}
		if s := r.cores["i"].Status(); s.Members != 1 || s.Behind != 0 {
			t.Errorf("%+v", s)
		}
	})
}
