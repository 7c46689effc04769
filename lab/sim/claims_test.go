package sim

import (
	"testing"

	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/attempt"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/stored"
)

// TestWhatASiteMayForget: a site whose calendar was set ahead takes requests for older
// than they are, and says that it may have forgotten them.
func TestWhatASiteMayForget(t *testing.T) {
	for _, tc := range []struct {
		ahead, now micros
		forgets    bool
	}{
		{0, 100 * second, false},
		{0, 121 * second, true},
		{stepAhead, 60 * second, false},
		{stepAhead, 100 * second, true},
	} {
		s := newSim(Options{Sites: 2, Protocol: "majority"})
		n := s.nodes[1]
		n.drained, n.aheadBy = NewMemory(1), tc.ahead/millisecond
		s.now = tc.now
		if got := n.mayForget(epoch + 130_000); got != tc.forgets {
			t.Errorf("at %d s, by a calendar %d s ahead: %t", tc.now/second, tc.ahead/second, got)
		}
	}
}

// TestWhatAReleaseOwes: the open questions of an attempt of a release end where another
// site undoes the attempt, also within the transaction that parked it. The questions of a
// later attempt stay.
func TestWhatAReleaseOwes(t *testing.T) {
	key := attempt.Key{1}
	record := func(state stored.RequestState, count, relay uint32) stored.Request {
		return stored.Request{
			Key: key, Kind: stored.ReleaseRequest, State: state, Attempt: attempt.Of(count, relay), Tokens: 4,
		}
	}
	claim := func(number message.ClaimNumber, count uint32, sites ...core.SiteID) stored.Claim {
		return stored.Claim{Sites: sites, ClaimAsk: message.ClaimAsk{
			Number: number, Kind: message.SettleRelease, Key: key, Entity: "e0", Tokens: 4, Attempt: attempt.Of(count, 0) - 1,
		}}
	}
	transaction := func(c stored.Claim, records ...stored.Request) stored.Records {
		return stored.Records{Block: stored.Block{Records: records}, Claims: []stored.Claim{c}}
	}
	parked, undone := record(stored.Parked, 2, 0), record(stored.Undone, 2, attempt.MaxRelays)
	later := transaction(claim(2, 5, "a", "d"), record(stored.Parked, 5, 0))
	for name, tc := range map[string]struct {
		transactions []stored.Records
		// said are the sites that have said that the request never ran there.
		said   []int
		unsaid bool
	}{
		"undone in one transaction": {
			[]stored.Records{transaction(claim(1, 2, "a", "c", "d"), parked, undone), later}, []int{0, 3}, false,
		},
		"undone by the next transaction": {
			[]stored.Records{transaction(claim(1, 2, "a", "c", "d"), parked), {Block: stored.Block{Records: []stored.Request{undone}}}, later},
			[]int{0, 3},
			false,
		},
		"not undone": {
			[]stored.Records{transaction(claim(1, 2, "a", "c", "d"), parked), later}, []int{0, 3}, true,
		},
		"undone, and parked again, in one transaction": {
			[]stored.Records{transaction(claim(2, 5, "a", "d"), parked, undone, record(stored.Parked, 5, 0))}, []int{0}, true,
		},
		"undone, and one has not said it": {
			[]stored.Records{transaction(claim(1, 2, "a", "c", "d"), parked, undone), later}, []int{3}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSim(Options{Sites: 5, Protocol: "majority"})
			p := &op{s: s, kind: release, key: key, entity: "e0", tokens: 4, at: make([]recorded, 5), taken: -1}
			s.opsByKey[key] = p
			b := s.nodes[1]
			b.durable, b.drained, b.claims = NewMemory(1), NewMemory(1), make(map[message.ClaimNumber]askedAs)
			for i := range tc.transactions {
				r := &tc.transactions[i]
				s.observe.batch = r
				for j := range r.Block.Records {
					s.observe.recorded(b, p, &r.Block.Records[j])
				}
				s.observe.claimsStored(b, r)
			}
			for _, i := range tc.said {
				p.at[i].never = make([]attempt.Number, 5)
				p.at[i].never[1] = attempt.Of(5, 0) - 1
			}
			if got := s.observe.unsaid(b, p, &p.at[1]); got != tc.unsaid {
				t.Errorf("unsaid: %t", got)
			}
			if s.violation != nil {
				t.Error(s.violation)
			}
		})
	}
}
