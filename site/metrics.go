package site

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/metric"
	"github.com/samya-db/samya/internal/spanctx"
	"github.com/samya-db/samya/internal/tracing"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/core/event"
	"github.com/samya-db/samya/site/core/message"
	"github.com/samya-db/samya/site/core/policy"
	"google.golang.org/grpc"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
)

// metrics are the site's metrics. Their labels are bounded: methods, reasons, triggers
// and outcomes, never clients. Only entityMetrics has entities as labels.
type metrics struct {
	traces          *tracing.Traces
	registry        *prometheus.Registry
	requests        *prometheus.CounterVec
	latency         *prometheus.HistogramVec
	redistributions *prometheus.CounterVec
	started         *prometheus.CounterVec
	faults          prometheus.Counter
	// fallbacks and dropped count events of forecasts.
	fallbacks, dropped prometheus.Counter
	leases, audits     *prometheus.CounterVec
	asked, crowded     prometheus.Counter
	keysDropped        prometheus.Counter
	verdicts           *prometheus.CounterVec
	batch, commit      prometheus.Histogram
	// reads counts reads of a single entity, by consistency; states counts the states
	// sent to watches.
	reads  *prometheus.CounterVec
	states prometheus.Counter
	// batches, streamed and replies are the operations in a batch, and in a message of
	// a stream from and to its caller.
	batches, streamed, replies prometheus.Histogram
	// acquires and releases count operations, however they come.
	acquires, releases *methodMetrics
	// methods holds a *methodMetrics by method name.
	methods sync.Map
}

func newMetrics(s *Site) *metrics {
	registry := prometheus.NewRegistry()
	to := metric.To(registry)
	m := &metrics{
		traces: s.cfg.Traces, registry: registry,
		requests: to.Counters("samya_site_requests_total", "Requests by method and by reason; OK for those that were done.", "method", "reason"),
		latency:  to.Histograms("samya_site_request_seconds", "How long requests took within the site.", 0.0001, 17, "method"),
		redistributions: to.CountersOf("samya_site_redistributions_total",
			"Redistributions by outcome: applied, no_quorum, no_tokens (acquires refused for want of tokens anywhere), "+
				"transferred, nothing_transferred.",
			"outcome", "applied", "no_quorum", "no_tokens", "transferred", "nothing_transferred"),
		started: to.CountersOf("samya_site_redistributions_started_total", "Redistributions that this site began, by trigger.",
			"trigger", policy.TriggerReasons()...),
		faults:    to.Counter("samya_site_protocol_faults_total", "Messages and values that were refused as impossible."),
		fallbacks: to.Counter("samya_forecast_fallbacks_total", "Forecasts that were not finite, and that the newest demand stood in for."),
		dropped: to.Counter("samya_forecast_dropped_total",
			"Stored states of forecasting models that could not be taken up: damaged, or of another setting."),
		audits: to.CountersOf("samya_site_audits_total",
			"Audits of entities of which less than nothing seemed to be out: begun here, and those of them that found a surplus.",
			"outcome", "begun", "found"),
		leases: to.CountersOf("samya_site_lease_events_total",
			"What became of leases of this site: granted, renewed, committed, expired, returned (given back before the time was up).",
			"event", "granted", "renewed", "committed", "expired", "returned"),
		asked: to.Counter("samya_site_claims_total",
			"Requests answered of which earlier attempts may have run at other sites, which are asked."),
		crowded: to.Counter("samya_site_tenant_refusals_total",
			"Requests refused as the table of requests is nearly full and their tenant has an equal part of it."),
		keysDropped: to.Counter("samya_site_keys_dropped_total",
			"Times that keys of a template were dropped before they had all their tokens, as memory was short."),
		verdicts: to.CountersOf("samya_site_claim_answers_total",
			"What other sites answered: never_ran, did_run, forgotten (the records that would tell are no longer kept: "+
				"tokens of a release stay out), given_up (a member was away for too long: as forgotten).",
			"verdict", verdictName(message.NeverRan), verdictName(message.DidRun), verdictName(message.Forgotten), givenUp),
		batch:    to.Histogram("samya_site_commit_requests", "Requests that one commit made durable.", 1, 12),
		commit:   to.Histogram("samya_site_commit_seconds", "How long one commit took.", 0.0001, 15),
		reads:    to.Counters("samya_site_reads_total", "Reads of one entity, by consistency: local or bounded.", "consistency"),
		states:   to.Counter("samya_site_watch_states_total", "States told to those that watch entities."),
		batches:  to.Histogram("samya_site_batch_operations", "Operations in a batch.", 1, 15),
		streamed: to.Histogram("samya_site_stream_calls", "Operations in a message of a stream from its caller.", 1, 15),
		replies:  to.Histogram("samya_site_stream_replies", "Answers in a message of a stream to its caller.", 1, 15),
	}
	m.acquires, m.releases = m.of(samyav1.TokenService_Acquire_FullMethodName), m.of(samyav1.TokenService_Release_FullMethodName)
	m.of(samyav1.TokenService_Batch_FullMethodName)
	m.requests.WithLabelValues(samyav1.TokenService_Stream_FullMethodName, "OK")
	if s.access != nil {
		to.Register(s.access)
	}
	if node, ok := s.cfg.Nodes.(prometheus.Collector); ok {
		to.Register(node)
	}
	to.Register(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		&gauges{site: s}, &partitionMetrics{site: s}, &entityMetrics{chosen: s.cfg.MetricsEntities, ask: s.page}, s.cfg.Build.Collector())
	if err := to.Err(); err != nil {
		panic(err) // two metrics of a name
	}
	return m
}

