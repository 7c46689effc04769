package reads

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/appmgr/fake"
	"github.com/samya-db/samya/appmgr/route"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/health"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// TestWatchTellsDeletionAfterStates: a deletion has no version, and comes after every
// state of its generation. A deletion of an earlier generation is old news.
func TestWatchTellsDeletionAfterStates(t *testing.T) {
	inBubble(t, []string{"us"}, nil, func(r *rig) {
		gone := func(generation uint64) *samyav1.WatchEntityResponse {
			return &samyav1.WatchEntityResponse{Entity: fake.Ent(0, generation, 0), Deleted: true}
		}
		second := fake.State("us", 3)
		second.Entity.Generation = 2
		r.sites["us"].Watched(fake.Stays, second, gone(1), fake.State("us", 4), second, gone(2))
		w := r.follow(r.t.Context(), "")
		fake.Pass(time.Second)
		if got := w.now(); !got.over || got.err != nil || !slices.Equal(got.told, []uint64{3, 3, 0}) {
			r.t.Errorf("told %v, over %t with %v", got.told, got.over, got.err)
		}
	})
}

// TestWatchThatWasToldNothing: a caller that was told nothing yet is refused at once,
// and learns nothing of why a site does not take this app manager.
func TestWatchThatWasToldNothing(t *testing.T) {
	for _, why := range []error{apierr.Unauthenticated, apierr.PermissionDenied, apierr.ShuttingDown, apierr.Overload("us", 3*time.Second)} {
		inBubble(t, []string{"us"}, nil, func(r *rig) {
			r.sites["us"].Watched(fake.Fails(why))
			w := r.follow(r.t.Context(), "")
			synctest.Wait()
			want := apierr.ReasonOf(why)
			if want == apierr.Unauthenticated || want == apierr.PermissionDenied {
				want = apierr.SiteUnavailable
			}
			if got := w.now(); !got.over || apierr.ReasonOf(got.err) != want {
				r.t.Errorf("%v: over %t with %v, want %s", why, got.over, got.err, want)
			}
			h := r.health("us")
			if h.Overloaded(time.Now().Add(2*time.Second)) != (want == apierr.Overloaded) || (h.Reach == health.Down) != (want == apierr.ShuttingDown) {
				r.t.Errorf("%v: the site counts as %+v", why, h)
			}
			if n, _ := r.service.watching.UnderWay(""); n != 0 {
				r.t.Errorf("%v: %d watches still count", why, n)
			}
		})
	}
}

// TestWatchLooksOnWhileOneSiteMayKnow: a site that has missed the creation does not end
// a watch while another site could not be asked.
func TestWatchLooksOnWhileOneSiteMayKnow(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		r.sites["us"].Watched(fake.Stays, fake.State("us", 1))
		r.sites["au"].Watched(fake.Fails(apierr.SiteUnavailable))
		w := r.follow(r.t.Context(), "")
		fake.Pass(time.Second)
		r.sites["us"].Kill()
		fake.Pass(time.Second)
		r.sites["au"].Watched(fake.Stays, fake.State("au", 2))
		fake.Pass(5 * time.Second)
		if got := w.now(); got.over || !slices.Equal(got.told, []uint64{1, 2}) {
			r.t.Errorf("told %v, over %t with %v", got.told, got.over, got.err)
		}
		// The watch is over once all sites say that they do not know the entity.
		r.sites["au"].Watched(fake.Fails(apierr.NotFound("e")))
		r.sites["au"].Kill()
		r.sites["au"].Up()
		fake.Pass(10 * time.Second)
		if got := w.now(); !got.over || !errors.Is(got.err, apierr.EntityNotFound) {
			r.t.Errorf("nobody knows of it: over %t with %v", got.over, got.err)
		}
	})
}

