// Package mux carries the operations of many callers to a server over a single stream
// (TokenService.Stream): Mux is the half of clients, Server the half of servers. It decides
// nothing about operations: it chooses no server, makes no request ids, repeats nothing,
// and leaves to a Handler how operations are run.
//
// Callers share messages without waiting for the server or a timer. While a message is
// being sent, or callers are being woken with their answers, further operations gather;
// they leave together in the next message.
package mux

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/samya-db/samya/internal/apierr"
	"github.com/samya-db/samya/internal/spanctx"
	samyav1 "github.com/samya-db/samya/proto/samya/v1"
)

// Fate is the fate of a call.
type Fate uint8

const (
	// Unsent: provably the server began nothing of the call.
	Unsent Fate = iota
	// Lost: the server may have begun the call, and no answer came.
	Lost
	// Answered: the server answered, with a response or a failure.
	Answered
)

func (f Fate) String() string { return [...]string{"unsent", "lost", "answered"}[f] }

// ErrClosed is the error of calls that had no answer when the Mux was closed.
var ErrClosed = errors.New("mux: closed")

// ErrGone is the error of calls to a server that their caller has given up.
var ErrGone = errors.New("mux: the server was given up")

const (
	// maxMessage bounds a message of several calls, in bytes: far below the bounds of app
	// managers (1 MiB by default) and sites.
	maxMessage = 32 << 10
	// maxOperation bounds an operation, in bytes: beyond it no field can be valid.
	maxOperation = 16 << 10
	// manyCalls calls are worth a message, whoever else may join. Against 64, with a site at
	// two busy processors: 32: 64 callers cost the site 19 % more processor time and the
	// client 11 %, for 1.3 messages a commit and not 1.1; 1,024 callers cost 10 % more. 48: in
	// between. 128, 256: the same within noise.
	manyCalls = 64
)

// Options change how a Mux works. The zero Options are the defaults.
type Options struct {
	// CallOptions are the options of the stream, and of the unary calls in its stead.
	CallOptions []grpc.CallOption
}

// Mux carries operations of many callers over a single stream to a server. It opens the
// stream when there is something to send. Its methods may be called from several
// goroutines at once.
type Mux struct {
	conn    grpc.ClientConnInterface
	options []grpc.CallOption
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	loop    sync.WaitGroup
	calls   sync.Pool    // of *call
	telling atomic.Int64 // callers being woken with their answers
	// sessions: the server of the last stream told that it knows sessions.
	sessions atomic.Bool

	mu      sync.Mutex
	work    sync.Cond // something to send, or an end, may have come
	queue   queue     // calls not handed to the transport
	stream  *stream   // nil while no stream is open
	running bool      // run has been started
	closed  bool
	unary   bool // the server has no Stream
}

// New returns a Mux to the server behind conn. Close does not close conn.
func New(conn grpc.ClientConnInterface, o Options) *Mux {
	m := &Mux{conn: conn, options: o.CallOptions}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	m.work.L = &m.mu
	return m
}

// Sessions reports whether the server of the last stream has told that all sites of its cluster
// know sessions (package session).
func (m *Mux) Sessions() bool { return m.sessions.Load() }

// Do makes an operation and waits for its result, until ctx ends. The server is told the
// deadline of ctx. The error is nil only if the fate is Answered, and the result may then
// be a failure. Otherwise the error comes from ctx, is a gRPC status of the stream,
// ErrClosed, or an *apierr.Error about an operation that cannot be sent.
//
// Calls made while the connection is being set up wait for it; if setting it up fails
// they are Unsent.
func (m *Mux) Do(ctx context.Context, op *samyav1.Operation) (*samyav1.Result, Fate, error) {
	return m.DoBy(ctx, op, time.Time{})
}

// DoBy is Do, but waits until the time by at most, unless by is zero. The error is then
// context.DeadlineExceeded. It is cheaper than a separate context for the call.
func (m *Mux) DoBy(ctx context.Context, op *samyav1.Operation, by time.Time) (*samyav1.Result, Fate, error) {
	return m.DoWhile(ctx, op, by, nil)
}

// DoWhile is DoBy, but waits until gone is closed at most. The error is then ErrGone.
func (m *Mux) DoWhile(
	ctx context.Context, op *samyav1.Operation, by time.Time, gone <-chan struct{},
) (*samyav1.Result, Fate, error) {
	return m.DoTraced(ctx, op, by, gone, nil)
}