// Committed implements engine.Observer.
func (m *metrics) Committed(requests int, took time.Duration) {
	m.batch.Observe(float64(requests))
	m.commit.Observe(took.Seconds())
}

// Happened implements engine.Observer.
func (s *Site) Happened(e event.Event) {
	m := s.metrics
	switch e.Kind {
	case event.RedistributionStarted:
		m.started.WithLabelValues(e.Trigger).Inc()
	case event.RedistributionApplied:
		outcome := "applied"
		if e.Variant == policy.Direct {
			outcome = "transferred"
		}
		m.redistributions.WithLabelValues(outcome).Inc()
	case event.RedistributionFailed:
		if e.Variant == policy.Direct {
			m.redistributions.WithLabelValues("nothing_transferred").Inc()
			return
		}
		m.redistributions.WithLabelValues("no_quorum").Inc()
	case event.GaveUp:
		m.redistributions.WithLabelValues("no_tokens").Inc()
	case event.SitesChanged:
		s.resite(&e)
	case event.Serving:
		tellHealth(s, healthv1.HealthCheckResponse_SERVING)
		s.log.Info("the site serves")
	case event.AuditBegun:
		m.audits.WithLabelValues("begun").Inc()
	case event.SurplusFound:
		m.audits.WithLabelValues("found").Inc()
		s.log.Warn("more of an entity was released than acquired; the surplus is set aside", "entity", e.Entity)
	case event.LeaseGranted:
		m.leases.WithLabelValues("granted").Inc()
	case event.LeaseRenewed:
		m.leases.WithLabelValues("renewed").Inc()
	case event.LeaseCommitted:
		m.leases.WithLabelValues("committed").Inc()
	case event.LeaseExpired:
		m.leases.WithLabelValues("expired").Inc()
	case event.LeaseReturned:
		m.leases.WithLabelValues("returned").Inc()
	case event.ClaimMade:
		m.asked.Inc()
	case event.ClaimAnswered:
		m.verdicts.WithLabelValues(verdictName(e.Verdict)).Inc()
	case event.TenantRefused:
		m.crowded.Inc()
	case event.KeysDropped:
		m.keysDropped.Inc()
	case event.ClaimGivenUp:
		m.verdicts.WithLabelValues(givenUp).Inc()
	case event.ClaimsFull:
		s.log.Warn("too many requests wait for a member to answer; repeats are refused until the oldest can be given up",
			"member", string(e.Site))
	case event.CreatedWithout:
		s.log.Warn("an entity was created while a member is out of reach; the member's share of the limit is of no use until it is back",
			"entity", e.Entity, "member", string(e.Site))
	case event.ForecastFellBack:
		m.fallbacks.Add(float64(e.Count))
	case event.ForecastDropped:
		m.dropped.Add(float64(e.Count))
		s.log.Warn("a stored forecast could not be taken up, it is learnt anew", "entity", e.Entity)
	case event.BooksBroken:
		s.log.Error("a balance is broken: the entity is halted, with all in its tree, until the site restarts", "entity", e.Entity, "error", e.Err)
	case event.VersionKnown:
		s.speaks.Store(new(e.Version))
		s.log.Info("the version of the cluster is known", "version", uint32(e.Version.Cluster), "decided", e.Version.Begun)
	case event.ProtocolFault:
		m.faults.Inc()
		s.log.Warn("the protocol refused something", "entity", e.Entity, "error", e.Err)
	}
}

// givenUp stands for a verdict that a member never gave.
const givenUp = "given_up"

func verdictName(v message.ClaimVerdict) string {
	switch v {
	case message.NeverRan:
		return "never_ran"
	case message.DidRun:
		return "did_run"
	}
	return "forgotten"
}

