package site_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site"
	"github.com/samya-db/samya/site/sitetest"
)

// TestSurvey: a site tells what it holds, what it did, and whom it reaches. An app manager
// asks all sites, and tells which do not answer.
func TestSurvey(t *testing.T) {
	names := []string{"eu", "us"}
	c := sitetest.Start(t, names, nil)
	c.Create("org", 100)
	c.Create("other", 50)
	for i, tokens := range []int64{7, 1000} {
		_, _ = c.Tokens("us").Acquire(t.Context(), &samyav1.AcquireRequest{Entity: "org", Tokens: tokens, RequestId: fmt.Sprint("r", i), MinTokens: tokens})
	}
	sitetest.Eventually(t, "the survey of us", func() error {
		got, err := c.Admin("us").SurveySites(t.Context(), &samyav1.SurveySitesRequest{})
		if err != nil {
			return err
		}
		if s := got.GetSites(); len(s) != 1 || s[0].GetEntities() != 2 || s[0].GetTokensOut() != 7 || s[0].GetTokensLeft()+s[0].GetTokensOffered() != 68 ||
			s[0].GetGranted() != 1 || s[0].GetWaitsFor() != "" || len(s[0].GetPeers()) != 1 || !s[0].GetPeers()[0].GetConnected() ||
			s[0].GetPeers()[0].GetRoundTrip().AsDuration() <= 0 || got.GetComplete() {
			return fmt.Errorf("%v", got)
		}
		return nil
	})
}

