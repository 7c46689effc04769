package peer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/samya-db/samya/internal/tlsconf"
	"github.com/samya-db/samya/internal/wan"
	peerv1 "github.com/samya-db/samya/proto/samya/peer/v1"
	"github.com/samya-db/samya/site/core"
)

// link is the outgoing link to a single member.
type link struct {
	owner *Links
	to    core.SiteID
	// heard holds a token once the member has brought its own link up.
	heard chan struct{}
	// trip is how long the last greeting took, in nanoseconds.
	trip atomic.Int64

	mu     sync.Mutex
	queue  []queued
	bytes  int
	signal chan struct{}

	// aim guards the fields below. It is held while the address is looked up, so that no
	// change of the address is missed.
	aim sync.Mutex
	// address is where the last attempt went. reached is the term of the node that answered
	// there; 0 before the answer. cancel ends the attempt or the link; nil between attempts.
	address string
	reached int64
	cancel  context.CancelCauseFunc
	// term is the highest term in greetings of the member's nodes. over is closed, and made
	// anew, when a node greets with a higher term.
	term int64
	over chan struct{}
}

// queued is a message that waits for the link.
type queued struct {
	message *peerv1.ProtocolMessage
	size    int
	since   time.Time
}

func (k *link) push(m *peerv1.ProtocolMessage) {
	cfg, size := &k.owner.cfg, proto.Size(m)
	if size > maxWhole-batchHead {
		cfg.Logger.LogAttrs(context.Background(), slog.LevelError, "a message is too large for a link and is dropped",
			slog.String("peer", string(k.to)), slog.Int("bytes", size), slog.Int("most", maxWhole-batchHead))
		return
	}
	k.mu.Lock()
	if len(k.queue) < cfg.MaxQueued && (len(k.queue) == 0 || k.bytes+size <= cfg.MaxQueuedBytes) {
		k.queue = append(k.queue, queued{m, size, time.Now()})
		k.bytes += size
	}
	k.mu.Unlock()
	select {
	case k.signal <- struct{}{}:
	default:
	}
}

// batchHead is more than a batch needs in addition to its only message.
const batchHead = 64

// take removes the messages of a batch from the queue.
func (k *link) take() []*peerv1.ProtocolMessage {
	k.mu.Lock()
	defer k.mu.Unlock()
	cfg, bytes := &k.owner.cfg, 0
	var taken []*peerv1.ProtocolMessage
	for i := range k.queue {
		q := &k.queue[i]
		if len(taken) == cfg.MaxBatch || len(taken) > 0 && bytes+q.size > cfg.MaxBatchBytes {
			break
		}
		taken = append(taken, q.message)
		bytes += q.size
	}
	k.leave(len(taken))
	return taken
}

// leave removes the first messages of the queue. The caller holds k.mu.
func (k *link) leave(n int) {
	for i := range k.queue[:n] {
		k.bytes -= k.queue[i].size
		k.queue[i] = queued{}
	}
	k.queue = k.queue[n:]
	if len(k.queue) == 0 {
		k.queue = nil
	}
}

// dropStale drops the messages that have waited too long for the link to come up.
func (k *link) dropStale() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	oldest, n := time.Now().Add(-k.owner.cfg.Stale), 0
	for n < len(k.queue) && k.queue[n].since.Before(oldest) {
		n++
	}
	k.leave(n)
	return n
}

// run connects again and again until ctx ends.
func (k *link) run(ctx context.Context) {
	pause := minPause
	for ctx.Err() == nil {
		began := time.Now()
		err := k.connect(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > maxPause {
			pause = minPause
		}
		if errors.Is(err, errMoved) {
			// The link may have forgotten that it is to connect anew.
			k.hear()
		}
		k.owner.cfg.Logger.LogAttrs(ctx, slog.LevelDebug, "link to a peer is down",
			slog.String("peer", string(k.to)), slog.Any("error", err))
		if k.rest(ctx, pause) {
			pause = minPause
		} else {
			pause = min(2*pause, maxPause)
		}
	}
}

// rest waits for a pause, or until the member is heard of, and reports whether it was.
// So a member that was down for long is linked as soon as it is up: it may need others
// before it serves.
func (k *link) rest(ctx context.Context, pause time.Duration) (heard bool) {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-k.heard:
		return true
	}
	return false
}

// hear notes that the member has brought its own link up.
func (k *link) hear() {
	select {
	case k.heard <- struct{}{}:
	default:
	}
}

// forget drops a token from before the link was up.
func (k *link) forget() {
	select {
	case <-k.heard:
	default:
	}
}

