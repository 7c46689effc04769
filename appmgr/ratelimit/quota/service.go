package quota

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	quotav3 "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/ratelimit/rules"
)

// Leases leases shares of the rate quotas of rules.
type Leases interface {
	// Lease leases at most so many tokens, at least 1.
	Lease(ctx context.Context, m *rules.Match, tokens int64, ttl time.Duration) (Granted, error)
	// Renew gives a lease another time to live, and returns it.
	Renew(ctx context.Context, lease string, ttl time.Duration) (time.Duration, error)
	Return(ctx context.Context, r Return) error
}

// Settings configures a Service.
type Settings struct {
	Config
	Leases Leases
	// Rules returns the rules in force; nil for none.
	Rules func() *rules.Config
	// Shadow has every request pass.
	Shadow bool
	// Closing ends when no stream is to go on; nil: never.
	Closing  context.Context //nolint:containedctx // it stands for the life of the server
	Registry prometheus.Registerer
	Logger   *slog.Logger
}

const (
	// tickTime is the time between two looks at all buckets.
	tickTime = 500 * time.Millisecond
	// sendTime bounds the time from a decision until its message is with the transport.
	// An older message is not sent: the proxy would count its time from too late.
	sendTime = time.Second
	// callTime bounds a call of a site, and maxCalls the calls under way.
	callTime = 5 * time.Second
	maxCalls = 128
	// maxUnsent bounds the messages that wait for a stream.
	maxUnsent = 64
)

// Service is the rate limit quota service. Every error it returns is an *apierr.Error.
type Service struct {
	quotav3.UnimplementedRateLimitQuotaServiceServer
	cfg     Settings
	log     *slog.Logger
	metrics *metrics
	origin  time.Time
	calls   chan struct{}

	mu      sync.Mutex
	core    *core
	last    streamID
	streams map[streamID]*stream
}

// stream is a stream of a proxy.
type stream struct {
	ids    map[string]*quotav3.BucketId
	unsent chan message
	// stuck ends the stream, as its proxy does not read.
	stuck chan struct{}
	once  sync.Once
}

type message struct {
	at       time.Time
	response *quotav3.RateLimitQuotaResponse
}

// New makes a service, which does nothing about time before Run.
func New(s Settings) (*Service, error) {
	m, err := newMetrics(s.Registry)
	if err != nil {
		return nil, err
	}
	if s.Closing == nil {
		s.Closing = context.Background()
	}
	return &Service{
		cfg: s, log: cmp.Or(s.Logger, slog.New(slog.DiscardHandler)), metrics: m, origin: time.Now().Add(-time.Second), calls: make(chan struct{}, maxCalls),
		core: newCore(s.Config), streams: make(map[streamID]*stream),
	}, nil
}

// now is the time on a clock that is never set.
func (s *Service) now() time.Duration { return time.Since(s.origin) }

// Run has time pass until ctx ends.
func (s *Service) Run(ctx context.Context) {
	tick := time.NewTicker(tickTime)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.step(func(c *core, now time.Duration) { c.Tick(now) })
		}
	}
}

// step feeds the core, and carries out its effects.
func (s *Service) step(input func(c *core, now time.Duration)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	input(s.core, s.now())
	out := s.core.Drain()
	s.metrics.buckets.Set(float64(s.core.Buckets()))
	s.assign(out.Assigned)
	for _, a := range out.Acquires {
		go s.acquire(a, s.now())
	}
	for _, r := range out.Renewals {
		go s.renew(r, s.now())
	}
	for _, r := range out.Returns {
		go s.giveBack(r)
	}
}

// assign hands assignments to the streams.
func (s *Service) assign(all []assignment) {
	responses := make(map[streamID]*quotav3.RateLimitQuotaResponse)
	for i := range all {
		a := &all[i]
		s.metrics.assigned[a.Verdict].Inc()
		st := s.streams[a.Stream]
		if st == nil || st.ids[a.Bucket] == nil {
			continue
		}
		r := responses[a.Stream]
		if r == nil {
			r = &quotav3.RateLimitQuotaResponse{}
			responses[a.Stream] = r
		}
		r.BucketAction = append(r.BucketAction, actionOf(a, st.ids[a.Bucket]))
		if a.Verdict == abandon {
			delete(st.ids, a.Bucket)
		}
	}
	for id, r := range responses {
		st := s.streams[id]
		select {
		case st.unsent <- message{time.Now(), r}:
		default:
			st.once.Do(func() { close(st.stuck) })
		}
	}
}

// call bounds the calls under way.
func (s *Service) call(do func(ctx context.Context)) {
	s.calls <- struct{}{}
	defer func() { <-s.calls }()
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	defer cancel()
	do(ctx)
}

