package reads

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"pgregory.net/rapid"

	"github.com/samya-db/samya/appmgr/fake"
	"github.com/samya-db/samya/appmgr/route"
	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

var now = time.Unix(1_000_000, 0)

func told(site string, e *samyav1.Entity, left, net int64) reply {
	return reply{site: site, resp: fake.ShareOf(site, e, left, net)}
}

// heard adds to a reply the share of another site, as the reply's site has heard it.
func heard(r reply, of string, age time.Duration, left, net int64) reply {
	r.resp.Usage.Shares = append(r.resp.Usage.Shares, shown(of, age, left, net))
	return r
}

func failed(site string, err error) reply { return reply{site: site, err: err} }

func seenAt(age time.Duration, generation uint64, left, net int64) figure {
	return figure{share: &samyav1.Share{Left: left, Net: net}, generation: generation, seen: now.Add(-age)}
}

func shown(site string, age time.Duration, left, net int64) *samyav1.Share {
	return &samyav1.Share{Site: site, Known: true, Age: durationpb.New(age), Left: left, Net: net}
}

func TestMerge(t *testing.T) {
	for _, c := range []struct {
		what    string
		replies []reply
		old     map[string]figure
		entity  *samyav1.Entity
		usage   *samyav1.Usage
	}{
		{
			"all answer",
			[]reply{told("as", fake.Ent(100, 1, 1), 40, 10), told("us", fake.Ent(100, 1, 1), 45, 5)},
			nil, fake.Ent(100, 1, 1),
			&samyav1.Usage{Available: 85, Acquired: 15, Complete: true, Shares: []*samyav1.Share{shown("as", 0, 40, 10), shown("us", 0, 45, 5)}},
		},
		{
			"one is silent and was seen",
			[]reply{told("as", fake.Ent(100, 1, 1), 40, 10), failed("us", apierr.SiteUnavailable)},
			map[string]figure{"us": seenAt(3*time.Second, 1, 30, 5)},
			fake.Ent(100, 1, 1),
			&samyav1.Usage{Available: 70, Acquired: 15, InTransit: 15, Shares: []*samyav1.Share{shown("as", 0, 40, 10), shown("us", 3*time.Second, 30, 5)}},
		},
		{
			"one is silent and was never seen",
			[]reply{told("as", fake.Ent(100, 1, 1), 40, 10), failed("us", apierr.OutcomeUnknown)},
			nil, fake.Ent(100, 1, 1),
			&samyav1.Usage{Available: 40, Acquired: 10, InTransit: 50, Shares: []*samyav1.Share{shown("as", 0, 40, 10), {Site: "us"}}},
		},
		{
			"one is silent and others have heard of it since it was seen",
			[]reply{heard(told("as", fake.Ent(100, 1, 1), 40, 10), "us", 2*time.Second, 25, 15), failed("us", apierr.SiteUnavailable)},
			map[string]figure{"us": seenAt(3*time.Second, 1, 30, 5)},
			fake.Ent(100, 1, 1),
			&samyav1.Usage{Available: 65, Acquired: 25, InTransit: 10, Shares: []*samyav1.Share{shown("as", 0, 40, 10), shown("us", 2*time.Second, 25, 15)}},
		},
		{
			"one is silent and was seen since others have heard of it",
			[]reply{heard(told("as", fake.Ent(100, 1, 1), 40, 10), "us", 4*time.Second, 25, 15), failed("us", apierr.SiteUnavailable)},
			map[string]figure{"us": seenAt(3*time.Second, 1, 30, 5)},
			fake.Ent(100, 1, 1),
			&samyav1.Usage{Available: 70, Acquired: 15, InTransit: 15, Shares: []*samyav1.Share{shown("as", 0, 40, 10), shown("us", 3*time.Second, 30, 5)}},
		},
		{
			"of one that was never seen, the latest that others have heard",
			[]reply{
				heard(told("as", fake.Ent(100, 1, 1), 40, 10), "us", 4*time.Second, 25, 15),
				heard(told("eu", fake.Ent(100, 1, 1), 10, 0), "us", time.Second, 20, 20), failed("us", apierr.OutcomeUnknown),
			},
			nil, fake.Ent(100, 1, 1),
			&samyav1.Usage{Available: 70, Acquired: 30, Shares: []*samyav1.Share{shown("as", 0, 40, 10), shown("eu", 0, 10, 0), shown("us", time.Second, 20, 20)}},
		},
		{
			"what one with an earlier entity has heard is not of this one",
			[]reply{
				heard(told("as", fake.Ent(100, 1, 1), 40, 10), "us", time.Second, 25, 15), told("eu", fake.Ent(100, 2, 1), 100, 0), failed("us", apierr.OutcomeUnknown),
			},
			nil, fake.Ent(100, 2, 1),
			&samyav1.Usage{Available: 100, Shares: []*samyav1.Share{shown("as", 0, 0, 0), shown("eu", 0, 100, 0), {Site: "us"}}},
		},
		{
			"figures of an earlier entity of the name are none",
			[]reply{told("as", fake.Ent(100, 7, 1), 40, 10), failed("us", apierr.SiteUnavailable)},
			map[string]figure{"us": seenAt(time.Second, 6, 30, 5)},
			fake.Ent(100, 7, 1),
			&samyav1.Usage{Available: 40, Acquired: 10, InTransit: 50, Shares: []*samyav1.Share{shown("as", 0, 40, 10), {Site: "us"}}},
		},
		{
			"one has not heard of the entity yet",
			[]reply{told("as", fake.Ent(100, 1, 1), 50, 0), failed("us", apierr.NotFound("e"))},
			map[string]figure{"us": seenAt(time.Second, 1, 30, 5)},
			fake.Ent(100, 1, 1),
			&samyav1.Usage{Available: 50, InTransit: 50, Complete: true, Shares: []*samyav1.Share{shown("as", 0, 50, 0), shown("us", 0, 0, 0)}},
		},
		{
			"one still has the earlier entity",
			[]reply{told("as", fake.Ent(60, 1, 9), 60, 0), told("us", fake.Ent(100, 2, 1), 50, 0)},
			nil, fake.Ent(100, 2, 1),
			&samyav1.Usage{Available: 50, InTransit: 50, Complete: true, Shares: []*samyav1.Share{shown("as", 0, 0, 0), shown("us", 0, 50, 0)}},
		},
		{
			"a limit was raised and one has not applied it",
			[]reply{told("as", fake.Ent(200, 1, 2), 100, 0), told("us", fake.Ent(100, 1, 1), 30, 20)},
			nil, fake.Ent(200, 1, 2),
			&samyav1.Usage{Available: 130, Acquired: 20, InTransit: 50, Complete: true, Shares: []*samyav1.Share{shown("as", 0, 100, 0), shown("us", 0, 30, 20)}},
		},
		{
			"in debt",
			[]reply{told("as", fake.Ent(10, 1, 2), -30, 40)},
			nil, fake.Ent(10, 1, 2),
			&samyav1.Usage{Available: -30, Acquired: 40, Debt: 30, Complete: true, Shares: []*samyav1.Share{shown("as", 0, -30, 40)}},
		},
	} {
		got, keep, err := merge("e", c.replies, c.old, now)
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		if d := cmp.Diff(&samyav1.GetEntityResponse{Entity: c.entity, Usage: c.usage}, got, protocmp.Transform()); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.what, d)
		}
		for _, sh := range got.GetUsage().GetShares() {
			if _, ok := keep[sh.GetSite()]; ok != sh.GetKnown() {
				t.Errorf("%s: figures of %s kept: %t, known: %t", c.what, sh.GetSite(), ok, sh.GetKnown())
			}
		}
	}
	for _, c := range []struct {
		what    string
		replies []reply
		want    apierr.Reason
	}{
		{"nobody has it", []reply{failed("as", apierr.NotFound("e")), failed("us", apierr.NotFound("e"))}, apierr.EntityNotFound},
		{"nobody who answers has it", []reply{failed("as", apierr.SiteUnavailable), failed("us", apierr.NotFound("e"))}, apierr.EntityNotFound},
		{"nobody answers", []reply{failed("as", apierr.SiteUnavailable), failed("us", apierr.SiteUnavailable)}, apierr.SiteUnavailable},
		{"no members", nil, apierr.SiteUnavailable},
	} {
		if _, _, err := merge("e", c.replies, nil, now); apierr.ReasonOf(err) != c.want {
			t.Errorf("%s: %v, want %s", c.what, err, c.want)
		}
	}
}

