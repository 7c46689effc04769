package appmgr

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/stats"
	"google.golang.org/protobuf/proto"
)

// maxAnswer bounds a site's answer, in bytes: a page of a thousand entities
// with the longest names is far below it.
const maxAnswer = 4 << 20

// fate is what became of a call to a site.
type fate uint8

const (
	// unsent: provably nothing reached the site.
	unsent fate = iota
	// lost: it may have reached the site, and no answer came.
	lost
	// answered: the site itself answered, with a response or a status.
	answered
)

func (f fate) String() string { return [...]string{"unsent", "lost", "answered"}[f] }

// link is the way to one site at one address.
type link struct {
	info  SiteInfo
	delay time.Duration // injected, each way
	conn  *grpc.ClientConn

	mu          sync.Mutex
	health      health
	outstanding int
	retired     bool
	up          context.Context // ends when the site is found to be down
	down        context.CancelFunc
	stop        context.CancelFunc // ends the probes
}

// newLink makes a link, which connects in the background.
func newLink(info SiteInfo, delay time.Duration, dial func(context.Context, string) (net.Conn, error)) (*link, error) {
	conn, err := grpc.NewClient("passthrough:///"+info.Address,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(dial),
		grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(),
		grpc.WithDisableRetry(),
		grpc.WithIdleTimeout(0),
		grpc.WithStatsHandler(watcher{}),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(false), grpc.MaxCallRecvMsgSize(maxAnswer)),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
			MinConnectTimeout: 2 * time.Second,
		}))
	if err != nil {
		return nil, err
	}
	conn.Connect()
	l := &link{info: info, delay: delay, conn: conn}
	l.up, l.down = context.WithCancel(context.Background())
	return l, nil
}

// life returns a context that ends when the site is found to be down.
func (l *link) life() context.Context {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.up
}

// enter counts a call in; it fails where limit calls are under way or the link
// is retired.
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
	done := l.retired && l.outstanding == 0
	l.mu.Unlock()
	if done {
		l.conn.Close()
	}
}

// retire ends the probes, takes no further call and closes the connection once
// the calls under way have ended: closing it on them would make their outcomes
// unknown.
func (l *link) retire() {
	l.mu.Lock()
	done := !l.retired && l.outstanding == 0
	l.retired = true
	l.mu.Unlock()
	l.stop()
	if done {
		l.conn.Close()
	}
}

// update changes the health under the lock.
func (l *link) update(f func(*health)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.health.reach
	f(&l.health)
	switch {
	case l.health.reach == down && was != down:
		l.down()
	case l.health.reach != down && was == down:
		l.up, l.down = context.WithCancel(context.Background())
	}
}

// candidate returns the link as the choice sees it.
func (l *link) candidate(region string, limit int) candidate {
	l.mu.Lock()
	defer l.mu.Unlock()
	return candidate{
		name: l.info.Name, home: l.info.Region == region,
		full: l.outstanding >= limit, health: l.health,
	}
}

// invoke makes a call and tells what became of it. The error is nil only if
// the fate is answered.
func (l *link) invoke(ctx context.Context, method string, req, resp proto.Message) (fate, error) {
	if err := pause(ctx, l.delay); err != nil {
		return unsent, err
	}
	w := &watch{}
	err := l.conn.Invoke(context.WithValue(ctx, watchKey{}, w), method, req, resp)
	f := w.fate(err)
	if perr := pause(ctx, l.delay); perr != nil && f == answered {
		return lost, perr
	}
	return f, err
}

// pause waits for d or for the end of ctx, whose error it returns.
func pause(ctx context.Context, d time.Duration) error {
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

// watch records how far one call got.
type watch struct{ headerOut, trailerIn atomic.Bool }

type watchKey struct{}

// fate tells what became of the call that returned err. gRPC reports OutHeader
// as soon as the headers are queued, before any of the message can be on the
// wire: without it, nothing left. It reports InTrailer when the server's own
// status arrived: with it, an error is the server's. gRPC sends again by itself
// only what the server's HTTP/2 layer says was never looked at.
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
