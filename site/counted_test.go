package site

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/core/answer"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/policy"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
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
	refused := answer.Answer{Code: answer.OutOfTokens}
	operations := func() []operation {
		return []operation{{}, {answer: refused}, {isRelease: true}, {isRelease: true}, {isRelease: true, err: apierr.Invalid("tokens", "none")}}
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
		event event.Event
		of    func(*metrics) prometheus.Collector
		line  string
	}{
		{event.Event{Kind: event.RedistributionStarted, Trigger: "debt"}, redistributionsBegun, `samya_site_redistributions_started_total{trigger="debt"}`},
		{event.Event{Kind: event.RedistributionApplied}, redistributions, `samya_site_redistributions_total{outcome="applied"}`},
		{event.Event{Kind: event.RedistributionApplied, Variant: policy.Direct}, redistributions, `samya_site_redistributions_total{outcome="transferred"}`},
		{event.Event{Kind: event.RedistributionFailed}, redistributions, `samya_site_redistributions_total{outcome="no_quorum"}`},
		{event.Event{Kind: event.RedistributionFailed, Variant: policy.Direct}, redistributions, `samya_site_redistributions_total{outcome="nothing_transferred"}`},
		{event.Event{Kind: event.GaveUp}, redistributions, `samya_site_redistributions_total{outcome="no_tokens"}`},
		{event.Event{Kind: event.AuditBegun}, audits, `samya_site_audits_total{outcome="begun"}`},
		{event.Event{Kind: event.SurplusFound}, audits, `samya_site_audits_total{outcome="found"}`},
		{event.Event{Kind: event.LeaseGranted}, leases, `samya_site_lease_events_total{event="granted"}`},
		{event.Event{Kind: event.LeaseRenewed}, leases, `samya_site_lease_events_total{event="renewed"}`},
		{event.Event{Kind: event.LeaseCommitted}, leases, `samya_site_lease_events_total{event="committed"}`},
		{event.Event{Kind: event.LeaseExpired}, leases, `samya_site_lease_events_total{event="expired"}`},
		{event.Event{Kind: event.LeaseReturned}, leases, `samya_site_lease_events_total{event="returned"}`},
		{event.Event{Kind: event.ClaimMade}, func(m *metrics) prometheus.Collector { return m.asked }, "samya_site_claims_total"},
		{event.Event{Kind: event.ClaimAnswered, Verdict: message.NeverRan}, verdicts, `samya_site_claim_answers_total{verdict="never_ran"}`},
		{event.Event{Kind: event.ClaimAnswered, Verdict: message.DidRun}, verdicts, `samya_site_claim_answers_total{verdict="did_run"}`},
		{event.Event{Kind: event.ClaimAnswered, Verdict: message.Forgotten}, verdicts, `samya_site_claim_answers_total{verdict="forgotten"}`},
		{event.Event{Kind: event.ClaimGivenUp}, verdicts, `samya_site_claim_answers_total{verdict="given_up"}`},
		{event.Event{Kind: event.TenantRefused}, func(m *metrics) prometheus.Collector { return m.crowded }, "samya_site_tenant_refusals_total"},
		{event.Event{Kind: event.ForecastFellBack, Count: 3}, func(m *metrics) prometheus.Collector { return m.fallbacks }, "samya_forecast_fallbacks_total"},
		{event.Event{Kind: event.ForecastDropped, Count: 3}, func(m *metrics) prometheus.Collector { return m.dropped }, "samya_forecast_dropped_total"},
		{event.Event{Kind: event.ProtocolFault, Err: errors.New("no")}, func(m *metrics) prometheus.Collector { return m.faults }, "samya_site_protocol_faults_total"},
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
	s.Happened(event.Event{Kind: event.Serving})
	if resp, err := s.health.Check(t.Context(), &healthv1.HealthCheckRequest{}); err != nil || resp.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		t.Errorf("a site that serves: %v, %v", resp, err)
	}
}

func redistributions(m *metrics) prometheus.Collector      { return m.redistributions }
func redistributionsBegun(m *metrics) prometheus.Collector { return m.started }
func audits(m *metrics) prometheus.Collector               { return m.audits }
func leases(m *metrics) prometheus.Collector               { return m.leases }
func verdicts(m *metrics) prometheus.Collector             { return m.verdicts }