// TestMergeBalances: whatever the sites tell, the sum accounts for the limit,
// and only figures shown as known are in it.
func TestMergeBalances(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount := rapid.Int64Range(-1<<53, 1<<53)
		var replies []reply
		old := map[string]figure{}
		for i := range rapid.IntRange(1, 7).Draw(t, "sites") {
			site := fmt.Sprint("s", i)
			e := fake.Ent(rapid.Int64Range(0, 1<<53).Draw(t, "limit"), rapid.Uint64Range(1, 2).Draw(t, "gen"), rapid.Uint64Range(1, 3).Draw(t, "ver"))
			switch rapid.IntRange(0, 2).Draw(t, "answer") {
			case 0:
				replies = append(replies, told(site, e, amount.Draw(t, "left"), amount.Draw(t, "net")))
			case 1:
				replies = append(replies, failed(site, apierr.SiteUnavailable))
			case 2:
				replies = append(replies, failed(site, apierr.NotFound("e")))
			}
			if rapid.Bool().Draw(t, "seen") {
				old[site] = seenAt(time.Minute, rapid.Uint64Range(1, 2).Draw(t, "old gen"), amount.Draw(t, "left"), amount.Draw(t, "net"))
			}
		}
		got, _, err := merge("e", replies, old, now)
		if err != nil {
			return
		}
		u := got.GetUsage()
		var left, net int64
		silent := false
		for i, sh := range u.GetShares() {
			if sh.GetSite() != replies[i].site {
				t.Fatalf("share %d is of %s", i, sh.GetSite())
			}
			left, net = left+sh.GetLeft(), net+sh.GetNet()
			silent = silent || !sh.GetKnown() || sh.GetAge().AsDuration() > 0
		}
		if left != u.GetAvailable() || net != u.GetAcquired() || u.GetInTransit() != got.GetEntity().GetLimit()-left-net {
			t.Fatalf("shares say %d and %d: %v", left, net, got)
		}
		if u.GetComplete() == silent {
			t.Fatalf("complete %t, silent %t", u.GetComplete(), silent)
		}
	})
}

