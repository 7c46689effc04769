package site

import (
	"strings"
	"testing"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/input"
)

// inEachState are members of which each is in another state.
func inEachState(behind int) *answer.Members {
	return &answer.Members{Version: 7, Behind: behind, Sites: []answer.Member{
		{Site: "drains", State: "draining", Heir: "eu"},
		{Site: "eu", State: "member"},
		{Site: "gone", State: "gone", Heir: "eu"},
		{Site: "joins", State: "joining"},
		{Site: "lost", State: "lost"},
		{Site: "us", State: "member"},
	}}
}

// TestRefusedChanges: each refusal of a change of the members is told in words, with what
// can be done instead.
func TestRefusedChanges(t *testing.T) {
	for _, c := range []struct {
		kind   input.ChangeKind
		name   string
		heir   core.SiteID
		code   answer.Code
		behind int
		want   apierr.Reason
		words  string
	}{
		{kind: input.AddSite, name: "west", code: answer.Overloaded, want: apierr.OutOfRange, words: "64 sites"},
		{kind: input.DrainSite, name: "eu", code: answer.Overloaded, want: apierr.OutOfRange, words: "changed 7 times"},
		{kind: input.DrainSite, name: "none", code: answer.NotFound, want: apierr.MemberNotFound, words: `no site "none"`},
		{kind: input.DrainSite, name: "eu", code: answer.Changing, want: apierr.MembersChanging, words: `"drains" drains`},
		{kind: input.DrainSite, name: "eu", code: answer.Changing, behind: 1, want: apierr.MembersChanging, words: "1 entity has to adopt"},
		{kind: input.LoseSite, name: "eu", code: answer.Changing, behind: 12, want: apierr.MembersChanging, words: "12 entities have to adopt"},
		{kind: input.DrainSite, name: "us", code: answer.Mismatch, want: apierr.MembersChanging, words: "drains"},
		{kind: input.KeepSite, name: "drains", code: answer.Mismatch, want: apierr.MembersChanging, words: "meanwhile"},
		{kind: input.LoseSite, name: "eu", code: answer.Mismatch, want: apierr.MembersChanging, words: "meanwhile"},
		{kind: input.DrainSite, name: "joins", code: answer.Mismatch, want: apierr.MemberState, words: "remove it instead"},
		{kind: input.DrainSite, name: "lost", code: answer.Mismatch, want: apierr.MemberState, words: "written off"},
		{kind: input.DrainSite, name: "eu", heir: "eu", code: answer.Invalid, want: apierr.InvalidField, words: "the site itself"},
		{kind: input.DrainSite, name: "eu", heir: "joins", code: answer.Invalid, want: apierr.InvalidField, words: "not a member"},
		{kind: input.DrainSite, name: "eu", code: answer.Invalid, want: apierr.MemberState, words: "only member"},
		{kind: input.KeepSite, name: "joins", code: answer.Mismatch, want: apierr.MemberState, words: "does not drain"},
		{kind: input.KeepSite, name: "gone", code: answer.Mismatch, want: apierr.MemberState, words: "has left"},
		{kind: input.KeepSite, name: "lost", code: answer.Mismatch, want: apierr.MemberState, words: "written off"},
		{kind: input.RemoveSite, name: "eu", code: answer.Mismatch, want: apierr.MemberState, words: "drain it, or remove it as lost"},
		{kind: input.RemoveSite, name: "drains", code: answer.Mismatch, want: apierr.MemberState, words: "leaves by itself"},
		{kind: input.RemoveSite, name: "lost", code: answer.Mismatch, want: apierr.MemberState, words: "already"},
		{kind: input.RemoveSite, name: "joins", code: answer.Invalid, want: apierr.InvalidField, words: "name"},
		{kind: input.LoseSite, name: "joins", code: answer.Mismatch, want: apierr.MemberState, words: "not as lost"},
		{kind: input.LoseSite, name: "gone", code: answer.Mismatch, want: apierr.MemberState, words: "has left"},
		{kind: input.LoseSite, name: "eu", code: answer.Invalid, want: apierr.MemberState, words: "only voter"},
		{kind: input.RescueSite, name: "eu", code: answer.Mismatch, want: apierr.MemberState, words: "not written off"},
		{kind: input.RescueSite, name: "lost", code: answer.Changing, want: apierr.MembersChanging, words: "not back yet"},
		{kind: input.RescueSite, name: "none", code: answer.NotFound, want: apierr.MemberNotFound, words: `no site "none"`},
	} {
		ch := &input.Change{Kind: c.kind, Name: c.name, Heir: c.heir, RequestID: "id"}
		e := refusedChange(inEachState(c.behind), ch, c.code)
		if e.Reason != c.want || !strings.Contains(e.Error(), c.words) {
			t.Errorf("%s of %s, %v: %v, want %s with %q", c.kind, c.name, c.code, e, c.want, c.words)
		}
		if retry := e.RetryAfter > 0; retry != (c.want == apierr.MembersChanging) {
			t.Errorf("%s of %s, %v: try again after %v", c.kind, c.name, c.code, e.RetryAfter)
		}
	}
}

