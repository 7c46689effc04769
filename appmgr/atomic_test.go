package appmgr

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/health"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// batchFunc answers atomic batches at a fake site.
type batchFunc func(context.Context, *samyav1.BatchRequest) (*samyav1.BatchResponse, error)

// Batch grants every batch unless a test sets f.batch. It checks the form of each
// operation: a site without atomic batches must refuse it.
func (f *fakeSite) Batch(ctx context.Context, r *samyav1.BatchRequest) (*samyav1.BatchResponse, error) {
	f.calls.Add(1)
	for _, op := range r.GetOperations() {
		if a := op.GetAcquire(); !r.GetAtomic() || a.GetRelay() == 0 || a.GetRequestId() != "" {
			return nil, apierr.New(apierr.Internal, "not as an atomic batch is relayed: %v", r)
		}
	}
	if f.batch != nil {
		return f.batch(ctx, r)
	}
	return f.granted(r), nil
}

func (f *fakeSite) granted(r *samyav1.BatchRequest) *samyav1.BatchResponse {
	resp := &samyav1.BatchResponse{RequestId: r.GetRequestId(), Site: f.name}
	for _, op := range r.GetOperations() {
		resp.Results = append(resp.Results, &samyav1.Result{Result: &samyav1.Result_Acquire{
			Acquire: &samyav1.AcquireResponse{Tokens: op.GetAcquire().GetTokens()},
		}})
	}
	return resp
}

// noteBatches wraps the sites' answers to atomic batches, and returns the tries in order
// of arrival.
func (r *rig) noteBatches() *[]placed {
	tries := &[]placed{}
	for _, f := range r.sites {
		answer := f.batch
		f.batch = func(ctx context.Context, in *samyav1.BatchRequest) (*samyav1.BatchResponse, error) {
			*tries = append(*tries, placed{f.name, in.GetAttempt(), in.GetRelay(), in.GetTried(), in.GetNotAfter().AsTime()})
			if answer == nil {
				return f.granted(in), nil
			}
			return answer(ctx, in)
		}
	}
	return tries
}

// diesInBatch kills the site once an atomic batch has reached it.
func (f *fakeSite) diesInBatch() batchFunc {
	return func(ctx context.Context, _ *samyav1.BatchRequest) (*samyav1.BatchResponse, error) {
		f.kill()
		<-ctx.Done()
		return nil, ctx.Err()
	}
}

func twoOf(id string) *samyav1.BatchRequest {
	return &samyav1.BatchRequest{Atomic: true, RequestId: id, Operations: []*samyav1.Operation{
		acquireOf(&samyav1.AcquireRequest{Entity: "acme/vm", Tokens: 3}), acquireOf(&samyav1.AcquireRequest{Entity: "acme/seats", Tokens: 2}),
	}}
}

