package grpcapi

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/samya-db/samya/appmgr/fake"
	"github.com/samya-db/samya/appmgr/route"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/apierr/refuse"
	"github.com/samya-db/samya/internal/health"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// acquire makes the request and returns the site that answered.
func (r *rig) acquire(t *testing.T, in *samyav1.AcquireRequest) (string, error) {
	t.Helper()
	out, err := r.service.Acquire(t.Context(), in)
	return out.GetSite(), err
}

func TestNearestSiteAnswers(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		t := r.t
		began := time.Now()
		if site, err := r.acquire(t, fake.Take); site != "us" || err != nil {
			t.Errorf("%s answered, %v", site, err)
		}
		if d := time.Since(began); d != 0 {
			t.Errorf("the nearest site took %v", d)
		}
		began = time.Now()
		at := &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 3, Site: "eu"}
		if site, err := r.acquire(t, at); site != "eu" || err != nil {
			t.Errorf("%s answered, %v", site, err)
		}
		if d := time.Since(began); d != 132*time.Millisecond {
			t.Errorf("eu took %v, a round trip is 132ms", d)
		}
		if rtt := r.health("eu").RTT; rtt != 132*time.Millisecond {
			t.Errorf("measured round trip %v", rtt)
		}
	})
}

func TestNextSite(t *testing.T) {
	for _, c := range []struct {
		what  string
		spoil func(*fake.Site)
		calls int64 // that reach us
	}{
		{"connection refused", func(f *fake.Site) { f.Kill() }, 0},
		{"overloaded", func(f *fake.Site) { f.Refuse(apierr.Overload("us", time.Second)) }, 1},
		{"shutting down", func(f *fake.Site) { f.Refuse(apierr.ShuttingDown) }, 1},
		{"unavailable, nothing done", func(f *fake.Site) { f.Refuse(apierr.SiteUnavailable) }, 1},
		{"not taking this app manager", func(f *fake.Site) { f.Refuse(apierr.Unauthenticated) }, 1},
		{"not letting this app manager do so", func(f *fake.Site) { f.Refuse(apierr.PermissionDenied) }, 1},
		{"too many wait", func(f *fake.Site) { f.Refuse(apierr.QueueFull) }, 1},
	} {
		inBubble(t, fake.ThreeSites, nil, func(r *rig) {
			t := r.t
			c.spoil(r.sites["us"])
			// A connection that breaks unnoticed takes the next call with it.
			fake.Pass(0)
			if site, err := r.acquire(t, fake.Take); site != "eu" || err != nil {
				t.Errorf("%s: %s answered, %v", c.what, site, err)
			}
			if got := r.sites["us"].Calls.Load(); got != c.calls {
				t.Errorf("%s: %d calls reached us", c.what, got)
			}
		})
	}
}

// TestAnswersAreFinal: the caller gets the answer of the first site, and no other site is
// asked.
func TestAnswersAreFinal(t *testing.T) {
	for _, c := range []struct {
		err  error
		want apierr.Reason
	}{
		{refuse.NoTokens("acme/vm", "us", 3, 1, time.Second), apierr.OutOfTokens},
		{refuse.Exceeds("acme/vm", "us", 3, 2), apierr.ExceedsLimit},
		{apierr.NotFound("acme/vm"), apierr.EntityNotFound},
		{refuse.Reused("id-1", "us"), apierr.RequestIDReused},
		{apierr.NoQuorum, apierr.NoQuorum},
		{apierr.DeadlineExceeded, apierr.DeadlineExceeded},
		{apierr.Internal, apierr.Internal},
		{errors.New("plain"), apierr.OutcomeUnknown},
		// The senders of these errors did not say whether anything was done.
		{status.Error(codes.Unavailable, "plain"), apierr.OutcomeUnknown},
		{status.Error(codes.DeadlineExceeded, "plain"), apierr.OutcomeUnknown},
		{status.Error(codes.Canceled, "plain"), apierr.OutcomeUnknown},
	} {
		inBubble(t, fake.ThreeSites, nil, func(r *rig) {
			t := r.t
			r.sites["us"].Refuse(c.err)
			r.service.newID = func() string { return "id-1" }
			_, err := r.acquire(t, &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 3})
			e := apierr.From(err)
			if e.Reason != c.want || e.RequestID != "id-1" || e.Site != "us" {
				t.Errorf("%v became %+v", c.err, e)
			}
			if n := r.sites["eu"].Calls.Load() + r.sites["au"].Calls.Load(); n != 0 {
				t.Errorf("%v: %d calls reached other sites", c.err, n)
			}
			if c.want == apierr.OutOfTokens && (e.Left == nil || *e.Left != 1 || e.RetryAfter != time.Second) {
				t.Errorf("lost details: %+v", e)
			}
		})
	}
}

