package grpcapi

import (
	"context"
	"testing"

	"github.com/samya-db/samya/appmgr/fake"
	"github.com/samya-db/samya/internal/session"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// TestNoSessions: an app manager passes no acknowledgement on, and tells no client that sites know
// sessions: it may try several sites for an answer that its client takes for that of one.
func TestNoSessions(t *testing.T) {
	inBubble(t, []string{"us"}, nil, func(r *rig) {
		t, us := r.t, r.sites["us"]
		asked := 0
		noted := func(acknowledged uint64) {
			if asked++; acknowledged != 0 {
				t.Errorf("request %d acknowledges up to %d", asked, acknowledged)
			}
		}
		us.OnAcquire = func(_ context.Context, in *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
			noted(in.GetAcknowledged())
			return &samyav1.AcquireResponse{Tokens: in.GetTokens(), Site: "us"}, nil
		}
		us.OnRelease = func(_ context.Context, in *samyav1.ReleaseRequest) (*samyav1.ReleaseResponse, error) {
			noted(in.GetAcknowledged())
			return &samyav1.ReleaseResponse{Tokens: in.GetTokens(), Site: "us"}, nil
		}
		us.OnBatch = func(_ context.Context, in *samyav1.BatchRequest) (*samyav1.BatchResponse, error) {
			noted(in.GetAcknowledged())
			resp := us.Granted(in)
			resp.Sessions = true
			return resp, nil
		}
		id := session.ID{1}.Text() + "9"
		if _, err := r.service.Acquire(t.Context(), &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 1, RequestId: id, Acknowledged: 9}); err != nil {
			t.Fatal(err)
		}
		if _, err := r.service.Release(t.Context(), &samyav1.ReleaseRequest{Entity: "acme/vm", Tokens: 1, RequestId: id, Acknowledged: 9}); err != nil {
			t.Fatal(err)
		}
		all := fake.TwoOf(id)
		all.Acknowledged = 9
		if resp, err := r.service.Batch(t.Context(), all); err != nil || resp.GetSessions() {
			t.Errorf("%v, %v", resp, err)
		}
		if asked != 3 {
			t.Errorf("the site was asked %d times", asked)
		}
	})
}