// TestWatchLooksOnSinceTheLastWord: a watch looks for another site for as long as it may
// from the last word on, however long it has lasted before.
func TestWatchLooksOnSinceTheLastWord(t *testing.T) {
	inBubble(t, []string{"us"}, nil, func(r *rig) {
		us := r.sites["us"]
		us.Watched(func(stream fake.StreamOfStates) error {
			if err := route.Pause(stream.Context(), 2*resumeTime); err != nil {
				return err
			}
			if err := stream.Send(fake.State("us", 2)); err != nil {
				return err
			}
			return fake.Stays(stream)
		}, fake.State("us", 1))
		w := r.follow(r.t.Context(), "")
		fake.Pass(2*resumeTime + time.Second)
		us.Kill()
		fake.Pass(resumeTime / 2)
		if got := w.now(); got.over || !slices.Equal(got.told, []uint64{1, 2}) {
			r.t.Errorf("told %v, over %t with %v", got.told, got.over, got.err)
		}
	})
}

// TestWatchLeavesNoStreamBehind: a watch that goes on elsewhere ends its stream at the
// site before, also where the connection to that site stays for others.
func TestWatchLeavesNoStreamBehind(t *testing.T) {
	for what, leave := range map[string]func(*rig){
		"it is found to be down": func(r *rig) { r.sites["us"].Serves(false) },
		"it is no site any more": func(r *rig) {
			r.directory.Set(route.SiteInfo{Name: "eu", Region: "eu", Address: "eu"})
		},
	} {
		t.Run(what, func(t *testing.T) {
			inBubble(t, []string{"us", "eu"}, func(c *route.Config) { c.ProbeInterval = 10 * time.Second }, func(r *rig) {
				var at atomic.Int64
				r.sites["us"].Watched(func(stream fake.StreamOfStates) error {
					at.Add(1)
					defer at.Add(-1)
					return fake.Stays(stream)
				}, fake.State("us", 1))
				r.sites["eu"].Watched(fake.Stays, fake.State("eu", 2))
				fake.Slowly(r.sites["us"])
				ctx, cancel := context.WithCancel(r.t.Context())
				defer cancel()
				done := make(chan struct{})
				go func() {
					defer close(done)
					_ = r.router.Do(ctx, route.Call{
						Method: samyav1.TokenService_Acquire_FullMethodName, Site: "us", Resp: &samyav1.AcquireResponse{}, Read: true,
						Req: &samyav1.AcquireRequest{Entity: "slow", Tokens: 1, Wait: durationpb.New(time.Minute)},
					})
				}()
				w := r.follow(ctx, "")
				fake.Pass(3 * time.Second)
				if n := at.Load(); n != 1 {
					r.t.Fatalf("%d streams at us", n)
				}
				// A probe may find the site up just before the watch looks, every ten seconds.
				for i := 0; i < 400 && at.Load() > 0; i++ {
					leave(r)
					fake.Pass(100 * time.Millisecond)
				}
				fake.Pass(time.Second)
				if got := w.now(); got.over || !slices.Equal(got.from, []string{"us", "eu"}) {
					r.t.Errorf("told by %v, over %t with %v", got.from, got.over, got.err)
				}
				if n := at.Load(); n != 0 {
					r.t.Errorf("%d streams at us stay open", n)
				}
				cancel()
				<-done
			})
		})
	}
}

// TestWatchIsChargedToItsCaller: a watch counts for its caller, by machine, until it ends.
func TestWatchIsChargedToItsCaller(t *testing.T) {
	const host = "192.0.2.7"
	inBubble(t, []string{"us"}, nil, func(r *rig) {
		r.sites["us"].Watched(fake.Stays, fake.State("us", 1))
		ctx, cancel := context.WithCancel(fake.From(r.t.Context(), host))
		r.follow(ctx, "")
		synctest.Wait()
		if all, own := r.service.watching.UnderWay(host); all != 1 || own != 1 {
			r.t.Errorf("%d are counted, %d for its caller", all, own)
		}
		cancel()
		synctest.Wait()
		if n, _ := r.service.watching.UnderWay(host); n != 0 {
			r.t.Errorf("%d are counted once it has ended", n)
		}
	})
}
