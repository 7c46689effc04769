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
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// TestAtomicFailover: an atomic batch goes on to the next site like an acquire.
func TestAtomicFailover(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		t := r.t
		r.sites["us"].OnBatch, r.sites["eu"].OnBatch = r.sites["us"].DiesInBatch(), r.sites["eu"].DiesInBatch()
		tries := noteBatches(r.sites)
		began := time.Now()
		out, err := r.service.Batch(t.Context(), fake.TwoOf("id-1"))
		if err != nil || out.GetSite() != "au" || out.GetRequestId() != "id-1" || len(out.GetResults()) != 2 {
			t.Errorf("%v, %v", out, err)
		}
		until := began.Add(siteWait + repeatTime).UTC()
		if diff := cmp.Diff([]placed{
			{"us", 0, 0, nil, until}, {"eu", 0, 1, []string{"us"}, until}, {"au", 0, 2, []string{"us", "eu"}, until},
		}, *tries); diff != "" {
			t.Error(diff)
		}
	})
}

// TestAtomicAtASilentSite: a batch leaves a silent site once the site is found to be
// down, or the time of a try is over.
func TestAtomicAtASilentSite(t *testing.T) {
	for down, most := range map[bool]time.Duration{true: 5 * time.Second, false: 33 * time.Second} {
		inBubble(t, fake.ThreeSites, nil, func(r *rig) {
			t := r.t
			r.sites["us"].OnBatch = func(ctx context.Context, _ *samyav1.BatchRequest) (*samyav1.BatchResponse, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			if down {
				go func() {
					<-time.After(3 * time.Second)
					r.sites["us"].Serves(false)
				}()
			}
			in := fake.TwoOf("id-1")
			in.Wait = durationpb.New(30 * time.Second)
			began := time.Now()
			out, err := r.service.Batch(t.Context(), in)
			if took := time.Since(began); err != nil || out.GetSite() != "eu" || took > most || took < 3*time.Second {
				t.Errorf("down %t: %v, %v after %v", down, out, err, took)
			}
		})
	}
}

// TestAtomicUnknown: the outcome is unknown after a lost try without a caller's id, and
// after an answer to no atomic batch. The error has all that a repeat takes.
func TestAtomicUnknown(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		t := r.t
		us := r.sites["us"]
		us.OnBatch = us.DiesInBatch()
		_, err := r.service.Batch(t.Context(), fake.TwoOf(""))
		if e := apierr.From(err); e.Reason != apierr.OutcomeUnknown || len(e.RequestID) != 26 || e.Attempt != 2 || e.NotAfter.IsZero() || !slices.Equal(e.Tried, []string{"us"}) {
			t.Errorf("%+v", e)
		}
		for name, resp := range map[string]*samyav1.BatchResponse{
			"nothing":          {},
			"too few":          {Site: "eu", Results: us.Granted(fake.TwoOf("")).GetResults()[:1]},
			"other tokens":     {Site: "eu", Results: append(us.Granted(fake.TwoOf("")).GetResults()[1:], us.Granted(fake.TwoOf("")).GetResults()[:1]...)},
			"not all, or none": {Results: us.Granted(fake.TwoOf("")).GetResults()},
		} {
			r.sites["eu"].OnBatch = func(context.Context, *samyav1.BatchRequest) (*samyav1.BatchResponse, error) { return resp, nil }
			if out, err := r.service.Batch(t.Context(), fake.TwoOf("id-1")); !errors.Is(err, apierr.OutcomeUnknown) || out != nil {
				t.Errorf("%s: %v, %v", name, out, err)
			}
		}
	})
}

