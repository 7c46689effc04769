package site_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site"
	"github.com/samya-db/samya/site/core"
	"github.com/samya-db/samya/site/sitetest"
)

// seat reads the seat of a site at another site.
func seat(t *testing.T, c *sitetest.Cluster, at, name string) *samyav1.Member {
	t.Helper()
	resp, err := members(t, c, at)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(resp.GetMembers(), func(m *samyav1.Member) bool { return m.GetName() == name })
	if i < 0 {
		t.Fatalf("%s knows no site %s: %v", at, name, resp)
	}
	return resp.GetMembers()[i]
}

// drain asks for a drain until no other change is under way.
func drain(t *testing.T, c *sitetest.Cluster, at string, r *samyav1.DrainMemberRequest) (m *samyav1.Member) {
	t.Helper()
	sitetest.Eventually(t, "a drain", func() error {
		resp, err := c.Admin(at).DrainMember(t.Context(), r)
		m = resp.GetMember()
		if err != nil && !errors.Is(apierr.FromGRPC(err), apierr.MembersChanging) {
			t.Fatal(err)
		}
		return err
	})
	return m
}

// TestMembersAreRefused: what does not fit a site's state is refused, with the reason in
// words, and changes nothing.
func TestMembersAreRefused(t *testing.T) {
	c := sitetest.Start(t, []string{"as", "eu", "us"}, nil)
	addMember(t, c, "us", "west")
	for _, r := range []struct {
		ask  func() error
		want apierr.Reason
	}{
		{drains(t, c, &samyav1.DrainMemberRequest{}), apierr.InvalidField},
		{drains(t, c, &samyav1.DrainMemberRequest{Name: "eu", Heir: "as", Cancel: true}), apierr.InvalidField},
		{drains(t, c, &samyav1.DrainMemberRequest{Name: "none"}), apierr.MemberNotFound},
		{drains(t, c, &samyav1.DrainMemberRequest{Name: "west"}), apierr.MemberState},
		{drains(t, c, &samyav1.DrainMemberRequest{Name: "eu", Heir: "eu"}), apierr.InvalidField},
		{drains(t, c, &samyav1.DrainMemberRequest{Name: "eu", Heir: "west"}), apierr.InvalidField},
		{removes(t, c, &samyav1.RemoveMemberRequest{}), apierr.InvalidField},
		{removes(t, c, &samyav1.RemoveMemberRequest{Name: "eu", RequestId: "a b"}), apierr.InvalidField},
		{removes(t, c, &samyav1.RemoveMemberRequest{Name: "none"}), apierr.MemberNotFound},
		{removes(t, c, &samyav1.RemoveMemberRequest{Name: "eu"}), apierr.MemberState},
		{removes(t, c, &samyav1.RemoveMemberRequest{Name: "west", Lost: true}), apierr.MemberState},
	} {
		if err := r.ask(); err == nil || !errors.Is(apierr.FromGRPC(err), r.want) {
			t.Errorf("%v, want %s", err, r.want)
		}
	}
	for _, name := range []string{"as", "eu", "us"} {
		if m := seat(t, c, "us", name); m.GetState() != samyav1.MemberState_MEMBER_STATE_MEMBER {
			t.Errorf("%v", m)
		}
	}
	resp, err := c.Admin("eu").RemoveMember(t.Context(), &samyav1.RemoveMemberRequest{Name: "west"})
	if err != nil || resp.GetMember().GetState() != samyav1.MemberState_MEMBER_STATE_GONE || resp.GetVersion() != 1 {
		t.Errorf("%v, %v", resp, err)
	}
	if err := drains(t, c, &samyav1.DrainMemberRequest{Name: "west", Cancel: true})(); !errors.Is(apierr.FromGRPC(err), apierr.MemberState) {
		t.Errorf("a site that was removed is kept: %v", err)
	}
}

func drains(t *testing.T, c *sitetest.Cluster, r *samyav1.DrainMemberRequest) func() error {
	t.Helper()
	return func() error {
		_, err := c.Admin("us").DrainMember(t.Context(), r)
		return err
	}
}