// TestUnknownOutcome: the site dies after the request reached it.
func TestUnknownOutcome(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		t := r.t
		us := r.sites["us"]
		us.OnAcquire = func(ctx context.Context, _ *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
			us.Kill()
			<-ctx.Done()
			return nil, ctx.Err()
		}
		_, err := r.acquire(t, &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 3})
		e := apierr.From(err)
		if e.Reason != apierr.OutcomeUnknown || e.Site != "us" || len(e.RequestID) != 26 {
			t.Errorf("got %+v", e)
		}
		if us.Calls.Load() != 1 || r.sites["eu"].Calls.Load() != 0 {
			t.Errorf("us got %d calls, eu %d", us.Calls.Load(), r.sites["eu"].Calls.Load())
		}
		// The next request does not go there, a repeat with the site named does.
		if site, err := r.acquire(t, fake.Take); site != "eu" || err != nil {
			t.Errorf("next: %s, %v", site, err)
		}
		at := &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 3, RequestId: e.RequestID, Site: e.Site}
		if _, err := r.acquire(t, at); !errors.Is(err, apierr.SiteUnavailable) {
			t.Errorf("repeat at a dead site: %v", err)
		}
		us.OnAcquire = nil
		us.Up()
		fake.Pass(5 * time.Second)
		if site, err := r.acquire(t, at); site != "us" || err != nil {
			t.Errorf("repeat at the returned site: %s, %v", site, err)
		}
	})
}

func TestUnknownOutcomeOfAChange(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		t := r.t
		us := r.sites["us"]
		us.OnCreate = func(ctx context.Context, _ *samyav1.CreateEntityRequest) (*samyav1.CreateEntityResponse, error) {
			us.Kill()
			<-ctx.Done()
			return nil, ctx.Err()
		}
		others := func(answer error) map[string]bool {
			ids := map[string]bool{}
			for _, n := range []string{"eu", "au"} {
				r.sites[n].OnCreate = func(_ context.Context, in *samyav1.CreateEntityRequest) (*samyav1.CreateEntityResponse, error) {
					ids[in.GetRequestId()] = true
					if answer != nil {
						return nil, answer
					}
					return &samyav1.CreateEntityResponse{Entity: &samyav1.Entity{Name: in.GetName(), Limit: in.GetLimit(), Generation: 1}}, nil
				}
			}
			return ids
		}
		create := func() error {
			_, err := r.service.CreateEntity(t.Context(), &samyav1.CreateEntityRequest{Name: "acme/vm", Limit: 5})
			us.Up()
			fake.Pass(5 * time.Second)
			return err
		}
		for _, answer := range []error{
			apierr.New(apierr.NoQuorum, "none"), apierr.Overload("", time.Second), apierr.New(apierr.EntityNotFound, "none"), apierr.New(apierr.ShuttingDown, "stops"),
		} {
			// None of these answers tells of the try at us.
			ids := others(answer)
			err := create()
			if e := apierr.From(err); e.Reason != apierr.OutcomeUnknown || e.Site != "us" || !ids[e.RequestID] || len(ids) != 1 || e.Entity != "acme/vm" {
				t.Errorf("another site answers %v: got %+v, ids %v", answer, e, ids)
			}
		}
		// Any site tells the decision about the id.
		ids := others(nil)
		if err := create(); err != nil || len(ids) != 1 {
			t.Errorf("another site answers that it was done: %v, ids %v", err, ids)
		}
		ids = others(refuse.Exists("acme/vm"))
		if err := create(); apierr.ReasonOf(err) != apierr.EntityExists || len(ids) != 1 {
			t.Errorf("another site answers that there was one before: %v, ids %v", err, ids)
		}
	})
}

