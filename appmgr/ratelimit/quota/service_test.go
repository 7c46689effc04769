package quota

import (
	"context"
	"io"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	quotav3 "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/ratelimit/rules"
)

// ledger leases shares of a quota without an end.
type ledger struct {
	mu       sync.Mutex
	leased   map[string]int64
	number   int
	renewals int
	returned []Return
}

func (l *ledger) Lease(_ context.Context, m *rules.Match, tokens int64, ttl time.Duration) (Granted, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.number++
	name := "us/" + string(rune('0'+l.number))
	l.leased[name] = tokens
	return Granted{Lease: name, Tokens: tokens, Remaining: ttl, Terms: m.Terms}, nil
}

func (l *ledger) Renew(_ context.Context, _ string, ttl time.Duration) (time.Duration, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewals++
	return ttl, nil
}

func (l *ledger) Return(_ context.Context, r Return) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.returned = append(l.returned, r)
	return nil
}

// seen is the ledger now.
func (l *ledger) seen() (leased map[string]int64, renewals int, returned []Return) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.leased), l.renewals, slices.Clone(l.returned)
}

// pipe is a stream of a proxy within the process.
type pipe struct {
	grpc.ServerStream
	ctx     context.Context //nolint:containedctx // it stands for the stream's
	reports chan *quotav3.RateLimitQuotaUsageReports
	told    chan *quotav3.RateLimitQuotaResponse
}

func (p *pipe) Context() context.Context { return p.ctx }

func (p *pipe) Recv() (*quotav3.RateLimitQuotaUsageReports, error) {
	select {
	case m, ok := <-p.reports:
		if !ok {
			return nil, io.EOF
		}
		return m, nil
	case <-p.ctx.Done():
		return nil, p.ctx.Err()
	}
}

func (p *pipe) Send(r *quotav3.RateLimitQuotaResponse) error {
	select {
	case p.told <- r:
		return nil
	case <-p.ctx.Done():
		return p.ctx.Err()
	}
}

const quotaRules = `
domain: edge
descriptors:
  - key: user
    rate_limit: {unit: minute, requests_per_unit: 160}
`

// serve starts a service in a bubble, and a stream of it. ended gets the error of the stream.
func serve(t *testing.T, l *ledger) (p *pipe, ended chan error, stop func()) {
	t.Helper()
	config, err := rules.Parse(rules.File{Name: "f", Data: []byte(quotaRules)})
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Settings{
		Config: Config{TTL: 20 * time.Second, MaxBuckets: 10, MaxOfStream: 10}, Leases: l,
		Rules: func() *rules.Config { return config }, Registry: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	life, end := context.WithCancel(t.Context())
	go s.Run(life)
	ctx, cut := context.WithCancel(t.Context())
	p = &pipe{ctx: ctx, reports: make(chan *quotav3.RateLimitQuotaUsageReports), told: make(chan *quotav3.RateLimitQuotaResponse)}
	ended = make(chan error, 1)
	go func() {
		// As gRPC does: the stream's context ends with its handler.
		defer cut()
		ended <- s.StreamRateLimitQuotas(p)
	}()
	return p, ended, end
}

func (p *pipe) report(allowed uint64) {
	p.reports <- &quotav3.RateLimitQuotaUsageReports{Domain: "edge", BucketQuotaUsages: []*quotav3.RateLimitQuotaUsageReports_BucketQuotaUsage{
		{BucketId: &quotav3.BucketId{Bucket: map[string]string{"user": "x"}}, NumRequestsAllowed: allowed},
	}}
}

// TestLeaseOutlivesItsAssignment: a share is leased before it is assigned, is renewed while the
// proxy reports, and is returned once the proxy cannot go by it any more.
func TestLeaseOutlivesItsAssignment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{leased: map[string]int64{}}
		p, ended, stop := serve(t, l)
		defer stop()
		p.report(1)
		first := (<-p.told).GetBucketAction()[0].GetQuotaAssignmentAction()
		b := first.GetRateLimitStrategy().GetTokenBucket()
		leased, _, _ := l.seen()
		if leased["us/1"] != 10 || b.GetMaxTokens() != 3 || b.GetTokensPerFill().GetValue() != 6 || first.GetAssignmentTimeToLive().AsDuration() != 20*time.Second {
			t.Errorf("%v were leased, %v was assigned", leased, first)
		}
		var told atomic.Int32
		go func() {
			for {
				select {
				case <-p.told:
					told.Add(1)
				case <-p.ctx.Done():
					return
				}
			}
		}()
		for range 6 {
			time.Sleep(5 * time.Second) //nolint:forbidigo // simulated time
			p.report(20)
		}
		synctest.Wait()
		leased, renewals, _ := l.seen()
		if renewals < 2 || told.Load() < 2 || leased["us/2"] == 0 {
			t.Errorf("%d renewals, %d messages, %v leased", renewals, told.Load(), leased)
		}
		close(p.reports)
		if err := <-ended; err != nil {
			t.Error(err)
		}
		time.Sleep(8 * time.Second) //nolint:forbidigo // simulated time
		synctest.Wait()
		if _, _, returned := l.seen(); len(returned) > 0 {
			t.Errorf("%v came back while the proxy goes by it", returned)
		}
		time.Sleep(16 * time.Second) //nolint:forbidigo // simulated time
		synctest.Wait()
		if leased, _, returned := l.seen(); len(returned) != len(leased) {
			t.Errorf("%v came back of %v", returned, leased)
		}
	})
}

// TestProxyThatDoesNotRead: an assignment that a proxy does not read for a second is too late,
// and the stream ends.
func TestProxyThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, ended, stop := serve(t, &ledger{leased: map[string]int64{}})
		defer stop()
		p.report(1)
		began := time.Now()
		if err := <-ended; apierr.ReasonOf(err) != apierr.Overloaded || time.Since(began) > 2*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}
