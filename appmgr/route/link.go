package route

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/stats"
	"google.golang.org/protobuf/proto"

	"github.com/samya-db/samya/internal/access"
	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/frames"
	"github.com/samya-db/samya/internal/health"
	"github.com/samya-db/samya/internal/mux"
	"github.com/samya-db/samya/internal/tlsconf"
	"github.com/samya-db/samya/internal/tracing"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// maxAnswer bounds a site's answer, in bytes: a page of a thousand entities with the
// longest names is far below it.
const maxAnswer = 4 << 20

// A connection that is silent for quietTime is probed, and given up if nothing comes back
// within keepaliveTime. The site's machine may be gone without a word.
const (
	quietTime     = 10 * time.Second
	keepaliveTime = 5 * time.Second
)

// The bounds of what a site may send ahead of a reader, in bytes.
const (
	streamBytes = 1 << 20
	connBytes   = 4 << 20
)

// fate is the fate of a call to a site.
type fate = mux.Fate

const (
	// unsent: provably the site began nothing.
	unsent = mux.Unsent
	// lost: the call may have reached the site, and no answer came.
	lost = mux.Lost
	// answered: the site itself answered, with a response or a status.
	answered = mux.Answered
)

// link is the connection to a site at an address. Acquires and releases go over a single
// stream, all else by unary calls.
type link struct {
	info   SiteInfo
	delay  time.Duration // injected, each way
	hold   func(context.Context, time.Duration) error
	conn   *grpc.ClientConn
	stream *mux.Mux
	calls  fateCounters
	// local is the site of the router's own process; nil for any other.
	local *Local
	// traces makes spans; nil: none.
	traces *tracing.Traces
	// changed is the router's count of changes to the order of links.
	changed *atomic.Uint64
	// over ends, by its function end, once the site listens elsewhere.
	over context.Context
	end  context.CancelFunc

	mu          sync.Mutex
	health      health.Health
	skew        time.Duration // by how much the site's clock is ahead
	drainsUntil time.Time     // until when the site's own word that it drains holds
	outstanding int
	retired     bool
	up          chan struct{}      // closed when the site is found to be down
	stop        context.CancelFunc // ends the probes
}

// newLink makes a link, which connects in the background.
func (r *Router) newLink(info SiteInfo) (*link, error) {
	local, dial, secured := r.cfg.local(info.Name), r.cfg.Dial, r.cfg.credentials(info.Name)
	delay := max(0, r.cfg.Latency(r.cfg.Region, info.Region))
	if local != nil {
		dial, secured, delay = local.dial, insecure.NewCredentials(), 0
	}
	conn, err := grpc.NewClient("passthrough:///"+info.Address, append(r.cfg.Traces.Dial(),
		grpc.WithTransportCredentials(secured),
		grpc.WithContextDialer(dial),
		grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(),
		grpc.WithDisableRetry(),
		grpc.WithIdleTimeout(0),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: quietTime, Timeout: keepaliveTime, PermitWithoutStream: true}),
		grpc.WithStaticStreamWindowSize(streamBytes), grpc.WithStaticConnWindowSize(connBytes),
		grpc.WithStatsHandler(watcher{}),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(false), grpc.MaxCallRecvMsgSize(maxAnswer)),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
			MinConnectTimeout: 2 * time.Second,
		}))...)
	if err != nil {
		return nil, err
	}
	conn.Connect()
	var streams grpc.ClientConnInterface = conn
	if local == nil {
		streams = frames.New(conn, frames.Options{
			Dial: func(ctx context.Context) (net.Conn, string, error) {
				c, err := dial(ctx, info.Address)
				return c, "site/" + info.Name, err
			},
			Security: secured, Authority: info.Address, MaxMessage: maxAnswer,
		})
	}
	l := &link{
		info: info, delay: delay, hold: r.cfg.Hold, conn: conn, stream: mux.New(streams, mux.Options{}), local: local, traces: r.cfg.Traces,
		calls: r.metrics.siteFates(info.Name), changed: &r.changed, up: make(chan struct{}),
	}
	l.over, l.end = context.WithCancel(context.Background())
	return l, nil
}

// credentials returns the credentials of a connection to a site. The connection is
// refused unless the certificate at its other end names this site.
func (c *Config) credentials(site string) credentials.TransportCredentials {
	if c.TLS == nil {
		return insecure.NewCredentials()
	}
	return c.TLS.ClientCredentials(tlsconf.Identity{Kind: tlsconf.Site, Name: site})
}

// life returns a channel that is closed when the site is found to be down.
func (l *link) life() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.up
}

// enter counts a call in. It reports false if limit calls are under way or the link is
// retired.
func (l *link) enter(limit int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.retired || l.outstanding >= limit {
		return false
	}
	l.outstanding++
	return true
}

// leave counts a call out.
func (l *link) leave() {
	l.mu.Lock()
	l.outstanding--
	// Whoever cuts the link closes it.
	done := l.retired && l.outstanding == 0 && l.over.Err() == nil
	l.mu.Unlock()
	if done {
		l.close()
	}
}

// retire ends the probes, takes no further call and closes the connection once the calls
// under way have ended. Closing it earlier would make their outcomes unknown.
func (l *link) retire() {
	l.mu.Lock()
	done := !l.retired && l.outstanding == 0
	l.retired = true
	l.mu.Unlock()
	l.stop()
	if done {
		l.close()
	}
}

