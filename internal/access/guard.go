package access

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/samya-db/samya/internal/reload"
	"github.com/samya-db/samya/internal/tlsconf"
)

// pollInterval is the time between two looks at the access file.
const pollInterval = 10 * time.Second

// refusedPerSecond bounds the refused changes of a caller that the audit log tells of in
// a second. All callers without valid credentials share the bound.
const refusedPerSecond = 10

// maxFile bounds the size of a file, in bytes.
const maxFile = 64 << 20

// Config configures a Guard. The zero Config lets everybody do everything.
type Config struct {
	// File is the access file; empty for none.
	File string
	// Audit is the audit log that changes are written to; empty for none.
	Audit string
	// TLS has verified the certificates of callers; nil without TLS.
	TLS *tlsconf.Store
	// Relays: app managers may make all calls, as at a site. They have checked their own
	// callers against the rules.
	Relays bool
	// Limits bound the calls of callers.
	Limits Limits
	// Logger gets the log; nil: none.
	Logger *slog.Logger
	// Now returns the time; nil: time.Now.
	Now func() time.Time
}

// Guard stands before the calls of all listeners of a process.
type Guard struct {
	cfg     Config
	log     *slog.Logger
	now     func() time.Time
	policy  atomic.Pointer[policy]
	buckets *buckets
	slots   chan struct{}
	audit   *auditLog
	// refusals bounds the lines of the audit log about refused changes.
	refusals *buckets
	metrics  *metrics

	mu      sync.Mutex
	failing reload.Fault
	// held are the calls that last.
	held map[*hold]struct{}
	// jwts are the verified JWTs; jwtsBy is the policy that verified them.
	jwts   map[string]verified
	jwtsBy *policy
}

// verified is a verified JWT.
type verified struct {
	caller *principal
	until  time.Time
}

// Open reads the access file and opens the audit log. Close must follow.
func Open(cfg Config) (*Guard, error) {
	g := &Guard{
		cfg: cfg, log: cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler)), now: cfg.Now,
		held: make(map[*hold]struct{}), jwts: make(map[string]verified), metrics: newMetrics(),
	}
	if g.now == nil {
		g.now = time.Now
	}
	g.refusals = newBuckets(refusedPerSecond, g.now)
	g.buckets = newBuckets(cfg.Limits.Rate, g.now)
	if n := cfg.Limits.InFlight; n > 0 {
		g.slots = make(chan struct{}, n)
	}
	if cfg.File != "" {
		p, err := readPolicy(cfg.File, nil)
		if err != nil {
			return nil, err
		}
		g.policy.Store(p)
	}
	if cfg.Audit != "" {
		var err error
		if g.audit, err = openAudit(cfg.Audit); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// Close closes the audit log. Changes are refused from then on.
func (g *Guard) Close() error { return g.audit.close() }

// Run takes up changes of the access file and of the keys it names until ctx ends. It
// ends calls that their callers may not make any more.
func (g *Guard) Run(ctx context.Context) { reload.Every(ctx, pollInterval, g.Look) }

// Look looks at the files once. If the files are bad, the policy stays as it was.
func (g *Guard) Look() {
	defer g.sweep()
	before := g.policy.Load()
	if before == nil {
		return
	}
	p, err := readPolicy(g.cfg.File, before)
	fresh := g.failing.Fresh(err)
	switch {
	case err != nil:
		g.metrics.reloads.WithLabelValues("failed").Inc()
		if fresh {
			g.log.Error("the access file was not read again; what was read before stands", slog.Any("error", err))
		}
	case p != before:
		g.policy.Store(p)
		g.metrics.reloads.WithLabelValues("done").Inc()
		g.log.Info("the access file was read again", slog.Int("callers", len(p.tokens)+len(p.certs)))
	}
}

// hold is a call that lasts: the guard asks again and again whether its caller may go on.
type hold struct {
	again  func() error
	cancel context.CancelCauseFunc
}

// streaming returns a context that ends once again returns an error, with this error as its
// cause.
func (g *Guard) streaming(ctx context.Context, again func() error) (_ context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	h := &hold{again, cancel}
	g.mu.Lock()
	g.held[h] = struct{}{}
	g.mu.Unlock()
	return ctx, func() {
		g.mu.Lock()
		delete(g.held, h)
		g.mu.Unlock()
		cancel(nil)
	}
}

// sweep ends the calls that their callers may not make any more.
func (g *Guard) sweep() {
	g.mu.Lock()
	held := make([]*hold, 0, len(g.held))
	for h := range g.held {
		held = append(held, h)
	}
	g.mu.Unlock()
	for _, h := range held {
		if err := h.again(); err != nil {
			h.cancel(err)
		}
	}
}