func TestGlobalRead(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		t := r.t
		read := func() *samyav1.Usage {
			t.Helper()
			out, err := r.service.GetEntity(t.Context(), &samyav1.GetEntityRequest{Name: "e"})
			if err != nil {
				t.Fatal(err)
			}
			return out.GetUsage()
		}
		// The sum accounts for the whole limit: us has set aside the 25 tokens that no
		// site has.
		r.sites["us"].OnGet = tells(func() *samyav1.GetEntityResponse {
			resp := fake.ShareOf("us", fake.Ent(100, 1, 1), 20, 5)
			resp.Usage.Shares[0].Offered = 25
			return resp
		})
		began := time.Now()
		if u := read(); !u.GetComplete() || !u.GetConsistent() || u.GetAvailable() != 60 || u.GetInTransit() != 25 {
			t.Errorf("%v", u)
		}
		if d := time.Since(began); d != 160*time.Millisecond {
			t.Errorf("a read took %v, the farthest round trip is 160ms", d)
		}

		// A site that hangs costs two seconds. Its last known share is told.
		r.sites["eu"].OnGet = func(ctx context.Context, _ *samyav1.GetEntityRequest) (*samyav1.GetEntityResponse, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		began = time.Now()
		u := read()
		if u.GetComplete() || u.GetAvailable() != 60 || !u.GetShares()[1].GetKnown() {
			t.Errorf("%v", u)
		}
		if age := u.GetShares()[1].GetAge().AsDuration(); age != 2*time.Second {
			t.Errorf("the figure is %v old", age)
		}
		if d := time.Since(began); d != 2*time.Second {
			t.Errorf("a read took %v", d)
		}

		// A site known to be down costs nothing.
		r.sites["eu"].Kill()
		fake.Pass(time.Second)
		began = time.Now()
		if u := read(); u.GetComplete() || time.Since(began) > 200*time.Millisecond {
			t.Errorf("%v after %v", u, time.Since(began))
		}
		// The member set comes from a site, not from the directory.
		r.directory.Set(route.SiteInfo{Name: "us", Region: "us", Address: "us"})
		fake.Pass(time.Second)
		if u := read(); u.GetComplete() || len(u.GetShares()) != 3 {
			t.Errorf("%v", u)
		}
		if _, err := r.service.GetEntity(t.Context(), &samyav1.GetEntityRequest{Name: "none"}); !errors.Is(err, apierr.EntityNotFound) {
			t.Errorf("got %v", err)
		}
	})
}

