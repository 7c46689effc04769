package grpcapi

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/samya-db/samya/appmgr/fake"
	"github.com/samya-db/samya/appmgr/route"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/name"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// TestLastAttempt: after the last attempt number, no caller is told to make another
// attempt.
func TestLastAttempt(t *testing.T) {
	for attempt, next := range map[uint32]uint32{name.MaxAttempt - 1: name.MaxAttempt, name.MaxAttempt: 0} {
		inBubble(t, []string{"us"}, nil, func(r *rig) {
			r.sites["us"].OnAcquire = r.sites["us"].Dies()
			_, err := r.service.Acquire(r.t.Context(), &samyav1.AcquireRequest{
				Entity: "acme/vm", Tokens: 3, RequestId: "id-1", Attempt: attempt, NotAfter: timestamppb.New(time.Now().Add(time.Minute)),
			})
			e := apierr.From(err)
			if e.Reason != apierr.OutcomeUnknown || e.Attempt != next || strings.Contains(e.Message, "as attempt") != (next > 0) {
				r.t.Errorf("attempt %d: %+v, want attempt %d next", attempt, e, next)
			}
		})
	}
}

// TestTriedSitesAreBounded: a request may name maxSites sites, and no more.
func TestTriedSitesAreBounded(t *testing.T) {
	for n, good := range map[int]bool{route.MaxSites: true, route.MaxSites + 1: false, 2 * route.MaxSites: false} {
		in := &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 1, RequestId: "id-1", Attempt: 2, NotAfter: timestamppb.New(time.Now())}
		for i := range n {
			in.Tried = append(in.Tried, fmt.Sprint("s", i))
		}
		e := apierr.FromName(boundary.Acquire(in))
		if good != (e == nil) || !good && (len(e.Violations) != 1 || e.Violations[0].Field != "tried") {
			t.Errorf("%d sites: %v", n, e)
		}
	}
}

// TestReleaseWithoutAnID: a release without an id goes to no second site. The error tells
// the caller the id and the attempt of a repeat.
func TestReleaseWithoutAnID(t *testing.T) {
	for _, id := range []string{"", "id-1"} {
		inBubble(t, fake.ThreeSites, nil, func(r *rig) {
			us, elsewhere := r.sites["us"], 0
			us.OnRelease = func(ctx context.Context, _ *samyav1.ReleaseRequest) (*samyav1.ReleaseResponse, error) {
				us.Kill()
				<-ctx.Done()
				return nil, ctx.Err()
			}
			r.sites["eu"].OnRelease = func(_ context.Context, in *samyav1.ReleaseRequest) (*samyav1.ReleaseResponse, error) {
				elsewhere++
				return &samyav1.ReleaseResponse{Tokens: in.GetTokens(), Site: "eu"}, nil
			}
			_, err := r.service.Release(r.t.Context(), &samyav1.ReleaseRequest{Entity: "acme/vm", Tokens: 3, RequestId: id})
			if id != "" {
				if err != nil || elsewhere != 1 {
					r.t.Errorf("with an id: %v, %d releases elsewhere", err, elsewhere)
				}
				return
			}
			if e := apierr.From(err); e == nil || e.Reason != apierr.OutcomeUnknown || e.Attempt != 2 || len(e.RequestID) != 26 || elsewhere != 0 {
				r.t.Errorf("without an id: %+v, %d releases elsewhere", e, elsewhere)
			}
		})
	}
}

// TestAnswerOnItsWay: if the caller's time ends while the answer of a far site is on its
// way, the outcome is unknown. Before the request arrives there, nothing was begun.
func TestAnswerOnItsWay(t *testing.T) {
	inBubble(t, []string{"eu"}, nil, func(r *rig) {
		for what, call := range map[string]func(context.Context) error{
			"a create": func(ctx context.Context) error {
				_, err := r.service.CreateEntity(ctx, &samyav1.CreateEntityRequest{Name: "acme/vm", Limit: 5, RequestId: "id-1"})
				return err
			},
			"an acquire": func(ctx context.Context) error {
				_, err := r.service.Acquire(ctx, fake.Take)
				return err
			},
			"a batch": func(ctx context.Context) error {
				_, err := r.service.Batch(ctx, fake.TwoOf("id-1"))
				return err
			},
		} {
			for patience, want := range map[time.Duration]apierr.Reason{
				fake.OneWay["eu"] - time.Millisecond:   apierr.DeadlineExceeded,
				2*fake.OneWay["eu"] - time.Millisecond: apierr.OutcomeUnknown,
			} {
				ctx, cancel := context.WithTimeout(r.t.Context(), patience)
				err := call(ctx)
				cancel()
				if e := apierr.From(err); e == nil || e.Reason != want || e.RequestID != "id-1" {
					r.t.Errorf("%s within %v: %v, want %s", what, patience, err, want)
				}
			}
		}
	})
}

// TestLeaseFaults: a lease of no site is an invalid field lease. Every site gets the
// entity and the holder of a list of leases.
func TestLeaseFaults(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		ctx := r.t.Context()
		_, renewed := r.service.RenewLease(ctx, &samyav1.RenewLeaseRequest{Lease: "none/x"})
		_, committed := r.service.CommitLease(ctx, &samyav1.CommitLeaseRequest{Lease: "none/x"})
		for what, err := range map[string]error{"renew": renewed, "commit": committed} {
			if e := apierr.From(err); e == nil || e.Reason != apierr.InvalidField || len(e.Violations) != 1 || e.Violations[0].Field != "lease" {
				r.t.Errorf("%s: %v", what, err)
			}
		}
		// A site that does not know the entity has no lease of it.
		for _, n := range []string{"eu", "au"} {
			r.sites[n].OnLeases = func(in *samyav1.ListLeasesRequest) error {
				if in.GetEntity() != "acme/vm" || in.GetHolder() != "h" {
					r.t.Errorf("%s was asked for %v", n, in)
				}
				if n == "eu" {
					return apierr.NotFound(in.GetEntity())
				}
				return nil
			}
		}
		out, err := r.service.ListLeases(ctx, &samyav1.ListLeasesRequest{Holder: "h", Entity: "acme/vm"})
		if err != nil || len(out.GetMissing()) != 0 || len(out.GetLeases()) != 2*fake.LeasesEach {
			r.t.Errorf("%v, %v", out, err)
		}
		r.sites["us"].OnLeases = func(*samyav1.ListLeasesRequest) error { return apierr.NotFound("acme/vm") }
		r.sites["au"].OnLeases = r.sites["us"].OnLeases
		out, err = r.service.ListLeases(ctx, &samyav1.ListLeasesRequest{Holder: "h", Entity: "acme/vm"})
		if err != nil || len(out.GetMissing()) != 0 || len(out.GetLeases()) != 0 {
			r.t.Errorf("nobody has any: %v, %v", out, err)
		}
	})
}
