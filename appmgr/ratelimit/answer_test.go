package ratelimit

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/samya-db/samya/internal/rates"
	"github.com/samya-db/samya/internal/reload"
)

// told asks about a request, and returns the header fields that the proxy adds.
func (r *rig) told(request string) string {
	r.t.Helper()
	out, err := r.ShouldRateLimit(r.t.Context(), requestOf(request))
	if err != nil {
		r.t.Fatal(err)
	}
	var all []string
	for _, h := range out.GetResponseHeadersToAdd() {
		all = append(all, h.GetKey()+": "+h.GetValue())
	}
	return strings.Join(all, "\n")
}

// requestOf is a request of the domain d.
func requestOf(text string) *ratelimitv3.RateLimitRequest { return request("d", text) }

// TestHeaders: the fields of each style.
func TestHeaders(t *testing.T) {
	for style, want := range map[string][3]string{
		"":     {},
		"none": {},
		"ratelimit": {
			`RateLimit-Policy: "d.a";q=5;w=60, "d.b";q=3;w=3600` + "\n" + `RateLimit: "d.a";r=4;t=30, "d.b";r=2;t=90`,
			`RateLimit-Policy: "d.a";q=5;w=60, "d.b";q=3;w=3600` + "\n" + `RateLimit: "d.a";r=4;t=30, "d.b";r=2;t=90`, "",
		},
		"x-ratelimit": {
			"X-RateLimit-Limit: 3\nX-RateLimit-Remaining: 2\nX-RateLimit-Reset: 90",
			"X-RateLimit-Limit: 5\nX-RateLimit-Remaining: 4\nX-RateLimit-Reset: 30", "",
		},
		"envoyproxy": {
			"RateLimit-Limit: 3\nRateLimit-Remaining: 2\nRateLimit-Reset: 90",
			"RateLimit-Limit: 5\nRateLimit-Remaining: 4\nRateLimit-Reset: 30", "",
		},
	} {
		r := newRig(t, twoLimits, func(s *Settings) { s.Headers = style })
		for i, request := range []string{"a=x;b=x", "a=x*5;b=x", "other=x;free=x"} {
			if got := r.told(request); got != want[i] {
				t.Errorf("%s: %s:\n%s\nwant\n%s", style, request, got, want[i])
			}
		}
	}
}

// TestFields: the fields are what a parser of structured fields reads, whatever the name of
// the policy.
func TestFields(t *testing.T) {
	month := rates.Terms{Kind: rates.Window, Count: 1, Unit: rates.Month}
	minute := rates.Terms{Kind: rates.Window, Count: 1, Unit: rates.Minute}
	var f Fields
	f.Add("", 1, &rates.Terms{}, 1, noon) // no rate quota
	names := []string{"plain", `"quoted\`, "", "käse\x00", strings.Repeat("a", 1000)}
	for i, n := range names {
		f.Add(n, int64(100+i), &minute, int64(i), noon)
	}
	f.Add("month", 1<<53-1, &month, 7, noon)
	h := http.Header{}
	f.Write(h)
	policy, err := httpsfv.UnmarshalList(h.Values("RateLimit-Policy"))
	if err != nil {
		t.Fatal(err)
	}
	limit, err := httpsfv.UnmarshalList(h.Values("RateLimit"))
	if err != nil {
		t.Fatal(err)
	}
	param := func(m httpsfv.Member, key string) any {
		v, _ := m.(httpsfv.Item).Params.Get(key)
		return v
	}
	if len(policy) != len(names)+1 || len(limit) != len(policy) {
		t.Fatalf("%d and %d items", len(policy), len(limit))
	}
	for i, want := range []string{"plain", `"quoted\`, "", "k??se?", strings.Repeat("a", 128), "month"} {
		p, l := policy[i].(httpsfv.Item), limit[i].(httpsfv.Item)
		if p.Value != want || l.Value != want {
			t.Errorf("%v and %v, want %q", p.Value, l.Value, want)
		}
		q, w, r, left := int64(100+i), int64(60), int64(i), int64(30)
		if want == "month" {
			q, w, r, left = maxInteger, 31*86_400, 7, int64(time.Date(2026, 8, 1, 0, 0, 0, 0, time.UTC).Sub(noon)/time.Second)
		}
		if param(p, "q") != q || param(p, "w") != w || param(l, "r") != r || param(l, "t") != left {
			t.Errorf("%q: %v;%v, want q=%d;w=%d;r=%d;t=%d", want, p.Params, l.Params, q, w, r, left)
		}
	}
}

