package site

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/core"
)

// counted checks that a collector tells lines.
func counted(t *testing.T, what string, c prometheus.Collector, lines ...string) {
	t.Helper()
	text := exposition(t, c)
	for _, want := range lines {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("%s: no %s in\n%s", what, want, text)
		}
	}
}

// TestOperationsAreCounted: operations of batches and streams are counted like calls, and
// so is the number of operations together.
func TestOperationsAreCounted(t *testing.T) {
	refused := outcome{code: core.OutOfTokens}
	operations := func() []operation {
		return []operation{{}, {outcome: refused}, {isRelease: true}, {isRelease: true}, {isRelease: true, err: apierr.Invalid("tokens", "none")}}
	}
	for what, count := range map[string]func(s *Site) prometheus.Histogram{
		"batch": func(s *Site) prometheus.Histogram {
			(&batch{site: s, operations: operations()}).response(time.Now())
			return s.metrics.batches
		},
		"stream": func(s *Site) prometheus.Histogram {
			all := operations()
			taken := make([]*operation, len(all))
			replies := make([]*samyav1.Reply, len(all))
			for i := range all {
				all[i].Began = time.Now()
				taken[i], replies[i] = &all[i], &samyav1.Reply{Result: &samyav1.Result{}}
			}
			if n := newStream(s, nil).Answer(taken, replies); n != len(all) {
				t.Errorf("%d answers", n)
			}
			return s.metrics.replies
		},
	} {
		s := shell()
		size := count(s)
		counted(t, what, s.metrics.requests,
			`samya_site_requests_total{method="/samya.v1.TokenService/Acquire",reason="OK"} 1`,
			`samya_site_requests_total{method="/samya.v1.TokenService/Acquire",reason="OUT_OF_TOKENS"} 1`,
			`samya_site_requests_total{method="/samya.v1.TokenService/Release",reason="OK"} 2`,
			`samya_site_requests_total{method="/samya.v1.TokenService/Release",reason="INVALID_FIELD"} 1`)
		counted(t, what, s.metrics.latency,
			`samya_site_request_seconds_count{method="/samya.v1.TokenService/Acquire"} 2`,
			`samya_site_request_seconds_count{method="/samya.v1.TokenService/Release"} 3`)
		name := map[string]string{"batch": "samya_site_batch_operations", "stream": "samya_site_stream_replies"}[what]
		counted(t, what, size, name+"_count 1", name+"_sum 5")
	}
}

// TestEventsAreCounted: each event of the core has its own counter.
func TestEventsAreCounted(t *testing.T) {
	for _, c := range []struct {
		event core.Event
		of    func(*metrics) prometheus.Collector
		line  string
	}{
		{core.Event{Kind: core.RedistributionStarted, Trigger: "debt"}, redistributionsBegun, `samya_site_redistributions_started_total{trigger="debt"}`},
		{core.Event{Kind: core.RedistributionApplied}, redistributions, `samya_site_redistributions_total{outcome="applied"}`},
		{core.Event{Kind: core.RedistributionApplied, Variant: core.Direct}, redistributions, `samya_site_redistributions_total{outcome="transferred"}`},
		{core.Event{Kind: core.RedistributionFailed}, redistributions, `samya_site_redistributions_total{outcome="no_quorum"}`},
		{core.Event{Kind: core.RedistributionFailed, Variant: core.Direct}, redistributions, `samya_site_redistributions_total{outcome="nothing_transferred"}`},
		{core.Event{Kind: core.GaveUp}, redistributions, `samya_site_redistributions_total{outcome="no_tokens"}`},
		{core.Event{Kind: core.AuditBegun}, audits, `samya_site_audits_total{outcome="begun"}`},
		{core.Event{Kind: core.SurplusFound}, audits, `samya_site_audits_total{outcome="found"}`},
		{core.Event{Kind: core.LeaseGranted}, leases, `samya_site_lease_events_total{event="granted"}`},
		{core.Event{Kind: core.LeaseRenewed}, leases, `samya_site_lease_events_total{event="renewed"}`},
		{core.Event{Kind: core.LeaseCommitted}, leases, `samya_site_lease_events_total{event="committed"}`},
		{core.Event{Kind: core.LeaseExpired}, leases, `samya_site_lease_events_total{event="expired"}`},
		{core.Event{Kind: core.LeaseReturned}, leases, `samya_site_lease_events_total{event="returned"}`},
		{core.Event{Kind: core.ClaimMade}, func(m *metrics) prometheus.Collector { return m.asked }, "samya_site_claims_total"},
		{core.Event{Kind: core.ClaimAnswered, Verdict: core.NeverRan}, verdicts, `samya_site_claim_answers_total{verdict="never_ran"}`},
		{core.Event{Kind: core.ClaimAnswered, Verdict: core.DidRun}, verdicts, `samya_site_claim_answers_total{verdict="did_run"}`},
		{core.Event{Kind: core.ClaimAnswered, Verdict: core.Forgotten}, verdicts, `samya_site_claim_answers_total{verdict="forgotten"}`},
		{core.Event{Kind: core.ClaimGivenUp}, verdicts, `samya_site_claim_answers_total{verdict="given_up"}`},
		{core.Event{Kind: core.TenantRefused}, func(m *metrics) prometheus.Collector { return m.crowded }, "samya_site_tenant_refusals_total"},
		{core.Event{Kind: core.ForecastFellBack, Count: 3}, func(m *metrics) prometheus.Collector { return m.fallbacks }, "samya_forecast_fallbacks_total"},
		{core.Event{Kind: core.ForecastDropped, Count: 3}, func(m *metrics) prometheus.Collector { return m.dropped }, "samya_forecast_dropped_total"},
		{core.Event{Kind: core.ProtocolFault, Err: errors.New("no")}, func(m *metrics) prometheus.Collector { return m.faults }, "samya_site_protocol_faults_total"},
	} {
		s := shell()
		s.log = slog.New(slog.DiscardHandler)
		s.Happened(c.event)
		text := exposition(t, c.of(s.metrics))
		// No other event of its kind is counted.
		for line := range strings.Lines(text) {
			series, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			want := "0"
			if series == c.line {
				want = "1"
				if c.event.Count > 0 {
					want = "3"
				}
			}
			if !strings.HasPrefix(line, "#") && value != want {
				t.Errorf("%+v: %s", c.event, line)
			}
		}
		if !strings.Contains(text, "\n"+c.line+" ") {
			t.Errorf("%+v: no %s in\n%s", c.event, c.line, text)
		}
	}
	s := shell()
	s.Committed(5, 2*time.Second)
	counted(t, "a commit", s.metrics.batch, "samya_site_commit_requests_count 1", "samya_site_commit_requests_sum 5")
	counted(t, "a commit", s.metrics.commit, "samya_site_commit_seconds_count 1", "samya_site_commit_seconds_sum 2")
	s.log, s.health = slog.New(slog.DiscardHandler), health.NewServer()
	s.health.SetServingStatus("", healthv1.HealthCheckResponse_NOT_SERVING)
	s.Happened(core.Event{Kind: core.Serving})
	if resp, err := s.health.Check(t.Context(), &healthv1.HealthCheckRequest{}); err != nil || resp.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		t.Errorf("a site that serves: %v, %v", resp, err)
	}
}

func redistributions(m *metrics) prometheus.Collector      { return m.redistributions }
func redistributionsBegun(m *metrics) prometheus.Collector { return m.started }
func audits(m *metrics) prometheus.Collector               { return m.audits }
func leases(m *metrics) prometheus.Collector               { return m.leases }
func verdicts(m *metrics) prometheus.Collector             { return m.verdicts }
