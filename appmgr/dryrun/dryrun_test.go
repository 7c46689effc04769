package dryrun

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/durationpb"

	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// says fails unless one effect has each text.
func says(t *testing.T, d *samyav1.DryRun, texts ...string) {
	t.Helper()
	all := strings.Join(d.GetEffects(), "\n")
	for _, text := range texts {
		if !strings.Contains(all, text) {
			t.Errorf("no %q in:\n%s", text, all)
		}
	}
}

func usage(acquired int64, left ...int64) *samyav1.Usage {
	u := &samyav1.Usage{Acquired: acquired, Complete: true}
	for i, l := range left {
		u.Shares = append(u.Shares, &samyav1.Share{Site: string(rune('a' + i)), Left: l, Known: true})
	}
	return u
}

// TestLimit: tokens out beyond a lower limit are short, and have to be released first; the
// tokens left elsewhere change in proportion.
func TestLimit(t *testing.T) {
	e := &samyav1.Entity{Name: "acme/vm", Limit: 6000, Version: 3, Children: 2}
	raised := Limit(e, usage(1000, 4000, 1000), 11_000, &samyav1.Entity{Name: "acme", Limit: 9000})
	says(t, raised, "rises by 5,000 from 6,000 to 11,000 tokens", "1,000 tokens are out, and 10,000 can be granted", "No more than 9,000 tokens", "limits of 2 entities right below")
	if raised.GetTokensShort() != 0 || raised.GetSites()[0].GetLeftAfter() != 8000 || raised.GetSites()[1].GetLeftAfter() != 2000 || !raised.GetComplete() {
		t.Error(raised)
	}
	short := Limit(e, usage(1000, 4000, 1000), 400, nil)
	says(t, short, "falls by 5,600", "1,000 tokens are out, 600 more than the new limit: nothing is granted until so many are released")
	if short.GetTokensShort() != 600 || short.GetReleasesNeeded() != 600 || short.GetSites()[0].GetLeftAfter() != 0 {
		t.Error(short)
	}
	kept := usage(1000, 0, 0)
	kept.Surplus, kept.WrittenOff, kept.Debt = 10, 20, 5
	if d := Limit(e, kept, 2031, nil); d.GetTokensShort() != 0 || d.GetSites()[0].GetLeftAfter() != 501 || d.GetSites()[1].GetLeftAfter() != 500 {
		t.Error(d)
	} else {
		says(t, d, "debt of 5 tokens is paid", "1,001 can be granted")
	}
	if d := Limit(e, kept, 1029, nil); d.GetTokensShort() != 1 {
		t.Error(d)
	}
	says(t, Limit(e, usage(0, 6000), 6000, nil), "stays 6,000 tokens")
	says(t, Limit(e, usage(1000, 5000), 1001, nil), "Less than a twentieth")
	silent := usage(10, 20, 30)
	silent.Shares[1].Known = false
	if d := Limit(e, silent, 100, nil); d.GetComplete() {
		t.Error("complete without a site")
	} else {
		says(t, d, "Site b does not answer now")
	}
	old := usage(10, 20)
	old.Shares[0].Age = durationpb.New(1)
	says(t, Limit(e, old, 100, nil), "Site a does not answer now")
	says(t, Limit(&samyav1.Entity{Name: "q", Limit: 10, Per: "1m"}, usage(8, 2), 5, nil), "3 tokens more than the limit are granted already")
}

// TestCreate: the limit is cut into equal parts, and a parent's lower limit is told.
func TestCreate(t *testing.T) {
	sites := []*samyav1.Site{{Name: "us"}, {Name: "eu", Health: samyav1.SiteHealth_SITE_HEALTH_UNREACHABLE}, {Name: "as"}}
	d := Create(Creation{Entity: &samyav1.Entity{Name: "acme/vm", Limit: 1_000_001}, Parent: &samyav1.Entity{Name: "acme", Limit: 50}, Sites: sites})
	says(t, d, "limit of 1,000,001 tokens", "Each of 3 sites gets about 333,333 tokens", "acquired of acme too", "No more than 50 tokens", "Site eu does not answer now")
	if s := d.GetSites(); len(s) != 3 || s[0].GetSite() != "as" || s[0].GetLeftAfter() != 333_334 || s[2].GetLeftAfter() != 333_333 || d.GetComplete() {
		t.Error(d)
	}
	says(t, Create(Creation{Entity: &samyav1.Entity{Name: "calls", Limit: 60, Per: "1m", Keys: true}, Sites: sites[:1]}), "60 tokens in 1m", "quota of its own")
	if d := Create(Creation{Entity: &samyav1.Entity{Name: "x"}}); len(d.GetSites()) != 0 {
		t.Error(d)
	}
}

// TestDrain: a dry run of a drain tells the tokens handed over, and the needs of the members left.
func TestDrain(t *testing.T) {
	member := samyav1.MemberState_MEMBER_STATE_MEMBER
	members := []*samyav1.Member{{Name: "as", State: member}, {Name: "eu", State: member}, {Name: "us", State: member}, {Name: "old", State: samyav1.MemberState_MEMBER_STATE_GONE}}
	d := Drain("eu", "us", members, &samyav1.SiteSurvey{Entities: 3, TokensLeft: 1200, TokensOut: 7, Leases: 1, Waiting: 2})
	says(t, d, "hands over to us what it holds of 3 entities: 1,200 tokens left to grant, 7 out, and 1 lease.", "2 acquires wait", "2 members are left, and 2 of them are a majority", "the loss of one stops")
	if !d.GetComplete() {
		t.Error(d)
	}
	if d := Drain("eu", "us", members, nil); d.GetComplete() {
		t.Error(d)
	}
	says(t, Keep("eu"), "is a member again")
	says(t, Nothing("it is so"), "Nothing changes: it is so.")
}

func TestNumber(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1000: "-1,000", -999: "-999", 1<<53 - 1: "9,007,199,254,740,991"} {
		if got := number(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}
