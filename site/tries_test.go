package site_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/name"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site"
	"github.com/samya-db/samya/site/sitetest"
)

// TestMovementFields: the refusal of an acquire or a release names the field at fault.
func TestMovementFields(t *testing.T) {
	c := sitetest.Start(t, []string{"us", "eu", "as"}, func(cfg *site.Config) { cfg.RequestRetention = 2 * time.Minute })
	// A site that does not serve yet refuses for that reason.
	c.Create("acme/vm", 10)
	tokens := c.Tokens("us")
	soon := timestamppb.New(time.Now().Add(time.Minute))
	check := func(what any, err error, field, problem string) {
		t.Helper()
		e := apierr.FromGRPC(err)
		if e == nil || e.Reason != apierr.InvalidField || len(e.Violations) != 1 ||
			e.Violations[0].Field != field || !strings.Contains(e.Violations[0].Problem, problem) {
			t.Errorf("%v: %v, want %s: %s", what, err, field, problem)
		}
	}
	for _, a := range []struct {
		in             *samyav1.AcquireRequest
		field, problem string
	}{
		{&samyav1.AcquireRequest{MinTokens: 4}, "min_tokens", "at most 3"},
		{&samyav1.AcquireRequest{MinTokens: -1}, "min_tokens", "at least 0"},
		{&samyav1.AcquireRequest{Attempt: 2, RequestId: "x"}, "not_after", "missing"},
		{&samyav1.AcquireRequest{Relay: 1, RequestId: "x"}, "not_after", "missing"},
		{&samyav1.AcquireRequest{Relay: 256, RequestId: "x", NotAfter: soon}, "relay", "at most 255"},
		{&samyav1.AcquireRequest{Attempt: 2, NotAfter: soon}, "request_id", "missing"},
		{&samyav1.AcquireRequest{Attempt: name.MaxAttempt + 1, RequestId: "x", NotAfter: soon}, "attempt", "at most 1048575"},
		{&samyav1.AcquireRequest{Tried: []string{"eu"}}, "tried", "after the first"},
		{&samyav1.AcquireRequest{Attempt: 2, RequestId: "x", NotAfter: soon, Tried: []string{"mars"}}, "tried", "no site"},
		{&samyav1.AcquireRequest{Attempt: 2, RequestId: "x", NotAfter: soon, Tried: []string{"us", "eu", "as", "us"}}, "tried", "at most 3"},
		{&samyav1.AcquireRequest{NotAfter: timestamppb.New(time.Now().Add(time.Hour))}, "not_after", "at most 1m50s ahead"},
		{&samyav1.AcquireRequest{NotAfter: &timestamppb.Timestamp{Nanos: -1}}, "not_after", "no valid time"},
		{&samyav1.AcquireRequest{Lease: &samyav1.LeaseTerms{}}, "lease.ttl", "no valid duration"},
		{&samyav1.AcquireRequest{Lease: &samyav1.LeaseTerms{Ttl: durationpb.New(time.Millisecond)}}, "lease.ttl", "at least 1s"},
		{&samyav1.AcquireRequest{Lease: &samyav1.LeaseTerms{Ttl: durationpb.New(200 * time.Hour)}}, "lease.ttl", "at most 168h"},
		{&samyav1.AcquireRequest{Lease: &samyav1.LeaseTerms{Ttl: durationpb.New(time.Hour), Holder: "é"}}, "lease.holder", "printable"},
		{&samyav1.AcquireRequest{Lease: &samyav1.LeaseTerms{Ttl: durationpb.New(time.Hour), Share: true}}, "lease.ttl", "at most 10m"},
		{&samyav1.AcquireRequest{Lease: &samyav1.LeaseTerms{Ttl: durationpb.New(time.Minute), Share: true}}, "lease.share", "rate quota"},
	} {
		a.in.Entity, a.in.Tokens = "acme/vm", 3
		_, err := tokens.Acquire(t.Context(), a.in)
		check(a.in, err, a.field, a.problem)
	}
	for _, r := range []struct {
		in             *samyav1.ReleaseRequest
		field, problem string
	}{
		{&samyav1.ReleaseRequest{}, "tokens", "at least 1"},
		{&samyav1.ReleaseRequest{Tokens: -1, Lease: "us/x"}, "tokens", "at least 0"},
		{&samyav1.ReleaseRequest{Lease: "x"}, "lease", "a slash"},
		{&samyav1.ReleaseRequest{Lease: "mars/x"}, "lease", "none of the cluster"},
		{&samyav1.ReleaseRequest{Tokens: 1, Attempt: 3, RequestId: "x"}, "not_after", "missing"},
	} {
		r.in.Entity = "acme/vm"
		_, err := tokens.Release(t.Context(), r.in)
		check(r.in, err, r.field, r.problem)
	}
	// The time 0 is a time, and over.
	_, err := tokens.Acquire(t.Context(), &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 1, RequestId: "x", NotAfter: &timestamppb.Timestamp{}})
	if e := apierr.FromGRPC(err); e == nil || e.Reason != apierr.RequestExpired {
		t.Errorf("a request that was over in 1970: %v", err)
	}
	_, err = tokens.RenewLease(t.Context(), &samyav1.RenewLeaseRequest{Lease: "eu/x"})
	check("renew", err, "lease", "is one of site eu")
	_, err = tokens.RenewLease(t.Context(), &samyav1.RenewLeaseRequest{Lease: "us/x", Ttl: durationpb.New(0)})
	check("renew", err, "ttl", "at least 1s")
	_, err = tokens.CommitLease(t.Context(), &samyav1.CommitLeaseRequest{Lease: "us/x", Tokens: -1})
	check("commit", err, "tokens", "at least 0")
	_, err = tokens.ListLeases(t.Context(), &samyav1.ListLeasesRequest{PageToken: "x"})
	check("list", err, "page_token", "none that a list returned")
	_, err = tokens.ListLeases(t.Context(), &samyav1.ListLeasesRequest{Entity: "/", PageSize: 0})
	check("list", err, "entity", "")
}

// TestRepeatOfAnEndedLease: the repeat of an acquire gets the first answer after its
// lease has ended, with the lease's name and nothing left in it.
func TestRepeatOfAnEndedLease(t *testing.T) {
	c := sitetest.Start(t, []string{"us"}, nil)
	sitetest.Eventually(t, "an entity", func() error {
		_, err := c.Entities("us").CreateEntity(t.Context(), &samyav1.CreateEntityRequest{Name: "acme/vm", Limit: 10, RequestId: "create"})
		return err
	})
	tokens := c.Tokens("us")
	in := &samyav1.AcquireRequest{
		Entity: "acme/vm", Tokens: 3, RequestId: "x", Lease: &samyav1.LeaseTerms{Ttl: durationpb.New(time.Minute), Holder: "me"},
	}
	want, err := tokens.Acquire(t.Context(), in)
	if err != nil || want.GetLease().GetName() != "us/x" || want.GetLease().GetTokens() != 3 {
		t.Fatal(want, err)
	}
	if _, err := tokens.Release(t.Context(), &samyav1.ReleaseRequest{Entity: "acme/vm", Lease: "us/x"}); err != nil {
		t.Fatal(err)
	}
	got, err := tokens.Acquire(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	want.Lease.Tokens, want.Lease.Remaining = 0, durationpb.New(0)
	if !proto.Equal(want, got) {
		t.Errorf("%v, want %v", got, want)
	}
}
