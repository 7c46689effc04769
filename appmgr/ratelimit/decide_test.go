package ratelimit

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"pgregory.net/rapid"

	"github.com/samya-db/samya/internal/apierr"
)

const twoLimits = `
domain: d
descriptors:
  - key: a
    rate_limit: {unit: minute, requests_per_unit: 5, name: limit-a}
  - key: b
    rate_limit: {unit: hour, requests_per_unit: 3}
  - key: none
    rate_limit: {unit: second, requests_per_unit: 0}
  - key: free
    rate_limit: {unlimited: true}
  - key: shadow
    rate_limit: {unit: second, requests_per_unit: 2}
    shadow_mode: true
  - key: q1
    rate_limit: {unit: minute, requests_per_unit: 1}
    quota_mode: true
  - key: q2
    rate_limit: {unit: minute, requests_per_unit: 2}
    quota_mode: true
`

// step is a request and its decision.
type step struct{ request, want string }

// TestDecide: the decisions about requests, one after the other.
func TestDecide(t *testing.T) {
	for _, c := range []struct {
		what  string
		steps []step
	}{
		{"a limit", []step{{"a=x", "ok: ok/4"}, {"a=x*4", "ok: ok/0"}, {"a=x", "over: over/0"}, {"a=y", "ok: ok/4"}}},
		{"no rule", []step{{"c=x", "ok: ok/0"}, {"c=x;a=x", "ok: ok/0 ok/4"}}},
		{"all or none", []step{
			{"a=x;b=x*2", "ok: ok/4 ok/1"},
			{"a=x;b=x*2", "over: ok/4 over/1"}, // takes nothing of a
			{"a=x", "ok: ok/3"},
			{"a=x;b=x", "ok: ok/2 ok/0"},
		}},
		{"more than the limit", []step{{"a=x*6", "over: over/5"}, {"a=x*5", "ok: ok/0"}}},
		{"only asked", []step{{"a=x*0", "ok: ok/5"}, {"a=x*5", "ok: ok/0"}, {"a=x*0", "over: over/0"}, {"a=x*0;b=x", "over: over/0 ok/3"}}},
		{"the same twice", []step{{"a=x*3;a=x*2;b=x", "ok: ok/0 ok/0 ok/2"}, {"a=y*3;b=y;a=y*3", "over: over/5 ok/3 over/5"}}}, //nolint:dupword // a code for each descriptor
		{"nothing allowed", []step{{"none=x", "over: over/0"}, {"none=x;a=x", "over: over/0 ok/5"}}},
		{"unlimited", []step{{"free=x*1000", "ok: ok/4294967295"}}},
		{"shadow mode", []step{{"shadow=x*2", "ok: ok/0"}, {"shadow=x", "ok: ok/0"}, {"shadow=x;a=x", "ok: ok/0 ok/4"}, {"shadow=x;none=x", "over: ok/0 over/0"}}},
		{"quota mode", []step{
			{"q1=x;q2=x", "ok: ok/0 ok/1"}, {"q1=x;q2=x", "ok: over/0 ok/0"}, {"q1=x;q2=x", "over: over/0 over/0"}, //nolint:dupword // a code for each descriptor
			{"q2=y", "ok: ok/1"}, {"q1=x;q2=y;none=x", "over: ok/0 ok/1 over/0"},
		}},
	} {
		r := newRig(t, twoLimits, nil)
		for i, s := range c.steps {
			if got := r.ask(request("d", s.request)); got != s.want {
				t.Errorf("%s, step %d: %s is %q, want %q", c.what, i, s.request, got, s.want)
			}
		}
	}
}

// TestAnswer: what an answer tells of its limits.
func TestAnswer(t *testing.T) {
	r := newRig(t, twoLimits, nil)
	out, err := r.ShouldRateLimit(t.Context(), request("d", "a=x;b=y"))
	if err != nil {
		t.Fatal(err)
	}
	a, b := out.GetStatuses()[0], out.GetStatuses()[1]
	if l := a.GetCurrentLimit(); l.GetName() != "limit-a" || l.GetRequestsPerUnit() != 5 || l.GetUnit() != ratelimitv3.RateLimitResponse_RateLimit_MINUTE {
		t.Errorf("%v", l)
	}
	if l := b.GetCurrentLimit(); l.GetName() != "" || l.GetRequestsPerUnit() != 3 || l.GetUnit() != ratelimitv3.RateLimitResponse_RateLimit_HOUR {
		t.Errorf("%v", l)
	}
	if a.GetDurationUntilReset().AsDuration() != 30*time.Second || b.GetDurationUntilReset().AsDuration() != 90*time.Second {
		t.Errorf("%v, %v", a.GetDurationUntilReset(), b.GetDurationUntilReset())
	}
	if out.GetDynamicMetadata() != nil || out.GetResponseHeadersToAdd() != nil || out.GetQuota() != nil {
		t.Errorf("%v", out)
	}
	if e := r.entities["ratelimit/d/a/minute-keys"]; !e.GetKeys() || e.GetLimit() != 5 || e.GetPer() != "1m" || e.GetKind() != "window" {
		t.Errorf("%v", e)
	}
}

