package grpcapi

import (
	"context"
	"testing"
	"time"

	"github.com/samya-db/samya/appmgr/fake"
	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// TestCreateIsKnownEverywhere: a create is answered once every answering site knows the
// entity. A silent site delays the answer by at most a second.
func TestCreateIsKnownEverywhere(t *testing.T) {
	type get = func(context.Context, *samyav1.GetEntityRequest) (*samyav1.GetEntityResponse, error)
	const far = 160 * time.Millisecond // to au and back
	silent := func(ctx context.Context, _ *samyav1.GetEntityRequest) (*samyav1.GetEntityResponse, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	// behind answers like before for d, and knows the entity from then on.
	behind := func(d time.Duration, before get) get {
		from := time.Now()
		return func(ctx context.Context, r *samyav1.GetEntityRequest) (*samyav1.GetEntityResponse, error) {
			if time.Since(from) < d {
				return before(ctx, r)
			}
			return fake.ShareOf("eu", &samyav1.Entity{Name: r.GetName(), Limit: 5, Generation: 1, Version: 1}, 5, 0), nil
		}
	}
	none := func(context.Context, *samyav1.GetEntityRequest) (*samyav1.GetEntityResponse, error) {
		return nil, apierr.NotFound("acme/vm")
	}
	earlier := func(_ context.Context, r *samyav1.GetEntityRequest) (*samyav1.GetEntityResponse, error) {
		return fake.ShareOf("eu", &samyav1.Entity{Name: r.GetName(), Limit: 5, Version: 9}, 5, 0), nil
	}
	for _, c := range []struct {
		what     string
		eu       func(*fake.Site)
		patience time.Duration // the caller's; 0: no end
		from, to time.Duration // when the answer comes
	}{
		{what: "all know it at once", eu: func(*fake.Site) {}, from: far, to: far},
		{what: "one hears of it later", eu: func(f *fake.Site) { f.OnGet = behind(500*time.Millisecond, none) }, from: 500 * time.Millisecond, to: time.Second - 1},
		{what: "one has an earlier one of its name", eu: func(f *fake.Site) { f.OnGet = behind(500*time.Millisecond, earlier) }, from: 500 * time.Millisecond, to: time.Second - 1},
		{what: "one hears of it never", eu: func(f *fake.Site) { f.OnGet = none }, from: time.Second, to: time.Second},
		{what: "one is silent", eu: func(f *fake.Site) { f.OnGet = silent }, from: time.Second, to: time.Second},
		{what: "one is down", eu: (*fake.Site).Kill, from: far, to: far},
		{what: "the caller waits for less", eu: func(f *fake.Site) { f.OnGet = none }, patience: 500 * time.Millisecond, from: 400 * time.Millisecond, to: 450 * time.Millisecond},
	} {
		inBubble(t, fake.ThreeSites, nil, func(r *rig) {
			c.eu(r.sites["eu"])
			if c.what == "one is down" {
				fake.Pass(5 * time.Second)
			}
			ctx, cancel := r.t.Context(), context.CancelFunc(func() {})
			if c.patience > 0 {
				ctx, cancel = context.WithTimeout(ctx, c.patience)
			}
			defer cancel()
			began := time.Now()
			resp, err := r.service.CreateEntity(ctx, &samyav1.CreateEntityRequest{Name: "acme/vm", Limit: 5})
			if err != nil || resp.GetEntity().GetGeneration() != 1 {
				r.t.Fatalf("%s: %v, %v", c.what, resp, err)
			}
			if took := time.Since(began); took < c.from || took > c.to {
				r.t.Errorf("%s: answered after %v, want %v to %v", c.what, took, c.from, c.to)
			}
		})
	}
}