// TestHistoryOfEntity: a site remembers the changes that were asked of it, also after a
// restart, and not the dry runs, which it refuses.
func TestHistoryOfEntity(t *testing.T) {
	c := sitetest.Start(t, []string{"eu", "us"}, nil)
	c.Serves("us")
	us := c.Entities("us")
	created, err := us.CreateEntity(t.Context(), &samyav1.CreateEntityRequest{Name: "vm", Limit: 10, RequestId: "c"})
	if err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int64{20, 30} {
		for range 2 { // a repeat is no change
			if _, err := us.UpdateEntity(t.Context(), &samyav1.UpdateEntityRequest{Name: "vm", Limit: limit, RequestId: fmt.Sprint("u", limit)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	_, err = us.UpdateEntity(t.Context(), &samyav1.UpdateEntityRequest{Name: "vm", Limit: 5, DryRun: true})
	if err == nil || !strings.Contains(err.Error(), "dry_run") {
		t.Errorf("a dry run at a site: %v", err)
	}
	history := func(site string) (all []string) {
		t.Helper()
		got, err := c.Entities(site).GetEntityHistory(t.Context(), &samyav1.GetEntityHistoryRequest{Name: "vm"})
		if err != nil {
			t.Fatal(err)
		}
		for _, ch := range got.GetChanges() {
			if ch.GetGeneration() != created.GetEntity().GetGeneration() || ch.GetSite() != site || ch.GetAtMs() == 0 {
				t.Errorf("%v", ch)
			}
			all = append(all, fmt.Sprintf("%s %s %d>%d v%d", ch.GetKind(), ch.GetRequestId(), ch.GetOldLimit(), ch.GetNewLimit(), ch.GetVersion()))
		}
		return all
	}
	want := []string{"limit u30 20>30 v3", "limit u20 10>20 v2", "create c 0>10 v1"}
	if got := history("us"); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if got := history("eu"); len(got) != 0 {
		t.Errorf("eu was asked nothing, and has %q", got)
	}
	c.Stop("us")
	c.Boot("us")
	c.Serves("us")
	if got := history("us"); !slices.Equal(got, want) {
		t.Errorf("after a restart: %q", got)
	}
}

// TestActivityUnderLoad: whatever partitions serve, while somebody looks, is counted once.
func TestActivityUnderLoad(t *testing.T) {
	const clients, rounds = 8, 50
	c := sitetest.Start(t, []string{"us"}, func(cfg *site.Config) { cfg.Partitions = 4 })
	for i := range clients {
		c.Create(fmt.Sprint("vm", i), 1000)
	}
	look := func(entity string) (granted, released int64) {
		t.Helper()
		got, err := c.Entities("us").GetEntityActivity(t.Context(), &samyav1.GetEntityActivityRequest{Name: entity})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range got.GetSites()[0].GetPoints() {
			granted += p.GetGranted()
			released += p.GetReleased()
		}
		return granted, released
	}
	for i := range clients {
		look(fmt.Sprint("vm", i))
	}
	var load sync.WaitGroup
	for i := range clients {
		load.Go(func() {
			for n := range rounds {
				entity := fmt.Sprint("vm", (i+n)%clients)
				if _, err := c.Tokens("us").Acquire(t.Context(), &samyav1.AcquireRequest{Entity: entity, Tokens: 3}); err != nil {
					t.Error(err)
				}
				if _, err := c.Tokens("us").Release(t.Context(), &samyav1.ReleaseRequest{Entity: entity, Tokens: 2}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	load.Wait()
	sitetest.Eventually(t, "all is counted", func() error {
		var granted, released int64
		for i := range clients {
			g, r := look(fmt.Sprint("vm", i))
			granted, released = granted+g, released+r
		}
		if granted != 3*clients*rounds || released != 2*clients*rounds {
			return fmt.Errorf("%d granted, %d released", granted, released)
		}
		return nil
	})
}

// TestActivityOfEntity: from the first look on a site notes what is asked of an entity, and
// answers tell what came after a time.
func TestActivityOfEntity(t *testing.T) {
	c := sitetest.Start(t, []string{"eu", "us"}, nil)
	c.Create("vm", 100)
	look := func(since int64) *samyav1.GetEntityActivityResponse {
		t.Helper()
		got, err := c.Entities("us").GetEntityActivity(t.Context(), &samyav1.GetEntityActivityRequest{Name: "vm", SinceMs: since})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if first := look(0); len(first.GetSites()) != 1 || len(first.GetSites()[0].GetPoints()) != 0 || first.GetSites()[0].GetModel() == "" || first.GetNowMs() == 0 {
		t.Errorf("%v", first)
	}
	if _, err := c.Tokens("us").Acquire(t.Context(), &samyav1.AcquireRequest{Entity: "vm", Tokens: 60, RequestId: "r"}); err != nil {
		t.Fatal(err)
	}
	var until int64
	sitetest.Eventually(t, "60 tokens were granted, of which others came", func() error {
		var granted, came int64
		got := look(0)
		until = got.GetNowMs()
		for _, p := range got.GetSites()[0].GetPoints() {
			granted += p.GetGranted()
		}
		for _, m := range got.GetSites()[0].GetMoves() {
			if m.GetTo() == "us" {
				came += m.GetTokens()
			}
			if m.GetTokens() <= 0 {
				return fmt.Errorf("%v", m)
			}
		}
		if granted != 60 || came < 10 {
			return errors.New(got.String())
		}
		return nil
	})
	if later := look(until).GetSites()[0]; len(later.GetMoves()) != 0 {
		t.Errorf("%v", later)
	}
	_, err := c.Entities("us").GetEntityActivity(t.Context(), &samyav1.GetEntityActivityRequest{Name: "none"})
	if apierr.FromGRPC(err).Reason != apierr.EntityNotFound {
		t.Errorf("%v", err)
	}
}

// TestDryRunsRefuse: a dry run is refused like the change, and leaves all as it was.
func TestDryRunsRefuse(t *testing.T) {
	names := []string{"as", "eu", "us"}
	c := sitetest.Start(t, names, nil)
	c.Create("org", 100)
	entities := front(t, c, names...)
	create := func(name, parent string) error {
		_, err := entities.CreateEntity(t.Context(), &samyav1.CreateEntityRequest{Name: name, Limit: 5, Parent: parent, DryRun: true})
		return err
	}
	for what, c := range map[string]struct {
		err  error
		want apierr.Reason
	}{
		"a name that is taken":    {create("org", ""), apierr.EntityExists},
		"a parent that is absent": {create("new", "none"), apierr.ParentNotFound},
		"a beginning of a name":   {create("or", ""), ""},
		"a child":                 {create("org/vm", "org"), ""},
	} {
		if c.want == "" {
			if c.err != nil {
				t.Errorf("%s: %v", what, c.err)
			}
		} else if got := apierr.FromGRPC(c.err).Reason; got != c.want {
			t.Errorf("%s: %s, want %s", what, got, c.want)
		}
	}
	got, err := entities.UpdateEntity(t.Context(), &samyav1.UpdateEntityRequest{Name: "org", Limit: 400, ExpectedVersion: 1, DryRun: true})
	if d := got.GetDryRun(); err != nil || len(d.GetSites()) != 3 || d.GetSites()[0].GetLeftAfter() < 130 || got.GetEntity().GetVersion() != 2 || !d.GetComplete() {
		t.Errorf("%v, %v", got, err)
	}
	list, err := entities.ListEntities(t.Context(), &samyav1.ListEntitiesRequest{})
	if all := list.GetEntities(); err != nil || len(all) != 1 || all[0].GetLimit() != 100 || all[0].GetVersion() != 1 {
		t.Errorf("%v, %v", all, err)
	}
}