// TestHitsAddend: the hits of the request stand for each descriptor without hits of its
// own.
func TestHitsAddend(t *testing.T) {
	r := newRig(t, twoLimits, nil)
	in := request("d", "a=x;b=x*1")
	in.HitsAddend = 4
	if got := r.ask(in); got != "ok: ok/1 ok/2" {
		t.Error(got)
	}
}

// TestOverride: a limit of the request has an entity of its own.
func TestOverride(t *testing.T) {
	r := newRig(t, twoLimits, nil)
	in := request("d", "a=x")
	in.Descriptors[0].Limit = &commonv3.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 42, Unit: typev3.RateLimitUnit_HOUR}
	if got := r.ask(in); got != "ok: ok/41" {
		t.Error(got)
	}
	if r.entities["ratelimit/d/a.x/hour-42"].GetLimit() != 42 {
		t.Errorf("%v", r.entities)
	}
	if got := r.ask(request("d", "a=x")); got != "ok: ok/4" {
		t.Error(got)
	}
}

// TestBadRequests: faults of requests name their field, and take nothing.
func TestBadRequests(t *testing.T) {
	r := newRig(t, twoLimits, nil)
	good := func() *ratelimitv3.RateLimitRequest { return request("d", "a=x;b=x") }
	for field, change := range map[string]func(*ratelimitv3.RateLimitRequest){
		"domain":                        func(in *ratelimitv3.RateLimitRequest) { in.Domain = "" },
		"descriptors":                   func(in *ratelimitv3.RateLimitRequest) { in.Descriptors = nil },
		"descriptors[1].entries":        func(in *ratelimitv3.RateLimitRequest) { in.Descriptors[1].Entries = nil },
		"descriptors[1].entries[0].key": func(in *ratelimitv3.RateLimitRequest) { in.Descriptors[1].Entries[0].Key = "" },
		"descriptors[1].hits_addend":    func(in *ratelimitv3.RateLimitRequest) { in.Descriptors[1].HitsAddend = wrapperspb.UInt64(1 << 53) },
		"descriptors[0].limit.unit": func(in *ratelimitv3.RateLimitRequest) {
			in.Descriptors[0].Limit = &commonv3.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 1}
		},
		"descriptors[0].entries": func(in *ratelimitv3.RateLimitRequest) {
			in.Descriptors[0].Entries = make([]*commonv3.RateLimitDescriptor_Entry, maxEntries+1)
		},
	} {
		in := good()
		change(in)
		_, err := r.ShouldRateLimit(t.Context(), in)
		if e := apierr.From(err); e == nil || e.Reason != apierr.InvalidField || len(e.Violations) != 1 || e.Violations[0].Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	in := good()
	in.Descriptors = make([]*commonv3.RateLimitDescriptor, maxDescriptors+1)
	if _, err := r.ShouldRateLimit(t.Context(), in); apierr.ReasonOf(err) != apierr.InvalidField {
		t.Error(err)
	}
	if len(r.calls) != 0 {
		t.Errorf("%v", r.calls)
	}
}

// TestUnconfigured: without rules nothing is decided.
func TestUnconfigured(t *testing.T) {
	r := newRig(t, twoLimits, func(s *Settings) { s.Dir = "" })
	if _, err := r.ShouldRateLimit(t.Context(), request("d", "a=x")); apierr.ReasonOf(err) != apierr.RouteNotFound {
		t.Error(err)
	}
}