// DoTraced is DoWhile, and tells the server the span of the caller; nil for none. A server without
// Stream is told of the trace by the interceptors of the connection, if at all.
func (m *Mux) DoTraced(
	ctx context.Context, op *samyav1.Operation, by time.Time, gone <-chan struct{}, trace *spanctx.Context,
) (*samyav1.Result, Fate, error) {
	if err := ctx.Err(); err != nil {
		return nil, Unsent, err
	}
	c := m.newCall()
	c.trace = trace
	var over <-chan time.Time
	if c.deadline, _ = ctx.Deadline(); !by.IsZero() && (c.deadline.IsZero() || by.Before(c.deadline)) {
		c.deadline = by
		over = c.expire(time.Until(by))
	}
	if err := c.encode(op); err != nil {
		m.free(c)
		return nil, Unsent, err
	}
	switch ok, err := m.enqueue(c); {
	case err != nil:
		m.free(c)
		return nil, Unsent, err
	case !ok:
		m.free(c)
		return m.doUnary(ctx, op, by, gone)
	}
	var end error
	select {
	case <-c.done:
	case <-ctx.Done():
		end = ctx.Err()
	case <-over:
		end = context.DeadlineExceeded
	case <-gone:
		end = ErrGone
	}
	if end != nil {
		if fate, left := m.leave(c); left {
			m.free(c)
			return nil, fate, end
		}
		// The answer of c was on its way.
		<-c.done
	}
	fate, err, answer := c.fate, c.err, c.answer
	m.free(c)
	if fate == Answered {
		m.told()
	}
	switch {
	case errors.Is(err, errNoStream):
		return m.doUnary(ctx, op, by, gone)
	case err != nil:
		return nil, fate, err
	}
	result, err := decodeResult(answer)
	if err != nil {
		return nil, Lost, err
	}
	return result, Answered, nil
}

// enqueue queues c to be sent. It reports false if the server has no Stream.
func (m *Mux) enqueue(c *call) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.closed:
		return false, ErrClosed
	case m.unary:
		return false, nil
	}
	if !m.running {
		m.running = true
		m.loop.Go(m.run)
	}
	m.queue.push(c)
	if m.queue.first == c && m.telling.Load() == 0 || m.queue.count == manyCalls {
		m.work.Signal()
	}
	return true, nil
}

// told notes that a caller was woken with its answer. The last such caller wakes the
// sender for calls queued meanwhile.
func (m *Mux) told() {
	if m.telling.Add(-1) > 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.queue.first != nil {
		m.work.Signal()
	}
}

// leave removes c because nobody waits for it any more. It reports false if c has ended
// by itself.
func (m *Mux) leave(c *call) (Fate, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch c.state {
	case queued:
		m.queue.remove(c)
		return Unsent, true
	case sent:
		m.stream.abandon(c)
		m.work.Signal()
		return Lost, true
	}
	return 0, false
}

// Break ends the open stream, if any, with err for its calls: their server has fallen
// silent.
func (m *Mux) Break(err error) {
	m.mu.Lock()
	s := m.stream
	m.mu.Unlock()
	if s != nil {
		s.fail(err)
	}
}

// Close ends the stream and all calls, and waits until nothing of the Mux is left
// running. Closing it again does nothing.
func (m *Mux) Close() error {
	m.mu.Lock()
	m.closed = true
	m.work.Broadcast()
	m.mu.Unlock()
	m.cancel()
	m.loop.Wait()
	return nil
}

// run opens a stream whenever there are calls and no stream is open, until Close.
func (m *Mux) run() {
	for m.awaitCalls() {
		s, err := m.open()
		if err != nil {
			m.end(nil, err)
			continue
		}
		m.end(s, s.run())
	}
	m.end(nil, ErrClosed)
}

// awaitCalls waits for a call. It reports false once the Mux is closed.
func (m *Mux) awaitCalls() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for m.queue.first == nil && !m.closed {
		m.work.Wait()
	}
	return !m.closed
}

// end ends every call after the stream has broken, or was not opened. Queued calls were
// never handed over.
func (m *Mux) end(s *stream, err error) {
	m.mu.Lock()
	m.stream = nil
	var ended []*call
	if m.closed {
		err = ErrClosed
	}
	if s != nil {
		if err = s.verdict(err); errors.Is(err, errNoStream) {
			m.unary = true
		}
		fate := Lost
		switch apierr.ReasonOf(err) {
		case apierr.ShuttingDown:
			// A server that ends a stream so has begun no call without an answer.
			fate = Unsent
		case apierr.Unauthenticated, apierr.PermissionDenied:
			// A server that has sent nothing before has not let the stream in.
			if !s.heard {
				fate = Unsent
			}
		}
		for _, c := range s.table.drain() {
			c.finish(fate, err)
			ended = append(ended, c)
		}
	}
	for c := m.queue.pop(); c != nil; c = m.queue.pop() {
		c.finish(Unsent, err)
		ended = append(ended, c)
	}
	m.mu.Unlock()
	for _, c := range ended {
		c.done <- struct{}{}
	}
}

// tooLarge returns the error of an operation that is too large to be sent.
func tooLarge(size int) error {
	return apierr.New(apierr.BodyTooLarge, "an operation of %d bytes, at most %d", size, maxOperation)
}
