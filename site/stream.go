package site

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/samya-db/samya/internal/apierr"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
	"github.com/samya-db/samya/site/engine"
)

const (
	// streamWindow is the most calls of a stream without an answer.
	streamWindow = 16384
	// expiryPause is the shortest time between two looks for expired calls.
	expiryPause = 10 * time.Millisecond
	// maxReplies and failureBytes bound a message of answers far below the limit of
	// clients: the number of answers, and the bytes of failures.
	maxReplies   = 2048
	failureBytes = 1 << 20
)

// Stream implements samyav1.TokenServiceServer. It reads at all times, so that it hears
// of cancels. The window bounds it, which counts a call until its answer is about to be
// sent.
func (s tokens) Stream(rpc grpc.BidiStreamingServer[samyav1.StreamRequest, samyav1.StreamResponse]) error {
	st := &stream{site: s.Site, engine: s.engine, window: streamWindow, closing: s.closing}
	return st.serve(rpc)
}

// starter is the part of the engine that a stream needs.
type starter interface {
	Start(calls []*engine.Call) error
	Cancel(c *engine.Call) bool
}

// stream is the calls of many callers over a single connection. One goroutine reads;
// another sends, in each message, all answers there are by then.
type stream struct {
	site    *Site
	engine  starter
	window  int
	closing <-chan struct{}

	// turn is held while calls are begun or cancelled, so that no operation is given
	// out again meanwhile. It is taken before mu. The sender takes it only when a
	// caller's time is up, so that answers go on while calls are begun.
	turn sync.Mutex
	// calls is the memory of the calls being begun.
	calls []*engine.Call

	// mu guards the fields below, up to outMu.
	mu sync.Mutex
	// open has the calls without a sent answer, by tag.
	open map[uint64]*operation
	// free are operations to be used again.
	free []*operation
	// closed: no calls are begun any more.
	closed bool
	// expiry is no later than the first caller's deadline; zero if no caller has a
	// deadline.
	expiry time.Time

	// out are the operations that have answers. Its lock is taken after the
	// engine's.
	outMu sync.Mutex
	out   []*operation
	// wake holds one token when the sender has something to look at.
	wake chan struct{}
}

// answered implements answeree.
func (st *stream) answered(o *operation) {
	st.outMu.Lock()
	st.out = append(st.out, o)
	first := len(st.out) == 1
	st.outMu.Unlock()
	if first {
		st.nudge()
	}
}

func (st *stream) nudge() {
	select {
	case st.wake <- struct{}{}:
	default:
	}
}

// serve runs the stream until its caller has closed it and has all answers, or until it
// fails. A site that stops answers every call it has begun, and then ends the stream
// with ShuttingDown. A call without an answer was then not begun.
func (st *stream) serve(rpc grpc.BidiStreamingServer[samyav1.StreamRequest, samyav1.StreamResponse]) error {
	st.open, st.wake = make(map[uint64]*operation), make(chan struct{}, 1)
	defer st.abandon()
	if err := rpc.Send(&samyav1.StreamResponse{Window: uint32(st.window)}); err != nil {
		return fmt.Errorf("telling the window: %w", err)
	}
	// The goroutine ends with the stream, perhaps after this function has returned.
	ended := make(chan error, 1)
	go func() { ended <- st.read(rpc) }()
	closing := st.closing
	var end error
	timer := time.NewTimer(0)
	defer timer.Stop()
	var taken []*operation
	for {
		taken = st.take(taken)
		if err := st.send(rpc, taken); err != nil {
			return err
		}
		if len(taken) > 0 {
			continue
		}
		if st.drained() {
			return end
		}
		st.expire(timer)
		select {
		case <-st.wake:
		case <-timer.C:
		case <-rpc.Context().Done():
			return apierr.Wrap(apierr.Canceled, context.Cause(rpc.Context()))
		case err := <-ended:
			if !errors.Is(err, io.EOF) {
				return err
			}
			st.close()
		case <-closing:
			closing = nil
			st.close()
			end = apierr.New(apierr.ShuttingDown, "site %s is about to stop; what has no answer was not begun", st.site.cfg.Name)
		}
	}
}

// read begins and cancels calls at the caller's request, until the stream ends.
func (st *stream) read(rpc grpc.BidiStreamingServer[samyav1.StreamRequest, samyav1.StreamResponse]) error {
	for {
		r, err := rpc.Recv()
		if err != nil {
			return err
		}
		if err := st.handle(r); err != nil {
			return err
		}
	}
}

func (st *stream) handle(r *samyav1.StreamRequest) error {
	st.turn.Lock()
	defer st.turn.Unlock()
	if len(r.GetCalls()) > 0 {
		if err := st.begin(r.GetCalls(), time.Now()); err != nil {
			return err
		}
	}
	for _, tag := range r.GetCancels() {
		st.mu.Lock()
		o := st.open[tag]
		st.mu.Unlock()
		if o != nil {
			st.cancel(o, context.Canceled)
		}
	}
	return nil
}

// begin begins calls. Malformed calls fail at once.
func (st *stream) begin(calls []*samyav1.Call, now time.Time) error {
	st.site.metrics.streamed.Observe(float64(len(calls)))
	begun, err := st.enter(st.calls[:0], calls, now)
	if err != nil {
		return err
	}
	if err := st.engine.Start(begun); err != nil {
		for _, c := range begun {
			o := c.To.(*operation)
			o.err = st.site.broken(err, o.asked)
			st.answered(o)
		}
	}
	clear(begun)
	st.calls = begun[:0]
	return nil
}