// TestAtomicRefused: a refusal names the entity that lacked the tokens. No site gets an
// invalid batch.
func TestAtomicRefused(t *testing.T) {
	inBubble(t, fake.ThreeSites, nil, func(r *rig) {
		t := r.t
		r.sites["us"].OnBatch = func(_ context.Context, in *samyav1.BatchRequest) (*samyav1.BatchResponse, error) {
			e := refuse.NoTokens("", "us", 5, 1, 300*time.Millisecond).LackedBy("acme", 5)
			e.RequestID = in.GetRequestId()
			return nil, e
		}
		_, err := r.service.Batch(t.Context(), fake.TwoOf("id-1"))
		if e := apierr.From(err); e.Reason != apierr.OutOfTokens || e.Lacking != "acme" || e.Entity != "" || *e.Left != 1 || e.Site != "us" {
			t.Errorf("%+v", e)
		}
		calls := r.sites["us"].Calls.Load()
		for field, change := range map[string]func(*samyav1.BatchRequest){
			"operations": func(in *samyav1.BatchRequest) { in.Operations = nil },
			"operations[1].release.operation": func(in *samyav1.BatchRequest) {
				in.Operations[1] = fake.ReleaseOf(&samyav1.ReleaseRequest{Entity: "a", Tokens: 1})
			},
			"operations[0].operation":          func(in *samyav1.BatchRequest) { in.Operations[0] = &samyav1.Operation{} },
			"operations[0].acquire.entity":     func(in *samyav1.BatchRequest) { in.Operations[0].GetAcquire().Entity = "a//b" },
			"operations[1].acquire.tokens":     func(in *samyav1.BatchRequest) { in.Operations[1].GetAcquire().Tokens = 0 },
			"operations[1].acquire.request_id": func(in *samyav1.BatchRequest) { in.Operations[1].GetAcquire().RequestId = "x" },
			"operations[1].acquire.wait":       func(in *samyav1.BatchRequest) { in.Operations[1].GetAcquire().Wait = durationpb.New(0) },
			"operations[1].acquire.site":       func(in *samyav1.BatchRequest) { in.Operations[1].GetAcquire().Site = "us" },
			"operations[1].acquire.min_tokens": func(in *samyav1.BatchRequest) { in.Operations[1].GetAcquire().MinTokens = 1 },
			"operations[1].acquire.dry_run":    func(in *samyav1.BatchRequest) { in.Operations[1].GetAcquire().DryRun = true },
			"operations[1].acquire.lease":      func(in *samyav1.BatchRequest) { in.Operations[1].GetAcquire().Lease = &samyav1.LeaseTerms{} },
			"operations[1].acquire.attempt":    func(in *samyav1.BatchRequest) { in.Operations[1].GetAcquire().Attempt = 1 },
			"operations[1].acquire.tried":      func(in *samyav1.BatchRequest) { in.Operations[1].GetAcquire().Tried = []string{"us"} },
			"operations[1].acquire.not_after":  func(in *samyav1.BatchRequest) { in.Operations[1].GetAcquire().NotAfter = timestamppb.Now() },
			"request_id":                       func(in *samyav1.BatchRequest) { in.RequestId = "a b" },
			"wait":                             func(in *samyav1.BatchRequest) { in.Wait = durationpb.New(time.Hour) },
			"site":                             func(in *samyav1.BatchRequest) { in.Site = "US" },
			"not_after":                        func(in *samyav1.BatchRequest) { in.Attempt = 2 },
			"tried":                            func(in *samyav1.BatchRequest) { in.Tried = []string{"us"} },
			"relay":                            func(in *samyav1.BatchRequest) { in.Relay = 1 },
		} {
			in := fake.TwoOf("id-1")
			change(in)
			_, err := r.service.Batch(t.Context(), in)
			if e := apierr.From(err); e == nil || e.Reason != apierr.InvalidField || len(e.Violations) != 1 || e.Violations[0].Field != field {
				t.Errorf("%s: %v", field, err)
			}
		}
		for field, in := range map[string]*samyav1.BatchRequest{
			"request_id": {RequestId: "x"}, "wait": {Wait: durationpb.New(0)}, "site": {Site: "us"}, "attempt": {Attempt: 1},
			"tried": {Tried: []string{"us"}}, "not_after": {NotAfter: timestamppb.Now()}, "relay": {Relay: 1},
		} {
			in.Operations = fake.TwoOf("").GetOperations()
			_, err := r.service.Batch(t.Context(), in)
			if e := apierr.From(err); e == nil || len(e.Violations) != 1 || e.Violations[0].Field != field {
				t.Errorf("%s without atomic: %v", field, err)
			}
		}
		if n := r.sites["us"].Calls.Load(); n != calls {
			t.Errorf("%d calls reached a site", n-calls)
		}
	})
}
