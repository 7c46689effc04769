package site_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/sitetest"
)

// leaseAt has us grant a lease of tokens for an hour.
func leaseAt(t *testing.T, c *sitetest.Cluster, id, entity, holder string, tokens int64) *samyav1.Lease {
	t.Helper()
	resp, err := c.Tokens("us").Acquire(t.Context(), &samyav1.AcquireRequest{
		Entity: entity, Tokens: tokens, RequestId: id, Lease: &samyav1.LeaseTerms{Ttl: durationpb.New(time.Hour), Holder: holder},
	})
	if err != nil {
		t.Fatal(err)
	}
	return resp.GetLease()
}

// wantLease checks a lease with all of its time left, or up to a minute less.
func wantLease(t *testing.T, what string, l *samyav1.Lease, id, entity, holder string, tokens int64, ttl time.Duration) {
	t.Helper()
	left := l.GetRemaining().AsDuration()
	if l.GetName() != "us/"+id || l.GetEntity() != entity || l.GetHolder() != holder || l.GetTokens() != tokens ||
		left > ttl || left < ttl-time.Minute {
		t.Errorf("%s: %v", what, l)
	}
}

// TestLeases: a lease gets another time to live, and committed tokens stay out for good.
func TestLeases(t *testing.T) {
	c := sitetest.Start(t, []string{"us"}, nil)
	c.Create("acme/vm", 100)
	ctx, tokens := t.Context(), c.Tokens("us")
	wantLease(t, "granted", leaseAt(t, c, "a", "acme/vm", "me", 5), "a", "acme/vm", "me", 5, time.Hour)
	leaseAt(t, c, "b", "acme/vm", "me", 7)
	for _, ttl := range []*durationpb.Duration{durationpb.New(3 * time.Hour), nil} {
		resp, err := tokens.RenewLease(ctx, &samyav1.RenewLeaseRequest{Lease: "us/a", Ttl: ttl})
		if err != nil {
			t.Fatal(err)
		}
		wantLease(t, fmt.Sprint("renewed for ", ttl), resp.GetLease(), "a", "acme/vm", "me", 5, 3*time.Hour)
	}
	for range 2 {
		resp, err := tokens.CommitLease(ctx, &samyav1.CommitLeaseRequest{Lease: "us/a", Tokens: 2, RequestId: "c"})
		if err != nil || resp.GetTokens() != 2 || resp.GetReturned() != 3 || resp.GetRequestId() != "c" || resp.GetSite() != "us" {
			t.Errorf("committed: %v, %v", resp, err)
		}
	}
	// 0 stands for all of them.
	resp, err := tokens.CommitLease(ctx, &samyav1.CommitLeaseRequest{Lease: "us/b"})
	if err != nil || resp.GetTokens() != 7 || resp.GetReturned() != 0 || len(resp.GetRequestId()) != 26 {
		t.Errorf("committed without an id: %v, %v", resp, err)
	}
	if u := c.Books("acme/vm"); u.GetAcquired() != 9 || u.GetAvailable() != 91 {
		t.Errorf("books: %v", u)
	}
	_, renewErr := tokens.RenewLease(ctx, &samyav1.RenewLeaseRequest{Lease: "us/a"})
	_, commitErr := tokens.CommitLease(ctx, &samyav1.CommitLeaseRequest{Lease: "us/a", RequestId: "d"})
	for id, err := range map[string]error{"a": renewErr, "d": commitErr} {
		if e := apierr.FromGRPC(err); e == nil || e.Reason != apierr.LeaseNotFound || e.RequestID != id || e.Site != "us" {
			t.Errorf("a lease that has ended, %s: %+v", id, e)
		}
	}
}

// TestLeasesAreListed: by holder and entity, page by page, each once.
func TestLeasesAreListed(t *testing.T) {
	c := sitetest.Start(t, []string{"us"}, nil)
	c.Create("acme/vm", 10_000)
	c.Create("acme/db", 10_000)
	for i := range 104 {
		leaseAt(t, c, fmt.Sprint("l", i), []string{"acme/vm", "acme/db"}[i%2], []string{"me", "you", "they", "we"}[i%4], int64(i+1))
	}
	for title, tc := range map[string]struct {
		in    *samyav1.ListLeasesRequest
		every int // is listed, from the first on
		first int
		pages []int
	}{
		"all":               {&samyav1.ListLeasesRequest{}, 1, 0, []int{100, 4}},
		"a full last page":  {&samyav1.ListLeasesRequest{PageSize: 52}, 1, 0, []int{52, 52}},
		"of an entity":      {&samyav1.ListLeasesRequest{Entity: "acme/db", PageSize: 30}, 2, 1, []int{30, 22}},
		"of a holder":       {&samyav1.ListLeasesRequest{Holder: "they"}, 4, 2, []int{26}},
		"of one of another": {&samyav1.ListLeasesRequest{Holder: "me", Entity: "acme/db"}, 1, 104, []int{0}},
	} {
		var pages []int
		want := tc.first
		for {
			resp, err := c.Tokens("us").ListLeases(t.Context(), tc.in)
			if err != nil {
				t.Fatal(err)
			}
			pages = append(pages, len(resp.GetLeases()))
			for _, l := range resp.GetLeases() {
				wantLease(t, title, l, fmt.Sprint("l", want), []string{"acme/vm", "acme/db"}[want%2], []string{"me", "you", "they", "we"}[want%4], int64(want+1), time.Hour)
				want += tc.every
			}
			if tc.in.PageToken = resp.GetNextPageToken(); tc.in.PageToken == "" || len(pages) > 5 {
				break
			}
		}
		if !slices.Equal(pages, tc.pages) {
			t.Errorf("%s: pages of %v, want %v", title, pages, tc.pages)
		}
	}
}
