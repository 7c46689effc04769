package route

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/proto"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/health"
	"github.com/samya-db/samya/internal/seats"
	"github.com/samya-db/samya/internal/tlsconf"
	"github.com/samya-db/samya/internal/tracing"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// MaxSites bounds the sites that the router keeps connections to.
const MaxSites = 128

// Router knows the sites and relays calls to them.
type Router struct {
	cfg     Config
	metrics *metrics
	log     *slog.Logger

	mu      sync.Mutex
	links   map[string]*link // by site name
	members Members          // the member set as a site last told it
	loops   sync.WaitGroup
	// seats are the seats as sites told them; reseated is closed at their next change.
	seats    *seats.Book
	reseated chan struct{}

	// changed counts the changes of links, of their health and of seats.
	changed atomic.Uint64
	ranked  atomic.Pointer[ranking]
}

// New makes a router, which knows no site before Run.
func New(cfg Config) (*Router, error) {
	m, err := newMetrics(cfg.Registry)
	if err != nil {
		return nil, err
	}
	return &Router{cfg: cfg, metrics: m, log: cfg.Logger, links: map[string]*link{}, reseated: make(chan struct{})}, nil
}

// Config configures a router. All fields but Local, Hold, TLS and Traces are set.
type Config struct {
	// Region is where the app manager stands. Cluster is its cluster.
	Region, Cluster string
	// Directory finds the sites, and Dial connects to them.
	Directory Directory
	Dial      func(ctx context.Context, addr string) (net.Conn, error)
	// Local is the site in whose process the router stands; nil: none.
	Local *Local
	// Latency returns the delay to add to each way to a site.
	Latency func(fromRegion, toRegion string) time.Duration
	// Hold waits for that delay if it is short, or until the context ends; nil: by a timer.
	Hold func(ctx context.Context, d time.Duration) error
	// MaxPerSite bounds the calls under way to each site.
	MaxPerSite int
	// ProbeInterval is how often each site's round trip is measured, and ProbeTimeout
	// bounds the measurement. TryTime is how long a site may take for a movement, beyond
	// its wait, before another site is asked.
	ProbeInterval, ProbeTimeout, TryTime time.Duration
	// RepeatTime is how long a movement may be repeated beyond its wait.
	RepeatTime time.Duration
	// TLS encrypts the links; nil: in clear.
	TLS *tlsconf.Store
	// Registry gets the metrics, Logger the log.
	Registry prometheus.Registerer
	Logger   *slog.Logger
	// Traces makes spans; nil: none.
	Traces *tracing.Traces
}

// Run follows the directory and the seats, and probes the sites until ctx ends, then
// closes the links.
func (r *Router) Run(ctx context.Context) {
	r.loops.Go(func() { r.keepMembers(ctx) })
	for {
		changed := r.cfg.Directory.Changed()
		known, reseated := r.Seats()
		r.follow(ctx, within(r.cfg.Directory.Sites(), known))
		select {
		case <-ctx.Done():
			r.follow(ctx, nil)
			r.loops.Wait()
			return
		case <-changed:
		case <-reseated:
		}
	}
}

func (r *Router) link(site string) *link {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.links[site]
}

// Order returns the names of the sites that may take a call, in the order in which they are
// tried.
func (r *Router) Order() []string { return order(r.candidates(), time.Now()) }

// State returns a site as the router sees it; false if it has no link to the site.
func (r *Router) State(site string) (SiteInfo, health.Health, bool) {
	l := r.link(site)
	if l == nil {
		return SiteInfo{}, health.Health{}, false
	}
	return l.info, l.state(), true
}

// At makes c at a site and at no other. It does not wait for a site known to be down.
func (r *Router) At(ctx context.Context, site string, c Call) error {
	l := r.link(site)
	if l == nil || l.state().Reach == health.Down {
		return apierr.Unreachable(site)
	}
	_, err := r.try(ctx, c, site, false)
	return err
}

// Reachable reports whether any site answers.
func (r *Router) Reachable() bool {
	return slices.ContainsFunc(r.candidates(), func(c candidate) bool { return c.health.Reach == health.Up })
}

// Call is a request to be relayed.
type Call struct {
	// The method, its request and the answer to fill in; unset for acquires and releases
	// that move tokens.
	Method    string
	Req, Resp proto.Message
	// Read: the request changes nothing, so it may be sent to a second site whatever
	// happened at the first.
	Read bool
	// Changes, if set, says that the sites decide the request together, and only once by
	// its id: another site may be asked for the decision.
	Changes *Change
	// Idle: sites that answer and do not serve are asked after all others.
	Idle bool
	// Site, if set, is the only site that may answer; first, if set, is asked before
	// the others.
	Site, First string
	// By is the field that names the site; empty: "site".
	By string
	// Until, if set, is when the caller's time is up, unless its context ends before. It
	// is used only with moves.
	Until time.Time
	// RequestID and entity are added to errors.
	RequestID, Entity string
	// Moves is set for acquires and releases that move tokens, which are numbered.
	Moves *Movement
}

