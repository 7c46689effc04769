package core_test

import (
	"testing"

	"github.com/samya-db/samya/avantan"
	"github.com/samya-db/samya/avantan/star"
	"github.com/samya-db/samya/site/core/answer"
)

// TestASliceWithASiteThatIsGone: a site forgets a committed slice without a transaction.
// A crash brings it back after the leader has left the cluster. The slice ends all the
// same, and the site can leave too.
func TestASliceWithASiteThatIsGone(t *testing.T) {
	r := newLeavingRig(t, 3)
	r.create("e", 900)
	r.drainSite("a", "c", "a")
	r.advance(3 * leavingRetention)
	if s := r.state("b", "c"); s != "gone" {
		t.Fatalf("c is %q", s)
	}
	r.names = r.remaining("c")
	led := star.ID{Leader: "c", Counter: 1}
	own := avantan.Contribution{Site: "b", Offered: 1}
	disk := r.disks["b"]
	e := disk.Entities["e"]
	e.Star.Floors = []star.ID{led}
	e.Star.Slices = []star.Slice{{
		ID: led, Pledge: own, Committed: true,
		Value: &avantan.Value{Contributions: []avantan.Contribution{own, {Site: "c", Wanted: 1}}, Policy: "demand"},
	}}
	disk.Entities["e"] = e
	r.restart("b")
	r.advance(10_000)
	r.drainSite("a", "b", "a")
	r.advance(3 * leavingRetention)
	if s := r.state("a", "b"); s != "gone" {
		t.Errorf("b is %q, its slice is open: %+v", s, r.cores["b"].Status())
	}
}

// TestASliceOfALostLeader: tokens set aside for a leader come back as it is lost, and serve
// the acquires that wait in the same step.
func TestASliceOfALostLeader(t *testing.T) {
	r := newLeavingRig(t, 3)
	r.create("e", 900)
	led := star.ID{Leader: "c", Counter: 1}
	disk := r.disks["b"]
	e, b := disk.Entities["e"], disk.Books["e"]
	e.Star.Floors = []star.ID{led}
	e.Star.Slices = []star.Slice{{ID: led, Pledge: avantan.Contribution{Site: "b", Offered: b.Left}}}
	b.Left = 0
	disk.Entities["e"], disk.Books["e"] = e, b
	r.restart("b")
	r.cut["c"] = true
	r.wantCode(r.acquire("a", "e", 300, "all of a"), answer.OK)
	waits := r.acquireAsync("b", "e", 5, "waits", 60_000)
	r.advance(1000)
	if _, told := r.answers[waits]; told {
		t.Fatalf("%+v", r.answers[waits])
	}
	r.loseSite("a", "c")
	r.wantCode(r.answer(waits), answer.OK)
}
