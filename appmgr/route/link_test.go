package route

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	grpchealth "google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/samya-db/samya/appmgr/fake"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/health"
)

// TestLinkIsBounded: a link lets in as many calls as the limit. A retired link lets in
// none, and closes once its last call has left.
func TestLinkIsBounded(t *testing.T) {
	inBubble(t, []string{"us"}, nil, func(r *rig) {
		l := r.router.link("us")
		for n := range 3 {
			if in := l.enter(2); in != (n < 2) {
				r.t.Errorf("call %d of 2 is let in: %t", n+1, in)
				defer l.leave()
			}
		}
		l.leave()
		r.directory.Set()
		fake.Pass(0)
		if l.enter(2) {
			r.t.Error("a link that was retired lets a call in")
			l.leave()
		}
		if _, _, err := l.stream.Do(r.t.Context(), fake.AcquireOf(fake.Take)); err != nil {
			r.t.Errorf("the connection closed on the call under way: %v", err)
		}
		l.leave()
		if _, _, err := l.stream.Do(r.t.Context(), fake.AcquireOf(fake.Take)); err == nil {
			r.t.Error("the connection stays open")
		}
	})
}

// TestSiteThatDoesNotServe: requests pass over a site that answers that it does not
// serve.
func TestSiteThatDoesNotServe(t *testing.T) {
	inBubble(t, []string{"us", "eu"}, nil, func(r *rig) {
		us := r.sites["us"]
		us.Kill()
		checks := grpchealth.NewServer()
		us.Health = checks
		checks.SetServingStatus("", healthpb.HealthCheckResponse_NOT_SERVING)
		us.Up()
		fake.Pass(10 * time.Second)
		if got := r.router.link("us").state().Reach; got != health.Down {
			r.t.Errorf("us counts as %d", got)
		}
		if site, err := r.acquire(r.t, fake.Take); site != "eu" || err != nil {
			r.t.Errorf("%s answered, %v", site, err)
		}
		checks.SetServingStatus("", healthpb.HealthCheckResponse_SERVING)
		fake.Pass(10 * time.Second)
		if site, err := r.acquire(r.t, fake.Take); site != "us" || err != nil {
			r.t.Errorf("once it serves %s answered, %v", site, err)
		}
	})
}

// checked is a health service that calls first before it answers.
type checked struct {
	*grpchealth.Server
	first func(context.Context) error
}

func (c checked) Check(ctx context.Context, in *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	if err := c.first(ctx); err != nil {
		return nil, err
	}
	return c.Server.Check(ctx, in)
}

// TestLateProbe: a single late probe does not make a site count as down; two in a row do,
// and so does a refusal. A site without the health service counts as up.
func TestLateProbe(t *testing.T) {
	for what, c := range map[string]struct {
		late int64 // probes in a row
		err  error
		want health.Reach
	}{
		"one is late":     {1, nil, health.Up},
		"two are late":    {health.SoftMisses, nil, health.Down},
		"no such service": {0, status.Error(codes.Unimplemented, "none"), health.Up},
		"a refusal":       {0, status.Error(codes.Internal, "bad"), health.Down},
	} {
		inBubble(t, []string{"us"}, nil, func(r *rig) {
			us, late, refuses := r.sites["us"], atomic.Int64{}, atomic.Bool{}
			us.Kill()
			us.Health = checked{grpchealth.NewServer(), func(ctx context.Context) error {
				if late.Add(-1) >= 0 {
					<-ctx.Done()
					return ctx.Err()
				}
				if refuses.Load() {
					return c.err
				}
				return nil
			}}
			us.Up()
			fake.Pass(10 * time.Second)
			worst := r.router.link("us").state().Reach
			late.Store(c.late)
			refuses.Store(true)
			for range 100 {
				fake.Pass(100 * time.Millisecond)
				worst = max(worst, r.router.link("us").state().Reach)
			}
			if worst != c.want {
				r.t.Errorf("%s: the site counts as %d, want %d", what, worst, c.want)
			}
		})
	}
}