// tells answers reads of e, and knows no other entity.
func tells(f func() *samyav1.GetEntityResponse) func(context.Context, *samyav1.GetEntityRequest) (*samyav1.GetEntityResponse, error) {
	return func(_ context.Context, in *samyav1.GetEntityRequest) (*samyav1.GetEntityResponse, error) {
		if in.GetName() != "e" {
			return nil, apierr.NotFound(in.GetName())
		}
		return f(), nil
	}
}

func TestForeignMemberSet(t *testing.T) {
	inBubble(t, []string{"us"}, func(c *route.Config) { c.Cluster = "other" }, func(r *rig) {
		t := r.t
		if _, err := r.service.ListSites(t.Context(), &samyav1.ListSitesRequest{}); err == nil {
			t.Error("took the word of a site of another cluster")
		}
	})
}

func TestLastSeen(t *testing.T) {
	l := newLastSeen(2)
	f := func(age time.Duration, generation uint64) map[string]figure {
		return map[string]figure{"us": seenAt(age, generation, 1, 1)}
	}
	l.put("a", f(0, 1))
	l.put("b", f(0, 1))
	l.get("a")
	l.put("c", f(0, 1))
	if l.get("a") == nil || l.get("b") != nil || l.get("c") == nil || l.order.Len() != 2 || len(l.byKey) != 2 {
		t.Errorf("not the least recently used was dropped: %v", l.byKey)
	}
	l.put("a", f(time.Second, 1))
	if !l.get("a")["us"].seen.Equal(now) {
		t.Error("an older figure replaced a newer one")
	}
	l.put("a", f(time.Second, 2))
	if l.get("a")["us"].generation != 2 {
		t.Error("the figure of a later entity did not replace that of an earlier one")
	}
	l.put("a", map[string]figure{})
	if len(l.get("a")) != 0 {
		t.Error("the figure of a site that is no member stayed")
	}
}