func removes(t *testing.T, c *sitetest.Cluster, r *samyav1.RemoveMemberRequest) func() error {
	t.Helper()
	return func() error {
		_, err := c.Admin("us").RemoveMember(t.Context(), r)
		return err
	}
}

// TestOneSiteLeavesAtATime: the heir is the next site by name unless one is named. A second
// drain waits. A drain that ended makes a member of the site again; the heir keeps the leases
// that it was handed, and stays named.
func TestOneSiteLeavesAtATime(t *testing.T) {
	c := sitetest.Start(t, []string{"as", "eu", "us"}, nil)
	c.Create("vm", 90)
	// A request on record keeps the site from leaving at once.
	sitetest.Eventually(t, "tokens at eu", func() error {
		_, err := c.Tokens("eu").Acquire(t.Context(), &samyav1.AcquireRequest{Entity: "vm", Tokens: 1, RequestId: "held"})
		return err
	})
	m := drain(t, c, "us", &samyav1.DrainMemberRequest{Name: "eu"})
	if m.GetState() != samyav1.MemberState_MEMBER_STATE_DRAINING || m.GetHeir() != "us" {
		t.Fatalf("%v", m)
	}
	if err := drains(t, c, &samyav1.DrainMemberRequest{Name: "as"})(); !errors.Is(apierr.FromGRPC(err), apierr.MembersChanging) {
		t.Errorf("a second drain: %v", err)
	}
	if m := drain(t, c, "us", &samyav1.DrainMemberRequest{Name: "eu", Cancel: true}); m.GetState() != samyav1.MemberState_MEMBER_STATE_MEMBER || m.GetHeir() != "us" {
		t.Errorf("%v", m)
	}
	settled(t, c, "us", 3)
	if m := drain(t, c, "eu", &samyav1.DrainMemberRequest{Name: "eu", Heir: "as"}); m.GetHeir() != "as" {
		t.Errorf("%v", m)
	}
}

// TestASiteLeaves: a site hands over all that it holds and is gone, and tells on the way what
// it waits for. Nothing is lost, and the heir serves.
func TestASiteLeaves(t *testing.T) {
	t.Parallel()
	c := sitetest.Start(t, []string{"as", "eu", "us"}, func(cfg *site.Config) {
		cfg.RequestRetention = 5 * time.Second
	})
	c.Create("vm", 90)
	sitetest.Eventually(t, "tokens at eu", func() error {
		_, err := c.Tokens("eu").Acquire(t.Context(), &samyav1.AcquireRequest{Entity: "vm", Tokens: 10, RequestId: "held"})
		return err
	})
	drain(t, c, "us", &samyav1.DrainMemberRequest{Name: "eu", Heir: "us"})
	told := false
	sitetest.Eventually(t, "eu is gone", func() error {
		if m, err := members(t, c, "eu"); err == nil {
			for _, own := range m.GetMembers() {
				told = told || own.GetName() == "eu" && own.GetDrain() != nil && own.GetWaitsFor() != ""
			}
		}
		if m := seat(t, c, "as", "eu"); m.GetState() != samyav1.MemberState_MEMBER_STATE_GONE || m.GetHeir() != "us" {
			return fmt.Errorf("%v", m)
		}
		return nil
	})
	if !told {
		t.Error("the site did not tell what it waits for")
	}
	if _, out := errors.AsType[*core.OutError](c.Ended("eu")); !out {
		t.Error("the site that has left does not end by itself")
	}
	sitetest.Eventually(t, "the books", func() error {
		if b := c.Books("vm"); b.GetAvailable() != 80 || b.GetAcquired() != 10 || b.GetInTransit() != 0 {
			return fmt.Errorf("%v", b)
		}
		return nil
	})
	resp, err := c.Admin("us").DrainMember(t.Context(), &samyav1.DrainMemberRequest{Name: "eu"})
	if err != nil || resp.GetMember().GetState() != samyav1.MemberState_MEMBER_STATE_GONE {
		t.Errorf("a repeat: %v, %v", resp, err)
	}
}