// Committed implements engine.Observer.
func (s *Site) Committed(requests int, took time.Duration) { s.metrics.Committed(requests, took) }

// count is the interceptor that counts and times unary calls. It looks up the counter
// of successful calls once a method, not once a call.
func (m *metrics) count(
	ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler,
) (any, error) {
	began := time.Now()
	resp, err := handler(ctx, req)
	m.one(m.of(info.FullMethod), began, err, m.traces.Current(ctx))
	return resp, err
}

// one counts and times a call of a method. of is nil unless the call's trace is recorded.
func (m *metrics) one(method *methodMetrics, began time.Time, err error, of *spanctx.Context) {
	m.traces.Observe(method.latency, time.Since(began).Seconds(), of)
	if err != nil {
		m.requests.WithLabelValues(method.name, string(apierr.ReasonOf(err))).Inc()
		return
	}
	method.done.Inc()
}

// publicAPI begins the names of all methods that clients call.
const publicAPI = "/samya.v1."

// countStream is the interceptor that counts clients' streams when they end.
func (m *metrics) countStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	err := handler(srv, stream)
	if !strings.HasPrefix(info.FullMethod, publicAPI) {
		return err
	}
	reason := "OK"
	if err != nil {
		reason = string(apierr.ReasonOf(err))
	}
	m.requests.WithLabelValues(info.FullMethod, reason).Inc()
	return err
}

// methodMetrics are the metrics of a method.
type methodMetrics struct {
	name    string
	done    prometheus.Counter
	latency prometheus.Observer
}

func (m *metrics) of(method string) *methodMetrics {
	if found, ok := m.methods.Load(method); ok {
		return found.(*methodMetrics)
	}
	made, _ := m.methods.LoadOrStore(method, &methodMetrics{
		name: method, done: m.requests.WithLabelValues(method, "OK"), latency: m.latency.WithLabelValues(method),
	})
	return made.(*methodMetrics)
}

// tally counts operations of batches and streams like separate calls: by the same
// methods and reasons.
type tally struct {
	*metrics
	now                time.Time
	acquired, released int
}

// tally begins to count n operations that are answered together. It observes n in size.
func (m *metrics) tally(size prometheus.Observer, n int) tally {
	size.Observe(float64(n))
	return tally{metrics: m, now: time.Now()}
}

// count counts an operation that began at began. A nil err means success.
func (t *tally) count(o *operation, began time.Time, err error) {
	method, done := t.acquires, &t.acquired
	if o.isRelease {
		method, done = t.releases, &t.released
	}
	if took := t.now.Sub(began).Seconds(); o.traced == nil {
		method.latency.Observe(took)
	} else {
		t.traces.Observe(method.latency, took, &o.Own)
	}
	if err != nil {
		t.requests.WithLabelValues(method.name, string(apierr.ReasonOf(err))).Inc()
		return
	}
	*done++
}

// end adds up the successful operations.
func (t *tally) end() {
	t.acquires.done.Add(float64(t.acquired))
	t.releases.done.Add(float64(t.released))
}

// gauges asks the core for its state whenever metrics are collected.
type gauges struct{ site *Site }