// TestAtomicFailover: an atomic batch goes on to the next site like an acquire.
func TestAtomicFailover(t *testing.T) {
	inBubble(t, threeSites, nil, func(r *rig) {
		t := r.t
		r.sites["us"].batch, r.sites["eu"].batch = r.sites["us"].diesInBatch(), r.sites["eu"].diesInBatch()
		tries := r.noteBatches()
		began := time.Now()
		out, err := r.service.Batch(t.Context(), twoOf("id-1"))
		if err != nil || out.GetSite() != "au" || out.GetRequestId() != "id-1" || len(out.GetResults()) != 2 {
			t.Errorf("%v, %v", out, err)
		}
		until := began.Add(siteWait + DefaultRepeatTime).UTC()
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
	for down, most := range map[bool]time.Duration{true: 4 * time.Second, false: 33 * time.Second} {
		inBubble(t, threeSites, nil, func(r *rig) {
			t := r.t
			r.sites["us"].batch = func(ctx context.Context, _ *samyav1.BatchRequest) (*samyav1.BatchResponse, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			if down {
				go func() {
					<-time.After(3 * time.Second)
					r.router.link("us").update((*health.Health).Broken)
				}()
			}
			in := twoOf("id-1")
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
	inBubble(t, threeSites, nil, func(r *rig) {
		t := r.t
		us := r.sites["us"]
		us.batch = us.diesInBatch()
		_, err := r.service.Batch(t.Context(), twoOf(""))
		if e := apierr.From(err); e.Reason != apierr.OutcomeUnknown || len(e.RequestID) != 26 || e.Attempt != 2 || e.NotAfter.IsZero() || !slices.Equal(e.Tried, []string{"us"}) {
			t.Errorf("%+v", e)
		}
		for name, resp := range map[string]*samyav1.BatchResponse{
			"nothing":          {},
			"too few":          {Site: "eu", Results: us.granted(twoOf("")).GetResults()[:1]},
			"other tokens":     {Site: "eu", Results: append(us.granted(twoOf("")).GetResults()[1:], us.granted(twoOf("")).GetResults()[:1]...)},
			"not all, or none": {Results: us.granted(twoOf("")).GetResults()},
		} {
			r.sites["eu"].batch = func(context.Context, *samyav1.BatchRequest) (*samyav1.BatchResponse, error) { return resp, nil }
			if out, err := r.service.Batch(t.Context(), twoOf("id-1")); !errors.Is(err, apierr.OutcomeUnknown) || out != nil {
				t.Errorf("%s: %v, %v", name, out, err)
			}
		}
	})
}

// TestAtomicRefused: a refusal names the entity that lacked the tokens. No site gets an
// invalid batch.
func TestAtomicRefused(t *testing.T) {
	inBubble(t, threeSites, nil, func(r *rig) {
		t := r.t
		r.sites["us"].batch = func(_ context.Context, in *samyav1.BatchRequest) (*samyav1.BatchResponse, error) {
			e := apierr.NoTokens("", "us", 5, 1, 300*time.Millisecond).LackedBy("acme", 5)
			e.RequestID = in.GetRequestId()
			return nil, e
		}
		_, err := r.service.Batch(t.Context(), twoOf("id-1"))
		if e := apierr.From(err); e.Reason != apierr.OutOfTokens || e.Lacking != "acme" || e.Entity != "" || *e.Left != 1 || e.Site != "us" {
			t.Errorf("%+v", e)
		}
		calls := r.sites["us"].calls.Load()
		for field, change := range map[string]func(*samyav1.BatchRequest){
			"operations": func(in *samyav1.BatchRequest) { in.Operations = nil },
			"operations[1].release.operation": func(in *samyav1.BatchRequest) {
				in.Operations[1] = releaseOf(&samyav1.ReleaseRequest{Entity: "a", Tokens: 1})
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
			in := twoOf("id-1")
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
			in.Operations = twoOf("").GetOperations()
			_, err := r.service.Batch(t.Context(), in)
			if e := apierr.From(err); e == nil || len(e.Violations) != 1 || e.Violations[0].Field != field {
				t.Errorf("%s without atomic: %v", field, err)
			}
		}
		if n := r.sites["us"].calls.Load(); n != calls {
			t.Errorf("%d calls reached a site", n-calls)
		}
	})
}

// TestHTTPAtomic: an atomic batch over HTTP is granted or fails as a whole.
func TestHTTPAtomic(t *testing.T) {
	inBubble(t, threeSites, nil, func(r *rig) {
		t := r.t
		var got *samyav1.BatchRequest
		us := r.sites["us"]
		us.batch = func(_ context.Context, in *samyav1.BatchRequest) (*samyav1.BatchResponse, error) {
			got = in
			if in.GetOperations()[0].GetAcquire().GetTokens() > 100 {
				return nil, apierr.NoTokens("", "us", 5, 1, 0).LackedBy("acme", 5)
			}
			return us.granted(in), nil
		}
		const until = "2026-01-02T15:04:05.678Z"
		two := `{"acquire":{"entity":"acme/vm","tokens":%d}},{"acquire":{"entity":"acme/seats","tokens":2}}`
		for _, c := range []struct {
			body   string
			status int
			want   string
		}{
			{
				`{"operations":[` + fmt.Sprintf(two, 3) + `],"atomic":true,"request_id":"lot","wait":"2s","attempt":2,"tried":["eu"],"not_after":"` + until + `"}`, 200,
				`{"results":[{"acquire":{"entity":"acme/vm","tokens":3}},{"acquire":{"entity":"acme/seats","tokens":2}}],"request_id":"lot","site":"us"}`,
			},
			{`{"operations":[` + fmt.Sprintf(two, 101) + `],"atomic":true}`, 429, `"lacking":"acme"`},
			{
				`{"operations":[` + fmt.Sprintf(two, 0) + `,{"release":{"entity":"a","tokens":1}},{"steal":{}}],"atomic":true}`, 400,
				`"errors":[{"field":"operations[0].acquire.tokens","problem":"must be at least 1"},{"field":"operations[3].steal","problem":"unknown field"}]`,
			},
			{`{"operations":[` + fmt.Sprintf(two, 3) + `,{"release":{"entity":"a","tokens":1}}],"atomic":true}`, 400, `"field":"operations[2].release.operation"`},
			{`{"operations":[{"acquire":{"entity":"a","tokens":1,"lease":{"ttl":"5s"}}}],"atomic":true}`, 400, `"field":"operations[0].acquire.lease"`},
			{`{"operations":[` + fmt.Sprintf(two, 3) + `],"atomic":"yes"}`, 400, `"field":"atomic"`},
			{`{"operations":[` + fmt.Sprintf(two, 3) + `],"request_id":"lot"}`, 400, `"field":"request_id"`},
		} {
			got = nil
			rec := r.ask(t, http.MethodPost, "/v1/batch", c.body)
			if text := rec.Body.String(); rec.Code != c.status || !strings.Contains(text, c.want) || c.status == 200 && text != c.want+"\n" {
				t.Errorf("%s: %d %s\nwant %d %s", c.body, rec.Code, text, c.status, c.want)
			}
			switch {
			case c.status == 400 && got != nil:
				t.Errorf("%s reached a site", c.body)
			case c.status == 200 && (got.GetWait().AsDuration() != 2*time.Second || got.GetAttempt() != 2 || !slices.Equal(got.GetTried(), []string{"eu"}) ||
				got.GetNotAfter().AsTime().Format(time.RFC3339Nano) != until):
				t.Errorf("came as %v", got)
			}
		}
	})
}