// send makes the call at a site and returns its fate. The error is nil only if the fate
// is answered.
func (c *Call) send(a deadline, l *link) (f fate, err error) {
	switch {
	case c.Moves == nil:
		return l.invoke(a.ctx, c.Method, c.Req, c.Resp)
	case c.Moves.Batch != nil && l.local != nil:
		c.Moves.Granted, f, err = inside(a, c.Moves.Batch, l.local.Calls.Batch)
		return f, err
	case c.Moves.Batch != nil:
		c.Moves.Granted = new(samyav1.BatchResponse)
		return l.invokeWhile(a, samyav1.TokenService_Batch_FullMethodName, c.Moves.Batch, c.Moves.Granted)
	case l.local != nil:
		c.Moves.Result, f, err = l.local.operate(a, c.Moves.Operation)
		return f, err
	}
	c.Moves.Result, f, err = l.operate(a, c.Moves.Operation)
	return f, err
}

// Do relays c to the best site, and on to the next site where that is safe. Its error is
// an *apierr.Error.
func (r *Router) Do(ctx context.Context, c Call) error {
	if c.Site != "" {
		return r.doAt(ctx, c)
	}
	links := r.best(time.Now()).of(&c)
	if c.First != "" {
		first, _ := r.seatsNow().Home(c.First)
		if i := slices.IndexFunc(links, func(l *link) bool { return l.info.Name == first }); i > 0 {
			links = bringForward(links, i, 0)
		}
	}
	full := func(l *link) bool { return l.full(r.cfg.MaxPerSite) }
	var last *apierr.Error
	lack := 0       // sites without the tokens
	passed := false // a site that is full
	for i := 0; i < len(links); i++ {
		l := links[i]
		if full(l) {
			passed = true
			continue
		}
		if h := l.state(); i > 0 && l.local == nil && h.Reach == health.Down && (!c.Idle || !h.Idle) {
			continue
		}
		c.Moves.next()
		again, err := r.try(ctx, c, l.info.Name, slices.ContainsFunc(links[i+1:], func(l *link) bool { return !full(l) }))
		if !again {
			return r.final(c, err)
		}
		e := apierr.From(err)
		if e.Reason == apierr.LeaseMoved {
			links = heirFirst(links, i, e.Site)
		}
		if e.Reason == apierr.OutOfTokens {
			lack++
		}
		last = worth(last, unmoved(e))
	}
	if members := len(r.memberSet().Sites); last != nil && members > 0 && lack >= members {
		last.Elsewhere = false
	}
	if c.Moves != nil && len(c.Moves.indeterminate) > 0 || c.Changes != nil && c.Changes.indeterminate != "" {
		return r.final(c, last)
	}
	if last == nil && passed {
		return r.final(c, apierr.Overload("", time.Second))
	}
	return r.final(c, r.annotate(cmp.Or(last, apierr.Unreachable("")), c, ""))
}

// worth returns the refusal to answer with, of two sites that did nothing; a is nil before
// the first. The nearest site's counts, unless only a later refusal is for overload, or for
// want of tokens: they say when to try again. Among refusals for want of tokens the
// soonest time counts.
func worth(a, b *apierr.Error) *apierr.Error {
	rank := func(e *apierr.Error) int {
		switch {
		case e == nil:
			return 0
		case e.Reason == apierr.OutOfTokens:
			return 3
		case e.Reason == apierr.Overloaded:
			return 2
		}
		return 1
	}
	switch {
	case rank(b) > rank(a):
		return b
	case rank(a) == 3 && rank(b) == 3 && b.RetryAfter > 0 && (a.RetryAfter == 0 || b.RetryAfter < a.RetryAfter):
		a.RetryAfter = b.RetryAfter
	}
	return a
}

// doAt relays c to the site that c names, or to the heirs of a site that leaves, and to no
// other.
func (r *Router) doAt(ctx context.Context, c Call) error {
	for range seats.Max {
		if err := r.settleHome(&c); err != nil {
			return r.final(c, r.annotate(apierr.From(err), c, ""))
		}
		if r.link(c.Site) == nil {
			ms, err := r.Members(ctx)
			if err == nil && !ms.has(c.Site) {
				return apierr.Invalid(cmp.Or(c.By, "site"), "no such site")
			}
			return r.final(c, r.annotate(apierr.Unreachable(c.Site), c, c.Site))
		}
		c.Moves.next()
		_, err := r.try(ctx, c, c.Site, false)
		e := apierr.From(err)
		if err == nil || e.Reason != apierr.LeaseMoved {
			return r.final(c, err)
		}
		if e.Site == "" || e.Site == c.Site {
			break
		}
		c.Site = e.Site
	}
	return r.final(c, r.annotate(apierr.Unreachable(""), c, ""))
}

// tryAt makes c at a link. If it fails, again reports whether another site may be tried.
// more tells whether there is another site.
func (r *Router) tryAt(ctx context.Context, c Call, l *link, more bool) (again bool, err error) {
	if !l.enter(r.cfg.MaxPerSite) {
		return true, r.annotate(apierr.Overload(l.info.Name, time.Second), c, l.info.Name)
	}
	defer l.leave()
	if r.cfg.Traces != nil {
		var span trace.Span
		if ctx, span = r.span(ctx, &c, l); span != nil {
			defer func() { tracing.End(span, err) }()
		}
	}
	given := c.deadline(ctx, l, more)
	f, err := c.send(given, l)
	l.calls[f].Inc()
	if err == nil {
		return false, nil
	}
	return r.classify(ctx, given.over(), c, l, f, err)
}