// TestFailures: without a decision the error is one that Envoy's failure_mode_deny is for.
func TestFailures(t *testing.T) {
	for _, c := range []struct {
		err  error
		want apierr.Reason
	}{
		{apierr.Unreachable(""), apierr.SiteUnavailable},
		{apierr.Overload("us", 0), apierr.Overloaded},
		{apierr.Unknown("id", "us", nil), apierr.OutcomeUnknown},
		{context.Canceled, apierr.Canceled},
		{apierr.New(apierr.PermissionDenied, "no"), apierr.SiteUnavailable},
		{errors.New("broken"), apierr.Internal},
	} {
		for _, call := range []string{"acquire", "get", "create"} {
			r := newRig(t, twoLimits, nil)
			r.fails[call] = []error{c.err}
			_, err := r.ShouldRateLimit(t.Context(), request("d", "a=x"))
			if got := apierr.ReasonOf(err); got != c.want {
				t.Errorf("%s fails with %v: %v", call, c.err, err)
			}
			if got := r.ask(request("d", "a=x")); got != "ok: ok/4" {
				t.Errorf("%s fails with %v, and then: %s", call, c.err, got)
			}
		}
	}
	r := newRig(t, twoLimits, nil)
	r.fails["acquire"] = []error{apierr.New(apierr.QueueFull, "full")}
	if got := r.ask(request("d", "a=x")); got != "over: over/5" {
		t.Errorf("with a full queue: %s", got)
	}
	r = newRig(t, twoLimits, nil)
	r.fails["dry"] = []error{apierr.Unreachable("")}
	if got := r.ask(request("d", "a=x;b=x")); got != "ok: ok/0 ok/2" {
		t.Errorf("without figures: %s", got)
	}
}

// TestShadow: with all limits in shadow mode every request passes, and hits count.
func TestShadow(t *testing.T) {
	r := newRig(t, twoLimits, func(s *Settings) { s.Shadow = true })
	for _, s := range []step{{"a=x*5", "ok: ok/0"}, {"a=x", "ok: over/0"}, {"none=x;b=x", "ok: over/0 ok/3"}} {
		if got := r.ask(request("d", s.request)); got != s.want {
			t.Errorf("%s: %s, want %s", s.request, got, s.want)
		}
	}
}

// TestDrain: a refused request of several hits uses up the limits that it exceeds, and no
// others.
func TestDrain(t *testing.T) {
	r := newRig(t, twoLimits, func(s *Settings) { s.Drain = true })
	for _, s := range []step{{"a=x*3", "ok: ok/2"}, {"a=x*3;b=x", "over: over/0 ok/3"}, {"a=x*0", "over: over/0"}, {"a=y*100", "over: over/0"}, {"a=y*0", "over: over/0"}, {"b=x", "ok: ok/2"}} {
		if got := r.ask(request("d", s.request)); got != s.want {
			t.Errorf("%s: %s, want %s", s.request, got, s.want)
		}
	}
}

// TestExact: whatever is asked, no limit is exceeded, a refused request takes nothing, and
// a request passes exactly if its limits have room.
func TestExact(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := newRig(t, twoLimits, nil)
		key := rapid.SampledFrom([]string{"a=x", "a=y", "b=x", "none=x", "free=x", "other=x", "shadow=x", "q1=x", "q2=x"})
		limits := map[string]int64{"a=x": 5, "a=y": 5, "b=x": 3, "none=x": 0, "shadow=x": 2, "q1=x": 1, "q2=x": 2}
		used := map[string]int64{}
		for range 12 {
			keys := rapid.SliceOfNDistinct(key, 1, 4, rapid.ID).Draw(rt, "keys")
			in := request("d", keys[0])
			in.Descriptors = nil
			next, denied, quotas, spent := maps.Clone(used), false, 0, 0
			for _, k := range keys {
				hits := rapid.Uint64Range(0, 3).Draw(rt, "hits")
				d := request("d", k).GetDescriptors()[0]
				d.HitsAddend = wrapperspb.UInt64(hits)
				in.Descriptors = append(in.Descriptors, d)
				limit, counts := limits[k]
				if !counts {
					continue
				}
				over := used[k]+int64(hits) > limit || hits == 0 && used[k] == limit
				if !over {
					next[k] += int64(hits)
				}
				switch {
				case k[0] == 'q':
					quotas++
					if over {
						spent++
					}
				case over && k != "shadow=x":
					denied = true
				}
			}
			denied = denied || quotas > 0 && quotas == spent
			out, err := r.ShouldRateLimit(t.Context(), in)
			if err != nil {
				rt.Fatal(err)
			}
			if (out.GetOverallCode() == ratelimitv3.RateLimitResponse_OVER_LIMIT) != denied {
				rt.Fatalf("%v is answered %v, used %v", in, out, used)
			}
			if !denied {
				used = next
			}
			for name, left := range r.left {
				for k, limit := range limits {
					if domainKey := "ratelimit/d/" + k[:len(k)-2] + "." + k[len(k)-1:] + "/"; len(name) > len(domainKey) && name[:len(domainKey)] == domainKey && limit-left != used[k] {
						rt.Fatalf("%s: %d of %d left, %d used; after %v", name, left, limit, used[k], in)
					}
				}
			}
		}
	})
}
