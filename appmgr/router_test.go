package appmgr

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/health"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

var threeSites = []string{"us", "eu", "au"}

// acquire makes the request and returns the site that answered.
func (r *rig) acquire(t *testing.T, in *samyav1.AcquireRequest) (string, error) {
	t.Helper()
	out, err := r.service.Acquire(t.Context(), in)
	return out.GetSite(), err
}

// refuse makes a site answer acquires with err.
func (f *fakeSite) refuse(err error) {
	f.acquire = func(context.Context, *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) { return nil, err }
}

func TestNearestSiteAnswers(t *testing.T) {
	inBubble(t, threeSites, nil, func(r *rig) {
		t := r.t
		began := time.Now()
		if site, err := r.acquire(t, take); site != "us" || err != nil {
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
		if rtt := r.router.link("eu").state().RTT; rtt != 132*time.Millisecond {
			t.Errorf("measured round trip %v", rtt)
		}
	})
}

func TestNextSite(t *testing.T) {
	for _, c := range []struct {
		what  string
		spoil func(*fakeSite)
		calls int64 // that reach us
	}{
		{"connection refused", func(f *fakeSite) { f.kill() }, 0},
		{"overloaded", func(f *fakeSite) { f.refuse(apierr.Overload("us", time.Second)) }, 1},
		{"shutting down", func(f *fakeSite) { f.refuse(apierr.ShuttingDown) }, 1},
		{"unavailable, nothing done", func(f *fakeSite) { f.refuse(apierr.SiteUnavailable) }, 1},
		{"not taking this app manager", func(f *fakeSite) { f.refuse(apierr.Unauthenticated) }, 1},
		{"not letting this app manager do so", func(f *fakeSite) { f.refuse(apierr.PermissionDenied) }, 1},
		{"too many wait", func(f *fakeSite) { f.refuse(apierr.QueueFull) }, 1},
	} {
		inBubble(t, threeSites, nil, func(r *rig) {
			t := r.t
			c.spoil(r.sites["us"])
			// A connection that breaks unnoticed takes the next call with it.
			pass(0)
			if site, err := r.acquire(t, take); site != "eu" || err != nil {
				t.Errorf("%s: %s answered, %v", c.what, site, err)
			}
			if got := r.sites["us"].calls.Load(); got != c.calls {
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
		{apierr.NoTokens("acme/vm", "us", 3, 1, time.Second), apierr.OutOfTokens},
		{apierr.Exceeds("acme/vm", "us", 3, 2), apierr.ExceedsLimit},
		{apierr.NotFound("acme/vm"), apierr.EntityNotFound},
		{apierr.Reused("id-1", "us"), apierr.RequestIDReused},
		{apierr.NoQuorum, apierr.NoQuorum},
		{apierr.DeadlineExceeded, apierr.DeadlineExceeded},
		{apierr.Internal, apierr.Internal},
		{errors.New("plain"), apierr.OutcomeUnknown},
		// The senders of these errors did not say whether anything was done.
		{status.Error(codes.Unavailable, "plain"), apierr.OutcomeUnknown},
		{status.Error(codes.DeadlineExceeded, "plain"), apierr.OutcomeUnknown},
		{status.Error(codes.Canceled, "plain"), apierr.OutcomeUnknown},
	} {
		inBubble(t, threeSites, nil, func(r *rig) {
			t := r.t
			r.sites["us"].refuse(c.err)
			r.service.newID = func() string { return "id-1" }
			_, err := r.acquire(t, &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 3})
			e := apierr.From(err)
			if e.Reason != c.want || e.RequestID != "id-1" || e.Site != "us" {
				t.Errorf("%v became %+v", c.err, e)
			}
			if n := r.sites["eu"].calls.Load() + r.sites["au"].calls.Load(); n != 0 {
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
	inBubble(t, threeSites, nil, func(r *rig) {
		t := r.t
		us := r.sites["us"]
		us.acquire = func(ctx context.Context, _ *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
			us.kill()
			<-ctx.Done()
			return nil, ctx.Err()
		}
		_, err := r.acquire(t, &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 3})
		e := apierr.From(err)
		if e.Reason != apierr.OutcomeUnknown || e.Site != "us" || len(e.RequestID) != 26 {
			t.Errorf("got %+v", e)
		}
		if us.calls.Load() != 1 || r.sites["eu"].calls.Load() != 0 {
			t.Errorf("us got %d calls, eu %d", us.calls.Load(), r.sites["eu"].calls.Load())
		}
		// The next request does not go there, a repeat with the site named does.
		if site, err := r.acquire(t, take); site != "eu" || err != nil {
			t.Errorf("next: %s, %v", site, err)
		}
		at := &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 3, RequestId: e.RequestID, Site: e.Site}
		if _, err := r.acquire(t, at); !errors.Is(err, apierr.SiteUnavailable) {
			t.Errorf("repeat at a dead site: %v", err)
		}
		us.acquire = nil
		us.up()
		pass(5 * time.Second)
		if site, err := r.acquire(t, at); site != "us" || err != nil {
			t.Errorf("repeat at the returned site: %s, %v", site, err)
		}
	})
}

func TestUnknownOutcomeOfAChange(t *testing.T) {
	inBubble(t, threeSites, nil, func(r *rig) {
		t := r.t
		us := r.sites["us"]
		us.create = func(ctx context.Context, _ *samyav1.CreateEntityRequest) (*samyav1.CreateEntityResponse, error) {
			us.kill()
			<-ctx.Done()
			return nil, ctx.Err()
		}
		others := func(answer error) map[string]bool {
			ids := map[string]bool{}
			for _, n := range []string{"eu", "au"} {
				r.sites[n].create = func(_ context.Context, in *samyav1.CreateEntityRequest) (*samyav1.CreateEntityResponse, error) {
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
			us.up()
			pass(5 * time.Second)
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
		ids = others(apierr.Exists("acme/vm"))
		if err := create(); apierr.ReasonOf(err) != apierr.EntityExists || len(ids) != 1 {
			t.Errorf("another site answers that there was one before: %v, ids %v", err, ids)
		}
	})
}

func TestDeadlines(t *testing.T) {
	inBubble(t, threeSites, nil, func(r *rig) {
		t := r.t
		hang := func(ctx context.Context, _ *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		r.sites["us"].acquire, r.sites["eu"].acquire = hang, hang
		reason := func(ctx context.Context, site string) apierr.Reason {
			_, err := r.service.Acquire(ctx, &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 1, Site: site})
			return apierr.ReasonOf(err)
		}

		past, cancel := context.WithTimeout(t.Context(), -1)
		defer cancel()
		if got := reason(past, ""); got != apierr.DeadlineExceeded || r.sites["us"].calls.Load() != 0 {
			t.Errorf("an expired deadline: %s", got)
		}
		soon, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		defer cancel()
		if got := reason(soon, "eu"); got != apierr.DeadlineExceeded || r.sites["eu"].calls.Load() != 0 {
			t.Errorf("a deadline before the request is there: %s", got)
		}
		back, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		r.sites["eu"].acquire = nil
		if got := reason(back, "eu"); got != apierr.OutcomeUnknown || r.sites["eu"].calls.Load() != 1 {
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
		if d := time.Since(began); d != siteWait+callTime {
			t.Errorf("a site that hangs was waited for %v", d)
		}
		// None of this means that the site is down.
		if h := r.router.link("us").state(); h.Reach != health.Up {
			t.Errorf("us: %+v", h)
		}
	})
}

func TestOverloadedSiteIsGonePast(t *testing.T) {
	inBubble(t, threeSites, nil, func(r *rig) {
		t := r.t
		us := r.sites["us"]
		us.refuse(apierr.Overload("us", 3*time.Second))
		for range 5 {
			if site, err := r.acquire(t, take); site != "eu" || err != nil {
				t.Fatalf("%s answered, %v", site, err)
			}
		}
		if n := us.calls.Load(); n != 1 {
			t.Errorf("the overloaded site got %d calls, want the 1 that it refused", n)
		}
		us.acquire = nil
		pass(3 * time.Second)
		if site, _ := r.acquire(t, take); site != "us" {
			t.Errorf("%s answered once the overload was over", site)
		}
		for _, f := range r.sites {
			f.refuse(apierr.Overload(f.name, 2*time.Second))
		}
		_, err := r.acquire(t, take)
		if e := apierr.From(err); e.Reason != apierr.Overloaded || e.RetryAfter != 2*time.Second || e.Site != "us" {
			t.Errorf("all overloaded: %+v", e)
		}
	})
}

func TestFullSiteIsGonePast(t *testing.T) {
	inBubble(t, []string{"us", "eu"}, func(c *Config) { c.MaxPerSite = 2 }, func(r *rig) {
		t := r.t
		hold := make(chan struct{})
		r.sites["us"].acquire = func(context.Context, *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
			<-hold
			return &samyav1.AcquireResponse{Site: "us"}, nil
		}
		r.sites["eu"].acquire = r.sites["us"].acquire
		done := make(chan error)
		for range 4 {
			go func() { _, err := r.service.Acquire(t.Context(), take); done <- err }()
		}
		pass(time.Second)
		if us, eu := r.sites["us"].calls.Load(), r.sites["eu"].calls.Load(); us != 2 || eu != 2 {
			t.Errorf("us has %d calls, eu %d", us, eu)
		}
		if _, err := r.acquire(t, take); !errors.Is(err, apierr.Overloaded) {
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
	for what, list := range map[string]func(*fakeSite) func() error{
		"dies":       func(f *fakeSite) func() error { return func() error { f.kill(); return nil } },
		"is plain":   func(*fakeSite) func() error { return func() error { return status.Error(codes.Unavailable, "plain") } },
		"overloaded": func(*fakeSite) func() error { return func() error { return apierr.Overloaded } },
	} {
		inBubble(t, threeSites, nil, func(r *rig) {
			t := r.t
			r.sites["us"].list = list(r.sites["us"])
			out, err := r.service.ListEntities(t.Context(), &samyav1.ListEntitiesRequest{Prefix: "x"})
			if err != nil || out.GetEntities()[0].GetName() != "xa" || out.GetNextPageToken() != "next" {
				t.Errorf("us %s: %v, %v", what, out, err)
			}
		})
	}
}

func TestNoSite(t *testing.T) {
	inBubble(t, threeSites, nil, func(r *rig) {
		t := r.t
		if !r.router.reachable() {
			t.Error("no site is reachable")
		}
		_, err := r.acquire(t, &samyav1.AcquireRequest{Entity: "a", Tokens: 1, Site: "mars"})
		if e := apierr.From(err); e.Reason != apierr.InvalidField || e.Violations[0].Field != "site" {
			t.Errorf("a site that is no member: %v", err)
		}
		for _, f := range r.sites {
			f.kill()
		}
		pass(0)
		_, err = r.acquire(t, take)
		if e := apierr.From(err); e.Reason != apierr.SiteUnavailable || e.RetryAfter == 0 || e.RequestID != "id-1" {
			t.Errorf("no site: %+v", e)
		}
		if r.router.reachable() {
			t.Error("a site is reachable")
		}
		r.sites["au"].up()
		pass(5 * time.Second)
		if site, err := r.acquire(t, take); site != "au" || err != nil {
			t.Errorf("%s answered, %v", site, err)
		}
	})
}

// TestSiteMoves: calls under way at the old address end in peace.
func TestSiteMoves(t *testing.T) {
	inBubble(t, []string{"us"}, nil, func(r *rig) {
		t := r.t
		hold := make(chan struct{})
		r.sites["us"].acquire = func(context.Context, *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
			<-hold
			return &samyav1.AcquireResponse{Site: "us"}, nil
		}
		done := make(chan error)
		go func() { _, err := r.service.Acquire(t.Context(), take); done <- err }()
		pass(0)
		moved := &fakeSite{name: "us", members: []string{"us"}}
		moved.up()
		r.sites["elsewhere"] = moved
		r.cfg.Directory.(*roster).set(SiteInfo{Name: "us", Region: "us", Address: "elsewhere"})
		pass(2 * time.Second)
		if site, err := r.acquire(t, take); site != "us" || err != nil || moved.calls.Load() != 1 {
			t.Errorf("%s, %v, %d calls at the new address", site, err, moved.calls.Load())
		}
		close(hold)
		if err := <-done; err != nil {
			t.Errorf("the call at the old address: %v", err)
		}
	})
}
