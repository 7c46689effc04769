package grpcapi

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/appmgr/fake"
	"github.com/samya-db/samya/appmgr/route"
	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// TestSitesLeave: callers of every kind see no error while a site drains, at first by its
// own word alone, and leaves or is written off.
func TestSitesLeave(t *testing.T) {
	const isMember, drains = samyav1.MemberState_MEMBER_STATE_MEMBER, samyav1.MemberState_MEMBER_STATE_DRAINING
	for last, heir := range map[samyav1.MemberState]string{
		samyav1.MemberState_MEMBER_STATE_GONE: "eu", samyav1.MemberState_MEMBER_STATE_LOST: "",
	} {
		inBubble(t, fake.ThreeSites, nil, func(r *rig) {
			t, us := r.t, r.sites["us"]
			seat := func(version uint64, state samyav1.MemberState, heir string) {
				fake.SeatAll(r.sites, version, fake.SeatOf("au", isMember, ""), fake.SeatOf("eu", isMember, ""), fake.SeatOf("us", state, heir))
				fake.Pass(5 * time.Second)
			}
			var leaves atomic.Bool
			var refused atomic.Int64 // requests that no site that drains takes
			drained := apierr.New(apierr.SiteDraining, "it drains")
			us.OnAcquire = func(_ context.Context, in *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
				if leaves.Load() {
					refused.Add(1)
					return nil, drained
				}
				return &samyav1.AcquireResponse{Tokens: in.GetTokens(), RequestId: in.GetRequestId(), Site: "us"}, nil
			}
			us.OnBatch = func(_ context.Context, in *samyav1.BatchRequest) (*samyav1.BatchResponse, error) {
				if leaves.Load() {
					refused.Add(1)
					return nil, drained
				}
				return us.Granted(in), nil
			}
			us.OnRelease = func(_ context.Context, in *samyav1.ReleaseRequest) (*samyav1.ReleaseResponse, error) {
				switch {
				case leaves.Load() && strings.HasPrefix(in.GetLease(), "us/"):
					return nil, &apierr.Error{Reason: apierr.LeaseMoved, Site: "eu"}
				case leaves.Load():
					refused.Add(1)
					return nil, drained
				}
				return &samyav1.ReleaseResponse{Tokens: in.GetTokens(), RequestId: in.GetRequestId(), Site: "us"}, nil
			}
			seat(1, isMember, "")
			ctx, over := context.WithCancel(t.Context())
			var callers sync.WaitGroup
			for what, call := range r.everything() {
				callers.Go(func() {
					for i := 0; ctx.Err() == nil; i++ {
						if err := call(t.Context(), fmt.Sprintf("%s-%d", what, i)); err != nil {
							t.Errorf("%v, %s: %v", last, what, err)
							return
						}
						_ = route.Pause(ctx, 100*time.Millisecond)
					}
				})
			}
			fake.Pass(3 * time.Second)
			leaves.Store(true)
			fake.Pass(3 * time.Second)
			seat(2, drains, "eu")
			byWord := refused.Load()
			fake.Pass(10 * time.Second)
			if n := refused.Load(); byWord == 0 || n != byWord {
				t.Errorf("%v: %d requests refused before the list told of the drain, %d after", last, byWord, n-byWord)
			}
			if last == samyav1.MemberState_MEMBER_STATE_LOST {
				us.Kill()
			}
			seat(3, last, heir)
			fake.Pass(5 * time.Second)
			over()
			callers.Wait()
			synctest.Wait()
		})
	}
}

