package reads

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/samya-db/samya/appmgr/fake"
	"github.com/samya-db/samya/appmgr/route"
	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// following is a watch under way.
type following struct {
	mu sync.Mutex
	outcome
}

// outcome is the progress of a watch: the states told, and its end.
type outcome struct {
	told []uint64
	from []string
	err  error
	over bool
}

func (f *following) now() outcome {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.outcome
}

func (r *rig) follow(ctx context.Context, token string) *following {
	f := &following{}
	go func() {
		err := r.service.Watch(ctx, &samyav1.WatchEntityRequest{Name: "e", ResumeToken: token}, func(s *samyav1.WatchEntityResponse) error {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.told = append(f.told, s.GetEntity().GetVersion())
			f.from = append(f.from, s.GetResumeToken())
			return nil
		})
		f.mu.Lock()
		defer f.mu.Unlock()
		f.err, f.over = err, true
	}()
	return f
}

// TestWatchGoesOnAtAnotherSite: once the nearest site is gone, the watch goes on at the
// next site with the last token. States older than the last told are left out.
func TestWatchGoesOnAtAnotherSite(t *testing.T) {
	for _, c := range []struct {
		what string
		gone func(r *rig)
	}{
		{"its process dies", func(r *rig) { r.sites["us"].Kill() }},
		{"it is no site any more", func(r *rig) {
			r.directory.Set(route.SiteInfo{Name: "eu", Region: "eu", Address: "eu"})
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			inBubble(t, []string{"us", "eu"}, nil, func(r *rig) {
				t := r.t
				var us, eu []string
				r.sites["us"].States(&us, 2, 3)
				r.sites["eu"].States(&eu, 2, 3, 4)
				ctx, cancel := context.WithCancel(t.Context())
				w := r.follow(ctx, "mine")
				fake.Pass(3 * time.Second)
				if !slices.Equal(w.now().told, []uint64{2, 3}) || !slices.Equal(us, []string{"mine"}) || len(eu) != 0 {
					t.Errorf("told %v; asked with %q, %q", w.now().told, us, eu)
				}
				c.gone(r)
				fake.Pass(8 * time.Second)
				if !slices.Equal(w.now().told, []uint64{2, 3, 3, 4}) || !slices.Equal(w.now().from, []string{"us", "us", "eu", "eu"}) ||
					!slices.Equal(eu, []string{"us"}) || w.now().over {
					t.Errorf("told %v from %v; asked with %q; %v", w.now().told, w.now().from, eu, w.now().err)
				}
				cancel()
				synctest.Wait()
				if !errors.Is(w.now().err, apierr.Canceled) {
					t.Errorf("ended with %v", w.now().err)
				}
			})
		})
	}
}

func TestWatchEnds(t *testing.T) {
	inBubble(t, []string{"us", "eu"}, nil, func(r *rig) {
		t := r.t
		// Nobody knows of the entity.
		w := r.follow(t.Context(), "")
		fake.Pass(time.Second)
		if !w.now().over || !errors.Is(w.now().err, apierr.EntityNotFound) {
			t.Errorf("of no entity: %v, %v", w.now().over, w.now().err)
		}
		// The watch passes over a site that has not heard of the entity.
		var tokens []string
		r.sites["eu"].States(&tokens, 1)
		w = r.follow(t.Context(), "")
		fake.Pass(time.Second)
		if w.now().over || !slices.Equal(w.now().told, []uint64{1}) {
			t.Errorf("known to one: %v, %v", w.now().told, w.now().err)
		}
		// The entity is deleted.
		r.sites["us"].OnWatch = func(_ *samyav1.WatchEntityRequest, stream samyav1.EntityService_WatchEntityServer) error {
			return stream.Send(&samyav1.WatchEntityResponse{Entity: fake.Ent(0, 1, 0), Deleted: true})
		}
		d := r.follow(t.Context(), "")
		fake.Pass(time.Second)
		if !d.now().over || d.now().err != nil || len(d.now().told) != 1 {
			t.Errorf("deleted: %v, %v", d.now().told, d.now().err)
		}
		// The app manager stops.
		r.limiter.Close()
		synctest.Wait()
		if !w.now().over || !errors.Is(w.now().err, apierr.ShuttingDown) {
			t.Errorf("at the stop: %v, %v", w.now().over, w.now().err)
		}
	})
}

func TestWatchIsChecked(t *testing.T) {
	inBubble(t, []string{"us"}, nil, func(r *rig) {
		t := r.t
		for _, in := range []*samyav1.WatchEntityRequest{{}, {Name: "e", ResumeToken: string(make([]byte, 300))}} {
			if err := r.service.Watch(t.Context(), in, nil); !errors.Is(err, apierr.InvalidField) {
				t.Errorf("%v: %v", in, err)
			}
		}
		gone := errors.New("the caller has gone")
		var tokens []string
		r.sites["us"].States(&tokens, 1)
		err := r.service.Watch(t.Context(), &samyav1.WatchEntityRequest{Name: "e"}, func(*samyav1.WatchEntityResponse) error { return gone })
		if !errors.Is(err, gone) {
			t.Errorf("%v", err)
		}
		// The watch looks for another site in vain, and then fails.
		w := r.follow(t.Context(), "")
		fake.Pass(time.Second)
		r.sites["us"].Kill()
		fake.Pass(10 * time.Second)
		if w.now().over {
			t.Errorf("ended at once: %v", w.now().err)
		}
		fake.Pass(resumeTime)
		if !w.now().over || !errors.Is(w.now().err, apierr.SiteUnavailable) {
			t.Errorf("%v, %v", w.now().over, w.now().err)
		}
	})
}