// TestMemberRefusal: what has nothing to do with the members is told as for any change.
func TestMemberRefusal(t *testing.T) {
	ch := &input.Change{Kind: input.DrainSite, Name: "eu", RequestID: "id"}
	for code, want := range map[answer.Code]apierr.Reason{
		answer.Overloaded: apierr.Overloaded, answer.NoQuorum: apierr.NoQuorum, answer.Unknown: apierr.OutcomeUnknown, answer.Reused: apierr.RequestIDReused,
	} {
		err := shell().refusal(t.Context(), answer.Answer{Code: code, RetryAfter: 1000}, ch)
		if e := apierr.From(err); e.Reason != want || e.Entity != "" {
			t.Errorf("%v: %v, want %s", code, err, want)
		}
	}
	if err := shell().refusal(t.Context(), answer.Answer{}, ch); err != nil {
		t.Error(err)
	}
}

// TestDrainWaitsFor: a site that drains tells in words all that it waits for.
func TestDrainWaitsFor(t *testing.T) {
	all := &answer.Members{}
	for _, c := range []struct {
		m    answer.Member
		want string
	}{
		{answer.Member{}, "the site to hear that it drains"},
		{answer.Member{Knows: true}, "the site to hand over what it holds"},
		{answer.Member{Knows: true, Drain: &answer.Drain{}}, "the site to note that it holds nothing"},
		{answer.Member{Knows: true, Drain: &answer.Drain{Emptied: true}}, "the members to retire it"},
		{answer.Member{Knows: true, Drain: &answer.Drain{Entities: 1, Leases: 1, Claims: 1}}, "1 entity to be handed over to eu, 1 lease, 1 claim to be answered"},
		{
			answer.Member{Knows: true, Drain: &answer.Drain{Entities: 213, Leases: 3, Claims: 2, Records: 249_001, Unclear: []core.SiteID{"as", "us"}}},
			"213 entities to be handed over to eu, 3 leases, 2 claims to be answered, requests of the last 4m10s to be forgotten",
		},
		{answer.Member{Knows: true, Drain: &answer.Drain{Unclear: []core.SiteID{"us"}}}, "us to settle its transfers"},
		{answer.Member{Knows: true, Drain: &answer.Drain{Unclear: []core.SiteID{"as", "us"}}}, "as and us to settle their transfers"},
	} {
		c.m.State, c.m.Heir = "draining", "eu"
		if got := memberWaitsFor(all, &c.m, true, ""); got != c.want {
			t.Errorf("%+v: %q, want %q", c.m.Drain, got, c.want)
		}
	}
	behind := &answer.Members{Behind: 2}
	if got := memberWaitsFor(all, &answer.Member{Site: "west", State: "joining"}, false, "its build is too new"); got != "another build or cluster, as west is refused: its build is too new" {
		t.Errorf("a refused site that joins waits for %q", got)
	}
	if got := memberWaitsFor(behind, &answer.Member{State: "draining", Knows: true, Drain: &answer.Drain{}}, true, ""); got != "2 entities to adopt the new voters" {
		t.Errorf("%q", got)
	}
}

// TestDrainTold: all figures of a drain are told.
func TestDrainTold(t *testing.T) {
	if drainOf(nil) != nil || drainOf(&answer.Drain{}).GetRecords() != nil {
		t.Error("something is told of nothing")
	}
	d := drainOf(&answer.Drain{Entities: 1, Leases: 2, Claims: 3, Tokens: -4, Records: 5500, Unclear: []core.SiteID{"us"}, Emptied: true})
	if d.GetEntities() != 1 || d.GetLeases() != 2 || d.GetClaims() != 3 || d.GetTokens() != -4 ||
		d.GetRecords().AsDuration().Seconds() != 5.5 || len(d.GetUnclear()) != 1 || d.GetUnclear()[0] != "us" || !d.GetEmptied() {
		t.Errorf("%v", d)
	}
}
