package ratelimit_test

import (
	"errors"
	"io"
	"testing"
	"time"

	quotav3 "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/sitetest"
)

// quotaStream is a stream of a proxy.
type quotaStream struct {
	t *testing.T
	quotav3.RateLimitQuotaService_StreamRateLimitQuotasClient
}

func (l *live) quotaStream() (*quotaStream, *grpc.ClientConn) {
	l.t.Helper()
	conn, err := grpc.NewClient(l.manager.GRPCAddr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { _ = conn.Close() })
	s, err := quotav3.NewRateLimitQuotaServiceClient(conn).StreamRateLimitQuotas(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	return &quotaStream{l.t, s}, conn
}

// report reports a bucket, and returns what to do with it.
func (s *quotaStream) report(domain string, id map[string]string) *quotav3.RateLimitQuotaResponse_BucketAction_QuotaAssignmentAction {
	s.t.Helper()
	if err := s.Send(&quotav3.RateLimitQuotaUsageReports{Domain: domain, BucketQuotaUsages: []*quotav3.RateLimitQuotaUsageReports_BucketQuotaUsage{
		{BucketId: &quotav3.BucketId{Bucket: id}, TimeElapsed: &durationpb.Duration{}, NumRequestsDenied: 1},
	}}); err != nil {
		s.t.Fatal(err)
	}
	resp, err := s.Recv()
	if err != nil {
		s.t.Fatal(err)
	}
	for _, a := range resp.GetBucketAction() {
		for key, value := range id {
			if a.GetBucketId().GetBucket()[key] == value && a.GetQuotaAssignmentAction() != nil {
				return a.GetQuotaAssignmentAction()
			}
		}
	}
	s.t.Fatalf("%v was reported, the answer is %v", id, resp)
	return nil
}

// TestLiveQuotas: a proxy is assigned a share over gRPC, which a site has leased. What is
// assigned cannot be had elsewhere, and what is not leased is denied.
func TestLiveQuotas(t *testing.T) {
	l := startLive(t, 100*time.Millisecond, "us")
	s, conn := l.quotaStream()
	first := s.report("edge", map[string]string{"user": "q"})
	b := first.GetRateLimitStrategy().GetTokenBucket()
	if ttl := first.GetAssignmentTimeToLive().AsDuration(); b.GetMaxTokens() != 1 || b.GetTokensPerFill().GetValue() != 2 ||
		b.GetFillInterval().GetSeconds() != 86_400 || ttl != 4*time.Second {
		t.Errorf("assigned %v", first)
	}
	leases, err := samyav1.NewTokenServiceClient(conn).ListLeases(t.Context(), &samyav1.ListLeasesRequest{Entity: "ratelimit/edge/user.q/day"})
	if err != nil || len(leases.GetLeases()) != 1 {
		t.Fatal(leases, err)
	}
	if lease := leases.GetLeases()[0]; !lease.GetShare() || lease.GetTokens() != 3 || lease.GetRemaining().AsDuration() < 15*time.Second {
		t.Errorf("the lease is %v", lease)
	}
	for range 47 {
		if !l.passes("user=q") {
			t.Fatal("fewer than 47 pass beside a share of 3 of 50")
		}
	}
	if l.passes("user=q") {
		t.Error("50 pass beside a share")
	}
	other, _ := l.quotaStream()
	for _, c := range []struct {
		id   map[string]string
		want typev3.RateLimitStrategy_BlanketRule
	}{
		{map[string]string{"user": "q"}, typev3.RateLimitStrategy_DENY_ALL},
		{map[string]string{"banned": "x"}, typev3.RateLimitStrategy_DENY_ALL},
		{map[string]string{"nothing": "x"}, typev3.RateLimitStrategy_ALLOW_ALL},
	} {
		got := other.report("edge", c.id)
		if rule, ok := got.GetRateLimitStrategy().GetStrategy().(*typev3.RateLimitStrategy_BlanketRule_); !ok || rule.BlanketRule != c.want {
			t.Errorf("%v: assigned %v", c.id, got)
		}
	}
	if err := other.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("a stream that the proxy closes ends with %v", err)
	}
	for name, in := range map[string]*quotav3.RateLimitQuotaUsageReports{
		"domain":  {},
		"buckets": {Domain: "edge", BucketQuotaUsages: []*quotav3.RateLimitQuotaUsageReports_BucketQuotaUsage{{}}},
	} {
		bad, _ := l.quotaStream()
		if err := bad.Send(in); err != nil {
			t.Fatal(err)
		}
		if _, err := bad.Recv(); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The leases of a stream that ended are returned once the proxy cannot go by them.
	if err := s.CloseSend(); err != nil {
		t.Fatal(err)
	}
	sitetest.Eventually(t, "the lease's end", func() error {
		leases, err := samyav1.NewTokenServiceClient(conn).ListLeases(t.Context(), &samyav1.ListLeasesRequest{Entity: "ratelimit/edge/user.q/day"})
		if err == nil && len(leases.GetLeases()) > 0 {
			err = errors.New("it is there")
		}
		return err
	})
}
