package grpcapi

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/appmgr/fake"
	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// TestWaitingIsBoundedByCaller: the waiting acquires of a caller leave room for the
// acquires of another caller.
func TestWaitingIsBoundedByCaller(t *testing.T) {
	inBubble(t, fake.ThreeSites, func(c *config) { c.MaxConcurrent = 16 }, func(r *rig) {
		t := r.t
		for _, f := range r.sites {
			fake.Slowly(f)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		refused := make(chan error, 64)
		for range 64 {
			go func() {
				_, err := r.service.Acquire(ctx, &samyav1.AcquireRequest{Entity: "slow", Tokens: 1, Wait: durationpb.New(time.Minute)})
				refused <- err
			}()
		}
		synctest.Wait()
		if n, _ := r.service.waiting.UnderWay(""); n != 14 {
			t.Errorf("%d of one caller's acquires wait, want 14 of 16", n)
		}
		if n := len(refused); n != 50 {
			t.Errorf("%d were refused, want 50", n)
		}
		// As for any caller of another name.
		at, err := r.service.waiting.Begin("another")
		if err != nil {
			t.Errorf("another caller: %v", err)
		}
		r.service.waiting.End(at)
		cancel()
		for range 64 {
			if err := <-refused; apierr.ReasonOf(err) != apierr.Overloaded && !strings.Contains(string(apierr.ReasonOf(err)), "CANCELED") {
				t.Errorf("%v", err)
			}
		}
		if n, _ := r.service.waiting.UnderWay(""); n != 0 {
			t.Errorf("%d still wait", n)
		}
	})
}

// TestWaitsForSitesAreBoundedByCaller: waiting changes count like waiting acquires for
// their caller.
func TestWaitsForSitesAreBoundedByCaller(t *testing.T) {
	inBubble(t, fake.ThreeSites, func(c *config) { c.MaxConcurrent = 16 }, func(r *rig) {
		t := r.t
		for _, f := range r.sites {
			f.OnUpdate = func(ctx context.Context, _ *samyav1.UpdateEntityRequest) (*samyav1.UpdateEntityResponse, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
		}
		errs := make(chan error, 64)
		update := func(wait bool) {
			_, err := r.service.UpdateEntity(t.Context(), &samyav1.UpdateEntityRequest{Name: "e", Limit: 1, WaitApplied: wait})
			errs <- err
		}
		for range 32 {
			go update(true)
		}
		synctest.Wait()
		if n, _ := r.service.waiting.UnderWay(""); n != 14 || len(errs) != 18 {
			t.Errorf("%d wait and %d were refused, want 14 and 18", n, len(errs))
		}
		for range len(errs) {
			if err := <-errs; apierr.ReasonOf(err) != apierr.Overloaded {
				t.Errorf("%v", err)
			}
		}
		go update(false)
		fake.Pass(2 * changeTime)
		waiting, _ := r.service.waiting.UnderWay("")
		if n := len(errs); n != 15 || waiting != 0 {
			t.Errorf("%d of 15 have ended, %d wait", n, waiting)
		}
	})
}
