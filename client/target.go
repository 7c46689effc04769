package client

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/samya-db/samya/internal/grpccodec"
	"github.com/samya-db/samya/internal/health"
	"github.com/samya-db/samya/internal/mux"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

const (
	// probeTimeout bounds each probe: several times the longest round trip between two
	// regions of the earth.
	probeTimeout = 2 * time.Second
	// keepaliveTime is how often an idle connection is checked; app managers close
	// connections that do so more often than every 10s.
	keepaliveTime, keepaliveTimeout = 20 * time.Second, 5 * time.Second
	// maxAnswer bounds an answer, in bytes.
	maxAnswer = 4 << 20
)

var (
	// errSilent is why the stream of a target that answers no probe is broken off.
	errSilent = errors.New("the target has fallen silent")
	// errOver breaks off the stream of a target after another node has taken over.
	errOver = errors.New("another node runs the site now")
)

// connection is the part of a *grpc.ClientConn that a target needs.
type connection interface {
	grpc.ClientConnInterface
	GetState() connectivity.State
	WaitForStateChange(ctx context.Context, from connectivity.State) bool
	Connect()
	ResetConnectBackoff()
	Close() error
}

// target is an app manager or a site, with its connection and health.
type target struct {
	Target
	home    bool
	conn    connection
	mux     *mux.Mux
	batches atomic.Bool // an answer to a batch told that sessions are known
	changed func()      // tells the client that the health has changed
	// took tells the client that the target is the node that runs a site since a take-over,
	// and reports whether no later take-over of the site is known at a target that answers.
	took func(site string, term int64) bool
	// search has the targets that are down dialled again and again, until its context ends.
	search func(ctx context.Context)

	// learned is the site of a target that the members' list named; empty for a target of
	// the configuration.
	learned string
	moved   bool               // the list names another address of that site by now
	stop    context.CancelFunc // ends what follows the target

	mu sync.Mutex
	// life ends, by the function cut, when nobody answers at the target any more; then the
	// target gets another life.
	life   context.Context
	cut    context.CancelFunc
	health health.Health
	site   string // the site's name; empty: unknown, or an app manager
	known  bool   // it is known whether the target is a site
	// was is the name of the site that the target was last, and term the take-over by which
	// its node ran the site, 0 for none; front: it was an app manager.
	was   string
	term  int64
	front bool
	// drainsUntil is until when the target's own word that it drains holds.
	drainsUntil time.Time
	calls       int       // under way
	ended       uint64    // calls that have ended
	redialled   time.Time // when a call last asked for a connection
	redials     int       // how often one did since any target was last found to be up
	retired     bool      // it takes no more calls, and is closed once none is under way
}

// dial makes a connection, which is set up in the background.
func dial(t Target, c *Config) (connection, error) {
	security := c.Security
	if security == nil {
		security = insecure.NewCredentials()
	}
	more := c.DialOptions
	if c.Token != nil {
		more = append([]grpc.DialOption{grpc.WithPerRPCCredentials(bearer{c.Token, c.Security != nil})}, more...)
	}
	opts := append([]grpc.DialOption{
		grpc.WithTransportCredentials(security),
		grpc.WithDisableServiceConfig(),
		grpc.WithDisableRetry(),
		grpc.WithIdleTimeout(0),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(false), grpc.MaxCallRecvMsgSize(maxAnswer), grpc.ForceCodecV2(grpccodec.Codec())),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepaliveTime, Timeout: keepaliveTimeout, PermitWithoutStream: true}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
			MinConnectTimeout: 2 * time.Second,
		}),
	}, more...)
	return grpc.NewClient(t.Address, opts...)
}

// follow keeps the connection up and measures it until ctx ends.
func (t *target) follow(ctx context.Context, interval time.Duration, random func() float64) {
	refused := 0 // probes in a row that a target has answered otherwise than hoped
	for ctx.Err() == nil {
		state := t.conn.GetState()
		switch state {
		case connectivity.Ready:
			t.probe(ctx)
		case connectivity.Idle:
			t.conn.Connect()
		case connectivity.TransientFailure, connectivity.Shutdown:
			t.update((*health.Health).Broken)
		case connectivity.Connecting:
		}
		// Jitter keeps the probes of many clients apart.
		wait := time.Duration((0.75 + random()/2) * float64(interval))
		if state == connectivity.Ready && t.state().Reach == health.Down {
			// A site that has just begun to listen is about to serve.
			wait = min(wait, redialSoon<<min(refused, 10))
			refused++
		} else {
			refused = 0
		}
		t.rest(ctx, state, wait)
	}
}

