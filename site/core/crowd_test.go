package core_test

import (
	"testing"

	"github.com/samya-db/samya/internal/race"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
)

const (
	// settling and crowding are the seconds for which a crowd is asked before and while
	// its redistributions are counted.
	settling, crowding = 5, 20
)

// crowd has all sites asked for tokens of an entity all the time. Most of its tokens are
// out, and some come back at one site after the other. crowd returns the redistributions
// begun, and the acquires by outcome.
func (r *rig) crowd() (begun int, answers map[answer.Code]int) {
	r.t.Helper()
	r.drained("e", 1000)
	var asked []input.Call
	before := 0
	for i := range (settling + crowding) * 10 {
		if i == settling*10 {
			before = total(r.begun())
		}
		for _, site := range r.names {
			asked = append(asked, r.acquireAsync(site, "e", 2, id("more "+string(site), i), 5000))
		}
		r.release(r.names[i/10%len(r.names)], "e", core.Tokens(len(r.names)), id("back", i))
		r.advance(100)
	}
	begun = total(r.begun()) - before
	r.advance(6000)
	answers = make(map[answer.Code]int)
	for _, call := range asked {
		answers[r.answer(call).Code]++
	}
	return begun, answers
}

// TestACrowdTakesTurns: where many sites are short at once, the redistributions begun do
// not grow with the number of sites, and acquires get the tokens that come back.
func TestACrowdTakesTurns(t *testing.T) {
	race.OneGoroutine(t)
	for _, sites := range []int{8, 16, 24} {
		r := newRig(t, sites, nil)
		begun, answers := r.crowd()
		t.Logf("%d sites: %d redistributions, %v", sites, begun, answers)
		if begun > 2*crowding {
			t.Errorf("%d sites begin %d redistributions in %d s", sites, begun, crowding)
		}
		// Half of the tokens asked for come back.
		if all := sites * (settling + crowding) * 10; answers[answer.OK] < all*45/100 || answers[answer.OK]+answers[answer.OutOfTokens] != all {
			t.Errorf("%d sites: of %d acquires: %v", sites, all, answers)
		}
	}
}
