package grpcapi

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/samya-db/samya/appmgr/fake"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/apierr/refuse"
	"github.com/samya-db/samya/internal/name"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// TestFailover: after a try that may have run, the next try is numbered and names the
// site of the earlier try. The answer of the last try counts.
func TestFailover(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		t := r.t
		r.sites["us"].OnAcquire, r.sites["eu"].OnAcquire = r.sites["us"].Dies(), r.sites["eu"].Dies()
		tries := note(r.sites)
		began := time.Now()
		if site, err := r.acquire(t, fake.Take); site != "au" || err != nil {
			t.Errorf("%s answered, %v", site, err)
		}
		until := began.Add(siteWait + repeatTime).UTC()
		if diff := cmp.Diff([]placed{
			{"us", 0, 0, nil, until}, {"eu", 0, 1, []string{"us"}, until}, {"au", 0, 2, []string{"us", "eu"}, until},
		}, *tries); diff != "" {
			t.Error(diff)
		}
	})
}

// TestFailoverOfALaterAttempt: the tries keep the caller's attempt, time and sites. An
// empty list of sites stays empty: it means any site.
func TestFailoverOfALaterAttempt(t *testing.T) {
	for _, tried := range [][]string{nil, {"eu"}, {"us", "eu"}} {
		inBubble(t, fake.ThreeSites, nil, func(r *rig) {
			t := r.t
			r.sites["us"].OnAcquire = r.sites["us"].Dies()
			tries := note(r.sites)
			until := time.Now().Add(7 * time.Second).UTC()
			in := &samyav1.AcquireRequest{
				Entity: "acme/vm", Tokens: 3, RequestId: "id-1", Attempt: 4, Tried: tried, NotAfter: timestamppb.New(until),
			}
			if site, err := r.acquire(t, in); site != "eu" || err != nil {
				t.Errorf("%s answered, %v", site, err)
			}
			then := tried
			if tried != nil && !slices.Contains(tried, "us") {
				then = append(slices.Clone(tried), "us")
			}
			if diff := cmp.Diff([]placed{{"us", 4, 0, tried, until}, {"eu", 4, 1, then, until}}, *tries); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestRefusalsAreNoTries: a try does not name a site that has provably done nothing.
func TestRefusalsAreNoTries(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		t := r.t
		r.sites["us"].Refuse(apierr.Overload("us", time.Second))
		r.sites["eu"].OnAcquire = r.sites["eu"].Dies()
		tries := note(r.sites)
		if site, err := r.acquire(t, fake.Take); site != "au" || err != nil {
			t.Errorf("%s answered, %v", site, err)
		}
		if got := *tries; len(got) != 3 || got[1].Relay != 0 || got[2].Relay != 1 || !slices.Equal(got[2].Tried, []string{"eu"}) {
			t.Errorf("tries %+v", got)
		}
	})
}

// TestNoFailoverWithoutAnID: a caller without an id cannot repeat its request by itself.
// The error tells at once all that a repeat takes, and no other site is asked.
func TestNoFailoverWithoutAnID(t *testing.T) {
	for what, spoil := range map[string]func(*fake.Site) fake.AcquireFunc{
		"dies":    (*fake.Site).Dies,
		"unknown": func(*fake.Site) fake.AcquireFunc { return fake.Refusal(apierr.Unknown("id-1", "us", nil)) },
		"cancels": func(*fake.Site) fake.AcquireFunc { return fake.Refusal(apierr.Canceled) },
	} {
		inBubble(t, fake.ThreeSites, nil, func(r *rig) {
			t := r.t
			r.sites["us"].OnAcquire = spoil(r.sites["us"])
			began := time.Now()
			_, err := r.acquire(t, &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 3})
			e := apierr.From(err)
			if e.Reason != apierr.OutcomeUnknown || e.Site != "us" || len(e.RequestID) != 26 || e.Attempt != 2 ||
				!slices.Equal(e.Tried, []string{"us"}) || !e.NotAfter.Equal(began.Add(siteWait+repeatTime)) {
				t.Errorf("us %s: %+v", what, e)
			}
			if n := r.sites["eu"].Calls.Load(); n != 0 {
				t.Errorf("us %s: %d calls reached eu", what, n)
			}
			tries := note(r.sites)
			again := &samyav1.AcquireRequest{
				Entity: "acme/vm", Tokens: 3, RequestId: e.RequestID, Attempt: e.Attempt, Tried: e.Tried, NotAfter: timestamppb.New(e.NotAfter),
				Site: "eu",
			}
			if site, err := r.acquire(t, again); site != "eu" || err != nil {
				t.Errorf("us %s: the repeat: %s, %v", what, site, err)
			}
			if diff := cmp.Diff([]placed{{"eu", 2, 0, []string{"us"}, e.NotAfter.UTC()}}, *tries); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestAfterAnIndeterminateTry: after an indeterminate try, an answer is final only if its site has
// recorded it with the earlier tries.
func TestAfterAnIndeterminateTry(t *testing.T) {
	for _, c := range []struct {
		answer error
		want   apierr.Reason
		calls  int64 // that reach au
	}{
		{refuse.NoTokens("acme/vm", "eu", 3, 1, time.Second), apierr.OutOfTokens, 0},
		{apierr.Superseded, apierr.Superseded, 0},
		{apierr.NotFound("acme/vm"), apierr.OutcomeUnknown, 0},
		{refuse.Reused("id-1", "eu"), apierr.OutcomeUnknown, 0},
		// The request has expired by the clock of eu alone: the next site may do it.
		{apierr.RequestExpired, apierr.OutcomeUnknown, 1},
		{apierr.Invalid("tokens", "bad"), apierr.OutcomeUnknown, 0},
		{apierr.Internal, apierr.OutcomeUnknown, 0},
		{apierr.Overload("eu", time.Second), apierr.OutcomeUnknown, 1},
		{apierr.QueueFull, apierr.OutcomeUnknown, 1},
		{apierr.SiteUnavailable, apierr.OutcomeUnknown, 1},
		{apierr.Unknown("id-1", "eu", nil), apierr.OutcomeUnknown, 1},
	} {
		inBubble(t, fake.ThreeSites, nil, func(r *rig) {
			t := r.t
			r.sites["us"].OnAcquire = r.sites["us"].Dies()
			r.sites["eu"].Refuse(c.answer)
			r.sites["au"].Refuse(apierr.ShuttingDown)
			_, err := r.acquire(t, fake.Take)
			e := apierr.From(err)
			if e.Reason != c.want || e.RequestID != "id-1" {
				t.Errorf("%v became %+v", c.answer, e)
			}
			tried, site := []string{"us"}, "us"
			if errors.Is(c.answer, apierr.OutcomeUnknown) {
				tried, site = []string{"us", "eu"}, "eu"
			}
			if c.want == apierr.OutcomeUnknown && (e.Attempt != 2 || e.NotAfter.IsZero() || !slices.Equal(e.Tried, tried) || e.Site != site) {
				t.Errorf("%v: repeat %+v", c.answer, e)
			}
			if n := r.sites["au"].Calls.Load(); n != c.calls {
				t.Errorf("%v: %d calls reached au", c.answer, n)
			}
		})
	}
}

// TestLateAnswerOfAnEarlierTry: once the next site was asked, a late grant of the earlier
// site is already undone. It must not be passed on.
func TestLateAnswerOfAnEarlierTry(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		t := r.t
		late := make(chan struct{})
		r.sites["us"].OnAcquire = func(context.Context, *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
			<-time.After(time.Second + 2*time.Second + 50*time.Millisecond)
			close(late)
			return &samyav1.AcquireResponse{Tokens: 3, Site: "us", Left: 1}, nil
		}
		r.sites["eu"].OnAcquire = func(context.Context, *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
			<-late
			<-time.After(50 * time.Millisecond)
			return nil, refuse.NoTokens("acme/vm", "eu", 3, 0, time.Second)
		}
		in := &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 3, RequestId: "id-1", Wait: durationpb.New(time.Second)}
		began := time.Now()
		if site, err := r.acquire(t, in); !errors.Is(err, apierr.OutOfTokens) || site != "" {
			t.Errorf("%s answered, %v", site, err)
		}
		if d := time.Since(began); d > 4*time.Second {
			t.Errorf("it took %v", d)
		}
	})
}

// TestSilentSite: a request leaves a silent site once the site is found to be down,
// however long the request may wait. A request does not leave a slow site.
func TestSilentSite(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		t := r.t
		us := r.sites["us"]
		us.OnAcquire = fake.Hangs
		wait := durationpb.New(30 * time.Second)
		in := &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 3, RequestId: "id-1", Wait: wait}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		go func() {
			<-time.After(3 * time.Second)
			r.sites["us"].Serves(false)
		}()
		began := time.Now()
		out, err := r.service.Acquire(ctx, in)
		if err != nil || out.GetSite() != "eu" || time.Since(began) > 5*time.Second {
			t.Errorf("%v, %v after %v", out, err, time.Since(began))
		}
		us.Serves(true)
		fake.Pass(5 * time.Second)
		us.OnAcquire = func(context.Context, *samyav1.AcquireRequest) (*samyav1.AcquireResponse, error) {
			<-time.After(29 * time.Second)
			return &samyav1.AcquireResponse{Tokens: 3, Site: "us"}, nil
		}
		if site, err := r.acquire(t, in); site != "us" || err != nil {
			t.Errorf("slow: %s answered, %v", site, err)
		}
	})
}