// rest waits until the connection leaves a state, for some time at most. It ends early if
// the target is a node of a site and calls hang there: while a node is paused its
// connection stays.
func (t *target) rest(ctx context.Context, state connectivity.State, most time.Duration) {
	ctx, stop := context.WithTimeout(ctx, most)
	defer stop()
	for t.isNode() {
		ended, calls := t.progress()
		step, stop := context.WithTimeout(ctx, hangTime)
		changed := t.conn.WaitForStateChange(step, state)
		stop()
		if changed || ctx.Err() != nil {
			return
		}
		if now, left := t.progress(); calls > 0 && left > 0 && now == ended {
			return
		}
	}
	t.conn.WaitForStateChange(ctx, state)
}

const (
	// hangTime is how long no call may end at a node of a site before the node is probed.
	hangTime = 500 * time.Millisecond
	// searchAfter is how long a probe of a node of a site may take before targets that are
	// down are dialled: one of them may have taken over.
	searchAfter = 250 * time.Millisecond
	// A target that is down is dialled while calls find no other: redialsSoon times every
	// redialSoon, as another node is handed a site within this time, and then every
	// redialEvery. Once any target is up this begins anew.
	redialSoon, redialEvery = 25 * time.Millisecond, 200 * time.Millisecond
	redialsSoon             = 8
)

// progress returns how many calls have ended at the target, and how many are under way.
func (t *target) progress() (ended uint64, calls int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ended, t.calls
}

// redial has a connection that could not be made try again at once, unless a call asked
// for that just before; it returns when to ask again. A node of a site that takes over
// accepts connections from one moment to the next, and gRPC may wait for seconds by then.
func (t *target) redial(now time.Time) (next time.Duration) {
	t.mu.Lock()
	since := now.Sub(t.redialled)
	pause := func() time.Duration {
		if t.redials <= redialsSoon {
			return redialSoon
		}
		return redialEvery
	}
	due := since >= pause()
	if due {
		t.redialled, since = now, 0
		t.redials++
	}
	next = pause() - since
	t.mu.Unlock()
	if due {
		t.conn.ResetConnectBackoff()
	}
	return next
}

// rested has dials begin anew: a target is up.
func (t *target) rested() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.redials = 0
}

// probe measures the round trip and, once per connection, asks whether the target is a
// site.
func (t *target) probe(ctx context.Context) {
	pctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if t.isNode() {
		var searching sync.WaitGroup
		searching.Go(func() {
			if sleep(pctx, searchAfter) {
				t.search(pctx)
			}
		})
		defer searching.Wait()
		defer cancel()
	}
	resp := &healthv1.HealthCheckResponse{}
	began := time.Now()
	fate, err := mux.Invoke(pctx, t.conn, healthv1.Health_Check_FullMethodName, &healthv1.HealthCheckRequest{}, resp)
	rtt := time.Since(began)
	serving := resp.GetStatus() == healthv1.HealthCheckResponse_SERVING || status.Code(err) == codes.Unimplemented
	switch {
	case ctx.Err() != nil:
	case fate == mux.Answered && serving && t.identify(pctx):
		t.update(func(h *health.Health) { h.Answered(rtt) })
	case pctx.Err() != nil && fate != mux.Answered:
		t.update((*health.Health).Late)
		if t.state().Reach == health.Down {
			t.mux.Break(status.Error(codes.Unavailable, errSilent.Error()))
		}
	default:
		t.update((*health.Health).Broken)
	}
}

// identify asks the target whether it is a site, unless this is known. It reports whether
// the target may be called: not if another node has taken over its site.
func (t *target) identify(ctx context.Context) bool {
	t.mu.Lock()
	known := t.known
	t.mu.Unlock()
	if known {
		return true
	}
	resp := &samyav1.ListSitesResponse{}
	if err := t.conn.Invoke(ctx, samyav1.ClusterService_ListSites_FullMethodName, &samyav1.ListSitesRequest{}, resp); err != nil {
		return true
	}
	site, isSite := strings.CutPrefix(resp.GetAnsweredBy(), "site/")
	var term int64
	for _, s := range resp.GetSites() {
		if isSite && s.GetName() == site {
			term = s.GetTerm()
		}
	}
	if term > 0 && !t.took(site, term) {
		return false
	}
	t.mu.Lock()
	changed := t.was != site && isSite || t.front == isSite
	t.known, t.front = true, !isSite
	if t.was, t.term = "", term; isSite {
		t.site, t.was = site, site
	}
	t.mu.Unlock()
	if changed {
		t.changed()
	}
	return true
}

