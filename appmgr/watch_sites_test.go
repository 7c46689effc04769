package appmgr

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/health"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// streamOfStates is the stream on which a fake site tells states.
type streamOfStates = samyav1.EntityService_WatchEntityServer

// watched makes a site tell states on each further watch, and then call end.
func (f *fakeSite) watched(end func(streamOfStates) error, states ...*samyav1.WatchEntityResponse) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watch = func(_ *samyav1.WatchEntityRequest, stream streamOfStates) error {
		for _, s := range states {
			if err := stream.Send(s); err != nil {
				return err
			}
		}
		return end(stream)
	}
}

// stays makes a watch last until its caller ends it.
func stays(stream streamOfStates) error {
	<-stream.Context().Done()
	return stream.Context().Err()
}

// fails makes a watch end with err.
func fails(err error) func(streamOfStates) error { return func(streamOfStates) error { return err } }

// TestWatchTellsDeletionAfterStates: a deletion has no version, and comes after every
// state of its generation. A deletion of an earlier generation is old news.
func TestWatchTellsDeletionAfterStates(t *testing.T) {
	inBubble(t, []string{"us"}, nil, func(r *rig) {
		gone := func(generation uint64) *samyav1.WatchEntityResponse {
			return &samyav1.WatchEntityResponse{Entity: ent(0, generation, 0), Deleted: true}
		}
		second := state("us", 3)
		second.Entity.Generation = 2
		r.sites["us"].watched(stays, second, gone(1), state("us", 4), second, gone(2))
		w := r.follow(r.t.Context(), "")
		pass(time.Second)
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
			r.sites["us"].watched(fails(why))
			w := r.follow(r.t.Context(), "")
			synctest.Wait()
			want := apierr.ReasonOf(why)
			if want == apierr.Unauthenticated || want == apierr.PermissionDenied {
				want = apierr.SiteUnavailable
			}
			if got := w.now(); !got.over || apierr.ReasonOf(got.err) != want {
				r.t.Errorf("%v: over %t with %v, want %s", why, got.over, got.err, want)
			}
			h := r.router.link("us").state()
			if h.Overloaded(time.Now().Add(2*time.Second)) != (want == apierr.Overloaded) || (h.Reach == health.Down) != (want == apierr.ShuttingDown) {
				r.t.Errorf("%v: the site counts as %+v", why, h)
			}
			if n := r.service.watching.of.All(); n != 0 {
				r.t.Errorf("%v: %d watches still count", why, n)
			}
		})
	}
}

// TestWatchLooksOnWhileOneSiteMayKnow: a site that has missed the creation does not end
// a watch while another site could not be asked.
func TestWatchLooksOnWhileOneSiteMayKnow(t *testing.T) {
	inBubble(t, threeSites, nil, func(r *rig) {
		r.sites["us"].watched(stays, state("us", 1))
		r.sites["au"].watched(fails(apierr.SiteUnavailable))
		w := r.follow(r.t.Context(), "")
		pass(time.Second)
		r.sites["us"].kill()
		pass(time.Second)
		r.sites["au"].watched(stays, state("au", 2))
		pass(5 * time.Second)
		if got := w.now(); got.over || !slices.Equal(got.told, []uint64{1, 2}) {
			r.t.Errorf("told %v, over %t with %v", got.told, got.over, got.err)
		}
		// The watch is over once all sites say that they do not know the entity.
		r.sites["au"].watched(fails(apierr.NotFound("e")))
		r.sites["au"].kill()
		r.sites["au"].up()
		pass(10 * time.Second)
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
		us.watched(func(stream streamOfStates) error {
			if err := pause(stream.Context(), 2*resumeTime); err != nil {
				return err
			}
			if err := stream.Send(state("us", 2)); err != nil {
				return err
			}
			return stays(stream)
		}, state("us", 1))
		w := r.follow(r.t.Context(), "")
		pass(2*resumeTime + time.Second)
		us.kill()
		pass(resumeTime / 2)
		if got := w.now(); got.over || !slices.Equal(got.told, []uint64{1, 2}) {
			r.t.Errorf("told %v, over %t with %v", got.told, got.over, got.err)
		}
	})
}

// TestWatchLeavesNoStreamBehind: a watch that goes on elsewhere ends its stream at the
// site before, also where the connection to that site stays for others.
func TestWatchLeavesNoStreamBehind(t *testing.T) {
	for what, leave := range map[string]func(*rig){
		"it is found to be down": func(r *rig) { r.router.link("us").update((*health.Health).Broken) },
		"it is no site any more": func(r *rig) {
			r.cfg.Directory.(*roster).set(SiteInfo{Name: "eu", Region: "eu", Address: "eu"})
		},
	} {
		t.Run(what, func(t *testing.T) {
			inBubble(t, []string{"us", "eu"}, func(c *Config) { c.ProbeInterval = 10 * time.Second }, func(r *rig) {
				var at atomic.Int64
				r.sites["us"].watched(func(stream streamOfStates) error {
					at.Add(1)
					defer at.Add(-1)
					return stays(stream)
				}, state("us", 1))
				r.sites["eu"].watched(stays, state("eu", 2))
				slowly(r.sites["us"])
				ctx, cancel := context.WithCancel(r.t.Context())
				defer cancel()
				done := make(chan struct{})
				go func() {
					defer close(done)
					in := &samyav1.AcquireRequest{Entity: "slow", Tokens: 1, Wait: durationpb.New(time.Minute), Site: "us"}
					_, _ = r.service.Acquire(ctx, in)
				}()
				w := r.follow(ctx, "")
				pass(3 * time.Second)
				if n := at.Load(); n != 1 {
					r.t.Fatalf("%d streams at us", n)
				}
				// A probe may find the site up just before the watch looks, every ten seconds.
				for i := 0; i < 400 && at.Load() > 0; i++ {
					leave(r)
					pass(100 * time.Millisecond)
				}
				pass(time.Second)
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