// connect brings the link up and serves it until it breaks.
func (k *link) connect(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	address := k.begin(cancel)
	defer k.end()
	if address == "" {
		return fmt.Errorf("its address is not known yet")
	}
	conn, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(k.credentials()),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 3 * time.Second}))
	if err != nil {
		return fmt.Errorf("dialling %s: %w", address, err)
	}
	// A connection that hangs takes seconds to close.
	defer k.owner.closes.Go(func() { _ = conn.Close() })
	stream, err := peerv1.NewPeerServiceClient(conn).Link(ctx)
	if err != nil {
		return fmt.Errorf("opening a stream to %s: %w", address, err)
	}
	if err := k.introduce(stream, cancel); err != nil {
		return err
	}
	k.owner.accepted(k.to)
	k.forget()
	stale := k.dropStale()
	k.owner.setConnected(k.to, true)
	defer k.owner.setConnected(k.to, false)
	k.owner.cfg.Logger.LogAttrs(ctx, slog.LevelInfo, "link to a peer is up",
		slog.String("peer", string(k.to)), slog.String("address", address), slog.Int("stale_messages_dropped", stale))
	go func() {
		_, err := stream.Recv()
		cancel(fmt.Errorf("the stream ended: %w", err))
	}()
	k.serve(ctx, cancel, stream)
	return context.Cause(ctx)
}

// credentials returns the credentials of the connection. It accepts only a peer whose
// certificate names the site k.to.
func (k *link) credentials() credentials.TransportCredentials {
	if k.owner.cfg.TLS == nil {
		return insecure.NewCredentials()
	}
	return k.owner.cfg.TLS.ClientCredentials(tlsconf.Identity{Kind: tlsconf.Site, Name: string(k.to)})
}

type clientStream = grpc.BidiStreamingClient[peerv1.LinkRequest, peerv1.LinkResponse]

// introduce exchanges greetings.
func (k *link) introduce(stream clientStream, cancel context.CancelCauseFunc) error {
	timer := time.AfterFunc(greetingTimeout, func() { cancel(fmt.Errorf("no greeting within %v", greetingTimeout)) })
	defer timer.Stop()
	hello := &peerv1.LinkRequest{Frame: &peerv1.LinkRequest_Hello{Hello: k.owner.hello()}}
	if err := stream.Send(hello); err != nil {
		return fmt.Errorf("greeting: %w", err)
	}
	began := time.Now()
	answer, err := stream.Recv()
	k.trip.Store(int64(time.Since(began)))
	if err != nil {
		if s, told := status.FromError(err); told && s.Code() == codes.FailedPrecondition {
			k.owner.refusedBy(k.to, fmt.Errorf("site %s refuses this site: %s", k.to, s.Message()))
		}
		return fmt.Errorf("being greeted: %w", err)
	}
	if err := k.owner.greet(answer.GetHello()); err != nil {
		k.owner.refuse(k.to, err)
		return fmt.Errorf("the peer is refused: %w", err)
	}
	if got := core.SiteID(answer.GetHello().GetSite()); got != k.to {
		return fmt.Errorf("site %q answers at the address of %q", got, k.to)
	}
	if err := k.reach(answer.GetHello().GetTerm()); err != nil {
		return err
	}
	return k.owner.cfg.Speaks(k.to, speaker(answer.GetHello()))
}

// serve sends queued messages, held back by the link's latency.
func (k *link) serve(ctx context.Context, cancel context.CancelCauseFunc, stream clientStream) {
	send := func(f *peerv1.LinkRequest) {
		if err := stream.Send(f); err != nil {
			cancel(fmt.Errorf("sending: %w", err))
		}
	}
	latency := func() time.Duration {
		if k.owner.cfg.Latency == nil {
			return 0
		}
		return k.owner.cfg.Latency(k.to)
	}
	deliver := send
	if latency() > 0 {
		line := wan.NewDelayLine(maxDelayed, send)
		// The stream's context ends first, so that a delivery under way ends.
		defer line.Close()
		defer cancel(nil)
		deliver = func(f *peerv1.LinkRequest) { line.Send(f, latency()) }
	}
	for {
		for messages := k.take(); len(messages) > 0; messages = k.take() {
			if k.owner.cfg.Fault != nil && k.owner.cfg.Fault(k.to) {
				continue
			}
			frames, err := framesOf(&peerv1.Batch{Messages: messages})
			if err != nil {
				cancel(err)
				return
			}
			for _, f := range frames {
				deliver(f)
			}
		}
		select {
		case <-k.signal:
		case <-ctx.Done():
			return
		}
	}
}

// framesOf returns the frames that carry a batch: the batch, or its parts.
func framesOf(b *peerv1.Batch) ([]*peerv1.LinkRequest, error) {
	if proto.Size(b) <= maxFrame {
		return []*peerv1.LinkRequest{{Frame: &peerv1.LinkRequest_Batch{Batch: b}}}, nil
	}
	raw, err := proto.Marshal(b)
	if err != nil {
		return nil, fmt.Errorf("encoding a batch: %w", err)
	}
	var frames []*peerv1.LinkRequest
	for len(raw) > 0 {
		n := min(len(raw), maxFrame)
		part := &peerv1.Part{Data: raw[:n], Last: n == len(raw)}
		frames = append(frames, &peerv1.LinkRequest{Frame: &peerv1.LinkRequest_Part{Part: part}})
		raw = raw[n:]
	}
	return frames, nil
}