// TestPinned: a request that names its site goes to no other site.
func TestPinned(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		t := r.t
		r.sites["us"].OnAcquire = r.sites["us"].Dies()
		_, err := r.acquire(t, &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 3, RequestId: "id-1", Site: "us"})
		if e := apierr.From(err); e.Reason != apierr.OutcomeUnknown || e.Site != "us" || e.Attempt != 2 {
			t.Errorf("%+v", e)
		}
		if n := r.sites["eu"].Calls.Load() + r.sites["au"].Calls.Load(); n != 0 {
			t.Errorf("%d calls reached others", n)
		}
	})
}

// TestManagerDies: a caller that gave the id and the time knows enough to go on at
// another app manager.
func TestManagerDies(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		t := r.t
		r.sites["us"].OnAcquire = fake.Hangs
		until := time.Now().Add(30 * time.Second).UTC()
		in := &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 3, RequestId: "id-1", NotAfter: timestamppb.New(until)}
		ctx, die := context.WithCancel(t.Context())
		go func() {
			<-time.After(time.Second)
			die()
		}()
		if _, err := r.service.Acquire(ctx, in); !errors.Is(err, apierr.Canceled) {
			t.Errorf("the first app manager: %v", err)
		}
		r.sites["us"].Kill()
		fake.Pass(0)
		tries := note(r.sites)
		again := New(r.service.Reads, r.router, r.limiter, 8192)
		in.Attempt = 2
		out, err := again.Acquire(t.Context(), in)
		if err != nil || out.GetSite() != "eu" {
			t.Errorf("the second: %v, %v", out, err)
		}
		if diff := cmp.Diff([]placed{{"eu", 2, 0, nil, until}}, *tries); diff != "" {
			t.Error(diff)
		}
	})
}