// span begins the span of a try, unless the trace is not recorded. A call over gRPC has a span
// of gRPC's below.
func (r *Router) span(ctx context.Context, c *Call, l *link) (context.Context, trace.Span) {
	if c.Moves == nil && c.Changes == nil {
		return ctx, nil
	}
	ctx, span := r.cfg.Traces.Start(ctx, "samya.route", trace.SpanKindClient, tracing.Site.String(l.info.Name))
	if span != nil && c.Entity != "" {
		span.SetAttributes(tracing.Entity.String(c.Entity))
	}
	if span != nil && c.Moves != nil {
		span.SetAttributes(tracing.Attempt.Int(int(c.Moves.attempt)), tracing.Try.Int(1+len(c.Moves.indeterminate)))
	}
	return ctx, span
}

// classify turns the fate of a failed call into an error, and reports whether another site
// may be tried. It also records the failure in the site's health. over is why the try is
// over, nil if it is not. The caller's time is never up before the try is over.
func (r *Router) classify(ctx context.Context, over error, c Call, l *link, f fate, err error) (again bool, _ error) {
	site, timeUp := l.info.Name, c.over(ctx)
	if f == answered {
		e := apierr.FromGRPC(err)
		if c.clockRefused(e, time.Now()) {
			return true, r.annotate(e, c, site)
		}
		switch e.Reason {
		case apierr.Overloaded:
			l.update(func(h *health.Health) { h.Refused(time.Now(), e.RetryAfter) })
			return true, r.annotate(e, c, site)
		case apierr.ShuttingDown:
			l.update((*health.Health).Broken)
			return true, r.annotate(e, c, site)
		case apierr.Unauthenticated, apierr.PermissionDenied:
			// The site refuses this app manager, not its caller.
			e = apierr.Unreachable(site)
			e.Err = err
			return true, r.annotate(e, c, site)
		case apierr.SiteDraining:
			l.shun(time.Now())
			return true, r.annotate(e, c, site)
		case apierr.LeaseMoved:
			e.Site = cmp.Or(e.Site, r.seatsNow().Heir(site))
			return true, e
		case apierr.SiteUnavailable, apierr.QueueFull:
			return true, r.annotate(e, c, site)
		case apierr.OutOfTokens:
			return e.Elsewhere && timeUp == nil, r.annotate(e, c, site)
		case apierr.DeadlineExceeded:
			// The call reached the site when the try was over, and was not begun.
			return over != nil && timeUp == nil, r.annotate(e, c, site)
		case apierr.OutcomeUnknown, apierr.Canceled:
			return c.indeterminate(site) && timeUp == nil, r.Unknown(c, site, e)
		}
		return false, r.annotate(e, c, site)
	}
	if timeUp != nil {
		// The end of the caller's time says nothing about the site.
		if f != unsent {
			c.indeterminate(site)
		}
		return false, r.outOfTime(c, site, f, timeUp)
	}
	if over == nil {
		l.update((*health.Health).Broken)
	}
	if f == unsent || c.Read {
		e := apierr.Unreachable(site)
		e.Err = err
		return true, r.annotate(e, c, site)
	}
	return c.indeterminate(site), r.Unknown(c, site, err)
}

// indeterminate notes that a try at site may have run, and reports whether another
// site may be tried.
func (c *Call) indeterminate(site string) bool {
	switch {
	case c.Changes != nil:
		c.Changes.indeterminate = site
		return true
	case c.Moves == nil:
		return c.Read
	}
	c.Moves.indeterminate = append(c.Moves.indeterminate, site)
	return c.Moves.owned
}

// outOfTime returns the error of a call that ended with its context.
func (r *Router) outOfTime(c Call, site string, f fate, cause error) *apierr.Error {
	switch {
	case f == unsent || c.Read:
		return r.annotate(apierr.Ended(cause), c, "")
	case errors.Is(cause, context.Canceled):
		e := r.Unknown(c, site, cause)
		e.Reason = apierr.Canceled
		return e
	}
	return r.Unknown(c, site, cause)
}

// Unknown returns the error of a call that may have been executed at site.
func (r *Router) Unknown(c Call, site string, err error) *apierr.Error {
	e := apierr.Unknown(c.RequestID, site, err)
	if c.Read {
		e.Message = fmt.Sprintf("site %q did not answer", site)
	}
	e.Entity = c.Entity
	if c.Moves != nil {
		c.Moves.repeatable(e)
	}
	return e
}

// annotate returns e with the call's request id, entity and site where e has none.
func (r *Router) annotate(e *apierr.Error, c Call, site string) *apierr.Error {
	a := *e
	a.RequestID = cmp.Or(a.RequestID, c.RequestID)
	a.Entity = cmp.Or(a.Entity, c.Entity)
	a.Site = cmp.Or(a.Site, site)
	return &a
}
