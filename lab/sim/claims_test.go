package sim

import (
	"testing"

	"github.com/samya-db/samya/site/core"
)

// TestWhatAReleaseOwes: the open questions of an attempt of a release end where another
// site undoes the attempt, also within the transaction that parked it. The questions of a
// later attempt stay.
func TestWhatAReleaseOwes(t *testing.T) {
	key := core.RequestKey{1}
	record := func(state core.RequestState, count, relay uint32) core.RequestRecord {
		return core.RequestRecord{
			Key: key, Kind: core.ReleaseRequest, State: state, Attempt: core.AttemptOf(count, relay), Tokens: 4,
		}
	}
	claim := func(number core.ClaimNumber, count uint32, sites ...core.SiteID) core.ClaimRecord {
		return core.ClaimRecord{Sites: sites, ClaimAsk: core.ClaimAsk{
			Number: number, Kind: core.SettleRelease, Key: key, Entity: "e0", Tokens: 4, Attempt: core.AttemptOf(count, 0) - 1,
		}}
	}
	transaction := func(c core.ClaimRecord, records ...core.RequestRecord) core.Records {
		return core.Records{Block: core.RequestBlock{Records: records}, Claims: []core.ClaimRecord{c}}
	}
	parked, undone := record(core.Parked, 2, 0), record(core.Undone, 2, core.MaxRelays)
	later := transaction(claim(2, 5, "a", "d"), record(core.Parked, 5, 0))
	for name, tc := range map[string]struct {
		transactions []core.Records
		// said are the sites that have said that the request never ran there.
		said   []int
		unsaid bool
	}{
		"undone in one transaction": {
			[]core.Records{transaction(claim(1, 2, "a", "c", "d"), parked, undone), later}, []int{0, 3}, false,
		},
		"undone by the next transaction": {
			[]core.Records{transaction(claim(1, 2, "a", "c", "d"), parked), {Block: core.RequestBlock{Records: []core.RequestRecord{undone}}}, later},
			[]int{0, 3},
			false,
		},
		"not undone": {
			[]core.Records{transaction(claim(1, 2, "a", "c", "d"), parked), later}, []int{0, 3}, true,
		},
		"undone, and parked again, in one transaction": {
			[]core.Records{transaction(claim(2, 5, "a", "d"), parked, undone, record(core.Parked, 5, 0))}, []int{0}, true,
		},
		"undone, and one has not said it": {
			[]core.Records{transaction(claim(1, 2, "a", "c", "d"), parked, undone), later}, []int{3}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSim(Options{Sites: 5, Protocol: "majority"})
			p := &op{s: s, kind: release, key: key, entity: "e0", tokens: 4, at: make([]recorded, 5), taken: -1}
			s.opsByKey[key] = p
			b := s.nodes[1]
			b.durable, b.claims = NewMemory(1), make(map[core.ClaimNumber]askedAs)
			for i := range tc.transactions {
				r := &tc.transactions[i]
				s.observe.batch = r
				for j := range r.Block.Records {
					s.observe.recorded(b, p, &r.Block.Records[j])
				}
				s.observe.claimsStored(b, r)
			}
			for _, i := range tc.said {
				p.at[i].never = make([]core.Attempt, 5)
				p.at[i].never[1] = core.AttemptOf(5, 0) - 1
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