func TestReleaseFailover(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		t := r.t
		us := r.sites["us"]
		us.OnRelease = func(ctx context.Context, _ *samyav1.ReleaseRequest) (*samyav1.ReleaseResponse, error) {
			us.Kill()
			<-ctx.Done()
			return nil, ctx.Err()
		}
		r.sites["eu"].OnRelease = func(_ context.Context, in *samyav1.ReleaseRequest) (*samyav1.ReleaseResponse, error) {
			if in.GetRelay() != 1 || !slices.Equal(in.GetTried(), []string{"us"}) || in.GetNotAfter() == nil {
				t.Errorf("eu got %v", in)
			}
			return &samyav1.ReleaseResponse{Tokens: in.GetTokens(), Site: "eu", Parked: true}, nil
		}
		out, err := r.service.Release(t.Context(), &samyav1.ReleaseRequest{Entity: "acme/vm", Tokens: 3, RequestId: "id-1"})
		if err != nil || !out.GetParked() || out.GetSite() != "eu" {
			t.Errorf("%v, %v", out, err)
		}
	})
}

// TestReleaseOfALease goes to the lease's home, and elsewhere if the home is down.
func TestReleaseOfALease(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		t := r.t
		in := &samyav1.ReleaseRequest{Entity: "acme/vm", RequestId: "id-2", Lease: "eu/id-1"}
		if out, err := r.service.Release(t.Context(), in); err != nil || out.GetSite() != "eu" {
			t.Errorf("%v, %v", out, err)
		}
		r.sites["eu"].Kill()
		fake.Pass(0)
		if out, err := r.service.Release(t.Context(), in); err != nil || out.GetSite() != "us" {
			t.Errorf("home down: %v, %v", out, err)
		}
	})
}

// TestReleaseOfALeaseThatEnded: a lease that its home no longer has holds nothing that a
// release could give back. The outcome of the first attempt does not matter.
func TestReleaseOfALeaseThatEnded(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		t := r.t
		r.sites["eu"].OnRelease = func(context.Context, *samyav1.ReleaseRequest) (*samyav1.ReleaseResponse, error) {
			return nil, apierr.New(apierr.LeaseNotFound, "no")
		}
		for _, tried := range [][]string{nil, {"eu"}, {"us"}} {
			_, err := r.service.Release(t.Context(), &samyav1.ReleaseRequest{
				Entity: "acme/vm", RequestId: "id-2", Lease: "eu/id-1", Attempt: 2, Tried: tried,
				NotAfter: timestamppb.New(time.Now().Add(time.Second)),
			})
			if apierr.From(err).Reason != apierr.LeaseNotFound {
				t.Errorf("tried %v: %v, want %s", tried, err, apierr.LeaseNotFound)
			}
		}
	})
}