// TestMetadata: the metadata of rules that let a request pass comes with the answer.
func TestMetadata(t *testing.T) {
	r := newRig(t, `
domain: d
descriptors:
  - key: a
    rate_limit: {unit: minute, requests_per_unit: 5}
    metadata: {service: {name: a, tier: 1}}
  - key: b
    rate_limit: {unit: minute, requests_per_unit: 5}
    metadata: {service: {name: b, zone: {x: [1, y]}}, more: true}
  - key: none
    rate_limit: {unit: minute, requests_per_unit: 0}
    metadata: {service: {name: none}}
`, nil)
	for range 2 { // rules keep their own metadata
		out, err := r.ShouldRateLimit(t.Context(), request("d", "none=x;b=x*2;a=x"))
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]any{
			"domain": "d",
			"descriptors": []any{
				map[string]any{"entries": []any{"none=x"}}, map[string]any{"entries": []any{"b=x"}, "hitsAddend": 2.0}, map[string]any{"entries": []any{"a=x"}},
			},
			"metadata": map[string]any{
				"service": map[string]any{"name": "b", "tier": 1.0, "zone": map[string]any{"x": []any{1.0, "y"}}}, "more": true,
			},
		}
		if diff := cmp.Diff(want, out.GetDynamicMetadata().AsMap()); diff != "" {
			t.Error(diff)
		}
	}
}

// TestMetrics: hits count by rule and outcome, and the rules with series of their own are
// bounded.
func TestMetrics(t *testing.T) {
	r := newRig(t, twoLimits+"  - key: each\n    detailed_metric: true\n    rate_limit: {unlimited: true}\n", nil)
	for _, request := range []string{"a=x*2", "a=x*3", "a=x", "shadow=x*3", "free=x*7", "a=x;b=x", "other=x"} {
		r.ask(requestOf(request))
	}
	err := testutil.GatherAndCompare(r.registry, strings.NewReader(`
# HELP samya_appmgr_ratelimit_decisions_total Requests to the rate limit service, by outcome: ok, over_limit, shadow_mode (over a limit, and all limits are in shadow mode), or the reason of an error.
# TYPE samya_appmgr_ratelimit_decisions_total counter
samya_appmgr_ratelimit_decisions_total{outcome="ok"} 5
samya_appmgr_ratelimit_decisions_total{outcome="over_limit"} 2
samya_appmgr_ratelimit_decisions_total{outcome="shadow_mode"} 0
# HELP samya_appmgr_ratelimit_descriptors Descriptors in the files with rate limits.
# TYPE samya_appmgr_ratelimit_descriptors gauge
samya_appmgr_ratelimit_descriptors 8
`), "samya_appmgr_ratelimit_decisions_total", "samya_appmgr_ratelimit_descriptors")
	if err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		rule, outcome string
		want          float64
	}{
		{"d.a", "within_limit", 5}, {"d.a", "over_limit", 2}, {"d.shadow", "shadow_mode", 3}, {"d.free", "unlimited", 7}, {"d.b", "within_limit", 1},
	} {
		if got := testutil.ToFloat64(r.metrics.hits.WithLabelValues(c.rule, c.outcome)); got != c.want {
			t.Errorf("%s, %s: %v, want %v", c.rule, c.outcome, got, c.want)
		}
	}
	for i := range 2000 {
		r.ask(requestOf(fmt.Sprintf("each=%d", i)))
	}
	if n := testutil.CollectAndCount(r.metrics.hits); n != 4*(maxSeries+1) {
		t.Errorf("%d series", n)
	}
	if n := testutil.ToFloat64(r.metrics.hits.WithLabelValues(other, "unlimited")); n < 1000 {
		t.Errorf("%v hits of other rules", n)
	}
	r.write("rules.yaml", "domain: e")
	r.look(t.Context(), new(reload.Fault))
	if n := testutil.CollectAndCount(r.metrics.hits); n != 0 {
		t.Errorf("%d series of rules of the past", n)
	}
}
