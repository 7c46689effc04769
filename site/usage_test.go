package site

import (
	"testing"
	"time"

	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/core/answer"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

// TestUsage: each figure of a share has its own field, and the shares add up.
func TestUsage(t *testing.T) {
	s := shell()
	v := &answer.View{
		Name: "acme/vm", Limit: 100, Generation: 4, Version: 5, Left: -11, Offered: 12, Net: 13, Waiting: 14, Applied: 15, Moved: 16,
		Fetches: 17, Surplus: 18, WrittenOff: 34, Debt: 19, Usable: 20, DebtSince: 21, MayExceed: 22, Parent: "acme", Children: 2,
		Moves: answer.Moves{
			Pledged: true, Stars: []answer.StarMove{{Leader: "eu", Counter: 23, Applied: true}},
			Sent: []answer.TransferMove{{Site: "as", Seq: 24, Tokens: 25}}, Received: []answer.TransferMove{{Site: "eu", Seq: 26}},
		},
		Others: []answer.OtherView{{Site: "eu", Left: 31, Offered: -32, Net: 33, Age: 1500}, {Site: "as", Left: 1, Offered: 1, Net: 1, Age: answer.Never}},
	}
	own := &samyav1.Share{
		Site: "us", Left: -11, Offered: 12, Net: 13, Age: durationpb.New(0), Known: true, Waiting: 14, Redistributions: 31, Transfers: 17,
		Moves: &samyav1.Moves{
			Applied: 15, Moved: 16, Pledged: true, Owed: 19, OwedSince: 21,
			Stars:    []*samyav1.StarMove{{Leader: "eu", Counter: 23, Applied: true}},
			Sent:     []*samyav1.TransferMove{{Site: "as", Seq: 24, Tokens: 25}},
			Received: []*samyav1.TransferMove{{Site: "eu", Seq: 26}},
		},
	}
	want := &samyav1.Usage{
		Surplus: 18, WrittenOff: 34, Available: -30, Acquired: 13, InTransit: 12, Debt: 30, MayExceedBy: 22, Shares: []*samyav1.Share{own},
	}
	if got := s.usage(v, false); !proto.Equal(got, want) {
		t.Errorf("of itself\n%v\nwant\n%v", got, want)
	}
	want.Available, want.Acquired, want.InTransit, want.Debt = 1, 46, -20, 62
	want.Shares = []*samyav1.Share{
		{Site: "as"},
		{Site: "eu", Known: true, Age: durationpb.New(1500 * time.Millisecond), Left: 31, Offered: -32, Net: 33},
		own,
	}
	if got := s.usage(v, true); !proto.Equal(got, want) {
		t.Errorf("with others\n%v\nwant\n%v", got, want)
	}
	v.Count = answer.Count{Own: 41, Returning: 42, Leased: 43}
	own.Moves.Own, own.Moves.Returning, own.Moves.Leased = 41, 42, 43
	if got := cutOf(v, s.usage(v, false)); !proto.Equal(got.GetUsage().GetShares()[0], own) || !proto.Equal(got.GetEntity(), entityOf(v)) {
		t.Errorf("for a cut\n%v\nwant\n%v", got, own)
	}
	wantEntity := &samyav1.Entity{Name: "acme/vm", Limit: 100, Generation: 4, Version: 5, Parent: "acme", Children: 2}
	if got := entityOf(v); !proto.Equal(got, wantEntity) {
		t.Errorf("%v, want %v", got, wantEntity)
	}
	s.sites.Store(&memberSet{version: 1, sites: s.members()[2:]})
	if got := s.usage(v, false); !got.GetComplete() || got.GetConsistent() {
		t.Errorf("of the only site: %v", got)
	}
}

// TestWatchTokens: a token is written in a single way, and anything else is refused.
func TestWatchTokens(t *testing.T) {
	whole := watchToken{site: "us", run: 1, revision: 2, generation: 3}
	if got, err := parseWatchToken(whole.String()); err != nil || got != whole {
		t.Errorf("%+v, %v; want %+v", got, err, whole)
	}
	s := shell()
	s.run = 7
	a := &answer.Answer{Revision: 8, Details: &answer.Details{View: answer.View{Name: "vm", Generation: 9}}}
	if got, err := parseWatchToken(s.watchState(a).GetResumeToken()); err != nil || got != (watchToken{"us", 7, 8, 9}) {
		t.Errorf("the token of a state is %+v, %v", got, err)
	}
	for _, bad := range []string{
		"dXMuMS4yLjM=",                     // padded
		"dXMuMS4yLjN",                      // bits left over
		"dXMuMS4y",                         // three parts
		"dXMuMS4yLjMuNA",                   // five
		"VVMuMS4yLjM",                      // a site US
		"dXMuMDEuMi4z",                     // a zero ahead
		"dXMuMS4yLng",                      // no number
		"dXMuMS4yLjEwMDAwMDAwMDAwMDAwMDAw", // beyond 64 bits
	} {
		if got, err := parseWatchToken(bad); err == nil {
			t.Errorf("%q is taken as %+v", bad, got)
		}
	}
}