func (s *Service) acquire(a acquisition, asked time.Duration) {
	var g Granted
	var err error
	s.call(func(ctx context.Context) { g, err = s.cfg.Leases.Lease(ctx, a.Rule, a.Tokens, s.cfg.LeaseTTL()) })
	s.metrics.leased("acquire", err)
	s.step(func(c *core, now time.Duration) {
		switch {
		case err == nil:
			c.Acquired(now, asked, a.Op, g)
		case lacking(err):
			c.Refused(now, a.Op, noTokens)
		default:
			c.Refused(now, a.Op, noAnswer)
		}
	})
}

// lacking reports whether an error says that there are no tokens.
func lacking(err error) bool {
	switch apierr.ReasonOf(err) {
	case apierr.OutOfTokens, apierr.ExceedsLimit, apierr.QueueFull:
		return true
	}
	return false
}

func (s *Service) renew(r renewal, asked time.Duration) {
	var remaining time.Duration
	var err error
	s.call(func(ctx context.Context) { remaining, err = s.cfg.Leases.Renew(ctx, r.Lease, s.cfg.LeaseTTL()) })
	s.metrics.leased("renew", err)
	s.step(func(c *core, now time.Duration) {
		if err == nil {
			c.Renewed(now, asked, r.Op, remaining)
			return
		}
		reason := apierr.ReasonOf(err)
		c.Unrenewed(now, r.Op, lacking(err) || reason == apierr.LeaseNotFound || reason == apierr.InvalidField)
	})
}

func (s *Service) giveBack(r Return) {
	var err error
	s.call(func(ctx context.Context) { err = s.cfg.Leases.Return(ctx, r) })
	s.metrics.leased("return", err)
}

// StreamRateLimitQuotas implements quotav3.RateLimitQuotaServiceServer.
func (s *Service) StreamRateLimitQuotas(in quotav3.RateLimitQuotaService_StreamRateLimitQuotasServer) error {
	st := &stream{ids: make(map[string]*quotav3.BucketId), unsent: make(chan message, maxUnsent), stuck: make(chan struct{})}
	s.mu.Lock()
	s.last++
	id := s.last
	s.streams[id] = st
	s.metrics.streams.Set(float64(len(s.streams)))
	s.mu.Unlock()
	defer s.step(func(c *core, _ time.Duration) {
		delete(s.streams, id)
		s.metrics.streams.Set(float64(len(s.streams)))
		c.Closed(id)
	})
	failed := make(chan error, 2)
	// Both end with the stream, at the latest when this function returns.
	go func() { failed <- s.receive(in, id, st) }()
	go func() { failed <- st.send(in) }()
	select {
	case err := <-failed:
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	case <-st.stuck:
		return apierr.New(apierr.Overloaded, "the proxy does not read its assignments")
	case <-in.Context().Done():
		return apierr.Ended(in.Context().Err())
	case <-s.cfg.Closing.Done():
		return apierr.New(apierr.ShuttingDown, "this process is shutting down")
	}
}

// receive hands the reports of a stream to the core.
func (s *Service) receive(in quotav3.RateLimitQuotaService_StreamRateLimitQuotasServer, id streamID, st *stream) error {
	domain := ""
	for {
		m, err := in.Recv()
		if err != nil {
			return err
		}
		switch d := m.GetDomain(); {
		case domain == "" && d == "":
			return apierr.Invalid("domain", "missing")
		case domain == "":
			domain = d
		case d != "" && d != domain:
			return apierr.Invalid("domain", "another than in the first report")
		}
		config := s.cfg.Rules()
		if config == nil {
			return apierr.New(apierr.RouteNotFound, "this process has no rate limits: it was started without --ratelimit-config")
		}
		var bad error
		s.step(func(c *core, now time.Duration) {
			var usages []usage
			if usages, bad = s.read(m, domain, config, st.ids); bad == nil {
				s.metrics.beyond.Add(float64(c.Report(now, id, usages)))
			}
			st.prune(c, id)
		})
		if bad != nil {
			return bad
		}
	}
}

// prune forgets ids of buckets that the core does not have.
func (st *stream) prune(c *core, id streamID) {
	for bucket := range st.ids {
		if !c.has(id, bucket) {
			delete(st.ids, bucket)
		}
	}
}

// send sends assignments until the stream ends.
func (st *stream) send(in quotav3.RateLimitQuotaService_StreamRateLimitQuotasServer) error {
	for {
		select {
		case <-in.Context().Done():
			return apierr.Ended(in.Context().Err())
		case m := <-st.unsent:
			late := time.AfterFunc(sendTime-time.Since(m.at), func() { st.once.Do(func() { close(st.stuck) }) })
			if time.Since(m.at) >= sendTime {
				return apierr.New(apierr.Overloaded, "the proxy does not read its assignments")
			}
			err := in.Send(m.response)
			late.Stop()
			if err != nil {
				return err
			}
		}
	}
}