func TestAttemptFields(t *testing.T) {
	soon := timestamppb.New(time.Now().Add(time.Minute))
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		t := r.t
		for _, c := range []struct {
			in    *samyav1.AcquireRequest
			field string
		}{
			{&samyav1.AcquireRequest{Attempt: 2, RequestId: "x"}, "not_after"},
			{&samyav1.AcquireRequest{Attempt: 2, NotAfter: soon}, "request_id"},
			{&samyav1.AcquireRequest{Attempt: name.MaxAttempt + 1, RequestId: "x", NotAfter: soon}, "attempt"},
			{&samyav1.AcquireRequest{Attempt: 2, RequestId: "x", NotAfter: soon, Tried: []string{"US"}}, "tried"},
			{&samyav1.AcquireRequest{Tried: []string{"us"}}, "tried"},
			{&samyav1.AcquireRequest{Relay: 1}, "relay"},
			{&samyav1.AcquireRequest{NotAfter: &timestamppb.Timestamp{Nanos: -1}}, "not_after"},
			{&samyav1.AcquireRequest{MinTokens: 4}, "min_tokens"},
			{&samyav1.AcquireRequest{MinTokens: -1}, "min_tokens"},
			{&samyav1.AcquireRequest{Lease: &samyav1.LeaseTerms{}}, "lease.ttl"},
			{&samyav1.AcquireRequest{Lease: &samyav1.LeaseTerms{Ttl: durationpb.New(time.Hour), Holder: "a b"}}, "lease.holder"},
		} {
			c.in.Entity, c.in.Tokens = "acme/vm", 3
			_, err := r.service.Acquire(t.Context(), c.in)
			if e := apierr.From(err); e == nil || e.Reason != apierr.InvalidField || len(e.Violations) != 1 || e.Violations[0].Field != c.field {
				t.Errorf("%v: %v, want a word about %s", c.in, err, c.field)
			}
		}
		for _, lease := range []string{"x", "US/x", "us/", "us/a b"} {
			_, err := r.service.Release(t.Context(), &samyav1.ReleaseRequest{Entity: "acme/vm", Lease: lease})
			if e := apierr.From(err); e == nil || e.Reason != apierr.InvalidField || e.Violations[0].Field != "lease" {
				t.Errorf("lease %q: %v", lease, err)
			}
		}
		if n := r.sites["us"].Calls.Load(); n != 0 {
			t.Errorf("%d calls reached us", n)
		}
	})
}

// TestDryRunGoesOn: a dry run moves nothing, so any site may be asked next.
func TestDryRunGoesOn(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		t := r.t
		r.sites["us"].OnAcquire = r.sites["us"].Dies()
		tries := note(r.sites)
		if site, err := r.acquire(t, &samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 3, DryRun: true}); site != "eu" || err != nil {
			t.Errorf("%s answered, %v", site, err)
		}
		if got := *tries; len(got) != 2 || got[1].Relay != 0 || got[1].Tried != nil {
			t.Errorf("tries %+v", got)
		}
	})
}

// TestALaterAttemptProvesNothing: a site that refuses a later attempt without a record of
// it proves nothing about the earlier attempts.
func TestALaterAttemptProvesNothing(t *testing.T) {
	for refusal, want := range map[apierr.Reason]apierr.Reason{
		apierr.EntityNotFound:  apierr.OutcomeUnknown,
		apierr.Overloaded:      apierr.OutcomeUnknown,
		apierr.ShuttingDown:    apierr.OutcomeUnknown,
		apierr.OutOfTokens:     apierr.OutOfTokens,
		apierr.ExceedsLimit:    apierr.ExceedsLimit,
		apierr.Superseded:      apierr.Superseded,
		apierr.RequestIDReused: apierr.RequestIDReused,
		apierr.RequestExpired:  apierr.RequestExpired,
		apierr.InvalidField:    apierr.InvalidField,
	} {
		for _, at := range []string{"", "us"} {
			inBubble(t, fake.ThreeSites, nil, func(r *rig) {
				t := r.t
				for _, f := range r.sites {
					f.Refuse(apierr.New(refusal, "no"))
				}
				_, err := r.acquire(t, &samyav1.AcquireRequest{
					Entity: "acme/vm", Tokens: 3, RequestId: "id-1", Attempt: 2, Site: at,
					NotAfter: timestamppb.New(time.Now().Add(time.Second)),
				})
				e := apierr.From(err)
				if e.Reason != want || want == apierr.OutcomeUnknown && e.Attempt != 3 {
					t.Errorf("%s at %q became %v, attempt %d", refusal, at, err, e.Attempt)
				}
			})
		}
	}
}