// isNode reports whether the target is a node of a site that several may run.
func (t *target) isNode() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.term > 0
}

// ran returns the take-over by which the target is known to run a site; 0 for none.
func (t *target) ran(site string) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.known || t.was != site {
		return 0
	}
	return t.term
}

// update changes the health. After a broken connection another site may answer.
func (t *target) update(f func(*health.Health)) {
	t.mu.Lock()
	before := t.health
	f(&t.health)
	if t.health.Reach == health.Down {
		t.known, t.site = false, ""
	}
	changed := t.health != before
	t.mu.Unlock()
	if changed {
		t.changed()
	}
}

func (t *target) state() health.Health {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.health
}

// sessions reports whether the target told that it, and all sites, know sessions.
func (t *target) sessions() bool { return t.mux.Sessions() || t.batches.Load() }

// told takes in what an answer to a batch tells.
func (t *target) told(resp *samyav1.BatchResponse) {
	if resp.GetSessions() {
		t.batches.Store(true)
	}
}

// name returns the name of the site that the target is; empty if it is an app manager or
// not known yet.
func (t *target) name() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.site
}

// seat returns the name of the site that the target was last, and when its own word that
// it drains is over.
func (t *target) seat() (site string, drainsUntil time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.was, t.drainsUntil
}

// shun has the target get no acquires for drainTime, as it said that it drains.
func (t *target) shun(now time.Time) {
	t.mu.Lock()
	t.drainsUntil = now.Add(drainTime)
	t.mu.Unlock()
	t.changed()
}

// enter counts a call in; it fails once the target is retired.
func (t *target) enter() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.retired {
		return errRetired
	}
	t.calls++
	return nil
}

// leave counts a call out.
func (t *target) leave() {
	t.mu.Lock()
	t.calls--
	t.ended++
	// Whoever abandons the target closes it.
	done := t.retired && t.calls == 0 && t.life.Err() == nil
	t.mu.Unlock()
	if done {
		// Nobody waits for the error.
		_ = t.close()
	}
}

// retire ends what follows the target, and closes it once no call is under way. Closing
// it earlier would make outcomes unknown.
func (t *target) retire() {
	t.mu.Lock()
	done := !t.retired && t.calls == 0
	t.retired = true
	t.mu.Unlock()
	t.stop()
	if done {
		_ = t.close()
	}
}

// invoke makes a unary call, which ends with the target's life.
func (t *target) invoke(ctx context.Context, method string, req, resp proto.Message) (mux.Fate, error) {
	ctx, cancel := context.WithCancel(withTrace(ctx))
	defer cancel()
	t.mu.Lock()
	life := t.life
	t.mu.Unlock()
	defer context.AfterFunc(life, cancel)()
	return mux.Invoke(ctx, t.conn, method, req, resp)
}

// live begins a life.
func (t *target) live() { t.life, t.cut = context.WithCancel(context.Background()) }

// abandon ends the calls under way: the site is at another address, and nobody answers
// here. It retires the target, but leaves it to the caller to close it.
func (t *target) abandon() {
	t.mu.Lock()
	t.retired = true
	t.cut()
	t.mu.Unlock()
	t.stop()
}

// outlive has the target be the site no more from whose node another node has taken over.
// It ends the calls under way there, unless the target may be another node by now.
func (t *target) outlive(latest func(site string) (term int64)) {
	t.mu.Lock()
	over := t.term > 0 && t.term < latest(t.was)
	waits := over && t.known
	if over {
		t.was, t.term = "", 0
	}
	if waits {
		t.cut()
		t.live()
	}
	t.mu.Unlock()
	if waits {
		t.mux.Break(status.Error(codes.Unavailable, errOver.Error()))
		t.update((*health.Health).Broken)
	}
}

// close ends the target's calls and its connection.
func (t *target) close() error {
	return errors.Join(t.mux.Close(), t.conn.Close())
}
