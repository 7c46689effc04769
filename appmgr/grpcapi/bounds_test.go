package grpcapi

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/appmgr/fake"
	"github.com/samya-db/samya/appmgr/limiter"
	"github.com/samya-db/samya/appmgr/route"
	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// TestWhatLastsIsChargedToItsCaller: streams, waiting acquires and waiting
// changes count for their caller, by machine, until they end.
func TestWhatLastsIsChargedToItsCaller(t *testing.T) {
	const host = "192.0.2.7"
	inBubble(t, []string{"us"}, nil, func(r *rig) {
		us, s := r.sites["us"], r.service
		fake.Slowly(us)
		us.OnUpdate = func(ctx context.Context, _ *samyav1.UpdateEntityRequest) (*samyav1.UpdateEntityResponse, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		for what, c := range map[string]struct {
			of *limiter.Portions
			do func(context.Context)
		}{
			"a stream": {s.streaming, func(ctx context.Context) {
				f := &fakeRPC{ctx: ctx, in: make(chan *samyav1.StreamRequest), out: make(chan *samyav1.StreamResponse, 100)}
				_ = s.Stream(f)
			}},
			"an acquire": {s.waiting, func(ctx context.Context) {
				_, _ = s.Acquire(ctx, &samyav1.AcquireRequest{Entity: "slow", Tokens: 1, Wait: durationpb.New(time.Minute)})
			}},
			"a change": {s.waiting, func(ctx context.Context) {
				_, _ = s.UpdateEntity(ctx, &samyav1.UpdateEntityRequest{Name: "e", Limit: 1, WaitApplied: true})
			}},
		} {
			ctx, cancel := context.WithCancel(fake.From(r.t.Context(), host))
			done := make(chan struct{})
			go func() {
				defer close(done)
				c.do(ctx)
			}()
			synctest.Wait()
			if all, own := c.of.UnderWay(host); all != 1 || own != 1 {
				r.t.Errorf("%s under way: %d are counted, %d for its caller", what, all, own)
			}
			cancel()
			<-done
			if n, _ := c.of.UnderWay(host); n != 0 {
				r.t.Errorf("%s that has ended: %d are counted", what, n)
			}
		}
	})
}

// TestWhatDoesNotWaitIsNotCounted: an acquire without a wait takes no place from waiting
// acquires. A dry run without a wait gets the time of any call.
func TestWhatDoesNotWaitIsNotCounted(t *testing.T) {
	inBubble(t, []string{"us"}, func(c *config) { c.MaxConcurrent = 16 }, func(r *rig) {
		r.sites["us"].OnAcquire = func(ctx context.Context, in *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
			if err := route.Pause(ctx, time.Second); err != nil {
				return nil, err
			}
			return &samyav1.AcquireResponse{Tokens: in.GetTokens(), Site: "us"}, nil
		}
		for _, dry := range []bool{false, true} {
			errs := make(chan error, 32)
			for range cap(errs) {
				go func() {
					in := &samyav1.AcquireRequest{Entity: "e", Tokens: 1, Wait: durationpb.New(0), DryRun: dry}
					_, err := r.service.Acquire(r.t.Context(), in)
					errs <- err
				}()
			}
			for range cap(errs) {
				if err := <-errs; err != nil {
					r.t.Errorf("dry run %t: %v", dry, err)
				}
			}
		}
	})
}

// TestStreamWindow: a stream takes as many calls as its window, and no more.
func TestStreamWindow(t *testing.T) {
	for more, want := range map[int]apierr.Reason{0: "", 1: apierr.WindowExceeded} {
		inBubble(t, []string{"us"}, nil, func(r *rig) {
			f := r.stream()
			go func() {
				for {
					select {
					case <-f.out:
					case <-f.ctx.Done():
						return
					}
				}
			}()
			in := &samyav1.StreamRequest{}
			for i := range streamWindow + more {
				in.Calls = append(in.Calls, &samyav1.Call{Tag: uint64(i)})
			}
			f.in <- in
			close(f.in)
			if err := <-f.err; apierr.ReasonOf(err) != want {
				r.t.Errorf("%d calls: %v, want %q", len(in.GetCalls()), err, want)
			}
		})
	}
}

// TestChangeEndsWithItsCaller: a change under way ends with the time of its caller.
func TestChangeEndsWithItsCaller(t *testing.T) {
	inBubble(t, []string{"us"}, nil, func(r *rig) {
		r.sites["us"].OnCreate = func(ctx context.Context, _ *samyav1.CreateEntityRequest) (*samyav1.CreateEntityResponse, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		ctx, cancel := context.WithTimeout(r.t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := r.service.CreateEntity(ctx, &samyav1.CreateEntityRequest{Name: "e", Limit: 1, RequestId: "id-1"})
		if e := apierr.From(err); e == nil || e.Reason != apierr.OutcomeUnknown || time.Since(began) != time.Second {
			r.t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// TestLeaseHomeIsAskedOnce: a home that refuses a release for now is not asked again after
// the others.
func TestLeaseHomeIsAskedOnce(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		var asked []string
		for n, f := range r.sites {
			f.OnRelease = func(context.Context, *samyav1.ReleaseRequest) (*samyav1.ReleaseResponse, error) {
				asked = append(asked, n)
				return nil, apierr.New(apierr.SiteUnavailable, "not ready")
			}
		}
		_, err := r.service.Release(r.t.Context(), &samyav1.ReleaseRequest{Entity: "e", Lease: "eu/x"})
		if apierr.ReasonOf(err) != apierr.SiteUnavailable || len(asked) != 3 || asked[0] != "eu" {
			r.t.Errorf("%v; asked %v", err, asked)
		}
	})
}