// cut ends the probes and the calls under way, and takes no further call: the site listens
// elsewhere, and nothing that waits here gets an answer. The outcomes are as after a
// connection that broke. The caller closes the link.
func (l *link) cut() {
	l.mu.Lock()
	l.retired = true
	l.mu.Unlock()
	l.end()
	l.stop()
}

func (l *link) close() {
	// Neither can fail in a way that matters: there are no calls that could be answered.
	_ = l.stream.Close()
	_ = l.conn.Close()
}

// update changes the health under the lock.
func (l *link) update(f func(*health.Health)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.health
	f(&l.health)
	if l.health != was {
		l.changed.Add(1)
	}
	switch {
	case l.health.Reach == health.Down && was.Reach != health.Down:
		close(l.up)
	case l.health.Reach != health.Down && was.Reach == health.Down:
		l.up = make(chan struct{})
	}
}

// candidate returns the link in the form that order takes. The site of the router's own
// process is never down: it says by itself whether it serves, and a probe may be old.
func (l *link) candidate(region string, limit int) candidate {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := candidate{
		name: l.info.Name, here: l.local != nil, home: l.info.Region == region,
		full: l.outstanding >= limit, health: l.health, clockOff: clockOff(l.skew), drainsUntil: l.drainsUntil,
	}
	if c.here {
		c.health.Reach, c.health.Idle = health.Up, false
	}
	return c
}

// full reports whether limit calls are under way.
func (l *link) full(limit int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.outstanding >= limit
}

// invoke makes a call and returns its fate. The error is nil only if the fate is
// answered.
func (l *link) invoke(ctx context.Context, method string, req, resp proto.Message, opts ...grpc.CallOption) (fate, error) {
	a := deadline{ctx: ctx}
	if err := l.holdBack(&a); err != nil {
		return unsent, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.over, cancel)()
	a.ctx = ctx
	w := &watch{}
	err := l.conn.Invoke(access.Relay(context.WithValue(ctx, watchKey{}, w)), method, req, resp, opts...)
	f := w.fate(err)
	if perr := l.holdBack(&a); perr != nil && f == answered {
		return lost, perr
	}
	return f, err
}

// invokeWhile is invoke within the deadline of a try.
func (l *link) invokeWhile(a deadline, method string, req, resp proto.Message) (fate, error) {
	ctx, cancel := context.WithCancelCause(a.ctx)
	defer cancel(nil)
	if !a.by.IsZero() {
		var stop context.CancelFunc
		ctx, stop = context.WithDeadline(ctx, a.by)
		defer stop()
	}
	if a.gone != nil {
		go func() {
			select {
			case <-a.gone:
				cancel(mux.ErrGone)
			case <-ctx.Done():
			}
		}()
	}
	return l.invoke(ctx, method, req, resp)
}

// operate makes an acquire or a release and returns its fate. The error is nil only if
// the fate is answered.
func (l *link) operate(a deadline, op *samyav1.Operation) (*samyav1.Result, fate, error) {
	if err := l.holdBack(&a); err != nil {
		return nil, unsent, err
	}
	result, f, err := l.stream.DoTraced(a.ctx, op, a.by, a.gone, l.traces.Caller(a.ctx))
	if l.delay > 0 {
		// The answer may come too late because of the injected delay.
		if perr := l.holdBack(&a); perr != nil && f == answered {
			return nil, lost, perr
		}
	}
	if e, ok := errors.AsType[*apierr.Error](err); ok && f == unsent {
		// The operation is at fault, not the site.
		return nil, answered, e
	}
	if failure := result.GetFailure(); failure != nil {
		return nil, answered, apierr.FromFailure(failure)
	}
	return result, f, err
}

// shortDelay is the longest delay that is held exactly. A longer delay may end with the try.
const shortDelay = 5 * time.Millisecond

// holdBack waits for the injected delay, or until the try is over. It returns why the try is
// over, or nil.
func (l *link) holdBack(a *deadline) error {
	if l.hold == nil || l.delay <= 0 || l.delay > shortDelay {
		return a.pause(l.delay)
	}
	if err := l.hold(a.ctx, l.delay); err != nil {
		return err
	}
	return a.over()
}

// Pause waits for d or until ctx ends, and returns the error of ctx.
func Pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// watch records how far a call got.
type watch struct{ headerOut, trailerIn atomic.Bool }

type watchKey struct{}

// fate returns the fate of the call that returned err. gRPC reports OutHeader as soon as
// the headers are queued, before any of the message can be on the wire: without
// OutHeader, nothing left. It reports InTrailer when the server's own status arrived:
// with InTrailer, an error is the server's. gRPC sends a call again by itself only if the
// server's HTTP/2 layer says that the call was never looked at.
func (w *watch) fate(err error) fate {
	switch {
	case err == nil || w.trailerIn.Load():
		return answered
	case w.headerOut.Load():
		return lost
	}
	return unsent
}

// watcher is the stats.Handler that fills the watch in a call's context.
type watcher struct{}

// TagRPC implements stats.Handler.
func (watcher) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC implements stats.Handler.
func (watcher) HandleRPC(ctx context.Context, s stats.RPCStats) {
	w, ok := ctx.Value(watchKey{}).(*watch)
	if !ok {
		return
	}
	switch s.(type) {
	case *stats.OutHeader:
		w.headerOut.Store(true)
	case *stats.InTrailer:
		w.trailerIn.Store(true)
	}
}

// TagConn implements stats.Handler.
func (watcher) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (watcher) HandleConn(context.Context, stats.ConnStats) {}
