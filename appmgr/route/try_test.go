package route

import (
	"context"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/samya-db/samya/appmgr/fake"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/apierr/refuse"
	"github.com/samya-db/samya/internal/health"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// TestTimeUpNamesTheSite: if a caller's time ends after a try, the error names the site
// where the try may have run. The site was silent, or said that it does not know.
func TestTimeUpNamesTheSite(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		r.sites["us"].OnAcquire = fake.Hangs
		ctx, cancel := context.WithTimeout(r.t.Context(), time.Second)
		defer cancel()
		_, err := r.within(ctx, fake.Take)
		if e := apierr.From(err); e == nil || e.Reason != apierr.OutcomeUnknown || e.Attempt != 2 || !slices.Equal(e.Tried, []string{"us"}) {
			r.t.Errorf("a silent site: %+v", e)
		}
		// The context has ended by now.
		for what, c := range map[string]struct {
			f     fate
			err   error
			tried []string
		}{
			"nothing was sent":         {unsent, ctx.Err(), nil},
			"no answer came":           {lost, ctx.Err(), []string{"us"}},
			"the site does not know":   {answered, apierr.Unknown("id-1", "us", nil), []string{"us"}},
			"the site was interrupted": {answered, apierr.Wrap(apierr.Canceled, nil), []string{"us"}},
			"the site has refused":     {answered, refuse.NoTokens("e", "us", 3, 0, 0), nil},
		} {
			m := r.router.Movement(fake.Take, time.Second)
			again, err := r.router.classify(ctx, ctx.Err(), Call{Moves: m, RequestID: "id-1"}, r.router.link("us"), c.f, c.err)
			if again || !slices.Equal(m.indeterminate, c.tried) {
				r.t.Errorf("%s: %v, indeterminate are %v, another site is tried: %t", what, err, m.indeterminate, again)
			}
		}
	})
}

// TestSlowTry: a site that exceeds the time of a try does not count as down. A try is not
// cut short while all other sites are full.
func TestSlowTry(t *testing.T) {
	for full, want := range map[bool]string{false: "eu", true: "us"} {
		inBubble(t, []string{"us", "eu"}, func(c *Config) { c.MaxPerSite = 1 }, func(r *rig) {
			r.sites["us"].OnAcquire = func(ctx context.Context, in *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
				if err := Pause(ctx, 2*r.router.cfg.TryTime); err != nil {
					return nil, err
				}
				return &samyav1.AcquireResponse{Tokens: in.GetTokens(), Site: "us"}, nil
			}
			if full {
				r.router.link("eu").enter(1)
				defer r.router.link("eu").leave()
			}
			in := &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 3, RequestId: "id-1", Wait: durationpb.New(0)}
			if site, err := r.acquire(r.t, in); site != want || err != nil {
				r.t.Errorf("eu full %t: %s answered, %v", full, site, err)
			}
			if got := r.router.link("us").state().Reach; got != health.Up {
				r.t.Errorf("eu full %t: us counts as %d", full, got)
			}
		})
	}
}

// TestPinnedWhileNobodyTellsOfMembers: while no site tells the members, a site that
// cannot be asked may be a member.
func TestPinnedWhileNobodyTellsOfMembers(t *testing.T) {
	inBubble(t, []string{"us"}, nil, func(r *rig) {
		r.sites["us"].Kill()
		fake.Pass(0)
		r.router.mu.Lock()
		r.router.members = Members{}
		r.router.mu.Unlock()
		_, err := r.acquire(r.t, &samyav1.AcquireRequest{Entity: "e", Tokens: 1, Site: "au"})
		if e := apierr.From(err); e == nil || e.Reason != apierr.SiteUnavailable || e.Site != "au" {
			r.t.Errorf("%v", err)
		}
	})
}