func TestDeadlines(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		t := r.t
		hang := func(ctx context.Context, _ *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		r.sites["us"].OnAcquire, r.sites["eu"].OnAcquire = hang, hang
		reason := func(ctx context.Context, site string) apierr.Reason {
			_, err := r.service.Acquire(ctx, &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 1, Site: site})
			return apierr.ReasonOf(err)
		}

		past, cancel := context.WithTimeout(t.Context(), -1)
		defer cancel()
		if got := reason(past, ""); got != apierr.DeadlineExceeded || r.sites["us"].Calls.Load() != 0 {
			t.Errorf("an expired deadline: %s", got)
		}
		soon, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		defer cancel()
		if got := reason(soon, "eu"); got != apierr.DeadlineExceeded || r.sites["eu"].Calls.Load() != 0 {
			t.Errorf("a deadline before the request is there: %s", got)
		}
		back, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		r.sites["eu"].OnAcquire = nil
		if got := reason(back, "eu"); got != apierr.OutcomeUnknown || r.sites["eu"].Calls.Load() != 1 {
			t.Errorf("a deadline while the answer is on its way: %s", got)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if got := reason(gone, ""); got != apierr.Canceled {
			t.Errorf("a caller that has gone: %s", got)
		}
		began := time.Now()
		if got := reason(t.Context(), ""); got != apierr.OutcomeUnknown {
			t.Errorf("a site that hangs: %s", got)
		}
		if d := time.Since(began); d != siteWait+changeTime {
			t.Errorf("a site that hangs was waited for %v", d)
		}
		// None of this means that the site is down.
		if h := r.health("us"); h.Reach != health.Up {
			t.Errorf("us: %+v", h)
		}
	})
}

func TestOverloadedSiteIsGonePast(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		t := r.t
		us := r.sites["us"]
		us.Refuse(apierr.Overload("us", 3*time.Second))
		for range 5 {
			if site, err := r.acquire(t, fake.Take); site != "eu" || err != nil {
				t.Fatalf("%s answered, %v", site, err)
			}
		}
		if n := us.Calls.Load(); n != 1 {
			t.Errorf("the overloaded site got %d calls, want the 1 that it refused", n)
		}
		us.OnAcquire = nil
		fake.Pass(3 * time.Second)
		if site, _ := r.acquire(t, fake.Take); site != "us" {
			t.Errorf("%s answered once the overload was over", site)
		}
		for _, f := range r.sites {
			f.Refuse(apierr.Overload(f.Name, 2*time.Second))
		}
		_, err := r.acquire(t, fake.Take)
		if e := apierr.From(err); e.Reason != apierr.Overloaded || e.RetryAfter != 2*time.Second || e.Site != "us" {
			t.Errorf("all overloaded: %+v", e)
		}
	})
}