// TestMostMembers: a member set of maxSites sites is accepted, a larger set is not.
func TestMostMembers(t *testing.T) {
	for n, good := range map[int]bool{MaxSites: true, MaxSites + 1: false} {
		inBubble(t, []string{"us"}, nil, func(r *rig) {
			var members []string
			for i := range n {
				members = append(members, fmt.Sprint("s", i))
			}
			r.sites["us"].Kill()
			r.sites["us"].Members = members
			r.sites["us"].Up()
			fake.Pass(10 * time.Second)
			ms, err := r.router.fetchMembers(r.t.Context())
			if good && (err != nil || len(ms.Sites) != n) || !good && apierr.ReasonOf(err) != apierr.Internal {
				r.t.Errorf("%d members: %d, %v", n, len(ms.Sites), err)
			}
		})
	}
}

// TestRanking: a site is tried again as soon as its own overload is over, and as soon as
// a call has left it.
func TestRanking(t *testing.T) {
	inBubble(t, fake.ThreeSites, func(c *Config) { c.MaxPerSite = 1 }, func(r *rig) {
		first := func() string { return r.router.best(time.Now()).links[0].info.Name }
		for site, d := range map[string]time.Duration{"us": time.Second, "eu": 4 * time.Second} {
			r.router.link(site).update(func(h *health.Health) { h.Refused(time.Now(), d) })
		}
		var order []string
		for range 5 {
			order = append(order, first())
			fake.Pass(time.Second)
		}
		if !slices.Equal(order, []string{"au", "us", "us", "us", "us"}) {
			r.t.Errorf("tried first each second: %v", order)
		}
		us := r.router.link("us")
		us.enter(1)
		us.changed.Add(1)
		if site, err := r.acquire(r.t, fake.Take); site != "eu" || err != nil {
			r.t.Errorf("us is full: %s, %v", site, err)
		}
		us.leave()
		if site, err := r.acquire(r.t, fake.Take); site != "us" || err != nil {
			r.t.Errorf("us is full no more: %s, %v", site, err)
		}
	})
}

// TestShortDelaysAreHeldExactly: a short delay is waited for by Hold, each way, and a long
// delay by a timer. A caller that gives up meanwhile gets its answer.
func TestShortDelaysAreHeldExactly(t *testing.T) {
	for _, c := range []struct {
		delay time.Duration
		held  int64
	}{{shortDelay, 4}, {shortDelay + 1, 0}, {0, 0}} {
		var held atomic.Int64
		shorten := func(cfg *Config) {
			cfg.ProbeInterval = time.Hour // probes are held too
			cfg.Latency = func(string, string) time.Duration { return c.delay }
			cfg.Hold = func(ctx context.Context, d time.Duration) error {
				held.Add(1)
				return Pause(ctx, d)
			}
		}
		inBubble(t, []string{"us"}, shorten, func(r *rig) {
			// What the router asks at its start is over by then.
			if err := Pause(r.t.Context(), 500*time.Millisecond); err != nil {
				r.t.Fatal(err)
			}
			synctest.Wait()
			before := held.Load()
			began := time.Now()
			if _, err := r.acquire(r.t, fake.Take); err != nil || time.Since(began) != 2*c.delay {
				r.t.Errorf("%v in %v", err, time.Since(began))
			}
			if err := r.router.Do(r.t.Context(), Call{Method: healthpb.Health_Check_FullMethodName, Req: &healthpb.HealthCheckRequest{}, Resp: &healthpb.HealthCheckResponse{}}); err != nil {
				r.t.Error(err)
			}
			if n := held.Load() - before; n != c.held {
				r.t.Errorf("%d delays of %v are held exactly, not %d", n, c.delay, c.held)
			}
			if c.held == 0 {
				return
			}
			ctx, cancel := context.WithCancel(r.t.Context())
			cancel()
			if _, err := r.within(ctx, fake.Take); apierr.ReasonOf(err) != apierr.Canceled {
				r.t.Errorf("a caller that has given up: %v", err)
			}
		})
	}
}