// TestExactKnowsWhatBoundedKnows: for a site that is down, an exact read tells the
// figures that other sites have heard, like a bounded read. JSON has null for unknown
// figures.
func TestExactKnowsWhatBoundedKnows(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		t := r.t
		for n, age := range map[string]time.Duration{"us": 3 * time.Second, "eu": 2 * time.Second} {
			r.sites[n].OnGet = func(_ context.Context, in *samyav1.GetEntityRequest) (*samyav1.GetEntityResponse, error) {
				out := fake.ShareOf(n, fake.Ent(100, 1, 1), 20, 5)
				if in.GetConsistency() == samyav1.Consistency_CONSISTENCY_BOUNDED {
					for _, other := range []string{"us", "eu"} {
						if other != n {
							out.Usage.Shares = append(out.Usage.Shares, shown(other, age, 1, 1))
						}
					}
					out.Usage.Shares = append(out.Usage.Shares, shown("au", age, 40, 10))
				}
				return out, nil
			}
		}
		r.sites["au"].Kill()
		fake.Pass(5 * time.Second)
		read := func(how samyav1.Consistency) *samyav1.GetEntityResponse {
			out, err := r.service.GetEntity(t.Context(), &samyav1.GetEntityRequest{Name: "e", Consistency: how})
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
		exact := read(samyav1.Consistency_CONSISTENCY_EXACT).GetUsage()
		au := exact.GetShares()[slices.IndexFunc(exact.GetShares(), func(s *samyav1.Share) bool { return s.GetSite() == "au" })]
		if exact.GetComplete() || exact.GetAvailable() != 80 || exact.GetAcquired() != 20 || !au.GetKnown() || au.GetLeft() != 40 ||
			au.GetAge().AsDuration() < 2*time.Second || au.GetAge().AsDuration() > 3*time.Second {
			t.Errorf("exact: %v", exact)
		}
		bounded := read(samyav1.Consistency_CONSISTENCY_BOUNDED).GetUsage()
		for _, sh := range bounded.GetShares() {
			if sh.GetSite() == "au" && sh.GetAge().AsDuration() < au.GetAge().AsDuration() {
				t.Errorf("bounded knows au as of %v ago, exact of %v", sh.GetAge().AsDuration(), au.GetAge().AsDuration())
			}
		}
		// Nobody has heard of it.
		r.sites["us"].OnGet, r.sites["eu"].OnGet = nil, nil
		out, err := r.service.GetEntity(t.Context(), &samyav1.GetEntityRequest{Name: "new"})
		if err != nil {
			t.Fatal(err)
		}
		u := out.GetUsage()
		unknown := slices.ContainsFunc(u.GetShares(), func(s *samyav1.Share) bool { return s.GetSite() == "au" && !s.GetKnown() })
		if u.GetComplete() || !unknown {
			t.Errorf("%v has a figure of au", u)
		}
	})
}

// grown has sites tell other members. The other sites go on telling the former ones.
func (r *rig) grown(version uint64, members []string, sites ...string) {
	fake.Pass(0)
	for _, n := range sites {
		r.sites[n].Tell(members, version)
	}
}

// TestExactAsksASiteThatJoined: an app manager that knows the former members asks the site
// that has joined as well, once one site tells of it, whatever the others tell. If nobody
// tells who the members are, the read is not complete.
func TestExactAsksASiteThatJoined(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		t := r.t
		read := func() (sites []string, complete bool) {
			resp, err := r.service.GetEntity(t.Context(), &samyav1.GetEntityRequest{Name: "acme/vm", Consistency: samyav1.Consistency_CONSISTENCY_EXACT})
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range resp.GetUsage().GetShares() {
				sites = append(sites, s.GetSite())
			}
			return sites, resp.GetUsage().GetComplete()
		}
		r.grown(1, []string{"us"}, fake.ThreeSites...)
		fake.Pass(10 * time.Second)
		if sites, complete := read(); !complete || !slices.Equal(sites, []string{"us"}) {
			t.Errorf("before: %v, complete %v", sites, complete)
		}
		r.sites["au"].Kill()
		r.grown(2, []string{"au", "us"}, "us")
		if sites, complete := read(); complete || !slices.Equal(sites, []string{"au", "us"}) {
			t.Errorf("the new site is silent: %v, complete %v", sites, complete)
		}
		r.sites["au"].Up()
		fake.Pass(3 * time.Second)
		r.grown(3, []string{"au", "eu", "us"}, "au")
		if sites, complete := read(); !complete || !slices.Equal(sites, []string{"au", "eu", "us"}) {
			t.Errorf("after: %v, complete %v", sites, complete)
		}
		r.grown(4, nil, "au")
		if sites, complete := read(); complete {
			t.Errorf("nobody tells the members: %v, complete %v", sites, complete)
		}
	})
}