func TestFullSiteIsGonePast(t *testing.T) {
	inBubble(t, []string{"us", "eu"}, func(c *config) { c.MaxPerSite = 2 }, func(r *rig) {
		t := r.t
		hold := make(chan struct{})
		r.sites["us"].OnAcquire = func(context.Context, *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
			<-hold
			return &samyav1.AcquireResponse{Site: "us"}, nil
		}
		r.sites["eu"].OnAcquire = r.sites["us"].OnAcquire
		done := make(chan error)
		for range 4 {
			go func() { _, err := r.service.Acquire(t.Context(), fake.Take); done <- err }()
		}
		fake.Pass(time.Second)
		if us, eu := r.sites["us"].Calls.Load(), r.sites["eu"].Calls.Load(); us != 2 || eu != 2 {
			t.Errorf("us has %d calls, eu %d", us, eu)
		}
		if _, err := r.acquire(t, fake.Take); !errors.Is(err, apierr.Overloaded) {
			t.Errorf("all full: %v", err)
		}
		close(hold)
		for range 4 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}

// TestReadsGoOn: a failed read is repeated elsewhere, whatever became of it.
func TestReadsGoOn(t *testing.T) {
	for what, list := range map[string]func(*fake.Site) func() error{
		"dies":       func(f *fake.Site) func() error { return func() error { f.Kill(); return nil } },
		"is plain":   func(*fake.Site) func() error { return func() error { return status.Error(codes.Unavailable, "plain") } },
		"overloaded": func(*fake.Site) func() error { return func() error { return apierr.Overloaded } },
	} {
		inBubble(t, fake.ThreeSites, nil, func(r *rig) {
			t := r.t
			r.sites["us"].OnList = list(r.sites["us"])
			out, err := r.service.ListEntities(t.Context(), &samyav1.ListEntitiesRequest{Prefix: "x"})
			if err != nil || out.GetEntities()[0].GetName() != "xa" || out.GetNextPageToken() != "next" {
				t.Errorf("us %s: %v, %v", what, out, err)
			}
		})
	}
}

func TestNoSite(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		t := r.t
		if !r.router.Reachable() {
			t.Error("no site is reachable")
		}
		_, err := r.acquire(t, &samyav1.AcquireRequest{Entity: "a", Tokens: 1, Site: "mars"})
		if e := apierr.From(err); e.Reason != apierr.InvalidField || e.Violations[0].Field != "site" {
			t.Errorf("a site that is no member: %v", err)
		}
		for _, f := range r.sites {
			f.Kill()
		}
		fake.Pass(0)
		_, err = r.acquire(t, fake.Take)
		if e := apierr.From(err); e.Reason != apierr.SiteUnavailable || e.RetryAfter == 0 || e.RequestID != "id-1" {
			t.Errorf("no site: %+v", e)
		}
		if r.router.Reachable() {
			t.Error("a site is reachable")
		}
		r.sites["au"].Up()
		fake.Pass(5 * time.Second)
		if site, err := r.acquire(t, fake.Take); site != "au" || err != nil {
			t.Errorf("%s answered, %v", site, err)
		}
	})
}

// TestSiteMoves: a call that waits at the old address goes to the new address at once.
func TestSiteMoves(t *testing.T) {
	inBubble(t, []string{"us"}, nil, func(r *rig) {
		t := r.t
		hold := make(chan struct{})
		r.sites["us"].OnAcquire = func(context.Context, *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
			<-hold
			return &samyav1.AcquireResponse{Site: "us"}, nil
		}
		done := make(chan error)
		go func() { _, err := r.service.Acquire(t.Context(), fake.Take); done <- err }()
		fake.Pass(0)
		moved := &fake.Site{Name: "us", Members: []string{"us"}}
		moved.Up()
		r.sites["elsewhere"] = moved
		r.directory.Set(route.SiteInfo{Name: "us", Region: "us", Address: "elsewhere"})
		fake.Pass(2 * time.Second)
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("the call at the old address: %v", err)
			}
		default:
			t.Error("the call at the old address still waits")
		}
		if site, err := r.acquire(t, fake.Take); site != "us" || err != nil || moved.Calls.Load() != 2 {
			t.Errorf("%s, %v, %d calls at the new address", site, err, moved.Calls.Load())
		}
		close(hold)
	})
}