var (
	descEntities = prometheus.NewDesc("samya_site_entities", "Entities.", nil, nil)
	descKeys     = prometheus.NewDesc("samya_site_keys", "Keys of templates that need memory: used lately, and without all their tokens.", nil, nil)
	descHalted   = prometheus.NewDesc("samya_site_entities_halted", "Entities that are halted until the site restarts, as a balance is broken.", nil, nil)
	descWaiting  = prometheus.NewDesc("samya_site_waiting", "Acquires that wait for tokens.", nil, nil)
	descWaited   = prometheus.NewDesc("samya_site_waited_total", "Acquires that had to wait for tokens.", nil, nil)
	descInbox    = prometheus.NewDesc("samya_site_inbox", "Inputs that wait to be handled.", nil, nil)
	descClaims   = prometheus.NewDesc("samya_site_claims", "Requests about which other members have not answered yet.", nil, nil)
	descSurplus  = prometheus.NewDesc("samya_site_surplus_tokens", "Tokens released and never acquired, kept out of circulation, as known here.", nil, nil)
	descWritten  = prometheus.NewDesc("samya_site_written_off_tokens", "Tokens that sites lost for good held, kept out of circulation until the entity is reconciled, as known here.", nil, nil)
	descLeases   = prometheus.NewDesc("samya_site_leases", "Leases that have not ended.", nil, nil)
	descRequests = prometheus.NewDesc("samya_site_requests_remembered", "Requests remembered for repeats.", nil, nil)
	descChanges  = prometheus.NewDesc("samya_site_changes_pending", "Changes of the catalogue not yet decided.", nil, nil)
	descMode     = prometheus.NewDesc("samya_site_mode", "The protocol mode in force; 1 at the one that is.", []string{"mode"}, nil)
	descVersion  = prometheus.NewDesc("samya_site_mode_version", "Changes of the protocol mode decided; 0: the flag stands.", nil, nil)
	descWatchers = prometheus.NewDesc("samya_site_watchers", "Callers that wait for an entity to change.", nil, nil)
	descMembers  = prometheus.NewDesc("samya_site_members", "Members of the cluster, this site among them, as known here.", nil, nil)
	descBehind   = prometheus.NewDesc("samya_site_entities_behind", "Entities that have not adopted the present voters yet, as known here.", nil, nil)
	descSeats    = prometheus.NewDesc("samya_site_seats", "Sites that the cluster has or has had, by their state, as known here.", []string{"state"}, nil)
	descCluster  = prometheus.NewDesc("samya_site_cluster_version", "The version of the cluster, as known here.", nil, nil)
	descBuild    = prometheus.NewDesc("samya_site_build_version", "The newest version that the site's build speaks.", nil, nil)
	descRefused  = prometheus.NewDesc("samya_site_peers_refused", "Other members that this site refuses to work with, or that refuse it: of a version too far apart, or another cluster.", nil, nil)
	descPeers    = prometheus.NewDesc("samya_site_peers_connected", "Other members that this site has a link to.", nil, nil)

	descBacklog     = prometheus.NewDesc("samya_site_log_bytes", "Bytes of the log that are not carried over to site.db: what a restart after a crash reads.", nil, nil)
	descCheckpoints = prometheus.NewDesc("samya_site_checkpoints_total", "How often the log was carried over to site.db.", nil, nil)
	descCheckpoint  = prometheus.NewDesc("samya_site_checkpoint_seconds", "How long that took the last time, with the rests in between.", nil, nil)
)

// Describe implements prometheus.Collector.
func (g *gauges) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descEntities, descKeys, descHalted, descWaiting, descWaited, descInbox, descRequests, descLeases, descClaims, descSurplus, descWritten, descChanges, descMembers, descBehind, descSeats, descPeers, descWatchers, descMode, descVersion,
		descCluster, descBuild, descRefused, descBacklog, descCheckpoints, descCheckpoint,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (g *gauges) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v int) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v))
	}
	gauge(descInbox, g.site.engine.Waiting())
	gauge(descPeers, len(g.site.links.Connected()))
	gauge(descRefused, len(g.site.links.Refusals()))
	speaks := g.site.speaks.Load()
	gauge(descCluster, int(speaks.Cluster))
	gauge(descBuild, int(speaks.Newest))
	log := g.site.store.Stats()
	gauge(descBacklog, int(log.Backlog))
	ch <- prometheus.MustNewConstMetric(descCheckpoints, prometheus.CounterValue, float64(log.Checkpoints))
	ch <- prometheus.MustNewConstMetric(descCheckpoint, prometheus.GaugeValue, log.LastCheckpoint.Seconds())
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	st, err := g.site.engine.Status(ctx)
	if err != nil {
		return
	}
	gauge(descEntities, st.Entities)
	gauge(descKeys, st.Keys)
	gauge(descHalted, st.Halted)
	gauge(descWaiting, st.Waiting)
	ch <- prometheus.MustNewConstMetric(descWaited, prometheus.CounterValue, float64(st.Waited))
	gauge(descRequests, st.Requests)
	gauge(descLeases, st.Leases)
	gauge(descClaims, st.Claims)
	ch <- prometheus.MustNewConstMetric(descSurplus, prometheus.GaugeValue, float64(st.Surplus))
	ch <- prometheus.MustNewConstMetric(descWritten, prometheus.GaugeValue, float64(st.WrittenOff))
	gauge(descChanges, st.Changes)
	gauge(descMembers, st.Members)
	gauge(descBehind, st.Behind)
	gauge(descWatchers, st.Watchers)
	for _, mode := range policy.ProtocolNames() {
		in := 0.
		if mode == st.Mode.Protocol() {
			in = 1
		}
		ch <- prometheus.MustNewConstMetric(descMode, prometheus.GaugeValue, in, mode)
	}
	gauge(descVersion, int(st.Mode.Decided.Version))
	members, err := g.site.roster(ctx)
	if err != nil {
		return
	}
	seats := make(map[string]int)
	for i := range members.Sites {
		seats[members.Sites[i].State]++
	}
	for state := range memberStates {
		ch <- prometheus.MustNewConstMetric(descSeats, prometheus.GaugeValue, float64(seats[state]), state)
	}
}