// everything is a call of each kind that may move tokens. Each gets an id of its own.
func (r *rig) everything() map[string]func(context.Context, string) error {
	s := r.service
	failed := func(result *samyav1.Result) error {
		if f := result.GetFailure(); f != nil {
			return apierr.FromFailure(f)
		}
		return nil
	}
	both := func(id string) []*samyav1.Operation {
		return []*samyav1.Operation{
			fake.AcquireOf(&samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 1, RequestId: id}),
			fake.ReleaseOf(&samyav1.ReleaseRequest{Entity: "acme/vm", Tokens: 1, RequestId: id + "-back"}),
		}
	}
	return map[string]func(context.Context, string) error{
		"acquire": func(ctx context.Context, id string) error {
			_, err := s.Acquire(ctx, &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 1, RequestId: id})
			return err
		},
		"dry-run": func(ctx context.Context, _ string) error {
			_, err := s.Acquire(ctx, &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 1, DryRun: true})
			return err
		},
		"release": func(ctx context.Context, id string) error {
			_, err := s.Release(ctx, &samyav1.ReleaseRequest{Entity: "acme/vm", Tokens: 1, RequestId: id})
			return err
		},
		"release-of-a-lease": func(ctx context.Context, id string) error {
			_, err := s.Release(ctx, &samyav1.ReleaseRequest{Entity: "acme/vm", Tokens: 1, RequestId: id, Lease: "us/x"})
			return err
		},
		"batch": func(ctx context.Context, id string) error {
			resp, err := s.Batch(ctx, &samyav1.BatchRequest{Operations: both(id)})
			for _, result := range resp.GetResults() {
				if err == nil {
					err = failed(result)
				}
			}
			return err
		},
		"all": func(ctx context.Context, id string) error {
			_, err := s.Batch(ctx, fake.TwoOf(id))
			return err
		},
		"stream": func(_ context.Context, id string) error {
			f := r.stream()
			defer f.leave()
			for i, op := range both(id) {
				f.call(uint64(i+1), 0, op)
			}
			for n := 0; n < 2; {
				for _, reply := range (<-f.out).GetReplies() {
					n++
					if err := failed(reply.GetResult()); err != nil {
						return err
					}
				}
			}
			return nil
		},
		"renewal": func(ctx context.Context, _ string) error {
			_, err := s.RenewLease(ctx, &samyav1.RenewLeaseRequest{Lease: "eu/x", Ttl: durationpb.New(time.Minute)})
			return err
		},
		"commit": func(ctx context.Context, id string) error {
			_, err := s.CommitLease(ctx, &samyav1.CommitLeaseRequest{Lease: "eu/x", Tokens: 1, RequestId: id})
			return err
		},
		"creation": func(ctx context.Context, id string) error {
			_, err := s.CreateEntity(ctx, &samyav1.CreateEntityRequest{Name: "acme/vm", Limit: 5, RequestId: id})
			return err
		},
		"list": func(ctx context.Context, _ string) error {
			_, err := s.ListEntities(ctx, &samyav1.ListEntitiesRequest{})
			return err
		},
	}
}

// TestWriteOffAtIdleSites: a write-off goes on to sites that answer and do not serve: such a
// site may wait for the lost site. A site that is down is not asked, and nothing else goes to
// sites that do not serve.
func TestWriteOffAtIdleSites(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		t := r.t
		var asked []string
		for name, f := range r.sites {
			f.OnRemove = func() error {
				if asked = append(asked, name); name == "us" {
					return apierr.New(apierr.SiteDraining, "it drains")
				}
				return nil
			}
		}
		remove := func(lost bool) error {
			asked = nil
			_, err := r.service.RemoveMember(t.Context(), &samyav1.RemoveMemberRequest{Name: "west", Lost: lost})
			return err
		}
		fake.Pass(5 * time.Second)
		r.sites["eu"].Serves(false)
		r.sites["au"].Kill()
		fake.Pass(10 * time.Second)
		if err := remove(true); err != nil || !slices.Equal(asked, []string{"us", "eu"}) {
			t.Errorf("lost: %v, by %v", err, asked)
		}
		if err := remove(false); err == nil || !slices.Equal(asked, []string{"us"}) {
			t.Errorf("not lost: %v, by %v", err, asked)
		}
		if got := r.router.Order(); !slices.Equal(got, []string{"us"}) {
			t.Errorf("calls go to %v", got)
		}
		r.sites["us"].Serves(false)
		fake.Pass(10 * time.Second)
		if err := remove(true); err != nil || !slices.Equal(asked, []string{"eu"}) && !slices.Equal(asked, []string{"us", "eu"}) {
			t.Errorf("nobody serves: %v, by %v", err, asked)
		}
		r.sites["eu"].Serves(true)
		fake.Pass(10 * time.Second)
		if err := remove(false); err != nil || !slices.Equal(asked, []string{"eu"}) {
			t.Errorf("eu serves: %v, by %v", err, asked)
		}
	})
}