// enter makes calls ready to be begun, and returns the well-formed calls. A closed
// stream takes no calls.
func (st *stream) enter(begun []*engine.Call, calls []*samyav1.Call, now time.Time) ([]*engine.Call, error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.closed {
		return begun, nil
	}
	if n := len(st.open) + len(calls); n > st.window {
		return nil, apierr.New(apierr.WindowExceeded, "%d calls without an answer, the window is %d", n, st.window)
	}
	for i, c := range calls {
		if _, ok := st.open[c.GetTag()]; ok {
			return nil, apierr.Invalid(fmt.Sprintf("calls[%d].tag", i), fmt.Sprintf("%d is that of a call without an answer", c.GetTag()))
		}
		o := st.operation()
		o.to, o.tag, o.began, o.deadline = st, c.GetTag(), now, time.Time{}
		left := forEver
		if ms := c.GetTimeoutMs(); ms > 0 {
			left = time.Duration(ms) * time.Millisecond
			o.deadline = now.Add(left)
			if st.expiry.IsZero() || o.deadline.Before(st.expiry) {
				st.expiry = o.deadline
				st.nudge()
			}
		}
		st.open[o.tag] = o
		if o.err = st.site.read(o, c.GetOperation(), left); o.err != nil {
			st.answered(o)
			continue
		}
		begun = append(begun, &o.Call)
	}
	return begun, nil
}

// operation returns an unused operation.
func (st *stream) operation() *operation {
	if n := len(st.free); n > 0 {
		o := st.free[n-1]
		st.free = st.free[:n-1]
		return o
	}
	return new(operation)
}

// cancel gives up a call, unless its answer is on its way.
func (st *stream) cancel(o *operation, cause error) {
	if !st.engine.Cancel(&o.Call) {
		return
	}
	o.cancelled = true
	o.err = st.site.broken(fmt.Errorf("waiting for an answer: %w", cause), o.asked)
	st.answered(o)
}

// expire gives up the expired calls, and sets the timer for the next deadline.
func (st *stream) expire(timer *time.Timer) {
	st.mu.Lock()
	next := st.expiry
	st.mu.Unlock()
	now := time.Now()
	if !next.IsZero() && !now.Before(next) {
		next = st.cancelExpired(now)
	}
	if next.IsZero() {
		timer.Stop()
		return
	}
	timer.Reset(max(expiryPause, next.Sub(now)))
}

// cancelExpired gives up the expired calls, and returns the next deadline of a call;
// zero if there is none.
func (st *stream) cancelExpired(now time.Time) time.Time {
	st.turn.Lock()
	defer st.turn.Unlock()
	st.mu.Lock()
	defer st.mu.Unlock()
	st.expiry = time.Time{}
	for _, o := range st.open {
		switch {
		case o.deadline.IsZero() || o.cancelled:
		case !now.Before(o.deadline):
			st.cancel(o, context.DeadlineExceeded)
		case st.expiry.IsZero() || o.deadline.Before(st.expiry):
			st.expiry = o.deadline
		}
	}
	return st.expiry
}

// close stops the stream from beginning further calls.
func (st *stream) close() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.closed = true
}

// drained reports whether the stream is closed and has sent all answers.
func (st *stream) drained() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.closed && len(st.open) == 0
}

// abandon closes the stream and gives up all calls without an answer.
func (st *stream) abandon() {
	st.turn.Lock()
	defer st.turn.Unlock()
	st.mu.Lock()
	defer st.mu.Unlock()
	st.closed = true
	for _, o := range st.open {
		st.engine.Cancel(&o.Call)
	}
}

// take returns the operations that have answers.
func (st *stream) take(into []*operation) []*operation {
	st.outMu.Lock()
	defer st.outMu.Unlock()
	taken := st.out
	st.out = into[:0]
	return taken
}

// send sends the answers of operations, in as many messages as necessary.
func (st *stream) send(rpc grpc.BidiStreamingServer[samyav1.StreamRequest, samyav1.StreamResponse], taken []*operation) error {
	for len(taken) > 0 {
		resp, n := st.response(taken)
		st.reuse(taken[:n])
		if err := rpc.Send(resp); err != nil {
			return fmt.Errorf("sending answers: %w", err)
		}
		taken = taken[n:]
	}
	return nil
}

// response returns the answers of the first n operations.
func (st *stream) response(taken []*operation) (resp *samyav1.StreamResponse, n int) {
	type reply struct {
		is     samyav1.Reply
		result samyav1.Result
	}
	taken = taken[:min(len(taken), maxReplies)]
	all := make([]reply, len(taken))
	resp = &samyav1.StreamResponse{Replies: make([]*samyav1.Reply, 0, len(taken))}
	var made results
	failures := 0
	t := st.site.metrics.tally(st.site.metrics.replies, len(taken))
	defer t.end()
	for i, o := range taken {
		r := &all[i]
		err := made.of(st.site, &r.result, o)
		t.count(o, o.began, err)
		r.is.Tag, r.is.Result = o.tag, &r.result
		resp.Replies = append(resp.Replies, &r.is)
		if err != nil {
			if failures += proto.Size(&r.result); failures > failureBytes {
				break
			}
		}
	}
	return resp, len(resp.GetReplies())
}

// reuse takes out operations whose answers are about to be sent.
func (st *stream) reuse(sent []*operation) {
	st.mu.Lock()
	defer st.mu.Unlock()
	for i, o := range sent {
		delete(st.open, o.tag)
		if !o.cancelled {
			st.free = append(st.free, o)
		}
		sent[i] = nil
	}
}
